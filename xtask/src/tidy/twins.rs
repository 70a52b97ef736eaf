//! Public types with the same name in several crates. Each is listed with a reason, so that new ones are noticed.

use super::lexer;
use super::source::Source;
use crate::Faults;
use std::collections::{BTreeMap, BTreeSet};

/// The list: `NAME CRATE CRATE …: reason`, crates in alphabetical order.
const LIST: &str = "xtask/src/tidy/twins.txt";

/// Keywords in front of the name of a type.
const TYPES: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

/// Faults for shared names that the list lacks, and for outdated lines of the list.
pub(super) fn check(sources: &[Source]) -> Faults {
    let list = sources.iter().find(|source| source.path == LIST);
    let Some(list) = list else {
        return Faults::new();
    };
    let mut listed: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut faults = Faults::new();
    for (number, line) in (1..).zip(list.text.lines()) {
        match line.split_once(": ") {
            Some((names, reason)) if !reason.is_empty() => {
                let mut names = names.split(' ');
                let name = names.next().unwrap_or_default();
                listed.insert(name, names.collect());
            }
            _ => faults.push(format!("{LIST}:{number}: not `NAME CRATE CRATE: reason`")),
        }
    }
    let twins = twins(sources);
    for (name, crates) in &twins {
        if listed.get(name.as_str()) != Some(crates) {
            let crates: Vec<&str> = crates.iter().copied().collect();
            let crates = crates.join(" ");
            faults.push(format!(
                "`{name}` is a public type of several crates: rename one, or add \"{name} {crates}: REASON\" to {LIST}"
            ));
        }
    }
    let gone = listed.keys().filter(|name| !twins.contains_key(**name));
    faults
        .extend(gone.map(|name| format!("{LIST}: `{name}` is no longer shared; remove its line")));
    println!(
        "tidy: {} names of public types are shared by several crates",
        twins.len()
    );
    faults
}

/// Names of public types that occur in more than one crate, with the crates.
fn twins(sources: &[Source]) -> BTreeMap<String, BTreeSet<&str>> {
    let mut crates: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let Some((folder, file)) = source.path.split_once("/src/") else {
            continue;
        };
        let name = folder.rsplit('/').next().unwrap_or(folder);
        if !folder.starts_with("crates/") || file.split(['/', '.']).any(|part| part == "tests") {
            continue;
        }
        for found in public_types(&source.text) {
            crates.entry(found).or_default().insert(name);
        }
    }
    crates.retain(|_, crates| crates.len() > 1);
    crates
}

/// Names of the public types that a file defines, without the types of its tests.
fn public_types(text: &str) -> Vec<String> {
    let code = lexer::code(text);
    let end = code.find("\nmod tests {");
    let lines = code[..end.unwrap_or(code.len())].lines();
    let names = lines.filter_map(|line| {
        let mut words = line.trim_start().strip_prefix("pub ")?.split(' ');
        TYPES.contains(&words.next()?).then_some(())?;
        let name = words.next()?;
        let length = name.find(|c: char| !c.is_alphanumeric() && c != '_');
        Some(name[..length.unwrap_or(name.len())].to_owned())
    });
    names.filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_crates_share_need_a_reason() {
        let source = |path: &str, text: &str| Source {
            path: path.into(),
            text: text.into(),
        };
        let mut sources = vec![
            source(
                "crates/a/x/src/lib.rs",
                "pub struct Plan<T>(T);\npub(crate) struct Own;\n",
            ),
            source(
                "crates/b/y/src/plan.rs",
                "pub enum Plan { A }\nstruct Own;\n\nmod tests {\n    pub struct Other;\n}\n",
            ),
            source("crates/b/z/src/lib.rs", "pub struct Other;\n"),
            source(LIST, "Old x y: gone\n"),
        ];
        assert_eq!(
            check(&sources),
            [
                "`Plan` is a public type of several crates: rename one, or add \"Plan x y: REASON\" to xtask/src/tidy/twins.txt",
                "xtask/src/tidy/twins.txt: `Old` is no longer shared; remove its line"
            ]
        );
        sources[3].text = "Plan x y: a fabric of packets and one of flits\n".into();
        assert_eq!(check(&sources), Faults::new());
    }
}
