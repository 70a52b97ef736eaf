//! YAML and JSON as a tree in which every value knows its line.
//!
//! JSON is read by the same parser: it is YAML in flow style, except for pairs of `\u` escapes, which are joined before.
//!
//! The tree is as large as the text. Values that aliases repeat are copied, up to [`MOST_COPIES`] of them, so that a few lines cannot fill
//! the memory; nesting is limited, too.

use crate::text::{Source, Token, shown};
use clearway_workload::FileError;
use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of values that aliases copy.
const MOST_COPIES: usize = 1 << 20;
/// Maximum depth of values within values; InfraGraph has 7.
const DEEPEST: usize = 64;

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    /// Line, from 1.
    pub(crate) line: usize,
    /// Column in characters, from 1.
    pub(crate) column: usize,
    pub(crate) content: Content,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    /// Text or a number, as it is written.
    Scalar(String),
    /// No value: nothing, `~` or `null`.
    Null,
    /// Items in order.
    List(Vec<Node>),
    /// Entries in order, with different keys.
    Map(Vec<Entry>),
}

/// Key and value of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) value: Node,
}

impl Node {
    /// Number of values in the tree.
    fn count(&self) -> usize {
        1 + match &self.content {
            Content::Scalar(_) | Content::Null => 0,
            Content::List(items) => items.iter().map(Self::count).sum(),
            Content::Map(entries) => entries.iter().map(|entry| entry.value.count()).sum(),
        }
    }

    /// The value in words.
    pub(crate) fn what(&self) -> String {
        match &self.content {
            Content::Scalar(text) => format!("`{}`", shown(text)),
            Content::Null => "nothing".into(),
            Content::List(_) => "a list".into(),
            Content::Map(_) => "a mapping".into(),
        }
    }
}

/// Reads the only document of `text`.
///
/// # Errors
/// If the text is not YAML or JSON, or is empty, nested too deeply or has several documents.
pub(crate) fn parse_yaml(source: Source<'_>, text: &str) -> Result<Node, FileError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let joined = joined_surrogates(text);
    let mut tree = Tree {
        source,
        lines: text.lines().count().max(1),
        open: Vec::new(),
        anchors: BTreeMap::new(),
        copies: 0,
        root: None,
        ended: false,
    };
    for event in Parser::new_from_str(&joined) {
        let (event, span) = event.map_err(|error| tree.broken(&error))?;
        tree.take(event, span)?;
    }
    tree.root.ok_or_else(|| {
        let fault = source.fault(1, None, "the file has no content");
        fault.fix("write a mapping, as in `name: fabric`")
    })
}

/// `text` with each pair of escapes that stands for one character in JSON (`\ud83d\ude00`) as one escape of YAML (`\U0001f600`).
fn joined_surrogates(text: &str) -> Cow<'_, str> {
    if !text.trim_start().starts_with('{') || !text.contains("\\u") {
        return Cow::Borrowed(text);
    }
    let unit = |at: usize, range: std::ops::Range<u32>| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        let unit = u32::from_str_radix(digits, 16).ok()?;
        range.contains(&unit).then_some(unit)
    };
    let mut joined = String::with_capacity(text.len());
    let mut from = 0;
    while let Some(offset) = text[from..].find('\\') {
        let at = from + offset;
        joined.push_str(&text[from..at]);
        let pair = unit(at, 0xD800..0xDC00).zip(unit(at + 6, 0xDC00..0xE000));
        let copied = match pair {
            Some((high, low)) => {
                let code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                joined.push_str(&format!("\\U{code:08x}"));
                from = at + 12;
                continue;
            }
            // The character after a backslash belongs to it, so that `\\u` is none.
            None => 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
        };
        joined.push_str(&text[at..at + copied]);
        from = at + copied;
    }
    joined.push_str(&text[from..]);
    Cow::Owned(joined)
}

/// A list or a mapping whose end is still to come.
struct Open {
    node: Node,
    anchor: usize,
    /// Key whose value comes next.
    key: Option<(String, usize, usize)>,
    /// Keys of a mapping.
    keys: BTreeSet<String>,
}

/// A tree under construction.
struct Tree<'a> {
    source: Source<'a>,
    lines: usize,
    open: Vec<Open>,
    /// Values with an anchor, and the number of values in each.
    anchors: BTreeMap<usize, (Node, usize)>,
    copies: usize,
    root: Option<Node>,
    ended: bool,
}

impl Tree<'_> {
    fn fault(&self, (line, column): (usize, usize), message: String, fix: &str) -> FileError {
        let line = line.clamp(1, self.lines);
        self.source.fault(line, Some(column), message).fix(fix)
    }

    /// The parser's error.
    fn broken(&self, error: &ScanError) -> FileError {
        let place = (error.marker().line(), error.marker().col() + 1);
        let message = format!("this is not YAML or JSON: {}", shown_reason(error.info()));
        self.fault(
            place,
            message,
            "correct the line, or the indentation of the lines before",
        )
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), FileError> {
        let place = (span.start.line().clamp(1, self.lines), span.start.col() + 1);
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd => Ok(()),
            Event::DocumentStart(_) if self.ended => {
                let message = "a second document begins".to_owned();
                Err(self.fault(place, message, "leave one document in the file"))
            }
            Event::DocumentStart(_) => Ok(()),
            Event::DocumentEnd => {
                self.ended = true;
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.check_tag(place, tag.as_deref())?;
                let is_null = style == ScalarStyle::Plain
                    && matches!(&*text, "" | "~" | "null" | "Null" | "NULL");
                let content = match is_null && self.awaits_value() {
                    true => Content::Null,
                    false => Content::Scalar(text.into_owned()),
                };
                self.close(placed(place, content), anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                self.check_tag(place, tag.as_deref())?;
                self.begin(placed(place, Content::List(Vec::new())), anchor)
            }
            Event::MappingStart(anchor, tag) => {
                self.check_tag(place, tag.as_deref())?;
                self.begin(placed(place, Content::Map(Vec::new())), anchor)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => self.close(open.node, open.anchor),
                None => Ok(()),
            },
            Event::Alias(anchor) => self.copy(place, anchor),
        }
    }

    /// True unless the next scalar is a key.
    fn awaits_value(&self) -> bool {
        self.open
            .last()
            .is_none_or(|open| !matches!(open.node.content, Content::Map(_)) || open.key.is_some())
    }

    fn check_tag(&self, place: (usize, usize), tag: Option<&Tag>) -> Result<(), FileError> {
        const CORE: [&str; 7] = ["str", "int", "float", "bool", "null", "map", "seq"];
        match tag {
            Some(tag) if !CORE.contains(&tag.suffix.as_str()) => {
                let name = shown(&format!("{}{}", tag.handle, tag.suffix));
                let fix = "write plain values: text, numbers, lists and mappings";
                Err(self.fault(place, format!("the tag `{name}` is not supported"), fix))
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, node: Node, anchor: usize) -> Result<(), FileError> {
        let place = (node.line, node.column);
        if !self.awaits_value() {
            let message = format!("the key of a mapping is {}", node.what());
            return Err(self.fault(place, message, "use text as keys"));
        }
        if self.open.len() == DEEPEST {
            let message = format!("more than {DEEPEST} values within each other");
            return Err(self.fault(place, message, "remove some levels"));
        }
        self.open.push(Open {
            node,
            anchor,
            key: None,
            keys: BTreeSet::new(),
        });
        Ok(())
    }

    /// Adds a complete value to the open list or mapping.
    fn close(&mut self, node: Node, anchor: usize) -> Result<(), FileError> {
        if anchor > 0 {
            let count = node.count();
            self.count_copies((node.line, node.column), count)?;
            self.anchors.insert(anchor, (node.clone(), count));
        }
        let Some(open) = self.open.last_mut() else {
            self.root.get_or_insert(node);
            return Ok(());
        };
        match &mut open.node.content {
            Content::List(items) => items.push(node),
            Content::Map(entries) => match open.key.take() {
                Some((key, line, column)) => entries.push(Entry {
                    key,
                    line,
                    column,
                    value: node,
                }),
                None => return self.set_key(node),
            },
            Content::Scalar(_) | Content::Null => {}
        }
        Ok(())
    }

    /// Takes a value as the key of the next one.
    fn set_key(&mut self, node: Node) -> Result<(), FileError> {
        let place = (node.line, node.column);
        let Content::Scalar(key) = node.content else {
            let message = format!("the key of a mapping is {}", node.what());
            return Err(self.fault(place, message, "use text as keys"));
        };
        let new = self
            .open
            .last_mut()
            .is_none_or(|open| open.keys.insert(key.clone()));
        if !new {
            let message = format!("the key `{}` is here twice", shown(&key));
            return Err(self.fault(place, message, "remove one of them"));
        }
        if let Some(open) = self.open.last_mut() {
            open.key = Some((key, place.0, place.1));
        }
        Ok(())
    }

    fn copy(&mut self, place: (usize, usize), anchor: usize) -> Result<(), FileError> {
        let Some((node, count)) = self.anchors.get(&anchor) else {
            let message = "an alias within the value that it repeats".to_owned();
            return Err(self.fault(place, message, "write the value out"));
        };
        let (node, count) = (node.clone(), *count);
        self.count_copies(place, count)?;
        self.close(node, 0)
    }

    fn count_copies(&mut self, place: (usize, usize), count: usize) -> Result<(), FileError> {
        self.copies = self.copies.saturating_add(count);
        if self.copies > MOST_COPIES {
            let message = format!("aliases repeat more than {MOST_COPIES} values");
            return Err(self.fault(place, message, "write the values out"));
        }
        Ok(())
    }
}

fn placed((line, column): (usize, usize), content: Content) -> Node {
    Node {
        line,
        column,
        content,
    }
}

/// A message of the parser, bounded.
fn shown_reason(reason: &str) -> String {
    let clean: String = reason
        .chars()
        .take(120)
        .flat_map(char::escape_debug)
        .collect();
    clean.replace("\\'", "'").replace("\\\"", "\"")
}

/// Entries of a mapping, each with one of the known keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a> {
    source: Source<'a>,
    /// Name of the mapping in messages, with an article.
    what: &'static str,
    pub(crate) line: usize,
    entries: &'a [Entry],
}

impl<'a> Fields<'a> {
    /// The entries of `node`; `what` is its name in messages.
    ///
    /// # Errors
    /// If the node is not a mapping, or at the first key that is not `known`.
    pub(crate) fn of(
        source: Source<'a>,
        node: &'a Node,
        what: &'static str,
        known: &[&str],
    ) -> Result<Self, FileError> {
        let Content::Map(entries) = &node.content else {
            let message = format!("{what} is a mapping, but here is {}", node.what());
            let fix = format!("write its keys, as in `{}: …`", known[0]);
            return Err(source.fault(node.line, Some(node.column), message).fix(fix));
        };
        for entry in entries {
            if !known.contains(&entry.key.as_str()) {
                let token = Token {
                    text: &entry.key,
                    column: entry.column,
                };
                return Err(source.unknown(entry.line, token, known));
            }
        }
        Ok(Self {
            source,
            what,
            line: node.line,
            entries,
        })
    }

    /// The value of `key`, if it is there and not null.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Node> {
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        (entry.value.content != Content::Null).then_some(&entry.value)
    }

    /// The items of the list `key`; none if the key is missing.
    ///
    /// # Errors
    /// If the value is not a list.
    pub(crate) fn list(&self, key: &str) -> Result<&'a [Node], FileError> {
        let Some(node) = self.get(key) else {
            return Ok(&[]);
        };
        match &node.content {
            Content::List(items) => Ok(items),
            _ => Err(self.wrong(key, node, "a list", "begin each item with `-`")),
        }
    }

    /// The text of `key`, and its node; `None` if the key is missing.
    ///
    /// # Errors
    /// If the value is a list or a mapping.
    pub(crate) fn text(&self, key: &str) -> Result<Option<(&'a str, &'a Node)>, FileError> {
        let Some(node) = self.get(key) else {
            return Ok(None);
        };
        match &node.content {
            Content::Scalar(text) => Ok(Some((text, node))),
            _ => Err(self.wrong(key, node, "text", "write one value")),
        }
    }

    /// The text of `key`, and its node.
    ///
    /// # Errors
    /// If the key is missing, or its value is a list or a mapping.
    pub(crate) fn need(&self, key: &str) -> Result<(&'a str, &'a Node), FileError> {
        let missing = || {
            let message = format!("{} has no `{key}`", self.what);
            self.source
                .fault(self.line, None, message)
                .fix(format!("add `{key}`"))
        };
        self.text(key)?.ok_or_else(missing)
    }

    fn wrong(&self, key: &str, node: &Node, wanted: &str, fix: &str) -> FileError {
        let message = format!(
            "`{key}` of {} is {wanted}, but here is {}",
            self.what,
            node.what()
        );
        let fault = self.source.fault(node.line, Some(node.column), message);
        fault.fix(fix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: Source<'_> = Source { file: "t.yaml" };

    /// A tree in one line of JSON-like text.
    fn drawn(node: &Node) -> String {
        match &node.content {
            Content::Scalar(text) => text.clone(),
            Content::Null => "null".into(),
            Content::List(items) => {
                let items: Vec<String> = items.iter().map(drawn).collect();
                format!("[{}]", items.join(","))
            }
            Content::Map(entries) => {
                let entries = entries
                    .iter()
                    .map(|e| format!("{}:{}", e.key, drawn(&e.value)));
                format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
            }
        }
    }

    #[test]
    fn yaml_and_json_give_the_same_tree() {
        let yaml = "# c\na:\n- b: 1\n  c: \"x: y\"\n- ~\nd: |-\n  two\n  lines\n";
        let json = "{\"a\": [{\"b\": 1, \"c\": \"x: y\"}, null],\n\t\"d\": \"two\\nlines\"}";
        let expected = "{a:[{b:1,c:x: y},null],d:two\nlines}";
        for text in [yaml, json] {
            assert_eq!(drawn(&parse_yaml(SOURCE, text).unwrap()), expected);
        }
        let escapes = r#"{"a": "\ud83d\ude00 \\ud83d \u00e9 \/"}"#;
        let tree = parse_yaml(SOURCE, escapes).unwrap();
        assert_eq!(drawn(&tree), "{a:😀 \\ud83d é /}");
    }

    #[test]
    fn aliases_repeat_values() {
        let tree = parse_yaml(SOURCE, "a: &x [1, 2]\nb: *x\n").unwrap();
        assert_eq!(drawn(&tree), "{a:[1,2],b:[1,2]}");
    }

    #[test]
    fn values_know_their_lines() {
        let tree = parse_yaml(SOURCE, "a: 1\nb:\n  - x\n").unwrap();
        let Content::Map(entries) = &tree.content else {
            panic!("{tree:?}");
        };
        let places: Vec<(usize, usize)> = entries.iter().map(|e| (e.line, e.value.line)).collect();
        assert_eq!(places, [(1, 1), (2, 3)]);
    }

    #[test]
    fn broken_text_is_an_error_with_its_line() {
        let mut laughs = "a0: &a0 [1]\n".to_owned();
        for level in 1..30 {
            let below = level - 1;
            laughs +=
                &format!("a{level}: &a{level} [*a{below}, *a{below}, *a{below}, *a{below}]\n");
        }
        for (text, line, part) in [
            ("", 1, "no content"),
            (
                "a: 1\nb: c: d\n",
                2,
                "not YAML or JSON: mapping values are not allowed",
            ),
            ("{\"a\": 1", 1, "not YAML or JSON"),
            ("a: 1\n---\nb: 2\n", 2, "a second document"),
            ("a: 1\nb: 2\na: 3\n", 3, "the key `a` is here twice"),
            (
                "a: !!python/tuple [1]\n",
                1,
                "the tag `tag:yaml.org,2002:python/tuple`",
            ),
            ("? [a]\n: 1\n", 1, "the key of a mapping is a list"),
            (&"[".repeat(100), 1, "more than 64 values within each other"),
            (&laughs, 10, "aliases repeat more than 1048576 values"),
        ] {
            let error = parse_yaml(SOURCE, text).unwrap_err();
            assert_eq!(error.line, line, "{error:?}");
            assert!(error.message.contains(part), "{error:?}");
            assert!(!error.fix.is_empty());
        }
    }
}
