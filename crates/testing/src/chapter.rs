//! Commands that a chapter of the book shows, with what stands below them.
//!
//! A block of the language `console` has a line `$ COMMAND` for each call and below it lines of what the call prints; "..." stands for any
//! number of lines. `$ echo $?` and the line below it are the exit code of the call before.

/// A call of a program as a chapter shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The line without its `$ `.
    pub command: String,
    /// Lines that have to be among what is printed.
    pub lines: Vec<String>,
    /// The exit code.
    pub code: i32,
}

impl Call {
    /// Arguments behind `program`, with quotes as a shell has them; `None` if the command is of another program.
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

    /// The lines of the chapter that `printed` has not.
    pub fn missing<'a>(&'a self, printed: &str) -> Vec<&'a str> {
        let lines = self.lines.iter().map(String::as_str);
        lines.filter(|line| !printed.contains(line)).collect()
    }
}

/// All calls of a chapter, in their order.
///
/// # Panics
/// If `$ echo $?` stands before any call.
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
