//! Just enough of Rust's grammar to distinguish code from texts and comments.

/// The code without the contents of texts, characters and comments. Line breaks stay, so that lines keep their numbers.
pub(super) fn code(text: &str) -> String {
    strip(text, Keep::Code)
}

/// As [`code`], but comments stay.
pub(super) fn code_and_comments(text: &str) -> String {
    strip(text, Keep::Comments)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Code,
    Comments,
}

fn strip(text: &str, keep: Keep) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (length, is_comment) = match opaque(rest, out.chars().next_back()) {
            Some(found) => found,
            None => {
                out.push(first);
                rest = &rest[first.len_utf8()..];
                continue;
            }
        };
        let piece = &rest[..length];
        if is_comment && keep == Keep::Comments {
            out.push_str(piece);
        } else if is_comment {
            out.extend(piece.chars().filter(|&c| c == '\n'));
        } else {
            // An empty text replaces the literal.
            out.push('"');
            out.extend(piece.chars().filter(|&c| c == '\n'));
            out.push('"');
        }
        rest = &rest[length..];
    }
    out
}

/// Length of the text, character or comment at the beginning of `rest`, and true if it is a comment.
fn opaque(rest: &str, before: Option<char>) -> Option<(usize, bool)> {
    if rest.starts_with("//") {
        return Some((rest.find('\n').unwrap_or(rest.len()), true));
    }
    if rest.starts_with("/*") {
        return Some((block_comment(rest), true));
    }
    if rest.starts_with('"') {
        return Some((quoted(rest), false));
    }
    if rest.starts_with('\'') {
        return character(rest).map(|length| (length, false));
    }
    let in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let raw = rest.strip_prefix('b').unwrap_or(rest).strip_prefix('r')?;
    let hashes = raw.len() - raw.trim_start_matches('#').len();
    if in_word || !raw[hashes..].starts_with('"') {
        return None;
    }
    let close = format!("\"{}", "#".repeat(hashes));
    let body = &raw[hashes + 1..];
    let end = body.find(&close).map_or(body.len(), |at| at + close.len());
    Some((rest.len() - body.len() + end, false))
}

fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

fn quoted(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A character, or `None` for a lifetime.
fn character(rest: &str) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1);
    let (_, first) = chars.next()?;
    if first == '\\' {
        return rest[3..].find('\'').map(|at| at + 4);
    }
    match chars.next() {
        Some((at, '\'')) => Some(at + 1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_comments_vanish_and_lines_stay() {
        let text = "let a = \"{\\\"\n}\"; // {\nlet b = '{'; let c: &'static str = r#\"{\"{\"#; /* { /* { */ } */ done";
        assert_eq!(
            code(text),
            "let a = \"\n\"; \nlet b = \"\"; let c: &'static str = \"\";  done"
        );
        assert_eq!(code_and_comments("x(\"long\"); // why"), "x(\"\"); // why");
        assert_eq!(
            code("let r = for_r; '\\'' '\\u{1F}' 'a"),
            "let r = for_r; \"\" \"\" 'a"
        );
    }
}
