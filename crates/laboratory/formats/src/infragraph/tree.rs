//! Values to write, as YAML or JSON.

use std::fmt::Write as _;

/// A value.
#[derive(Debug, Clone)]
pub(super) enum Tree {
    /// Entries in order.
    Map(Vec<(&'static str, Self)>),
    /// Items in order.
    List(Vec<Self>),
    Text(String),
    /// A number in digits.
    Number(String),
}

impl Tree {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn number(number: impl ToString) -> Self {
        Self::Number(number.to_string())
    }

    /// The value as a document of YAML.
    pub(super) fn to_yaml(&self) -> String {
        let mut text = String::new();
        self.write_yaml(&mut text, 0);
        text
    }

    /// The value as a document of JSON.
    pub(super) fn to_json(&self) -> String {
        let mut text = String::new();
        self.write_json(&mut text, 0);
        text.push('\n');
        text
    }

    /// Writes a value whose first line is indented already.
    fn write_yaml(&self, text: &mut String, indent: usize) {
        match self {
            Self::Map(entries) => {
                for (place, (key, value)) in entries.iter().enumerate() {
                    let before = if place == 0 { 0 } else { indent };
                    let _ = write!(text, "{:before$}{key}:", "");
                    match value {
                        Self::List(items) if items.is_empty() => text.push_str(" []\n"),
                        Self::List(_) => {
                            let _ = write!(text, "\n{:indent$}", "");
                            value.write_yaml(text, indent);
                        }
                        Self::Map(_) => {
                            let inner = indent + 2;
                            let _ = write!(text, "\n{:inner$}", "");
                            value.write_yaml(text, inner);
                        }
                        Self::Text(_) | Self::Number(_) => {
                            text.push(' ');
                            value.write_yaml(text, indent);
                        }
                    }
                }
            }
            Self::List(items) => {
                for (place, item) in items.iter().enumerate() {
                    let before = if place == 0 { 0 } else { indent };
                    let _ = write!(text, "{:before$}- ", "");
                    item.write_yaml(text, indent + 2);
                }
            }
            Self::Text(own) if is_plain(own) => {
                let _ = writeln!(text, "{own}");
            }
            Self::Text(own) => {
                let _ = writeln!(text, "{}", quoted(own));
            }
            Self::Number(digits) => {
                let _ = writeln!(text, "{digits}");
            }
        }
    }

    fn write_json(&self, text: &mut String, indent: usize) {
        let inner = indent + 2;
        match self {
            Self::Map(entries) => {
                for (place, (key, value)) in entries.iter().enumerate() {
                    let before = if place == 0 { "{\n" } else { ",\n" };
                    let _ = write!(text, "{before}{:inner$}\"{key}\": ", "");
                    value.write_json(text, inner);
                }
                let _ = write!(text, "\n{:indent$}}}", "");
            }
            Self::List(items) if items.is_empty() => text.push_str("[]"),
            Self::List(items) => {
                for (place, value) in items.iter().enumerate() {
                    let before = if place == 0 { "[\n" } else { ",\n" };
                    let _ = write!(text, "{before}{:inner$}", "");
                    value.write_json(text, inner);
                }
                let _ = write!(text, "\n{:indent$}]", "");
            }
            Self::Text(own) => text.push_str(&quoted(own)),
            Self::Number(digits) => text.push_str(digits),
        }
    }
}

/// Text in double quotes, which YAML and JSON read alike.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// True if YAML reads the text without quotes as text, in every version.
fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 10] = [
        "true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan",
    ];
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.[]:".contains(c);
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(is_name)
        && !text.ends_with(':')
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Source;
    use crate::yaml::parse_yaml;

    #[test]
    fn both_forms_are_read_back_alike() {
        let item = Tree::Map(vec![
            ("name", Tree::text("nic[0:8]")),
            ("empty", Tree::List(Vec::new())),
            ("inner", Tree::Map(vec![("count", Tree::number(8))])),
        ]);
        let words = ["yes", "a: b", "1us", "say \"é\"\n", "", "x:"].map(Tree::text);
        let tree = Tree::Map(vec![
            ("list", Tree::List(vec![item.clone(), item])),
            ("words", Tree::List(words.into())),
        ]);
        let read = |text: &str| {
            let mut node = parse_yaml(Source { file: "t" }, text).unwrap();
            without_places(&mut node);
            node
        };
        let yaml = tree.to_yaml();
        assert_eq!(read(&yaml), read(&tree.to_json()));
        assert!(yaml.starts_with(
            "list:\n- name: nic[0:8]\n  empty: []\n  inner:\n    count: 8\n- name: nic[0:8]\n"
        ));
        assert!(
            yaml.contains("- \"yes\"\n- \"a: b\"\n- \"1us\"\n"),
            "{yaml}"
        );
    }

    fn without_places(node: &mut crate::yaml::Node) {
        use crate::yaml::Content;
        (node.line, node.column) = (0, 0);
        match &mut node.content {
            Content::List(items) => items.iter_mut().for_each(without_places),
            Content::Map(entries) => entries.iter_mut().for_each(|entry| {
                (entry.line, entry.column) = (0, 0);
                without_places(&mut entry.value);
            }),
            Content::Scalar(_) | Content::Null => {}
        }
    }
}
