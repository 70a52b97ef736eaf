//! First words of doc comments, which should name the documented thing, so that readers can search for it.

use super::lexer;
use super::source::Source;
use crate::Faults;

/// Words that a doc comment should not open with: question words and pronouns.
const VAGUE: &[&str] = &[
    "anything",
    "everyone",
    "everything",
    "he",
    "his",
    "how",
    "it",
    "its",
    "nobody",
    "nothing",
    "somebody",
    "something",
    "that",
    "their",
    "them",
    "these",
    "they",
    "this",
    "those",
    "what",
    "whatever",
    "when",
    "whenever",
    "where",
    "wherever",
    "whether",
    "which",
    "who",
    "whom",
    "whose",
    "why",
];

/// Doc comments in a hundred that may open with one of these.
const MOST_PERCENT: usize = 1;

/// Doc comments of the workspace.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Counted {
    pub(super) comments: usize,
    /// Comments that open with a question word or a pronoun: file, line and text.
    pub(super) vague: Vec<String>,
}

/// Counts the doc comments of all files.
pub(super) fn count(sources: &[Source]) -> Counted {
    let mut counted = Counted::default();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let mut inside = false;
        // A literal may contain text that looks like a comment.
        let text = lexer::code_and_comments(&source.text);
        for (number, line) in text.lines().enumerate() {
            let comment = opening(line);
            if let Some(comment) = comment.filter(|_| !inside) {
                counted.comments += 1;
                if is_vague(comment) {
                    let place = format!("{}:{}", source.path, number + 1);
                    counted.vague.push(format!("{place}: {comment}"));
                }
            }
            inside = comment.is_some();
        }
    }
    counted
}

/// Faults if too many doc comments are vague.
pub(super) fn check(counted: &Counted) -> Faults {
    if counted.vague.len() * 100 <= counted.comments * MOST_PERCENT {
        return Faults::new();
    }
    let what = "a doc comment that opens with a question word or a pronoun; name the thing";
    let faults = counted.vague.iter();
    faults.map(|place| format!("{place}\n  {what}")).collect()
}

/// Text of a line of a doc comment.
pub(super) fn opening(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let comment = line
        .strip_prefix("//!")
        .or_else(|| line.strip_prefix("///"))?;
    // A comment with four slashes is not a doc comment.
    (!comment.starts_with('/')).then(|| comment.trim())
}

fn is_vague(comment: &str) -> bool {
    let word = comment.split(|c: char| !c.is_ascii_alphabetic()).next();
    word.is_some_and(|word| VAGUE.contains(&word.to_ascii_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(text: &str) -> Counted {
        let source = Source {
            path: "a.rs".into(),
            text: text.into(),
        };
        count(&[source])
    }

    #[test]
    fn first_words_of_doc_comments_are_counted() {
        let text = "//! How it goes.\n\n/// Length of a run.\n/// What follows is no first line.\nfn a() {}\n\
                    /// Its end.\n// What is no doc comment.\n//// Which neither.\n/// `what` is a name.\n\
                    const B: &str = \"\n/// Why not\n\";\n";
        let counted = counted(text);
        assert_eq!(counted.comments, 4);
        assert_eq!(counted.vague, ["a.rs:1: How it goes.", "a.rs:6: Its end."]);
        assert_eq!(check(&counted).len(), 2);
    }

    #[test]
    fn one_in_a_hundred_is_allowed() {
        let good = "/// Length.\nfn a() {}\n".repeat(99);
        assert_eq!(
            check(&counted(&format!("{good}/// Why.\nfn b() {{}}\n"))),
            Faults::new()
        );
        assert_eq!(
            check(&counted(&format!(
                "{good}/// Why.\nfn b() {{}}\n/// How.\nfn c() {{}}\n"
            )))
            .len(),
            2
        );
    }
}
