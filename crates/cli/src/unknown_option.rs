//! Options that do not exist: what is advised where one is meant for a parameter of the scenario, or for another command.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clearway_lab::{Catalogue, Laboratory};

/// The same error; of an option that a command does not have, with what to write instead, if that is known.
pub(crate) fn with_advice(laboratory: &Laboratory, mut error: clap::Error) -> clap::Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let usage = error.get(ContextKind::Usage).map(ToString::to_string);
    let tips = tips(laboratory, option, &usage.unwrap_or_default());
    if !tips.is_empty() {
        let tips = tips.into_iter().map(StyledStr::from).collect();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
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
