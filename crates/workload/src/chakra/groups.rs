//! The groups of ranks that collective calls name.

use crate::error::counted;
use crate::graph::Rank;
use crate::text::{Source, shown};
use crate::{FileError, Program};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// The ranks of each group, by name.
pub(super) type Groups = BTreeMap<String, Vec<Rank>>;

/// True of the name of the group of all ranks.
pub(super) fn is_all(name: &str) -> bool {
    matches!(name, "" | "0")
}

/// The groups of a comm-group file: `{"1": [0, 1, 2, 3]}`, or the word `empty`.
pub(super) fn parse_groups(name: &str, text: &str, ranks: u32) -> Result<Groups, FileError> {
    let source = Source { file: name };
    if text.trim() == "empty" {
        return Ok(Groups::new());
    }
    let fix = "write `{\"1\": [0, 1]}`: the ranks of each group under its name";
    let Entries(entries) = serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line().max(1), error.column().max(1));
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        source.fault(line, Some(column), message).fix(fix)
    })?;
    let fault = |message: String| source.fault(1, None, message).fix(fix);
    let mut groups = Groups::new();
    for (group, members) in entries {
        let shown = shown(&group);
        let members = rank_list(&members)
            .ok_or_else(|| fault(format!("group {shown} is no list of ranks")))?;
        check(&members, ranks).map_err(|what| fault(format!("group {shown} {what}")))?;
        if is_all(&group) && members.len() != ranks as usize {
            return Err(fault(format!(
                "group {shown} has {}, but the name belongs to the group of all {ranks}",
                counted(members.len(), "rank")
            )));
        }
        add(&mut groups, group, members).map_err(|TwoLists { group }| {
            let message = format!("group {shown} stands twice, with different ranks");
            let fault = source.fault(line_of_second(text, &group), None, message);
            fault.fix("keep the one that is right")
        })?;
    }
    Ok(groups)
}

/// The members of a JSON object in their order, the same name as often as it stands there.
struct Entries(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Entries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("lists of ranks under their names")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(All)
    }
}

/// The line on which the name of a group stands for the second time; the first one if it is written in another way.
fn line_of_second(text: &str, group: &str) -> usize {
    let quoted = format!("\"{group}\"");
    let second = text.match_indices(&quoted).nth(1);
    1 + second.map_or(0, |(at, _)| text[..at].matches('\n').count())
}

/// A group that two lists of ranks belong to.
pub(super) struct TwoLists {
    pub(super) group: String,
}

/// Adds a group, or the same one again.
pub(super) fn add(groups: &mut Groups, group: String, members: Vec<Rank>) -> Result<(), TwoLists> {
    match groups.get(&group) {
        Some(known) if *known != members => Err(TwoLists { group }),
        _ => {
            groups.insert(group, members);
            Ok(())
        }
    }
}

/// The groups that PyTorch notes in a trace: JSON, with a list of lists or quotes around it.
///
/// For a group of all ranks PyTorch writes an empty list, whatever its name (`_pg_config_info` of `torch.distributed`).
pub(super) fn noted_groups(values: &str, ranks: u32) -> Option<Vec<(String, Vec<Rank>)>> {
    let (start, end) = (values.find("[{")?, values.rfind("}]")? + 2);
    let text = values.get(start..end)?;
    let json: Value = serde_json::from_str(text)
        .or_else(|_| serde_json::from_str(&text.replace("\\\"", "\"").replace("\\\\", "\\")))
        .ok()?;
    let noted = json.as_array()?.iter().map(|entry| {
        let name = match entry.get("pg_name")? {
            Value::String(name) => name.clone(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        let mut members = rank_list(entry.get("ranks")?)?;
        if members.is_empty() {
            members.extend((0..ranks).map(Rank));
        }
        check(&members, ranks).ok()?;
        Some((name, members))
    });
    noted.collect()
}

fn rank_list(value: &Value) -> Option<Vec<Rank>> {
    let rank = |value: &Value| u32::try_from(value.as_u64()?).ok().map(Rank);
    value.as_array()?.iter().map(rank).collect()
}

fn check(members: &[Rank], ranks: u32) -> Result<(), String> {
    let mut sorted = members.to_vec();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("has rank {} twice", pair[0]));
    }
    match sorted.last() {
        None => Err("has no ranks".into()),
        Some(last) if last.0 >= ranks => Err(format!(
            "has rank {last}, but there are traces of {ranks} ranks"
        )),
        Some(_) => Ok(()),
    }
}

/// The groups of a program, each once.
#[derive(Debug, Default)]
pub(super) struct Interned {
    numbers: BTreeMap<(String, Vec<Rank>), u32>,
}

impl Interned {
    /// The number of the group `name` of these ranks.
    pub(super) fn number(&mut self, program: &mut Program, name: &str, members: Vec<Rank>) -> u32 {
        let key = match is_all(name) {
            true => (String::new(), members),
            false => (name.to_owned(), members),
        };
        let number = program.groups.len() as u32;
        let known = self.numbers.entry(key);
        *known.or_insert_with_key(|(_, members)| {
            program.groups.push(members.clone());
            number
        })
    }
}
