//! Advice for options that do not exist, but name a parameter of the scenario or belong to another command.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clearway_lab::scenario::htsim_options;
use clearway_lab::{Catalogue, Laboratory};

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

/// The command that makes a scenario of the htsim options among the arguments, if there are any.
fn of_htsim(arguments: &[String]) -> Option<String> {
    let is_known = |argument: &String| htsim_options().any(|option| option == argument);
    let first = arguments.iter().position(is_known)?;
    let words: Vec<String> = arguments[first..].iter().map(|word| quoted(word)).collect();
    let words = words.join(" ");
    Some(format!(
        "`clearway import htsim -- {words}` prints the scenario of these options of htsim"
    ))
}

/// `word` as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+%@".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
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
    use super::quoted;
    use clearway_lab::scenario::htsim_options;

    #[test]
    fn options_of_htsim_are_in_the_book() {
        let page = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../docs/src/coming-from.md"
        );
        let page = std::fs::read_to_string(page).unwrap();
        let (options, _) = page
            .split_once("\n## HPCC's ns-3")
            .expect("the next section");
        for option in htsim_options() {
            let is_listed = |end: &str| options.contains(&format!("`{option}{end}"));
            assert!(is_listed("`") || is_listed(" "), "{option}");
        }
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("-topo"), "-topo");
        assert_eq!(quoted("my file's.cm"), "'my file'\\''s.cm'");
        assert_eq!(quoted(""), "''");
    }
}
