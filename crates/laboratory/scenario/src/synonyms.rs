//! Words of the field that have another name or another key here, and the advice to users who write them.

use crate::transport::presets::PRESETS;

/// Values of the keys that name a kind, in any case: the key, the words, and their meaning.
const NAMES: [(&str, &[&str], &str); 12] = [
    (
        "transport.kind",
        &["roce", "rdma", "rdmacm", "ib", "infiniband", "gobackn"],
        "\"rocev2\": go-back-N with DCQCN",
    ),
    (
        "transport.kind",
        &["ultraethernet", "ue", "uec", "nscc", "eqds", "ndp"],
        "\"uet\": Ultra Ethernet with NSCC and packet trimming; \"uet-rccc\" has receiver credits",
    ),
    (
        "transport.kind",
        &["cubic", "newreno", "bbr"],
        "\"tcp\": Reno with ECN, the one TCP there is; \"dctcp\" follows the share of marks",
    ),
    (
        "workload.kind",
        &["allreduce"],
        "an algorithm: \"ring-all-reduce\", \"halving-doubling\", \"double-binary-tree\" or \"direct-all-reduce\"",
    ),
    (
        "workload.kind",
        &["broadcast", "bcast"],
        "\"chain-broadcast\" or \"tree-broadcast\"",
    ),
    (
        "workload.kind",
        &["websearch", "hadoop", "datacenter", "datacentre", "storage"],
        "\"poisson\": Poisson arrivals, whose `sizes` names a distribution of message sizes",
    ),
    (
        "workload.kind",
        &["megatron", "transformer", "llm", "gpt", "pretraining"],
        "\"training\": iterations of a transformer, by its sizes and degrees of parallelism",
    ),
    (
        "workload.kind",
        &["chakra", "goal", "simai", "nccl"],
        "\"trace\": a training trace of GOAL, Chakra or SimAI, named by `file`",
    ),
    (
        "topology.kind",
        &["clos", "foldedclos", "spineleaf", "twotier", "twolayer"],
        "\"leaf-spine\", or \"fat-tree\" for three tiers",
    ),
    (
        "topology.kind",
        &["star", "switch", "onebigswitch"],
        "\"single-switch\"",
    ),
    (
        "topology.kind",
        &["rail", "rails", "railonly"],
        "\"rail-optimised\"",
    ),
    (
        "switch.kind",
        &["lossless", "pfc", "shared", "roce"],
        "\"shared-buffer\", with priority flow control; `pfc.classes` says for which classes",
    ),
];

/// Keys that do not exist in any section: the words, and their meaning.
const KEYS: [(&[&str], &str); 9] = [
    (
        &["pfc", "lossless", "priorityflowcontrol", "pfcenabled"],
        "`switch.kind = \"shared-buffer\"`: pause frames need a shared buffer; `switch.pfc.classes` says for which classes",
    ),
    (
        &[
            "ecnthreshold",
            "ecnkminkmax",
            "markingthreshold",
            "redmin",
            "redmax",
        ],
        "`switch.ecn.kmin` and `switch.ecn.kmax`: equal for a step",
    ),
    (
        &["mtu", "mss", "packetsize", "pktsize"],
        "`transport.payload`: bytes of a full packet without headers",
    ),
    (
        &[
            "bandwidth",
            "linkspeed",
            "linkbandwidth",
            "nicrate",
            "nicspeed",
            "hostrate",
        ],
        "`topology.link-rate`",
    ),
    (
        &["latency", "linklatency", "propagation", "propagationdelay"],
        "`topology.link-delay`: of one link, one way",
    ),
    (
        &["seeds", "repetitions", "runs"],
        "`seed` for one run; `clearway compare SCENARIO --seeds 3` runs several",
    ),
    (
        &["simtime", "simulationtime", "until", "timeout"],
        "`stop.at-most`: by default a run ends when all flows are done",
    ),
    (
        &["allreduce", "collective"],
        "`workload.kind`, such as \"ring-all-reduce\"; `clearway list workloads` names all",
    ),
    (
        &["congestioncontrol", "cc", "ccmode"],
        "`transport.kind` for a whole transport, `transport.controller` for the congestion control alone",
    ),
];

/// Letters and digits of a word, in lower case.
fn plain(word: &str) -> String {
    let letters = word.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// Advice about `name` as a value of `section.key`, which accepts `names`; `None` if `name` is not a word of the field.
pub(crate) fn meant_by_name(
    (section, key): (&str, &str),
    name: &str,
    names: &[&str],
) -> Option<String> {
    let (full, word) = (format!("{section}.{key}"), plain(name));
    if word.is_empty() {
        return None;
    }
    if let Some((_, _, meant)) = NAMES
        .iter()
        .find(|(own, words, _)| *own == full && words.contains(&word.as_str()))
    {
        return Some(format!("write {meant}"));
    }
    if let Some(fix) = other_part(key, name, names) {
        return Some(fix);
    }
    // Part of a name: `all-gather` of `ring-all-gather`.
    let parts: Vec<String> = names
        .iter()
        .filter(|own| word.len() > 3 && plain(own).contains(&word))
        .map(|own| format!("`{own}`"))
        .collect();
    (!parts.is_empty()).then(|| format!("did you mean {}?", alternatives(&parts)))
}

/// Names separated by commas, with "or" before the last.
fn alternatives(names: &[String]) -> String {
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// A controller in place of a transport, or a transport in place of one of its parts.
fn other_part(key: &str, name: &str, names: &[&str]) -> Option<String> {
    let is_transport = |kind: &str| PRESETS.iter().any(|preset| preset.name == kind);
    if key == "kind" && names.iter().all(|own| is_transport(own)) {
        let own: Vec<String> = PRESETS
            .iter()
            .filter(|preset| preset.controller == name)
            .map(|preset| format!("\"{}\"", preset.name))
            .collect();
        return (!own.is_empty()).then(|| {
            format!(
                "`{name}` is a controller: write {}, which {} it, or set `transport.controller`",
                alternatives(&own),
                if own.len() == 1 { "has" } else { "have" }
            )
        });
    }
    let parts = ["controller", "spray", "reliability", "feedback"];
    (parts.contains(&key) && is_transport(name))
        .then(|| format!("`{name}` is a whole transport: set `transport.kind = \"{name}\"`"))
}

/// Advice about a key that the section does not have; `None` if `key` is not a word of the field.
pub(crate) fn meant_by_key(key: &str) -> Option<String> {
    let word = plain(key);
    let known = KEYS
        .iter()
        .find(|(words, _)| words.contains(&word.as_str()));
    known.map(|(_, meant)| format!("write {meant}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_written_as_they_are_compared_and_once() {
        let names = NAMES
            .iter()
            .flat_map(|(key, words, _)| words.iter().map(move |word| (*key, *word)));
        let keys = KEYS
            .iter()
            .flat_map(|(words, _)| words.iter().map(|word| ("", *word)));
        let mut all: Vec<(&str, &str)> = names.chain(keys).collect();
        assert!(all.iter().all(|(_, word)| plain(word) == *word));
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn parts_of_transports_are_told_apart() {
        let kinds = PRESETS.map(|preset| preset.name);
        let fix = meant_by_name(("transport", "kind"), "dcqcn", &kinds).unwrap();
        assert_eq!(
            fix,
            "`dcqcn` is a controller: write \"rocev2\", \"dcqcn-2016\" or \"tmdml\", which have it, or set `transport.controller`"
        );
        let fix = meant_by_name(("transport", "controller"), "rocev2", &["dcqcn"]).unwrap();
        assert_eq!(
            fix,
            "`rocev2` is a whole transport: set `transport.kind = \"rocev2\"`"
        );
        let gathers = ["ring-all-gather", "direct-all-gather", "moe"];
        let fix = meant_by_name(("workload", "kind"), "all_gather", &gathers).unwrap();
        assert_eq!(
            fix,
            "did you mean `ring-all-gather` or `direct-all-gather`?"
        );
        assert_eq!(meant_by_name(("workload", "kind"), "zzz", &gathers), None);
    }
}
