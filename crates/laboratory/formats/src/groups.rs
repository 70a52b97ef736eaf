//! The groups of ranks that collective calls name.
//!
//! A compressed file of a few megabytes can name more groups than fit in memory, and a group without listed ranks means all ranks. So a
//! group of all ranks is expanded only where a call needs it, and a [tally](Tally) counts everything before it is stored.

mod listed;

use crate::text::{Fault, Source, shown};
use clearway_workload::counted;
use clearway_workload::graph::Rank;
use clearway_workload::{FileError, JobProgram};
use serde::de::DeserializeSeed;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::rc::Rc;

/// Maximum number of groups, of bytes of their names, and of ranks of all groups together. A job of 100 000 ranks, each in 40 groups, has
/// half as many ranks; at the maximum the groups take less than 1 GB.
pub(crate) const MOST_GROUPS: usize = 1 << 20;
pub(crate) const MOST_NAMES: usize = 1 << 26;
pub(crate) const MOST_MEMBERS: usize = 1 << 23;

/// Size of all groups that are stored together.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    groups: usize,
    names: usize,
    members: usize,
}

/// Groups that are too large, as a fragment of a sentence.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GroupsTooLarge(pub(crate) String);

impl GroupsTooLarge {
    pub(crate) const FIX: &str =
        "list each group once, under a short name, and only those that are called on";
}

impl Tally {
    /// Counts a group.
    ///
    /// # Errors
    /// If there is no room for the group.
    pub(crate) fn add(&mut self, name: &str, members: usize) -> Result<(), GroupsTooLarge> {
        self.groups += 1;
        self.names += name.len();
        self.members += members;
        let too_much = if self.groups > MOST_GROUPS {
            format!("more than {MOST_GROUPS} groups")
        } else if self.names > MOST_NAMES {
            format!("groups whose names have more than {MOST_NAMES} bytes together")
        } else if self.members > MOST_MEMBERS {
            format!("groups with more than {MOST_MEMBERS} ranks together")
        } else {
            return Ok(());
        };
        Err(GroupsTooLarge(too_much))
    }
}

/// The ranks of a group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Members {
    /// All ranks, in order.
    All,
    Listed(Vec<Rank>),
}

impl Members {
    /// Members from a list, in a job of `ranks` ranks.
    pub(crate) fn from_ranks(listed: Vec<Rank>, ranks: u32) -> Self {
        match listed.iter().copied().eq((0..ranks).map(Rank)) {
            true => Self::All,
            false => Self::Listed(listed),
        }
    }

    /// The same members with the one at `place` first, and those before it last: the root of a collective is its first rank.
    pub(crate) fn led_by(self, place: usize, ranks: u32) -> Self {
        if place == 0 || place >= self.count(ranks) {
            return self;
        }
        let mut members = self.written_out(ranks);
        members.rotate_left(place);
        Self::Listed(members)
    }

    /// Number of members, in a job of `ranks` ranks.
    pub(crate) fn count(&self, ranks: u32) -> usize {
        match self {
            Self::All => ranks as usize,
            Self::Listed(members) => members.len(),
        }
    }

    /// Number of members that have to be stored.
    fn kept(&self) -> usize {
        self.count(0)
    }

    fn written_out(&self, ranks: u32) -> Vec<Rank> {
        match self {
            Self::All => (0..ranks).map(Rank).collect(),
            Self::Listed(members) => members.clone(),
        }
    }
}

/// The ranks of each group, by name.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    by_name: BTreeMap<String, Members>,
    tally: Tally,
}

/// Reason why a group cannot be added.
pub(crate) enum AddGroupError {
    /// The name already has another list of ranks.
    TwoLists {
        group: String,
    },
    TooMuch(GroupsTooLarge),
}

impl Groups {
    pub(crate) fn get(&self, name: &str) -> Option<&Members> {
        self.by_name.get(name)
    }

    /// Adds a group; adding the same group again is allowed.
    pub(crate) fn add(&mut self, group: String, members: Members) -> Result<(), AddGroupError> {
        match self.by_name.entry(group) {
            Entry::Occupied(known) if *known.get() != members => Err(AddGroupError::TwoLists {
                group: known.key().clone(),
            }),
            Entry::Occupied(_) => Ok(()),
            Entry::Vacant(place) => {
                let counted = self.tally.add(place.key(), members.kept());
                counted.map_err(AddGroupError::TooMuch)?;
                place.insert(members);
                Ok(())
            }
        }
    }
}

/// True for the name of the group of all ranks.
pub(crate) fn is_all(name: &str) -> bool {
    matches!(name, "" | "0")
}

/// The groups of a comm-group file: `{"1": [0, 1, 2, 3]}`, or the word `empty`.
pub(crate) fn parse_groups(name: &str, text: &str, ranks: u32) -> Result<Groups, FileError> {
    let source = Source { file: name };
    if text.trim() == "empty" {
        return Ok(Groups::default());
    }
    let form = "write `{\"1\": [0, 1]}`: the ranks of each group under its name";
    let listed::ByName(entries) = read_lists(source, text).map_err(|fault| fault.fix(form))?;
    let fault = |message: String| {
        let fix = format!(
            "name each rank of a group once, from 0 to {}",
            ranks.saturating_sub(1)
        );
        source.fault(1, None, message).fix(fix)
    };
    let mut groups = Groups::default();
    for (group, members) in entries {
        let shown = shown(&group);
        check_members(&members, ranks).map_err(|what| fault(format!("group {shown} {what}")))?;
        if is_all(&group) && members.len() != ranks as usize {
            let message = format!(
                "group {shown} has {}, but the name belongs to the group of all {ranks}",
                counted(members.len(), "rank")
            );
            let fix = "give the group another name, there and in the traces, or list all ranks";
            return Err(source.fault(1, None, message).fix(fix));
        }
        let added = groups.add(group, Members::from_ranks(members, ranks));
        added.map_err(|error| match error {
            AddGroupError::TwoLists { group } => {
                let message = format!("group {shown} stands twice, with different ranks");
                let fault = source.fault(line_of(text, &group, 1), None, message);
                fault.fix("keep the one that is right")
            }
            AddGroupError::TooMuch(GroupsTooLarge(what)) => {
                let message = format!("with group {shown} the file has {what}");
                source.fault(1, None, message).fix(GroupsTooLarge::FIX)
            }
        })?;
    }
    Ok(groups)
}

/// The lists of a comm-group file.
fn read_lists(source: Source<'_>, text: &str) -> Result<listed::ByName, Fault> {
    let mut lists = listed::ByName::default();
    let mut json = serde_json::Deserializer::from_str(text);
    let read = (&mut lists).deserialize(&mut json);
    match read.and_then(|()| json.end()) {
        Ok(()) => Ok(lists),
        Err(error) => {
            let (line, column) = (error.line().max(1), error.column().max(1));
            Err(match lists.0.last() {
                Some((group, _)) if error.is_data() => {
                    let message = format!("group {} is not a list of ranks", shown(group));
                    source.fault(line, None, message)
                }
                _ => {
                    let message = error.to_string();
                    let message = message.split(" at line ").next().unwrap_or_default();
                    source.fault(line, Some(column), message)
                }
            })
        }
    }
}

/// Line of a group's name after `before` earlier occurrences; the first line if the name is spelled in another way.
fn line_of(text: &str, group: &str, before: usize) -> usize {
    let quoted = format!("\"{group}\"");
    let found = text.match_indices(&quoted).nth(before);
    1 + found.map_or(0, |(at, _)| text[..at].matches('\n').count())
}

/// The groups that PyTorch writes into a trace: JSON, possibly within a list of lists or quotes.
///
/// For a group of all ranks of any name, PyTorch writes an empty list (`_pg_config_info` of `torch.distributed`).
pub(crate) fn noted_groups(values: &str, ranks: u32) -> Option<Vec<(String, Members)>> {
    let (start, end) = (values.find("[{")?, values.rfind("}]")? + 2);
    let text = values.get(start..end)?;
    let read = |text: &str| serde_json::from_str::<Vec<listed::Noted>>(text);
    let listed = read(text)
        .or_else(|_| read(&text.replace("\\\"", "\"").replace("\\\\", "\\")))
        .ok()?;
    let noted = listed.into_iter().map(|listed::Noted { name, members }| {
        if members.is_empty() {
            return Some((name, Members::All));
        }
        check_members(&members, ranks).ok()?;
        Some((name, Members::from_ranks(members, ranks)))
    });
    noted.collect()
}

/// Checks that each rank exists and stands once.
pub(crate) fn check_members(members: &[Rank], ranks: u32) -> Result<(), String> {
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
pub(crate) struct Interned {
    numbers: BTreeMap<String, BTreeMap<Members, u32>>,
    tally: Tally,
}

impl Interned {
    /// The number of the group `name` of these ranks, in a job of `ranks` ranks.
    ///
    /// # Errors
    /// If the groups of all traces together are too large.
    pub(crate) fn number(
        &mut self,
        program: &mut JobProgram,
        name: &str,
        members: &Members,
        ranks: u32,
    ) -> Result<u32, GroupsTooLarge> {
        let name = if is_all(name) { "" } else { name };
        let known = self.numbers.get(name);
        if let Some(&number) = known.and_then(|of_name| of_name.get(members)) {
            return Ok(number);
        }
        self.tally.add(name, members.count(ranks))?;
        let number = program.groups.len() as u32;
        program.groups.push(members.written_out(ranks));
        let of_name = self.numbers.entry(name.to_owned()).or_default();
        of_name.insert(members.clone(), number);
        Ok(number)
    }
}

/// Names, numbered in the order in which they first occur.
#[derive(Debug, Default)]
pub(crate) struct Names {
    numbers: BTreeMap<Rc<str>, u32>,
    names: Vec<Rc<str>>,
    tally: Tally,
}

impl Names {
    /// The number of a name.
    ///
    /// # Errors
    /// If there are too many names, or if they are too long.
    pub(crate) fn number(&mut self, name: &str) -> Result<u32, GroupsTooLarge> {
        if let Some(&number) = self.numbers.get(name) {
            return Ok(number);
        }
        self.tally.add(name, 0)?;
        let number = self.names.len() as u32;
        let name: Rc<str> = name.into();
        self.numbers.insert(Rc::clone(&name), number);
        self.names.push(name);
        Ok(number)
    }

    /// All names, in the order of their numbers.
    pub(crate) fn all(&self) -> &[Rc<str>] {
        &self.names
    }
}
