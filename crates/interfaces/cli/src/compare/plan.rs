//! Variants of a comparison, from the arguments as typed.
//!
//! ```text
//! quickstart                            a built-in scenario
//! my.toml                               a scenario file
//! quickstart:transport.spray=single     the same with settings, parted by commas
//! :transport.spray=single               the scenario named before, with settings
//! out/quickstart-1a2b3c4d               a result folder
//! --vary transport.spray=single,adaptive   each scenario once for each value
//! ```

use super::folders::Group;
use super::labels;
use crate::arguments::CompareArguments;
use crate::failure::Failure;
use crate::overwrite_check::Input;
use clearway_lab::{Experiment, Laboratory, ScenarioError, SourceLocation, builtin_scenario};
use clearway_report::ComparedRun;
use std::path::{Path, PathBuf};

/// A variant before its runs.
pub(super) struct Planned {
    pub(super) label: String,
    pub(super) source: Source,
    wanted: RequestedScenario,
}

impl Planned {
    /// Label of the variant, and the scenarios that have yet to run.
    pub(super) fn to_run(&self) -> (&str, &[Experiment]) {
        match &self.source {
            Source::Folders(_) => (&self.label, &[]),
            Source::Scenarios(scenarios) => (&self.label, scenarios),
        }
    }
}

/// Source of the runs of a variant.
pub(super) enum Source {
    /// Finished runs, read from result folders.
    Folders(Vec<ComparedRun>),
    /// Scenarios to run, one for each seed.
    Scenarios(Vec<Experiment>),
}

/// A requested scenario; empty for folders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct RequestedScenario {
    /// Argument as typed.
    argument: String,
    /// Label from the user.
    given: Option<String>,
    name: String,
    /// `KEY=VALUE` of this argument alone.
    settings: Vec<String>,
    /// `KEY=VALUE` of `--vary`.
    varied: Vec<String>,
}

/// A parsed argument.
#[derive(Debug, PartialEq, Eq)]
enum Argument {
    /// Result folder with the label from the user.
    Folder(PathBuf, Option<String>),
    Scenario(RequestedScenario),
}

impl Planned {
    /// Number of runs that have yet to run.
    pub(super) fn runs_to_do(&self) -> usize {
        match &self.source {
            Source::Folders(_) => 0,
            Source::Scenarios(scenarios) => scenarios.len(),
        }
    }

    /// Files from which the variant is read.
    pub(super) fn inputs(&self) -> Vec<Input> {
        let input = |what: String, path: PathBuf| Input { what, path };
        match &self.source {
            Source::Folders(runs) => {
                let folders = runs.iter().filter_map(|run| run.folder.as_ref());
                let results = |folder| {
                    let path = Path::new(folder).join("summary.json");
                    input("a result that is compared".into(), path)
                };
                folders.map(results).collect()
            }
            Source::Scenarios(scenarios) => {
                let name = Some(&self.wanted.name).filter(|name| builtin_scenario(name).is_none());
                let own = name.map(|name| input("a scenario".into(), name.into()));
                // All seeds read the same files.
                let files = scenarios.iter().take(1).flat_map(Experiment::files);
                let named = files.map(|(key, path)| input(format!("`{key}`"), path));
                own.into_iter().chain(named).collect()
            }
        }
    }

    /// Failure for an error in the scenario, at the place where the user wrote it.
    pub(super) fn refusal(&self, error: &ScenarioError) -> Failure {
        self.wanted.refusal(error)
    }
}

impl RequestedScenario {
    fn refusal(&self, error: &ScenarioError) -> Failure {
        let place = match &error.place {
            Some(SourceLocation::Override(text)) if self.varied.contains(text) => {
                format!("--vary {text}")
            }
            Some(SourceLocation::Override(text)) if self.settings.contains(text) => {
                match self.settings.len() {
                    1 => self.argument.clone(),
                    _ => format!("{}: {text}", self.argument),
                }
            }
            _ => return Failure::new(error.to_string()),
        };
        Failure::new(format!("{place}: {}\n  fix: {}", error.message, error.fix))
    }

    /// Label that distinguishes the variant: its settings, with the name of the scenario if there are several names.
    fn label(&self, several_names: bool) -> String {
        if let Some(given) = &self.given {
            let all = [given].into_iter().chain(&self.varied);
            return all.map(String::as_str).collect::<Vec<_>>().join(", ");
        }
        let settings: Vec<&str> = self
            .settings
            .iter()
            .chain(&self.varied)
            .map(String::as_str)
            .collect();
        match (settings.is_empty(), several_names) {
            (true, _) => self.name.clone(),
            (false, false) => settings.join(", "),
            (false, true) => format!("{}: {}", self.name, settings.join(", ")),
        }
    }
}

/// Reads and checks everything that the arguments name.
pub(super) fn plan(
    laboratory: &Laboratory,
    arguments: &CompareArguments,
) -> Result<Vec<Planned>, Failure> {
    let understood = read_arguments(arguments)?;
    let combinations = combinations(&arguments.vary)?;
    let names = understood.iter().filter_map(|argument| match argument {
        Argument::Scenario(wanted) => Some(wanted.name.as_str()),
        Argument::Folder(..) => None,
    });
    let mut names: Vec<&str> = names.collect();
    names.dedup();
    let several_names = names.len() > 1;

    let mut planned = Vec::new();
    // A group keeps the position of its first folder.
    let mut groups: Vec<(usize, Group)> = Vec::new();
    for argument in &understood {
        match argument {
            Argument::Folder(path, given) => {
                let group = Group::read(path)?.named(given.as_deref());
                match groups.iter_mut().find(|(_, known)| known.takes(&group)) {
                    Some((_, known)) => known.join(group),
                    None => {
                        groups.push((planned.len(), group));
                        planned.push(None);
                    }
                }
            }
            Argument::Scenario(wanted) => {
                for varied in &combinations {
                    let wanted = wanted.clone();
                    let wanted = RequestedScenario {
                        varied: varied.clone(),
                        ..wanted
                    };
                    let scenarios = seeds(laboratory, &wanted, arguments)?;
                    planned.push(Some(Planned {
                        label: wanted.label(several_names),
                        source: Source::Scenarios(scenarios),
                        wanted,
                    }));
                }
            }
        }
    }
    let differences = differences(laboratory, groups.iter().map(|(_, group)| group));
    for (number, (place, group)) in groups.into_iter().enumerate() {
        let difference = differences.get(number).filter(|_| !group.is_named());
        planned[place] = Some(Planned {
            label: match difference {
                Some(settings) => format!("{}: {settings}", group.label()),
                None => group.label(),
            },
            source: Source::Folders(group.runs),
            wanted: RequestedScenario::default(),
        });
    }
    let mut planned: Vec<Planned> = planned.into_iter().flatten().collect();
    label_bases(&mut planned, several_names);
    Ok(planned)
}

/// Parses all arguments.
fn read_arguments(arguments: &CompareArguments) -> Result<Vec<Argument>, Failure> {
    let mut understood = Vec::new();
    let mut before = None;
    for text in &arguments.what {
        let argument = read_argument(text, before.as_deref())?;
        if let Argument::Scenario(wanted) = &argument {
            before = Some(wanted.name.clone());
        }
        understood.push(argument);
    }
    if before.is_none() {
        refuse_idle_options(arguments)?;
    }
    Ok(understood)
}

/// Settings that distinguish groups of result folders, one text for each group; empty if a scenario can no longer be read.
fn differences<'a>(
    laboratory: &Laboratory,
    groups: impl Iterator<Item = &'a Group> + Clone,
) -> Vec<String> {
    let given = groups.clone().flat_map(Group::given);
    let given = given.cloned().collect();
    let read = |group: &Group| {
        let resolved = group.paths[0].join("scenario.toml");
        let scenario = laboratory.load_any(&resolved.to_string_lossy(), &[]).ok();
        Some(labels::values(&scenario?))
    };
    let values: Option<Vec<labels::Values>> = groups.map(read).collect();
    let labels = values.and_then(|values| labels::of_results(&values, &given));
    labels.unwrap_or_default()
}

/// Labels each variant without settings by the keys that other variants of the same scenario set.
fn label_bases(planned: &mut [Planned], several_names: bool) {
    let settings = |planned: &Planned| -> Vec<String> {
        let RequestedScenario {
            settings, varied, ..
        } = &planned.wanted;
        settings.iter().chain(varied).cloned().collect()
    };
    let all: Vec<(String, Vec<String>)> = planned
        .iter()
        .map(|planned| (planned.wanted.name.clone(), settings(planned)))
        .collect();
    for (variant, (name, settings)) in planned.iter_mut().zip(&all) {
        let Source::Scenarios(scenarios) = &variant.source else {
            continue;
        };
        if !settings.is_empty() || variant.wanted.given.is_some() {
            continue;
        }
        let others: Vec<&[String]> = all
            .iter()
            .filter(|(other, settings)| other == name && !settings.is_empty())
            .map(|(_, settings)| settings.as_slice())
            .collect();
        let first = scenarios.first().expect("there is a seed");
        if let Some(difference) = labels::of_base(&labels::values(first), &others) {
            variant.label = match several_names {
                true => format!("{name}: {difference}"),
                false => difference,
            };
        }
    }
}

/// Rejects options about runs if all arguments are result folders.
fn refuse_idle_options(arguments: &CompareArguments) -> Result<(), Failure> {
    let idle = [
        ("--set", !arguments.overrides.is_empty()),
        ("--vary", !arguments.vary.is_empty()),
        ("--seeds", arguments.seeds.is_some()),
    ];
    match idle.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((option, _)) => Err(Failure::new(format!(
            "{option}: all arguments are result folders, so nothing is run\n  fix: name a scenario, or leave out {option}"
        ))),
    }
}

/// The scenario with all its seeds.
fn seeds(
    laboratory: &Laboratory,
    wanted: &RequestedScenario,
    arguments: &CompareArguments,
) -> Result<Vec<Experiment>, Failure> {
    let changes = arguments.overrides.iter().chain(&wanted.settings);
    let changes: Vec<String> = changes.chain(&wanted.varied).cloned().collect();
    let load = |changes: &[String]| {
        let scenario = laboratory.load_any(&wanted.name, changes);
        scenario.map_err(|error| wanted.refusal(&error))
    };
    let scenario = load(&changes)?;
    let first = scenario.general().seed;
    let mut scenarios = vec![scenario];
    for seed in 1..arguments.seeds.unwrap_or(1) {
        let seed = format!("seed={}", first.saturating_add(seed));
        scenarios.push(load(&[changes.as_slice(), &[seed]].concat())?);
    }
    Ok(scenarios)
}

/// Parses one argument, with an optional label before it; `before` is the last named scenario.
fn read_argument(text: &str, before: Option<&str>) -> Result<Argument, Failure> {
    let Some((label, rest)) = labelled(text) else {
        return read_unlabelled(text, before);
    };
    let given = Some(label.to_owned());
    Ok(match read_unlabelled(rest, before)? {
        Argument::Folder(path, _) => Argument::Folder(path, given),
        Argument::Scenario(wanted) => Argument::Scenario(RequestedScenario {
            argument: text.into(),
            given,
            ..wanted
        }),
    })
}

/// The label before an argument, and the rest: `ours` and `my.toml:seed=2` of `ours=my.toml:seed=2`. `None` if the text is a file or a
/// folder, or a setting without its scenario.
fn labelled(text: &str) -> Option<(&str, &str)> {
    let (label, rest) = text.split_once('=')?;
    let is_label = !label.trim().is_empty() && !label.contains([':', '.', '/', '[', ',']);
    let is_known = |name: &str| builtin_scenario(name).is_some() || Path::new(name).exists();
    let named = is_known(rest) || rest.contains(':') || rest.ends_with("summary.json");
    (is_label && named && !Path::new(text).exists()).then(|| (label.trim(), rest))
}

fn read_unlabelled(text: &str, before: Option<&str>) -> Result<Argument, Failure> {
    let wanted = |name: &str, settings: Vec<String>| {
        Argument::Scenario(RequestedScenario {
            argument: text.into(),
            given: None,
            name: name.into(),
            settings,
            varied: Vec::new(),
        })
    };
    if builtin_scenario(text).is_some() {
        return Ok(wanted(text, Vec::new()));
    }
    let path = Path::new(text);
    if path.is_dir() {
        return Ok(Argument::Folder(path.to_owned(), None));
    }
    if let (true, Some(folder)) = (path.ends_with("summary.json"), path.parent()) {
        let here = folder.as_os_str().is_empty();
        let folder = if here { Path::new(".") } else { folder };
        return Ok(Argument::Folder(folder.to_owned(), None));
    }
    if path.exists() {
        return Ok(wanted(text, Vec::new()));
    }
    let Some((name, settings)) = text.split_once(':') else {
        if text.contains('=') {
            return Err(Failure::new(format!(
                "{text}: not a scenario or result folder\n  fix: write `:{text}` for the scenario before it with this setting, or `--set {text}` for all"
            )));
        }
        return Ok(wanted(text, Vec::new()));
    };
    let name = match (name, before) {
        ("", Some(before)) => before,
        ("", None) => {
            return Err(Failure::new(format!(
                "{text}: no scenario is named before it\n  fix: name one, for instance `quickstart{text}`"
            )));
        }
        (name, _) => name,
    };
    if builtin_scenario(name).is_none() && Path::new(name).is_dir() {
        return Err(Failure::new(format!(
            "{text}: the results in {name} cannot be changed\n  fix: change its scenario: `{name}/scenario.toml:{settings}`"
        )));
    }
    Ok(wanted(name, parts(settings)))
}

/// All combinations of one value for each key of `--vary KEY=VALUE,VALUE,…`; one empty combination without `--vary`.
fn combinations(vary: &[String]) -> Result<Vec<Vec<String>>, Failure> {
    let mut combinations = vec![Vec::new()];
    for text in vary {
        let fault = |what: &str| {
            Failure::new(format!(
                "--vary {text}: {what}\n  fix: write KEY=VALUE,VALUE, for instance `--vary transport.spray=adaptive,oblivious`"
            ))
        };
        let (key, values) = text.split_once('=').ok_or_else(|| fault("no `=` in it"))?;
        let values = parts(values);
        if values.iter().any(String::is_empty) {
            return Err(fault("a value is missing"));
        }
        let longer = |choice: &Vec<String>| -> Vec<Vec<String>> {
            let with = |value: &String| {
                let pair = format!("{}={value}", key.trim());
                [choice.as_slice(), &[pair]].concat()
            };
            values.iter().map(with).collect()
        };
        combinations = combinations.iter().flat_map(longer).collect();
    }
    Ok(combinations)
}

/// Parts of `text` between commas outside quotes and brackets, without surrounding blanks.
fn parts(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let (mut depth, mut quoted) = (0usize, false);
    for character in text.chars() {
        match character {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth = depth.saturating_sub(1),
            ',' if !quoted && depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().expect("there is one").push(character);
    }
    parts.iter().map(|part| part.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(name: &str, settings: &[&str]) -> Argument {
        let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
        let argument = format!("{name}:{}", settings.join(","));
        Argument::Scenario(RequestedScenario {
            argument: argument.trim_end_matches(':').into(),
            given: None,
            name: name.into(),
            settings,
            varied: Vec::new(),
        })
    }

    #[test]
    fn settings_stand_behind_a_colon() {
        let read = |text| read_argument(text, None).unwrap();
        assert_eq!(read("quickstart"), scenario("quickstart", &[]));
        assert_eq!(
            read("quickstart:transport.spray=single,seed=2"),
            scenario("quickstart", &["transport.spray=single", "seed=2"])
        );
        assert_eq!(
            read("my.toml:topology.links=[\"a-b down\",\"c:d down\"],seed=2"),
            scenario(
                "my.toml",
                &["topology.links=[\"a-b down\",\"c:d down\"]", "seed=2"]
            )
        );
        let Argument::Scenario(again) = read_argument(":seed=2", Some("x.toml")).unwrap() else {
            panic!("a scenario");
        };
        assert_eq!(
            (again.name.as_str(), again.argument.as_str()),
            ("x.toml", ":seed=2")
        );
        assert!(read_argument(":seed=2", None).is_err());
        assert!(read_argument("seed=2", Some("x.toml")).is_err());
    }

    #[test]
    fn folders_are_folders() {
        assert_eq!(
            read_argument(".", None).unwrap(),
            Argument::Folder(".".into(), None)
        );
        assert_eq!(
            read_argument("x/summary.json", None).unwrap(),
            Argument::Folder("x".into(), None)
        );
        assert!(read_argument(".:seed=2", None).is_err());
    }

    #[test]
    fn a_label_stands_in_front() {
        let read = |text| match read_argument(text, Some("base")).unwrap() {
            Argument::Scenario(wanted) => (
                wanted.given.clone(),
                wanted.name.clone(),
                wanted.label(true),
            ),
            Argument::Folder(path, given) => (given, path.display().to_string(), String::new()),
        };
        let some = |text: &str| Some(text.to_owned());
        for (text, given, name, label) in [
            ("ours=quickstart", some("ours"), "quickstart", "ours"),
            ("ours 2=my.toml:seed=2", some("ours 2"), "my.toml", "ours 2"),
            ("uet=:transport.kind=uet", some("uet"), "base", "uet"),
            ("here=.", some("here"), ".", ""),
            ("run=x/summary.json", some("run"), "x", ""),
            ("my.toml:a=1", None, "my.toml", "my.toml: a=1"),
            (
                ":transport.kind=uet,b=[1:2]",
                None,
                "base",
                "base: transport.kind=uet, b=[1:2]",
            ),
        ] {
            assert_eq!(
                read(text),
                (given, name.to_owned(), label.to_owned()),
                "{text}"
            );
        }
        for setting in [
            "seed=2",
            "transport.kind=uet",
            "=quickstart",
            " =quickstart",
        ] {
            assert!(read_argument(setting, Some("base")).is_err(), "{setting}");
        }
    }

    #[test]
    fn every_combination_once() {
        let vary = ["a=1,2".to_owned(), "b = [1,2], x".to_owned()];
        assert_eq!(
            combinations(&vary).unwrap(),
            [
                ["a=1", "b=[1,2]"],
                ["a=1", "b=x"],
                ["a=2", "b=[1,2]"],
                ["a=2", "b=x"]
            ]
        );
        assert_eq!(combinations(&[]).unwrap(), [[""; 0]]);
        for bad in ["a", "a=", "a=1,,2"] {
            assert!(combinations(&[bad.to_owned()]).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_are_told_only_if_there_are_several() {
        let Argument::Scenario(wanted) = scenario("x", &["a=1", "b=2"]) else {
            panic!("a scenario");
        };
        assert_eq!(wanted.label(false), "a=1, b=2");
        assert_eq!(wanted.label(true), "x: a=1, b=2");
        assert_eq!(
            RequestedScenario {
                settings: vec![],
                ..wanted
            }
            .label(false),
            "x"
        );
    }
}
