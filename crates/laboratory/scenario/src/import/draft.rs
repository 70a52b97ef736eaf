//! A scenario under construction: settings with their sources, and settings of the other simulator without counterpart.

use clearway_units::{Parameter, Value};
use std::fmt::Write as _;

/// Width of the text in columns.
const WIDTH: usize = 120;

/// Sections in the order of the text.
const SECTIONS: [&str; 6] = ["", "topology", "switch", "transport", "workload", "event"];

/// A scenario made from the settings of another simulator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// Text of the scenario.
    pub text: String,
    /// Settings of the other simulator that change its results and have no counterpart, each with its meaning.
    pub warnings: Vec<String>,
}

/// Effect of a setting that has no counterpart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Results differ.
    Results,
    /// The other simulator writes other files, or the command has an option for it.
    Output,
    /// None: the setting has no effect there either, or the scenario does the same without it.
    None,
}

/// Headings of the three kinds of settings without counterpart.
const HEADINGS: [(Effect, &str); 3] = [
    (
        Effect::Results,
        "Without a counterpart, so that results differ:",
    ),
    (Effect::Output, "Output:"),
    (
        Effect::None,
        "Without a key, and without effect on results:",
    ),
];

#[derive(Debug)]
struct DraftSetting {
    section: &'static str,
    key: &'static str,
    value: Value,
    source: String,
}

#[derive(Debug)]
struct Note {
    what: String,
    meaning: String,
    effect: Effect,
}

/// The scenario under construction.
#[derive(Debug)]
pub(super) struct Draft {
    /// Lines at the top.
    top: Vec<String>,
    settings: Vec<DraftSetting>,
    notes: Vec<Note>,
}

impl Draft {
    /// A draft whose text begins with these comments.
    pub(super) fn new(top: impl IntoIterator<Item = String>) -> Self {
        Self {
            top: top.into_iter().collect(),
            settings: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Sets `key` of `section`, in place of an earlier value.
    pub(super) fn set(
        &mut self,
        section: &'static str,
        key: &'static str,
        value: impl Parameter,
        source: impl Into<String>,
    ) {
        let (value, source) = (value.to_value(), source.into());
        let setting = DraftSetting {
            section,
            key,
            value,
            source,
        };
        let mut former = self.settings.iter_mut();
        match former.find(|former| former.section == section && former.key == key) {
            Some(former) => *former = setting,
            None => self.settings.push(setting),
        }
    }

    /// As [`set`](Self::set), for a text.
    pub(super) fn text(
        &mut self,
        section: &'static str,
        key: &'static str,
        value: &str,
        source: impl Into<String>,
    ) {
        self.set(section, key, value.to_owned(), source);
    }

    /// Notes that `what` has no counterpart.
    pub(super) fn note(
        &mut self,
        effect: Effect,
        what: impl Into<String>,
        meaning: impl Into<String>,
    ) {
        self.notes.push(Note {
            what: what.into(),
            meaning: meaning.into(),
            effect,
        });
    }

    /// The finished scenario.
    pub(super) fn finish(self) -> Imported {
        let mut text = String::new();
        self.top
            .iter()
            .for_each(|line| comment(&mut text, "# ", line));
        for section in SECTIONS {
            self.write_section(&mut text, section);
        }
        for (effect, heading) in HEADINGS {
            let notes: Vec<&Note> = self.notes.iter().filter(|n| n.effect == effect).collect();
            if !notes.is_empty() {
                text.push('\n');
                comment(&mut text, "# ", heading);
            }
            for note in notes {
                comment(
                    &mut text,
                    "# * ",
                    &format!("{}: {}", note.what, note.meaning),
                );
            }
        }
        let changing = self.notes.iter().filter(|n| n.effect == Effect::Results);
        Imported {
            text,
            warnings: changing
                .map(|note| format!("{}: {}", note.what, note.meaning))
                .collect(),
        }
    }

    fn write_section(&self, text: &mut String, section: &str) {
        let settings = self.settings.iter().filter(|s| s.section == section);
        let lines: Vec<(String, &str)> = settings
            .map(|s| (format!("{} = {}", s.key, s.value), s.source.as_str()))
            .collect();
        if lines.is_empty() {
            return;
        }
        text.push('\n');
        let _ = match section {
            "" => Ok(()),
            "workload" | "event" => writeln!(text, "[[{section}]]"),
            name => writeln!(text, "[{name}]"),
        };
        let short = lines.iter().map(|(line, _)| line.chars().count());
        let column = short.filter(|width| *width <= WIDTH / 3).max().unwrap_or(0);
        for (line, source) in lines {
            let source: String = source.chars().map(visible).collect();
            let gap = column.saturating_sub(line.chars().count()) + 2;
            if line.chars().count() + gap + 2 + source.chars().count() <= WIDTH {
                let _ = writeln!(text, "{line}{:gap$}# {source}", "");
            } else {
                comment(text, "# ", &source);
                let _ = writeln!(text, "{line}");
            }
        }
    }
}

/// Writes a comment, in several lines if it is long. `first` begins the first line, blanks the others.
fn comment(text: &mut String, first: &str, comment: &str) {
    let comment: String = comment.chars().map(visible).collect();
    let indent = format!("#{:1$}", "", first.chars().count() - 1);
    let mut line = first.to_owned();
    let mut is_empty = true;
    for word in comment.split(' ') {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(text, "{line}");
            line.clone_from(&indent);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    let _ = writeln!(text, "{line}");
}

/// `c`, or a replacement for a control character, which could end a comment.
fn visible(c: char) -> char {
    match c.is_control() {
        true => char::REPLACEMENT_CHARACTER,
        false => c,
    }
}
