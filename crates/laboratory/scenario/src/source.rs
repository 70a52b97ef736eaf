//! From text to entries: dotted keys with values and places.

use crate::error::{ScenarioError, SourceLocation};
use clearway_formats::KnownFile;
use clearway_units::{Value, nearest, suggestion};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

/// One setting in the user's input.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The section: `""` for the top, `topology`, `switch`, `transport`, `workload`, ….
    pub section: String,
    /// Number of the section among the sections of its name, from zero.
    pub index: usize,
    /// The key within the section, dotted if nested.
    pub key: String,
    /// Value of the key.
    pub value: Value,
    /// Place in the input.
    pub place: SourceLocation,
}

/// Sections of a scenario.
pub const SECTIONS: [&str; 8] = [
    "topology",
    "switch",
    "transport",
    "injection",
    "workload",
    "event",
    "fast-forward",
    "observe",
];

/// The sections that a file may have.
#[derive(Debug, Clone, Copy)]
pub struct FileSections {
    /// All sections.
    pub sections: &'static [&'static str],
    /// Sections that may occur several times, in double brackets.
    pub several: &'static [&'static str],
    /// Tables that belong to the top.
    pub top: &'static [&'static str],
    /// Sections that have no effect if they are empty, so that empty ones are rejected.
    pub filled: &'static [&'static str],
}

const SCENARIO: FileSections = FileSections {
    sections: &SECTIONS,
    several: &["workload", "event"],
    top: &["stop"],
    filled: &[],
};

/// Reads a scenario text.
pub fn read(file: &str, text: &str) -> Result<Vec<Entry>, ScenarioError> {
    SCENARIO.read(file, text)
}

impl FileSections {
    /// Rejects an empty section without effect.
    fn check_filled(
        &self,
        name: &str,
        value: &DeValue<'_>,
        place: &SourceLocation,
    ) -> Result<(), ScenarioError> {
        match value {
            DeValue::Table(table) if table.is_empty() && self.filled.contains(&name) => {
                Err(ScenarioError::at(
                    place,
                    format!("an empty `[{name}]`"),
                    "write keys into it, or remove it",
                ))
            }
            _ => Ok(()),
        }
    }

    /// Reads a text of this layout.
    pub fn read(&self, file: &str, text: &str) -> Result<Vec<Entry>, ScenarioError> {
        let lines = Lines::new(file, text);
        let table = DeTable::parse(text).map_err(|error| no_toml(&lines, (file, text), &error))?;
        let mut entries = Vec::new();
        for (key, value) in table.get_ref() {
            let name = key.get_ref().as_ref();
            let place = lines.place(key.span().start);
            self.check_filled(name, value.get_ref(), &place)?;
            match value.get_ref() {
                DeValue::Table(table) if self.sections.contains(&name) => {
                    flatten(&lines, name, 0, "", table, &mut entries)?;
                }
                DeValue::Array(items) if self.several.contains(&name) => {
                    for (index, item) in items.iter().enumerate() {
                        let DeValue::Table(table) = item.get_ref() else {
                            return Err(ScenarioError::at(
                                &place,
                                format!("`{name}` must hold tables"),
                                format!("write `[[{name}]]` before each"),
                            ));
                        };
                        if table.is_empty() {
                            return Err(ScenarioError::at(
                                &lines.place(item.span().start),
                                format!("an empty `[[{name}]]`"),
                                match name {
                                    "workload" => "give it a `kind`, or remove it",
                                    _ => "write keys into it, or remove it",
                                },
                            ));
                        }
                        flatten(&lines, name, index, "", table, &mut entries)?;
                    }
                }
                _ if self.sections.contains(&name) => {
                    return Err(ScenarioError::at(
                        &place,
                        format!("`{name}` must be a section"),
                        match self.several.contains(&name) && name != "workload" {
                            true => format!("write `[[{name}]]` and its keys below"),
                            false => format!("write `[{name}]` and its keys below"),
                        },
                    ));
                }
                DeValue::Table(table) if self.top.contains(&name) => {
                    flatten(&lines, "", 0, name, table, &mut entries)?;
                }
                DeValue::Table(_) => return Err(self.unknown_section(&place, name)),
                DeValue::Array(items) if is_sections(items) => {
                    return Err(self.unknown_section(&place, name));
                }
                _ => entries.push(lines.entry("", 0, name.into(), key, value)?),
            }
        }
        Ok(entries)
    }

    /// "no such section", with the nearest existing section.
    pub fn unknown_section(&self, place: &SourceLocation, section: &str) -> ScenarioError {
        let known = format!("the sections are: {}", self.sections.join(", "));
        let fix = suggestion(nearest(section, self.sections.iter().copied()), &known);
        ScenarioError::at(place, format!("there is no section `{section}`"), fix)
    }
}

/// True for the items of `[[name]]`.
fn is_sections(items: &[Spanned<DeValue<'_>>]) -> bool {
    let mut items = items.iter();
    items.any(|item| matches!(item.get_ref(), DeValue::Table(_)))
}

/// Reads one `--set KEY=VALUE`. The value is TOML if it parses as such, otherwise plain text: `400Gbps` needs no quotes. An inline table
/// sets each of its keys, like separate overrides.
pub fn read_override(text: &str) -> Result<Vec<Entry>, ScenarioError> {
    let place = SourceLocation::Override(text.into());
    let fault = |message: &str| {
        let fix = "write KEY=VALUE, for instance `--set seed=2`";
        ScenarioError::at(&place, message, fix)
    };
    let (path, value) = text.split_once('=').ok_or_else(|| fault("no `=` in it"))?;
    let (path, value) = (path.trim(), value.trim());
    let (section, rest) = path.split_once('.').unwrap_or((path, ""));
    let (name, index) = numbered(section, &place)?;
    let (section, key) = match SECTIONS.contains(&name) {
        true => (name, rest),
        false => ("", path),
    };
    if key.is_empty() && (section.is_empty() || path.ends_with('.')) {
        return Err(fault("no key before the `=`"));
    }
    let lines = Lines::fixed(place.clone());
    if value.starts_with('{') {
        let document = format!("x = {value}");
        return inline_table(&lines, (section, index, key), &document);
    }
    if key.is_empty() {
        let message = format!("`{path}` is a section");
        let fix = format!(
            "set a key of it, as in `{path}.kind=…`, or several in an inline table, as in `{path}={{kind=\"…\"}}`"
        );
        return Err(ScenarioError::at(&place, message, fix));
    }
    Ok(vec![Entry {
        section: section.into(),
        index,
        key: key.into(),
        value: read_value(value),
        place,
    }])
}

/// Name and number of a section, as in `workload[1]`.
fn numbered<'a>(
    section: &'a str,
    place: &SourceLocation,
) -> Result<(&'a str, usize), ScenarioError> {
    let Some((name, number)) = section.split_once('[') else {
        return Ok((section, 0));
    };
    let index = number
        .strip_suffix(']')
        .and_then(|number| number.parse().ok());
    let index = index.ok_or_else(|| {
        ScenarioError::at(
            place,
            format!("`{section}` is not a section"),
            "count sections from 0: `workload[1].message=2MB`",
        )
    })?;
    Ok((name, index))
}

/// The entries of the inline table in `document`, whose keys are below `key` of a section. A kind comes first, because it removes keys of
/// the old kind.
fn inline_table(
    lines: &Lines<'_>,
    (section, index, key): (&str, usize, &str),
    document: &str,
) -> Result<Vec<Entry>, ScenarioError> {
    let parsed = DeTable::parse(document).map_err(|error| {
        ScenarioError::at(
            &lines.place(0),
            format!("not an inline table of TOML: {}", error.message()),
            "put texts in quotes, as in `--set 'switch={kind=\"shared-buffer\",buffer=\"2MB\"}'`",
        )
    })?;
    let mut entries = Vec::new();
    for value in parsed.get_ref().values() {
        match value.get_ref() {
            DeValue::Table(table) if !table.is_empty() => {
                flatten(lines, section, index, key, table, &mut entries)?;
            }
            _ => {
                return Err(ScenarioError::at(
                    &lines.place(0),
                    "an empty inline table",
                    "write keys into it",
                ));
            }
        }
    }
    entries.sort_by_key(|entry| entry.key != "kind" && !entry.key.ends_with(".kind"));
    Ok(entries)
}

/// A value in TOML; anything else is text.
pub(crate) fn read_value(text: &str) -> Value {
    let document = format!("x = {text}");
    let parsed = DeTable::parse(&document).ok().and_then(|table| {
        let (_, value) = table.get_ref().iter().next()?;
        to_value(value.get_ref())
    });
    parsed.unwrap_or_else(|| Value::Text(text.into()))
}

struct Lines<'a> {
    file: &'a str,
    /// Offset of the end of each line.
    ends: Vec<usize>,
    /// Place of all entries, if they are not in a file.
    fixed: Option<SourceLocation>,
}

impl<'a> Lines<'a> {
    fn new(file: &'a str, text: &str) -> Self {
        let ends = text.match_indices('\n').map(|(end, _)| end);
        Self {
            file,
            ends: ends.collect(),
            fixed: None,
        }
    }

    fn fixed(place: SourceLocation) -> Self {
        Self {
            file: "",
            ends: Vec::new(),
            fixed: Some(place),
        }
    }

    /// Number of the line, from 1.
    fn line(&self, offset: usize) -> usize {
        self.ends.partition_point(|&end| end < offset) + 1
    }

    fn place(&self, offset: usize) -> SourceLocation {
        if let Some(place) = &self.fixed {
            return place.clone();
        }
        SourceLocation::Line {
            file: self.file.into(),
            line: self.line(offset),
        }
    }

    fn entry(
        &self,
        section: &str,
        index: usize,
        key: String,
        name: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Entry, ScenarioError> {
        let place = self.place(name.span().start);
        let value = to_value(value.get_ref()).ok_or_else(|| unusable(&place, &key, value))?;
        Ok(Entry {
            section: section.into(),
            index,
            key,
            value,
            place,
        })
    }
}

/// The error about a text that is not TOML: the text may be a file of another kind.
fn no_toml(
    lines: &Lines<'_>,
    (file, text): (&str, &str),
    error: &toml::de::Error,
) -> ScenarioError {
    let span = error.span().unwrap_or(0..0);
    let place = lines.place(span.start);
    let twice = error.message().starts_with("duplicate key");
    if let Some(duplicate) = Some(&span).filter(|_| twice) {
        return duplicate_key(lines, text, duplicate);
    }
    if let Some(known) = KnownFile::detect(text.as_bytes()) {
        return ScenarioError::at(
            &SourceLocation::Whole { file: file.into() },
            format!("this is {}, and not TOML", known.what()),
            known.fix(file),
        );
    }
    ScenarioError::at(
        &place,
        format!("not valid TOML: {}", error.message()),
        "see https://toml.io for the syntax; texts such as sizes and rates go in quotes",
    )
}

/// Error about a key or section that occurs a second time, at `span`.
fn duplicate_key<'a>(lines: &Lines<'_>, text: &'a str, span: &Range<usize>) -> ScenarioError {
    let key = text.get(span.clone()).unwrap_or_default().trim();
    let line = lines.line(span.start);
    let own = text.lines().nth(line - 1).unwrap_or_default().trim();
    let is_header = own.starts_with('[');
    let before: Vec<&'a str> = text.lines().take(line - 1).collect();
    let written = |line: &'a str| line.split('=').next().unwrap_or_default().trim();
    // A dotted key includes the parts before `own`.
    let key = match written(own) {
        dotted if dotted.ends_with(key) => dotted,
        _ => key,
    };
    let begins = |other: &'a str| {
        let rest = written(other).strip_prefix(key);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    // A key must be unique only in its section, which begins at the last header.
    let first = before.iter().rposition(|other| match is_header {
        true => other.trim() == own,
        false => begins(other) || other.trim().starts_with('['),
    });
    let first = first.filter(|&at| is_header || begins(before[at]));
    let name = if is_header { own } else { key };
    let message = match first {
        Some(at) => format!(
            "`{name}` stands here a second time; first on line {}",
            at + 1
        ),
        None => format!("`{name}` stands here a second time"),
    };
    ScenarioError::at(
        &lines.place(span.start),
        message,
        match is_header {
            true => "write all its keys below one of them, and remove the other",
            false => "remove one of them",
        },
    )
}

/// Error about a kind of TOML value that scenarios do not use.
fn unusable(place: &SourceLocation, key: &str, value: &Spanned<DeValue<'_>>) -> ScenarioError {
    match value.get_ref() {
        DeValue::Integer(number) => ScenarioError::at(
            place,
            format!("`{key}`: the number {} is too large", number.as_str()),
            "use whole numbers up to 9223372036854775807",
        ),
        _ => ScenarioError::at(
            place,
            format!("the value of `{key}` is of no kind that a scenario uses"),
            "use text in quotes, numbers, true, false or lists of these",
        ),
    }
}

fn flatten(
    lines: &Lines<'_>,
    section: &str,
    index: usize,
    prefix: &str,
    table: &DeTable<'_>,
    entries: &mut Vec<Entry>,
) -> Result<(), ScenarioError> {
    for (name, value) in table {
        let key = if prefix.is_empty() {
            name.get_ref().to_string()
        } else {
            format!("{prefix}.{}", name.get_ref())
        };
        match value.get_ref() {
            DeValue::Table(table) if table.is_empty() => {
                return Err(ScenarioError::at(
                    &lines.place(name.span().start),
                    format!("`{section}.{key}` is empty"),
                    "write keys into it, or remove it",
                ));
            }
            DeValue::Table(table) => flatten(lines, section, index, &key, table, entries)?,
            _ => entries.push(lines.entry(section, index, key, name, value)?),
        }
    }
    Ok(())
}

fn to_value(value: &DeValue<'_>) -> Option<Value> {
    Some(match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => Value::Integer(integer(number)?),
        DeValue::Float(number) => Value::Float(number.as_str().replace('_', "").parse().ok()?),
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Array(items) => Value::List(
            items
                .iter()
                .map(|item| to_value(item.get_ref()))
                .collect::<Option<_>>()?,
        ),
        DeValue::Datetime(_) | DeValue::Table(_) => return None,
    })
}

fn integer(number: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_tables_become_dotted_keys_with_lines() {
        let text = "seed = 2\n[switch]\nqueue = \"5bdp\"\necn = { kmin = \"1KB\" }\n[[workload]]\nkind = \"incast\"\n[[workload]]\n\nsenders = 3\n";
        let entries = read("x.toml", text).unwrap();
        let mut shown: Vec<String> = entries
            .iter()
            .map(|e| {
                format!(
                    "{}[{}].{} = {} at {}",
                    e.section, e.index, e.key, e.value, e.place
                )
            })
            .collect();
        shown.sort();
        assert_eq!(
            shown,
            [
                "[0].seed = 2 at x.toml:1",
                "switch[0].ecn.kmin = \"1KB\" at x.toml:4",
                "switch[0].queue = \"5bdp\" at x.toml:3",
                "workload[0].kind = \"incast\" at x.toml:6",
                "workload[1].senders = 3 at x.toml:9",
            ]
        );
    }

    #[test]
    fn inline_tables_set_each_key() {
        let keys = |text| -> Vec<String> {
            let entries = read_override(text).unwrap().into_iter();
            let shown = |e: Entry| format!("{}[{}].{} = {}", e.section, e.index, e.key, e.value);
            entries.map(shown).collect()
        };
        assert_eq!(
            keys("switch={buffer=\"2MB\",kind=\"shared-buffer\",ecn={kmin=\"1KB\"}}"),
            [
                "switch[0].kind = \"shared-buffer\"",
                "switch[0].buffer = \"2MB\"",
                "switch[0].ecn.kmin = \"1KB\"",
            ]
        );
        assert_eq!(
            keys("workload[1].attack = { hosts = \"0-3\" }"),
            ["workload[1].attack.hosts = \"0-3\""]
        );
        assert_eq!(
            keys("stop={at-most=\"5ms\"}"),
            ["[0].stop.at-most = \"5ms\""]
        );
    }

    #[test]
    fn overrides_need_no_quotes() {
        let entry = |text| read_override(text).unwrap().remove(0);
        assert_eq!(
            entry("topology.link-rate=400Gbps").value,
            Value::Text("400Gbps".into())
        );
        assert_eq!(entry("seed = 7").value, Value::Integer(7));
        assert_eq!(entry("switch.ecn.kmin=25%bdp").key, "ecn.kmin");
        assert_eq!(entry("workload[1].message=2MB").index, 1);
        assert_eq!(entry("stop.at-most=5ms").key, "stop.at-most");
        assert_eq!(
            entry("topology.links=[\"a-b down\"]").value,
            Value::List(vec![Value::Text("a-b down".into())])
        );
        for bad in [
            "seed",
            "=3",
            "workload[x].message=3",
            "switch.=3",
            "switch=3",
            "switch={}",
            "switch={kind=lossy}",
        ] {
            assert!(read_override(bad).is_err(), "{bad}");
        }
    }
}
