//! Commands in a chapter of the book, with their shown output.
//!
//! A block of the language `console` has a line `$ COMMAND` for each call, followed by lines of its output. A line "..." stands for any
//! number of lines, and "…" within a line for any text. `$ echo $?` and the next line give the exit code of the previous call.
//!
//! Comments directly above a block, which the book does not show, describe it: `<!-- file: my.toml -->` names the block's file, and `<!--
//! of: COMMAND -->` the command that prints the block. There may be several comments, in order. A comment may have several lines.

/// A call of a program in a chapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The line without its `$ `.
    pub command: String,
    /// Lines that the output must contain.
    pub lines: Vec<String>,
    /// The exit code.
    pub code: i32,
}

impl Call {
    /// Arguments after `program`, with shell quoting; `None` if the command calls another program.
    pub fn arguments(&self, program: &str) -> Option<Vec<String>> {
        let rest = self.command.strip_prefix(program)?;
        let mut words = vec![String::new()];
        let mut quote = None;
        for letter in rest.trim().chars() {
            match (quote, letter) {
                (Some(open), _) if letter == open => quote = None,
                (None, '\'' | '"') => quote = Some(letter),
                (None, ' ') => words.push(String::new()),
                _ => words.last_mut()?.push(letter),
            }
        }
        words.retain(|word| !word.is_empty());
        Some(words)
    }

    /// Lines of the chapter that `printed` does not contain.
    pub fn missing<'a>(&'a self, printed: &str) -> Vec<&'a str> {
        missing(self.lines.iter().map(String::as_str), printed)
    }
}

/// Lines that `printed` does not contain. Ignores column widths, and rules below headings.
pub fn missing<'a>(lines: impl Iterator<Item = &'a str>, printed: &str) -> Vec<&'a str> {
    let printed: Vec<String> = printed.lines().map(squeezed).collect();
    let is_rule = |line: &str| {
        line.trim()
            .chars()
            .all(|letter| matches!(letter, '-' | ' ' | '…'))
    };
    lines
        .filter(|line| !is_rule(line) && !has(&printed, line))
        .collect()
}

/// The line with one blank between words.
fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// True if a line contains these words in a row, with any text for each "…".
fn has(printed: &[String], line: &str) -> bool {
    let parts: Vec<String> = line.split('…').map(squeezed).collect();
    printed.iter().any(|printed| {
        let mut rest = printed.as_str();
        parts
            .iter()
            .all(|part| match rest.split_once(part.as_str()) {
                Some((_, behind)) => {
                    rest = behind;
                    true
                }
                None => false,
            })
    })
}

/// A block of a chapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Language of the block.
    pub language: String,
    /// Lines of the block.
    pub lines: Vec<String>,
    /// Comments directly above the block.
    pub comments: Vec<String>,
    /// Number of its first line in the chapter, from 1.
    pub at: usize,
}

impl Block {
    /// Texts of the block's comments of one kind, such as `of`.
    pub fn said<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a str> {
        let texts = self.comments.iter();
        texts.filter_map(move |text| text.strip_prefix(kind)?.strip_prefix(": "))
    }
}

/// All blocks of a chapter, in their order.
pub fn blocks(chapter: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut comments = Vec::new();
    let mut is_open = false;
    let mut begun: Option<String> = None;
    for (number, line) in (1..).zip(chapter.lines()) {
        if let Some(text) = begun.take() {
            let text = format!("{text} {}", line.trim());
            match text.strip_suffix(" -->") {
                Some(text) => comments.push(text.to_owned()),
                None => begun = Some(text),
            }
            continue;
        }
        let comment = line.strip_prefix("<!-- ").filter(|_| !is_open);
        match (line.strip_prefix("```"), is_open) {
            (Some(_), true) => is_open = false,
            (Some(language), false) => {
                is_open = true;
                blocks.push(Block {
                    language: language.into(),
                    lines: Vec::new(),
                    comments: std::mem::take(&mut comments),
                    at: number + 1,
                });
            }
            (None, true) => {
                let block = blocks.last_mut().expect("an open block");
                block.lines.push(line.into());
            }
            (None, false) => match (comment, comment.and_then(|text| text.strip_suffix(" -->"))) {
                (_, Some(text)) => comments.push(text.into()),
                (Some(text), None) => begun = Some(text.into()),
                (None, None) if line.is_empty() => {}
                (None, None) => comments.clear(),
            },
        }
    }
    blocks
}

/// Arguments after `program` in a command, with shell quoting; `None` if the command calls another program.
pub fn arguments(command: &str, program: &str) -> Option<Vec<String>> {
    let call = Call {
        command: command.into(),
        lines: Vec::new(),
        code: 0,
    };
    call.arguments(program)
}

/// All calls of a chapter, in their order.
///
/// # Panics
/// If `$ echo $?` precedes the first call.
pub fn calls(chapter: &str) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    let mut is_console = false;
    let mut is_code = false;
    for line in chapter.lines() {
        match line.strip_prefix("```") {
            Some(language) => is_console = !is_console && language == "console",
            None if !is_console => {}
            None if line == "$ echo $?" => is_code = true,
            None if is_code => {
                let call = calls.last_mut().expect("a call before its exit code");
                call.code = line.parse().expect("an exit code");
                is_code = false;
            }
            None => match (line.strip_prefix("$ "), calls.last_mut()) {
                (Some(command), _) => calls.push(Call {
                    command: command.into(),
                    lines: Vec::new(),
                    code: 0,
                }),
                (None, Some(call)) if line != "..." && !line.is_empty() => {
                    call.lines.push(line.into());
                }
                _ => {}
            },
        }
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_comments() {
        let chapter = "Text\n<!-- far: x -->\nText\n\n<!-- of: one -->\n<!-- of: two\n  three -->\n```text\na\n\nb\n```\n```toml\nc\n```\n";
        let found = blocks(chapter);
        let [text, toml] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!((text.language.as_str(), text.at), ("text", 9));
        assert_eq!(text.lines, ["a", "", "b"]);
        assert_eq!(text.said("of").collect::<Vec<_>>(), ["one", "two three"]);
        assert_eq!(toml.comments, [""; 0]);
    }

    #[test]
    fn any_text_stands_for_an_ellipsis() {
        let printed = "a  12 s of 5\nb\n";
        for line in [
            "a  12 s",
            "a   12 s",
            "a  … of 5",
            "…",
            "---  --",
            "a … s … 5",
        ] {
            assert_eq!(missing([line].into_iter(), printed), [""; 0], "{line}");
        }
        for line in ["a … b", "5 … a", "c"] {
            assert_eq!(missing([line].into_iter(), printed), [line]);
        }
    }

    #[test]
    fn commands_have_lines_and_codes() {
        let chapter = "Text\n```console\n$ one a 'b c' d=\"e\"\n  first\n...\nlast\n$ two\n$ echo $?\n1\n```\n\
            ```toml\n$ three\n```\n";
        let found = calls(chapter);
        let [one, two] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!(one.arguments("one").unwrap(), ["a", "b c", "d=e"]);
        assert_eq!(one.arguments("two"), None);
        assert_eq!((one.code, two.code), (0, 1));
        assert_eq!(one.missing("x  first\n"), ["last"]);
        assert_eq!(two.lines, [""; 0]);
    }
}
