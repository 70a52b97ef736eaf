//! The groups of ranks that collective calls name.

use crate::error::counted;
use crate::graph::Rank;
use crate::text::Source;
use crate::{FileError, Program};
use serde_json::Value;
use std::collections::BTreeMap;

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
    let json: Value = serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line().max(1), error.column().max(1));
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        source.fault(line, Some(column), message).fix(fix)
    })?;
    let fault = |message: String| source.fault(1, None, message).fix(fix);
    let Value::Object(entries) = json else {
        return Err(fault("the file holds no groups".into()));
    };
    let mut groups = Groups::new();
    for (group, members) in entries {
        let shown = crate::text::shown(&group);
        let members = rank_list(&members)
            .ok_or_else(|| fault(format!("group {shown} is no list of ranks")))?;
        check(&members, ranks).map_err(|what| fault(format!("group {shown} {what}")))?;
        if is_all(&group) && members.len() != ranks as usize {
            return Err(fault(format!(
                "group {shown} has {}, but the name belongs to the group of all {ranks}",
                counted(members.len(), "rank")
            )));
        }
        groups.insert(group, members);
    }
    Ok(groups)
}

/// The groups that PyTorch notes in a trace: JSON, with a list of lists or quotes around it.
pub(super) fn noted_groups(values: &str, ranks: u32) -> Option<Groups> {
    let (start, end) = (values.find("[{")?, values.rfind("}]")? + 2);
    let text = values.get(start..end)?;
    let json: Value = serde_json::from_str(text)
        .or_else(|_| serde_json::from_str(&text.replace("\\\"", "\"").replace("\\\\", "\\")))
        .ok()?;
    let mut groups = Groups::new();
    for entry in json.as_array()? {
        let name = match entry.get("pg_name")? {
            Value::String(name) => name.clone(),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        let members = rank_list(entry.get("ranks")?)?;
        // Without a list, it is the group of all.
        if !members.is_empty() {
            check(&members, ranks).ok()?;
            groups.insert(name, members);
        }
    }
    Some(groups)
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
