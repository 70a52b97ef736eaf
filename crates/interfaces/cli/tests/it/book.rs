//! The book: the comment of every block of output names the command that prints the block.
//!
//! The gallery has a separate test. A block is marked with `<!-- not run: WHY -->` if no command of this program prints it, or no test can
//! run the command. `<!-- long: COMMAND -->` runs if CLEARWAY_THOROUGH is set.

use crate::common::Bench;
use clearway_testing::cases;
use clearway_testing::chapter::{Block, arguments, blocks, missing};
use std::path::{Path, PathBuf};

/// Chapters with separate tests.
const ELSEWHERE: [&str; 1] = ["gallery.md"];

fn chapters() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/src");
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut chapters: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|kind| kind == "md"))
        .filter(|path| !ELSEWHERE.iter().any(|name| path.ends_with(name)))
        .collect();
    chapters.sort_unstable();
    chapters
}

/// Runs the commands of a block in order, and returns their output.
fn printed(bench: &Bench, commands: &[&str]) -> String {
    let mut printed = String::new();
    for command in commands {
        let arguments = arguments(command, "clearway").expect("a command of clearway");
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = bench.output(&arguments);
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).unwrap();
        // 1: something was found, such as a transport that is vulnerable.
        let code = output.status.code();
        assert!(matches!(code, Some(0 | 1)), "{command}: {code:?}\n{text}");
        printed += &text;
    }
    printed
}

/// Lines of a block that the commands do not print, each with its place.
fn stale(bench: &Bench, chapter: &str, block: &Block) -> Vec<String> {
    let place = format!("{chapter}:{}", block.at);
    let (short, long): (Vec<&str>, Vec<&str>) =
        (block.said("of").collect(), block.said("long").collect());
    let commands = match (short.is_empty(), long.is_empty()) {
        (false, true) => short,
        (true, false) if cases(0, 1) == 0 => return Vec::new(),
        (true, false) => long,
        (true, true) if block.said("not run").next().is_some() => return Vec::new(),
        _ => {
            return vec![format!(
                "{place}: no command prints this block\n  fix: write `<!-- of: clearway … -->` above it"
            )];
        }
    };
    let printed = printed(bench, &commands);
    let lines = block.lines.iter().map(String::as_str);
    let is_printed = |line: &&str| *line != "..." && !line.is_empty() && !line.starts_with("$ ");
    let lines = lines.filter(is_printed);
    let missing = missing(lines, &printed).into_iter();
    missing.map(|line| format!("{place}: {line}")).collect()
}

#[test]
fn every_block_of_output_is_what_its_command_prints() {
    let mut stale_lines = Vec::new();
    for chapter in chapters() {
        let name = chapter.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&chapter).unwrap();
        let bench = Bench::new(&format!("book-{name}"));
        for block in blocks(&text) {
            for file in block.said("file") {
                bench.write(file, &(block.lines.join("\n") + "\n"));
            }
            if ["text", "console"].contains(&block.language.as_str()) {
                stale_lines.extend(stale(&bench, &format!("{name}.md"), &block));
            }
        }
    }
    assert!(stale_lines.is_empty(), "{}", stale_lines.join("\n"));
}
