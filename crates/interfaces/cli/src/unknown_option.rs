//! Advice for options that do not exist, but name a parameter of the scenario or belong to another command.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clearway_lab::{Catalogue, Laboratory};

/// Options of htsim's programs, which begin with one dash, and their equivalents in `clearway`.
const HTSIM: &[(&str, &str)] = &[
    ("-topo", "`--set topology.file=F.topo`"),
    ("-tm", "`--set workload.file=F.cm`"),
    (
        "-q",
        "`--set switch.queue=BYTES`, with a unit: 35 packets are \"145250B\"",
    ),
    ("-queue_size_bdp_factor", "`--set switch.queue=5bdp`"),
    (
        "-queue_type",
        "`--set switch.kind=lossy` or `shared-buffer`",
    ),
    (
        "-ecn",
        "`--set switch.ecn.kmin=BYTES` and `--set switch.ecn.kmax=BYTES`",
    ),
    ("-end", "`--set stop.at-most=1000us`"),
    ("-seed", "`--seed N`"),
    ("-nodes", "`--set topology.hosts=N`, without a file"),
    (
        "-tiers",
        "`--set topology.kind=fat-tree --set topology.tiers=N`, without a file",
    ),
    (
        "-linkspeed",
        "`--set topology.link-rate=400Gbps`, without a file",
    ),
    (
        "-hop_latency",
        "`--set topology.link-delay=1us`, without a file",
    ),
    (
        "-mtu",
        "`--set transport.payload=4086B`: the headers of 64 B are not included",
    ),
    ("-cwnd", "`--set transport.max-cwnd-bdps=1.5`"),
    ("-paths", "`--set transport.max-paths=N`"),
    ("-load_balancing_algo", "`--set transport.spray=mixed`"),
    ("-strat", "`--set switch.routing=ecmp`"),
    ("-sender_cc_algo", "`--set transport.controller=nscc`"),
    ("-sender_cc_only", "`--set transport.kind=uet`"),
    ("-receiver_cc_only", "`--set transport.kind=uet-rccc`"),
    ("-disable_trim", "`--set transport.kind=uet-no-trim`"),
    ("-trimsize", "`--set switch.trim-size=64B`"),
    (
        "-o",
        "`--out DIR`; `--htsim-txt FILE` writes what htsim prints",
    ),
];

/// Reference to the page with all options of htsim.
const HTSIM_PAGE: &str = "the page \"Coming from htsim, HPCC, SimAI, ASTRA-sim or Chakra\" of the book has the other options of htsim";

/// The same error; for an unknown option it also has the known replacements. `arguments` are the arguments of the process.
pub(crate) fn with_advice(
    laboratory: &Laboratory,
    mut error: clap::Error,
    arguments: &[String],
) -> clap::Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let usage = error.get(ContextKind::Usage).map(ToString::to_string);
    let mut tips = tips(laboratory, option, &usage.unwrap_or_default());
    if !option.starts_with("--") {
        tips.extend(of_htsim(arguments));
    }
    if !tips.is_empty() {
        let tips = tips.into_iter().map(StyledStr::from).collect();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

/// Equivalents of the htsim options among the arguments.
fn of_htsim(arguments: &[String]) -> Vec<String> {
    let known = |argument: &String| HTSIM.iter().find(|(option, _)| option == argument);
    let mut tips: Vec<String> = arguments
        .iter()
        .filter_map(known)
        .map(|(option, here)| format!("`{option}` of htsim is {here}"))
        .collect();
    if !tips.is_empty() {
        tips.push(HTSIM_PAGE.into());
    }
    tips
}

fn tips(laboratory: &Laboratory, option: &str, usage: &str) -> Vec<String> {
    let Some(name) = option.strip_prefix("--") else {
        return Vec::new();
    };
    if name == "seeds" && usage.contains("clearway run") {
        return vec![
            "`clearway compare SCENARIO --seeds 3` runs several seeds, `--seed 3` is one of them"
                .into(),
        ];
    }
    let found = Catalogue::new(laboratory.registry()).explain(name);
    let mut keys: Vec<String> = found
        .into_iter()
        .filter(|entry| entry.role == "a key" && entry.name.contains('.'))
        .map(|entry| entry.name)
        .filter(|key| key.rsplit('.').next() == Some(name))
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let tip = |key| format!("`--set {key}=VALUE` sets a parameter of the scenario");
    keys.iter().map(tip).collect()
}

#[cfg(test)]
mod tests {
    use super::HTSIM;
    use crate::explain::list_of_kinds;
    use clearway_lab::{Catalogue, Laboratory};

    #[test]
    fn options_of_htsim_are_in_the_book_and_their_keys_exist() {
        let page = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../docs/src/coming-from.md"
        );
        let page = std::fs::read_to_string(page).unwrap();
        let laboratory = Laboratory::new();
        let catalogue = Catalogue::new(laboratory.registry());
        let (options, _) = page
            .split_once("\n## HPCC's ns-3")
            .expect("the next section");
        for (option, here) in HTSIM {
            let is_listed = |end: &str| options.contains(&format!("`{option}{end}"));
            assert!(is_listed("`") || is_listed(" "), "{option}");
            for setting in here.split("--set ").skip(1) {
                let key = setting.split('=').next().unwrap();
                let found = catalogue.explain(key);
                let is_key = found.iter().any(|entry| entry.name == key);
                assert!(is_key || list_of_kinds(key).is_some(), "{key}");
            }
        }
    }
}
