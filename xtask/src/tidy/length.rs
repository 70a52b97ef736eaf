//! Files and functions that are too long. A list holds the known ones, and the list may only shrink.

use super::lexer;
use super::source::Source;
use crate::Faults;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Use of the table of lengths that are too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ratchet {
    /// Check that the table agrees with the actual lengths.
    Check,
    /// Lower the numbers of the table to the actual lengths.
    Update,
}

const FILE_LINES: usize = 600;
const FUNCTION_LINES: usize = 70;
const TEST_MODULE_LINES: usize = 300;
const TABLE: &str = "xtask/ratchet.txt";
const HEADER: &str = "\
# What is longer than 600 lines (files, without tests), 70 lines (functions) or 300 lines (tests within a file).
# `cargo xtask tidy --update` lowers numbers and removes lines; nothing raises or adds them but a good reason in review.
";

/// Lengths of files and functions that are too long, by a name such as `function crates/a/src/b.rs c`.
type Lengths = BTreeMap<String, usize>;

/// Compares files and functions that are too long with the list.
pub(super) fn check(root: &Path, sources: &[Source], ratchet: Ratchet) -> Faults {
    let found: Lengths = sources
        .iter()
        .filter(|source| source.is_rust() && !source.is_test())
        .flat_map(too_long)
        .collect();
    let listed = sources.iter().find(|source| source.path == TABLE);
    let listed = listed.map_or_else(Lengths::new, |table| read(&table.text));
    let mut faults = Faults::new();
    for (name, &lines) in &found {
        match listed.get(name) {
            None => faults.push(format!("{name}: {lines} lines are too long")),
            Some(&limit) if lines > limit => {
                faults.push(format!("{name}: grew from {limit} to {lines} lines"));
            }
            Some(_) => {}
        }
    }
    let slack = listed
        .iter()
        .any(|(name, limit)| found.get(name).is_none_or(|lines| lines < limit));
    match ratchet {
        Ratchet::Check if slack => faults.push(format!(
            "{TABLE}: something became shorter; run `cargo xtask tidy --update`"
        )),
        Ratchet::Update if slack => {
            let shrunk = listed.into_iter().filter_map(|(name, limit)| {
                let lines = *found.get(&name)?;
                Some((name, lines.min(limit)))
            });
            if let Err(error) = std::fs::write(root.join(TABLE), write(&shrunk.collect())) {
                faults.push(format!("{TABLE}: {error}"));
            }
        }
        _ => {}
    }
    faults
}

fn read(table: &str) -> Lengths {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let (count, name) = line.split_once(' ')?;
            Some((name.to_string(), count.parse().ok()?))
        })
        .collect()
}

fn write(lengths: &Lengths) -> String {
    let mut table = String::from(HEADER);
    for (name, lines) in lengths {
        let _ = writeln!(table, "{lines} {name}");
    }
    table
}

fn too_long(source: &Source) -> Vec<(String, usize)> {
    let code = lexer::code(&source.text);
    let all = code.lines().count();
    let tests_from = code.lines().position(|line| line == "mod tests {");
    // The attribute is on the line above.
    let production = tests_from.map_or(all, |line| line.saturating_sub(1));
    let mut found = Vec::new();
    if production > FILE_LINES {
        found.push((format!("file {}", source.path), production));
    }
    if all - production > TEST_MODULE_LINES {
        found.push((format!("tests {}", source.path), all - production));
    }
    for (name, line, lines) in functions(&code) {
        if lines > FUNCTION_LINES && line < production {
            found.push((format!("function {} {name}", source.path), lines));
        }
    }
    found
}

/// Name, first line (from 0) and number of lines of every function that has a body.
fn functions(code: &str) -> Vec<(String, usize, usize)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let before = code[..at].chars().next_back();
        let name: String = code[at + 3..]
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        if name.is_empty() || before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        if let Some(length) = body_end(&code[at..]) {
            let line = code[..at].matches('\n').count();
            let lines = code[at..at + length].matches('\n').count() + 1;
            found.push((name, line, lines));
        }
    }
    found
}

/// Offset of the end of the function at the beginning of `code`; `None` if the function has no body.
fn body_end(code: &str) -> Option<usize> {
    let (mut parens, mut braces) = (0i32, 0i32);
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' => parens += 1,
            ')' | ']' => parens -= 1,
            ';' if parens == 0 && braces == 0 => return None,
            '{' => braces += 1,
            '}' => {
                braces -= 1;
                if braces == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_measured_from_name_to_brace() {
        let code =
            "fn a(x: [u8; 3]) -> u8 {\n  if x {\n  }\n}\ntrait T {\n fn b();\n fn c() {}\n}\n";
        let expected = [("a".to_string(), 0, 4), ("c".to_string(), 6, 1)];
        assert_eq!(functions(code), expected);
    }

    #[test]
    fn long_files_are_measured_without_their_tests() {
        let source = |production: usize, tests: usize| Source {
            path: "a.rs".into(),
            text: format!(
                "{}#[cfg(test)]\nmod tests {{\n{}}}\n",
                "x\n".repeat(production),
                "x\n".repeat(tests)
            ),
        };
        assert!(too_long(&source(600, 297)).is_empty());
        let found = too_long(&source(601, 298));
        assert_eq!(
            found,
            [("file a.rs".into(), 601), ("tests a.rs".into(), 301)]
        );
    }

    #[test]
    fn the_table_survives_a_round_trip() {
        let lengths = Lengths::from([("function a.rs b".into(), 71), ("file c.rs".into(), 700)]);
        assert_eq!(read(&write(&lengths)), lengths);
    }
}
