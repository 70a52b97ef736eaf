//! Null subjects: what a figure is run with in place of its transports. A claim that passes all the same says nothing about them.

use super::figure::Figure;
use std::fmt;
use std::str::FromStr;

/// Null subject: a transport in place of all transports of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NullSubject {
    /// A constant window of one packet, go-back-N, one path: neither queues nor a rate worth the name.
    OnePacket,
    /// A transport that the figure is not about: STrack for those about RoCEv2, RoCEv2 for all others.
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

    /// Settings that replace those of the transports of `figure`.
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

    /// The settings of a run of `figure` with this in place of its transport.
    pub(crate) fn replace(self, figure: &Figure, settings: &[String]) -> Vec<String> {
        let is_of_transport = |setting: &&String| {
            let key = setting.split('=').next().unwrap_or_default();
            key.split('.').any(|part| part.trim() == "transport")
        };
        let kept = settings.iter().filter(|setting| !is_of_transport(setting));
        let own = self.transport(figure).iter().map(|&text| text.to_owned());
        kept.cloned().chain(own).collect()
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
