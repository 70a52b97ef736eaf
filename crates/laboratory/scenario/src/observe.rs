//! The `[observe]` section: samples, timelines and captures during a run. It changes no result, and is not part of the scenario's hash.

use crate::section::Section;
use clearway_units::{
    Bytes, Parameter, ParameterInfo, ParameterSet, SetError, Span, Value, ValueDomain,
};

/// Interval between the points of curves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// No points.
    Off,
    /// A quarter of the base round trip at first, but not less than a round of the engine, which is as long as the shortest link.
    Auto,
    /// The given interval at first.
    Every(Span),
}

impl Parameter for Sampling {
    fn expected() -> String {
        "a duration such as \"1us\", \"auto\" or \"off\"".into()
    }
    fn domain() -> ValueDomain {
        ValueDomain::Either(vec![
            ValueDomain::Words(vec!["auto", "off"]),
            ValueDomain::Duration,
        ])
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) if text == "off" => Some(Self::Off),
            Value::Text(text) if text == "auto" => Some(Self::Auto),
            _ => Span::from_value(value)
                .filter(|span| !span.is_zero())
                .map(Self::Every),
        }
    }
    fn advice(value: &Value) -> Option<String> {
        Span::advice(value)
    }
    fn to_value(&self) -> Value {
        match self {
            Self::Off => Value::Text("off".into()),
            Self::Auto => Value::Text("auto".into()),
            Self::Every(span) => span.to_value(),
        }
    }
}

/// Choice of the links or flows with separate curves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SampledSubjects {
    /// Number of links or flows, the largest first.
    Top(u32),
    /// Names of the chosen links or flows.
    Named(Vec<String>),
}

/// Maximum number of links or flows with separate curves.
pub const MOST_CHOSEN: u32 = 1024;

impl Parameter for SampledSubjects {
    fn expected() -> String {
        format!(
            "\"top:16\" for the 16 largest (0 to {MOST_CHOSEN}), or a list of names in brackets"
        )
    }
    fn domain() -> ValueDomain {
        let tops = ValueDomain::Words(vec!["top:0", "top:1", "top:16", "top:1024"]);
        ValueDomain::Either(vec![tops, ValueDomain::Text.list()])
    }
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) => {
                let count = text.strip_prefix("top:")?.parse().ok()?;
                (count <= MOST_CHOSEN).then_some(Self::Top(count))
            }
            Value::List(_) => {
                let names = Vec::<String>::from_value(value)?;
                (names.len() <= MOST_CHOSEN as usize).then_some(Self::Named(names))
            }
            _ => None,
        }
    }
    fn to_value(&self) -> Value {
        match self {
            Self::Top(count) => Value::Text(format!("top:{count}")),
            Self::Named(names) => names.to_value(),
        }
    }
}

clearway_units::parameters! {
    /// Samples, timelines and captures of a run.
    pub struct ObserveSettings {
        /// Interval between the points of `series.parquet` and of the report's curves; "auto" is a quarter of the base round trip, "off"
        /// records nothing, at no cost. No point lies within a round of the engine, which is as long as the shortest link.
        pub every: Sampling = Sampling::Auto, "series.every", "decision";
        /// Number of points that are kept. When a run goes beyond them, neighbouring points are merged and the interval doubles; points
        /// already in `series.parquet` keep their resolution.
        pub points: u32 = 1000, "series.points", "decision";
        /// Links with separate curves: the links with the longest queues ("top:16"), or names such as "leaf0-spine2".
        pub links: SampledSubjects = SampledSubjects::Top(16), "series.links", "decision";
        /// Flows with separate curves: the flows with most bytes, the first of equals ("top:16"), or numbers such as ["0", "7"].
        pub flows: SampledSubjects = SampledSubjects::Top(16), "series.flows", "decision";
        /// Write `trace.perfetto`: flows, queues, losses and pauses on a timeline for ui.perfetto.dev.
        pub perfetto: bool = false, "trace.perfetto", "decision";
        /// Write `trace.pcapng` with the packets at these places: "host:3" for the cable of a host, "link:leaf0-spine2" for one link.
        pub pcap: Vec<String> = Vec::new(), "trace.pcap", "decision";
        /// Maximum number of bytes of a frame in the capture; "auto" is the whole frame for RoCEv2, because Wireshark needs the payload,
        /// and 128 bytes for STrack.
        pub pcap_snap: Option<Bytes> = None, "trace.pcap-snap", "decision";
        /// Maximum number of frames in the capture; further ones are counted.
        pub pcap_frames: u32 = 250_000, "trace.pcap-frames", "decision: 1 GB of whole frames of 4 KB";
    }
}

impl Section for ObserveSettings {
    fn set(&mut self, key: &str, value: &Value) -> Result<(), SetError> {
        ParameterSet::set(self, key, value)
    }
    fn keys(&self) -> Vec<ParameterInfo> {
        Self::describe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_back_as_written() {
        for text in ["off", "auto", "2.5us"] {
            let value = Value::Text(text.into());
            assert_eq!(Sampling::from_value(&value).unwrap().to_value(), value);
        }
        for text in ["0s", "often", "-1us"] {
            assert_eq!(Sampling::from_value(&Value::Text(text.into())), None);
        }
        let list = Value::List(vec![Value::Text("leaf0-spine2".into())]);
        for value in [Value::Text("top:0".into()), list] {
            assert_eq!(
                SampledSubjects::from_value(&value).unwrap().to_value(),
                value
            );
        }
        for text in ["top:", "top:1025", "top:-1", "all"] {
            assert_eq!(SampledSubjects::from_value(&Value::Text(text.into())), None);
        }
    }
}
