//! Blanks, long lines and notes to oneself.

use super::lexer;
use super::source::Source;
use crate::Faults;

const COLUMNS: usize = 140;

/// Checks the text of one file.
pub(super) fn check(source: &Source) -> Faults {
    let mut faults = Faults::new();
    let kind = source.path.rsplit('.').next().unwrap_or("");
    let script = source.text.starts_with("#!");
    if !(matches!(kind, "rs" | "toml" | "md") || script) || source.path.ends_with(".snap") {
        return faults;
    }
    let mut fault = |line: usize, what: &str| {
        faults.push(format!("{}:{}: {what}", source.path, line + 1));
    };
    let stripped = if kind != "md" {
        lexer::code_and_comments(&source.text)
    } else {
        source.text.clone()
    };
    for (number, line) in source.text.lines().enumerate() {
        if line.contains('\t') {
            fault(number, "a tab");
        }
        if line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> ") {
            fault(number, "the mark of a merge conflict");
        }
        if line.ends_with(char::is_whitespace) {
            fault(number, "a blank at the end");
        }
    }
    // Literals may be long, because they are output for users.
    for (number, line) in stripped.lines().enumerate() {
        let is_table = line.trim_start_matches(['/', '!', ' ']).starts_with('|');
        if line.chars().count() > COLUMNS && !is_table && !line.contains("://") {
            fault(number, "more than 140 columns");
        }
        if line.contains(concat!("todo", "!")) || line.contains(concat!("FIX", "ME")) {
            fault(number, "a note to oneself");
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_should_not_stand_there() {
        let long = "x".repeat(150);
        let text = format!(
            "let a = 1; \n\tb();\n// {long}\nf(\"{long}\");\n//! | {long} |\n>>>>>>> theirs\n"
        );
        let source = Source {
            path: "crates/x/src/lib.rs".into(),
            text,
        };
        assert_eq!(
            check(&source),
            [
                "crates/x/src/lib.rs:1: a blank at the end",
                "crates/x/src/lib.rs:2: a tab",
                "crates/x/src/lib.rs:6: the mark of a merge conflict",
                "crates/x/src/lib.rs:3: more than 140 columns",
            ]
        );
    }
}
