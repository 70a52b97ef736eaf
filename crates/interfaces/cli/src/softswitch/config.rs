//! Files that name a scenario, with scheduled changes to its links.

use super::arguments::SoftswitchArguments;
use crate::failure::Failure;
use crate::scenario_arguments::ScenarioArguments;
use clearway_input::{InputKind, STANDARD_INPUT};
use clearway_lab::scenario::source::{Entry, FileSections};
use clearway_lab::{ScenarioError, SourceLocation};
use clearway_units::{Bytes, Span, Value, nearest, suggestion};
use std::collections::BTreeMap;
use std::path::Path;

const LAYOUT: FileSections = FileSections {
    sections: &["event"],
    several: &["event"],
    top: &[],
    filled: &["event"],
};

/// Keys of a file and of its events.
const KEYS: [&str; 4] = ["scenario", "set", "mtu", "host-queue"];
const EVENT_KEYS: [&str; 2] = ["at", "do"];

/// Latest event.
const LATEST: Span = Span::from_ms(1_000_000_000);

/// A command at a time after the start.
#[derive(Debug, PartialEq)]
pub(super) struct Event {
    pub(super) at: Span,
    pub(super) line: String,
    pub(super) place: SourceLocation,
}

/// Configuration of the emulated fabric.
#[derive(Debug)]
pub(super) struct Config {
    pub(super) scenario: ScenarioArguments,
    pub(super) mtu: Option<u16>,
    pub(super) host_queue: Option<Bytes>,
    pub(super) events: Vec<Event>,
}

impl Config {
    /// Reads the file that the arguments name, unless the file is itself a scenario. Arguments override the file.
    pub(super) fn read(arguments: &SoftswitchArguments) -> Result<Self, Failure> {
        let path = Path::new(&arguments.what);
        let text = match arguments.what == STANDARD_INPUT {
            true => None,
            // If the file is unreadable and no built-in scenario has this name, loading the scenario reports the error.
            false => clearway_input::read_text(path, InputKind::SCENARIO).ok(),
        };
        let mut config = match text.filter(|text| names_scenario(text)) {
            Some(text) => Self::parse(&arguments.what, &text)?,
            None => Self {
                scenario: ScenarioArguments {
                    scenario: Some(arguments.what.clone()),
                    overrides: Vec::new(),
                    seed: None,
                },
                mtu: None,
                host_queue: None,
                events: Vec::new(),
            },
        };
        let overrides = arguments.overrides.iter().cloned();
        config.scenario.overrides.extend(overrides);
        config.scenario.seed = arguments.seed;
        config.mtu = arguments.mtu.or(config.mtu);
        config.host_queue = arguments.host_queue.or(config.host_queue);
        Ok(config)
    }

    fn parse(file: &str, text: &str) -> Result<Self, ScenarioError> {
        let mut config = Self {
            scenario: ScenarioArguments {
                scenario: None,
                overrides: Vec::new(),
                seed: None,
            },
            mtu: None,
            host_queue: None,
            events: Vec::new(),
        };
        let mut events: BTreeMap<usize, Vec<Entry>> = BTreeMap::new();
        for entry in LAYOUT.read(file, text)? {
            match entry.section.as_str() {
                "" => config.set(file, &entry)?,
                _ => events.entry(entry.index).or_default().push(entry),
            }
        }
        config.events = events
            .values()
            .map(|own| event(own))
            .collect::<Result<_, _>>()?;
        Ok(config)
    }

    fn set(&mut self, file: &str, entry: &Entry) -> Result<(), ScenarioError> {
        match entry.key.as_str() {
            "scenario" => {
                let name = text(entry, "a name in quotes such as `\"quickstart\"`")?;
                // Relative to this file, like the files that a scenario names.
                let beside = Path::new(file).parent().map(|folder| folder.join(name));
                let beside = beside.filter(|path| path.is_file());
                let path = beside.and_then(|path| path.to_str().map(str::to_owned));
                self.scenario.scenario = Some(path.unwrap_or_else(|| name.to_owned()));
            }
            "set" => {
                let Value::List(values) = &entry.value else {
                    return Err(unreadable(entry, "a list such as `[\"seed=2\"]`"));
                };
                for value in values {
                    let Value::Text(text) = value else {
                        return Err(unreadable(entry, "a list of texts such as `[\"seed=2\"]`"));
                    };
                    self.scenario.overrides.push(text.clone());
                }
            }
            "mtu" => match entry.value {
                Value::Integer(mtu @ 1280..=65_535) => self.mtu = Some(mtu as u16),
                _ => return Err(unreadable(entry, "a number of bytes from 1280 to 65535")),
            },
            "host-queue" => {
                let expected = "a size from `\"10KB\"` to `\"1GB\"`";
                let size: Option<Bytes> = text(entry, expected)?.parse().ok();
                let size = size.filter(|size| (10_000..=1_000_000_000).contains(&size.as_u64()));
                self.host_queue = Some(size.ok_or_else(|| unreadable(entry, expected))?);
            }
            _ => return Err(unknown(entry, &KEYS)),
        }
        Ok(())
    }
}

/// True for the text of a configuration file, which has a line `scenario = …` before all sections. Scenarios do not have this key.
fn names_scenario(text: &str) -> bool {
    let lines = text.lines().map(str::trim_start);
    let mut top = lines.take_while(|line| !line.starts_with('['));
    top.any(|line| {
        let rest = line.strip_prefix("scenario");
        rest.is_some_and(|rest| rest.trim_start().starts_with('='))
    })
}

fn event(entries: &[Entry]) -> Result<Event, ScenarioError> {
    let (mut at, mut line) = (None, None);
    for entry in entries {
        match entry.key.as_str() {
            "at" => {
                let expected = "a time after the start such as `\"2s\"`";
                let time: Option<Span> = text(entry, expected)?.parse().ok();
                let time = time.filter(|time| *time <= LATEST);
                at = Some(time.ok_or_else(|| unreadable(entry, expected))?);
            }
            "do" => line = Some((text(entry, "a command in quotes")?, &entry.place)),
            _ => return Err(unknown(entry, &EVENT_KEYS)),
        }
    }
    match (at, line) {
        (Some(at), Some((line, place))) => Ok(Event {
            at,
            line: line.to_owned(),
            place: place.clone(),
        }),
        _ => Err(ScenarioError::at(
            &entries[0].place,
            "an event without `at` or `do`",
            "give both, for instance `at = \"2s\"` and `do = \"link leaf0-spine1 down\"`",
        )),
    }
}

fn text<'a>(entry: &'a Entry, expected: &str) -> Result<&'a str, ScenarioError> {
    match &entry.value {
        Value::Text(text) => Ok(text),
        _ => Err(unreadable(entry, expected)),
    }
}

fn unreadable(entry: &Entry, expected: &str) -> ScenarioError {
    let Entry { key, value, .. } = entry;
    ScenarioError::at(
        &entry.place,
        format!("`{key}`: cannot read {value}"),
        format!("expected {expected}"),
    )
}

fn unknown(entry: &Entry, keys: &[&str]) -> ScenarioError {
    let known = format!("the keys are: {}", keys.join(", "));
    ScenarioError::at(
        &entry.place,
        format!("there is no key `{}` here", entry.key),
        suggestion(nearest(&entry.key, keys.iter().copied()), &known),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_a_scenario_are_told_from_scenarios() {
        assert!(names_scenario("# mine\nscenario = \"x\"\n"));
        assert!(names_scenario("mtu = 9000\nscenario=\"x\"\n[[event]]\n"));
        assert!(!names_scenario("name = \"scenario\"\n[topology]\n"));
        assert!(!names_scenario("[x]\nscenario = 1\n"));
        assert!(!names_scenario("scenarios = 1\n"));
    }

    #[test]
    fn files_say_what_happens_when() {
        let text = "scenario = \"quickstart\"\nset = [\"seed=2\"]\nmtu = 9000\nhost-queue = \"1MB\"\n\n\
            [[event]]\nat = \"2s\"\ndo = \"link a-b down\"\n[[event]]\nat = \"10ms\"\ndo = \"link * reset\"\n";
        let config = Config::parse("x.toml", text).unwrap();
        assert_eq!(config.scenario.scenario.as_deref(), Some("quickstart"));
        assert_eq!(config.scenario.overrides, ["seed=2"]);
        assert_eq!(
            (config.mtu, config.host_queue),
            (Some(9000), Some(Bytes::new(1_000_000)))
        );
        let events = config.events.iter();
        let events: Vec<_> = events
            .map(|event| (event.at, event.line.as_str(), event.place.to_string()))
            .collect();
        assert_eq!(
            events,
            [
                (Span::from_ms(2000), "link a-b down", "x.toml:8".into()),
                (Span::from_ms(10), "link * reset", "x.toml:11".into()),
            ]
        );
    }

    #[test]
    fn faults_have_a_place_and_a_fix() {
        for (text, begin) in [
            ("scenario = 1", "x.toml:1: `scenario`: cannot read 1\n"),
            (
                "scenario = \"x\"\nmtu = 100",
                "x.toml:2: `mtu`: cannot read 100\n",
            ),
            (
                "scenario = \"x\"\nset = \"seed=2\"",
                "x.toml:2: `set`: cannot read",
            ),
            (
                "scenario = \"x\"\nhost-queue = \"much\"",
                "x.toml:2: `host-queue`: cannot read",
            ),
            (
                "scenario = \"x\"\nmtus = 1500",
                "x.toml:2: there is no key `mtus` here\n  fix: did you mean `mtu`?",
            ),
            (
                "scenario = \"x\"\n[[event]]\nat = \"2s\"",
                "x.toml:3: an event without `at` or `do`\n",
            ),
            (
                "scenario = \"x\"\n[[event]]\nat = 2\ndo = \"\"",
                "x.toml:3: `at`: cannot read 2\n",
            ),
            (
                "scenario = \"x\"\n[[event]]\nwhen = \"2s\"",
                "x.toml:3: there is no key `when` here\n",
            ),
            (
                "scenario = \"x\"\n[[events]]\nat = \"2s\"",
                "x.toml:2: there is no section `events`\n",
            ),
            (
                "scenario = \"x\"\n[topology]\nhosts = 4",
                "x.toml:2: there is no section `topology`\n",
            ),
        ] {
            let fault = Config::parse("x.toml", text).unwrap_err().to_string();
            assert!(fault.starts_with(begin), "{fault}");
            assert!(fault.contains("\n  fix: "), "{fault}");
        }
    }
}
