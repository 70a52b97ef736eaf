//! Null subjects, which replace the transports of a figure. A claim that still passes says nothing about the transports.

use super::figure::Figure;
use super::figure_run_data::RunKind;
use std::fmt;
use std::str::FromStr;

/// Null subject: a transport or an injection control that replaces all others of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NullSubject {
    /// A constant window of one packet, go-back-N, one path, which gives neither queues nor a useful rate. In a scale-up fabric, a window
    /// of one operation of each kind.
    OnePacket,
    /// A transport that the figure is not about: STrack for figures about RoCEv2, RoCEv2 for all others. In a scale-up fabric, no control.
    WrongProtocol,
}

impl NullSubject {
    /// All null subjects.
    pub const ALL: [Self; 2] = [Self::OnePacket, Self::WrongProtocol];

    /// Name on the command line and in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OnePacket => "one-packet",
            Self::WrongProtocol => "wrong-protocol",
        }
    }

    /// Settings that replace the transports' settings of `figure`.
    fn transport(self, figure: &Figure) -> &'static [&'static str] {
        let papers = ["mlcc/", "tmdml/"];
        let of_paper = papers.iter().any(|paper| figure.id.starts_with(paper));
        let is_base =
            |setting: &String| setting.starts_with("transport.kind=") && setting.contains("rocev2");
        let about_roce = of_paper || figure.settings.iter().any(is_base);
        match self {
            Self::OnePacket => &[
                "transport.kind=\"rocev2\"",
                "transport.controller=\"constant\"",
                "transport.window=\"1B\"",
            ],
            Self::WrongProtocol if about_roce => &["transport.kind=\"strack\""],
            Self::WrongProtocol => &["transport.kind=\"rocev2\""],
        }
    }

    /// Settings that replace the injection control of a scale-up fabric.
    fn injection(self) -> &'static [&'static str] {
        match self {
            Self::OnePacket => &["injection.kind=\"window\"", "injection.window=1"],
            Self::WrongProtocol => &["injection.kind=\"none\""],
        }
    }

    /// The settings of a run of `figure` of this kind, with the null subject in place of its transport or injection control.
    pub(crate) fn replace(
        self,
        figure: &Figure,
        kind: RunKind,
        settings: &[String],
    ) -> Vec<String> {
        let (section, own) = match kind {
            RunKind::Scaleup => ("injection", self.injection()),
            RunKind::Simulated | RunKind::Planned => ("transport", self.transport(figure)),
        };
        let is_replaced = |setting: &&String| {
            let key = setting.split('=').next().unwrap_or_default();
            key.split('.').any(|part| part.trim() == section)
        };
        let kept = settings.iter().filter(|setting| !is_replaced(setting));
        kept.cloned()
            .chain(own.iter().map(|&text| text.to_owned()))
            .collect()
    }
}

impl fmt::Display for NullSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for NullSubject {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|subject| subject.name() == text);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("there is no null subject `{text}`; there are: {names}")
        })
    }
}
