//! Usual settings of the storm's scenarios: small, quick and hostile.
//!
//! Keys that are not listed here are drawn from their domains alone, so a new one needs nothing here. What is listed keeps runs short (few
//! hosts, small messages) or puts them where faults have been found (slow links, deep queues, impatient timers).

mod scaleup;
mod typical_setting;

use crate::random_choices::Lots;
use clearway_units::Value;
use typical_setting::Habit;

/// Usual settings of a kind of scenario.
#[derive(Debug)]
pub(crate) struct Habits {
    /// Settings that keep runs small.
    usual: &'static [Habit],
    /// Settings that put runs under stress, set more or less often as the mood is.
    hostile: &'static [Habit],
}

/// Habits of scenarios of packets.
pub(crate) const PACKETS: Habits = Habits {
    usual: USUAL,
    hostile: HOSTILE,
};

/// Habits of scenarios of scale-up fabrics.
pub(crate) const SCALE_UP: Habits = Habits {
    usual: scaleup::USUAL,
    hostile: scaleup::HOSTILE,
};

/// Settings that keep runs small.
const USUAL: &[Habit] = &[
    (
        "topology",
        "hosts",
        1.0,
        &["2", "3", "4", "8", "8", "12", "16", "16", "32"],
    ),
    (
        "topology",
        "hosts-per-leaf",
        1.0,
        &["1", "2", "4", "4", "4", "8"],
    ),
    (
        "topology",
        "spines",
        0.7,
        &["auto", "1", "2", "2", "3", "4"],
    ),
    ("topology", "parallel-links", 0.2, &["1", "2", "3"]),
    (
        "topology",
        "oversubscription",
        0.15,
        &["1", "2", "4", "1.5", "4:3"],
    ),
    ("topology", "radix", 1.0, &["2", "4", "4", "4", "6"]),
    ("topology", "tiers", 0.5, &["2", "3"]),
    ("topology", "pods", 1.0, &["1", "2", "2", "3"]),
    ("topology", "leaves-per-pod", 1.0, &["1", "2"]),
    ("topology", "aggs-per-pod", 1.0, &["1", "2"]),
    ("topology", "cores-per-agg", 1.0, &["1", "2"]),
    ("topology", "switch-ports", 1.0, &["2", "2", "3"]),
    ("topology", "levels", 1.0, &["1", "2", "2", "3"]),
    ("topology", "left", 1.0, &["1", "2", "4", "8"]),
    ("topology", "right", 1.0, &["1", "2", "4"]),
    (
        "topology",
        "link-rate",
        0.6,
        &[
            "10Gbps", "25Gbps", "40Gbps", "100Gbps", "200Gbps", "800Gbps",
        ],
    ),
    (
        "topology",
        "link-delay",
        0.4,
        &["1ns", "50ns", "500ns", "1us", "5us", "20us"],
    ),
    (
        "workload",
        "message",
        1.0,
        &[
            "1B", "7B", "1000B", "4096B", "4097B", "64KB", "100KB", "100KB", "300KB", "1MB",
        ],
    ),
    (
        "workload",
        "size",
        1.0,
        &[
            "7B", "1000B", "4096B", "64KB", "100KB", "300KB", "1MB", "3MB",
        ],
    ),
    ("workload", "senders", 1.0, &["1", "2", "3", "7"]),
    (
        "workload",
        "duration",
        1.0,
        &["5us", "20us", "50us", "100us", "200us"],
    ),
    (
        "workload",
        "load",
        0.6,
        &["0.01", "0.1", "0.3", "0.8", "1.0"],
    ),
    ("workload", "hosts", 0.3, &["auto", "2", "4"]),
    ("workload", "ranks", 0.5, &["auto", "2", "3", "4"]),
    ("workload", "jobs", 0.3, &["1", "2", "2", "3"]),
    ("workload", "iterations", 0.4, &["1", "2", "3", "10"]),
    ("workload", "passes", 0.3, &["1", "2"]),
    (
        "workload",
        "compute",
        0.4,
        &["0s", "1ns", "1us", "20us", "100us"],
    ),
    ("workload", "buckets", 0.3, &["1", "2", "5"]),
    (
        "workload",
        "chunk",
        0.4,
        &["1000B", "4096B", "10KB", "64KB", "1MB"],
    ),
    ("workload", "window", 0.3, &["auto", "1", "2", "4"]),
    (
        "workload",
        "start",
        0.2,
        &["0s", "1ps", "1us", "100us", "1s"],
    ),
    (
        "workload",
        "stagger",
        0.2,
        &["0s", "1ns", "1us", "20us", "100us"],
    ),
    ("workload", "spread", 0.3, &["0s", "1us", "50us"]),
    ("workload", "from", 0.4, &["0", "1"]),
    ("workload", "to", 0.4, &["auto", "0", "1", "2"]),
    ("workload", "receiver", 0.3, &["auto", "random", "0", "1"]),
    (
        "workload",
        "period",
        0.7,
        &["1ns", "1us", "20us", "100us", "1ms"],
    ),
    ("workload", "period-jitter", 0.2, &["0s", "1ns", "50us"]),
    ("workload", "redraw", 0.3, &["true"]),
    ("workload", "root", 0.3, &["0", "1"]),
    ("workload", "server", 0.3, &["auto", "0", "1"]),
    ("workload", "count", 0.7, &["1", "2", "5", "20"]),
    (
        "workload",
        "reduction-rate",
        0.3,
        &["auto", "1Gbps", "10Gbps", "400Gbps"],
    ),
    ("workload", "stragglers", 0.2, &["0", "1", "2"]),
    ("workload", "straggler-factor", 0.2, &["1.0", "1.5", "10.0"]),
    ("workload", "jitter", 0.2, &["0.0", "0.1", "1.0"]),
    ("workload", "overlap", 0.2, &["0.0", "0.5", "1.0"]),
    (
        "workload",
        "schedule.period",
        0.15,
        &["0s", "20us", "100us", "1ms"],
    ),
    ("workload", "experts", 1.0, &["1", "4", "8", "16", "64"]),
    ("workload", "top-k", 1.0, &["1", "1", "2", "4"]),
    ("workload", "tokens", 1.0, &["1", "4", "16", "32"]),
    ("workload", "hidden", 1.0, &["1", "64", "512", "1024"]),
    ("workload", "layers", 1.0, &["1", "1", "2", "3"]),
    ("workload", "skew", 0.5, &["0.0", "0.5", "1.2", "8.0"]),
    ("workload", "node-limit", 0.4, &["1", "2", "4"]),
    ("workload", "gpus-per-node", 0.4, &["1", "2", "8"]),
    (
        "workload",
        "capacity-factor",
        0.2,
        &["auto", "0.5", "1.0", "1.25"],
    ),
    (
        "workload",
        "expert-compute",
        0.4,
        &["0s", "1ps", "88ns", "1us"],
    ),
    ("workload", "prefill", 0.5, &["auto", "1", "2"]),
    ("workload", "decode", 0.3, &["auto", "1", "2"]),
    ("workload", "rate", 0.2, &["auto", "100000.0", "1e6"]),
    ("workload", "prompt-median", 1.0, &["16", "64", "256"]),
    ("workload", "prompt-sigma", 0.4, &["0.0", "0.5", "2.0"]),
    ("workload", "prompt-most", 1.0, &["16", "100", "512"]),
    ("workload", "kv-heads", 1.0, &["1", "2"]),
    ("workload", "head-dim", 1.0, &["64", "128"]),
    ("workload", "chunks", 0.4, &["1", "1", "2", "3"]),
    (
        "workload",
        "prefill-per-token",
        0.4,
        &["0s", "1ps", "100ns", "5us"],
    ),
    (
        "workload",
        "parameters",
        1.0,
        &["100", "1000", "10000", "100000"],
    ),
    (
        "workload",
        "object",
        1.0,
        &["1000B", "4096B", "4097B", "100KB"],
    ),
    ("workload", "storage", 1.0, &["1", "1", "2", "3"]),
    ("workload", "replicas", 0.4, &["1", "2", "3"]),
    ("workload", "interval", 0.4, &["0s", "1ns", "20us", "100us"]),
    ("workload", "start-jitter", 0.4, &["0s", "1ns", "20us"]),
    ("workload", "time-scale", 0.3, &["0.0", "0.5", "1.0", "3.0"]),
    (
        "transport",
        "payload",
        0.4,
        &["256B", "1000B", "1024B", "4096B", "9000B"],
    ),
    ("transport", "header", 0.1, &["20B", "48B", "64B", "200B"]),
    (
        "transport",
        "ack-size",
        0.1,
        &["auto", "40B", "64B", "1000B"],
    ),
    (
        "event",
        "at",
        1.0,
        &["0s", "1ps", "3us", "10us", "50us", "200us", "1ms"],
    ),
    ("event", "state", 0.5, &["down", "down", "up"]),
    ("event", "rate", 0.15, &["1Gbps", "10Gbps", "100Gbps"]),
    (
        "event",
        "packet-loss",
        0.15,
        &["0.0", "0.001", "0.3", "1.0"],
    ),
    ("event", "pause-storm", 0.1, &["true", "true", "false"]),
    ("event", "every", 0.3, &["1ns", "1us", "20us", "100us"]),
    ("event", "times", 0.3, &["1", "2", "3", "10"]),
    (
        "topology",
        "reroute-delay",
        0.3,
        &["0s", "1ns", "1us", "20us", "100us", "1ms"],
    ),
    ("switch", "ecn.pmax", 0.2, &["0.0", "0.2", "1.0"]),
    ("transport", "qps", 0.3, &["1", "2", "3", "4", "8"]),
    ("observe", "series.every", 0.7, &["off", "off", "1us"]),
    ("observe", "trace.perfetto", 0.1, &["true"]),
    (
        "",
        "stop.at-most",
        1.0,
        &["50us", "200us", "1ms", "5ms", "20ms", "20ms", "100ms"],
    ),
    ("", "seed", 0.5, &["2", "3", "77", "9223372036854775807"]),
];

/// Settings that put runs under stress: slow links, bit errors, small buffers, short timeouts.
const HOSTILE: &[Habit] = &[
    ("topology", "bit-error-rate", 0.3, &["1e-9", "1e-7", "1e-6"]),
    (
        "topology",
        "fabric-link-rate",
        0.4,
        &["1Gbps", "5Gbps", "10Gbps", "100Gbps", "400Gbps"],
    ),
    (
        "topology",
        "fabric-link-delay",
        0.4,
        &["1ns", "200ns", "2us", "50us"],
    ),
    (
        "topology",
        "bottleneck-rate",
        0.6,
        &["1Gbps", "3Gbps", "10Gbps", "100Gbps"],
    ),
    (
        "topology",
        "bottleneck-delay",
        0.4,
        &["1ns", "500ns", "20us"],
    ),
    ("topology", "failed-uplinks.leaves", 0.1, &["1", "2"]),
    ("topology", "failed-uplinks.per-leaf", 0.1, &["1", "2"]),
    (
        "switch",
        "queue",
        0.5,
        &[
            "9300B", "15KB", "100KB", "1MB", "10MB", "50MB", "1bdp", "100bdp",
        ],
    ),
    (
        "switch",
        "buffer",
        0.3,
        &["300KB", "1MB", "11MB", "64MB", "auto"],
    ),
    ("switch", "control-priority", 0.4, &["false"]),
    ("switch", "strict-priority", 0.3, &["true"]),
    ("switch", "ecn.enabled", 0.2, &["false"]),
    ("switch", "pfc.reaction", 0.2, &["100ns", "1us", "10us"]),
    ("switch", "pfc.classes", 0.2, &["[]", "[1]", "[3]"]),
    (
        "transport",
        "linger",
        0.5,
        &["0s", "1ns", "250ns", "1us", "10us"],
    ),
    (
        "transport",
        "rto",
        0.5,
        &["10us", "20us", "20us", "50us", "100us", "1ms"],
    ),
    ("transport", "rto-low", 0.3, &["10us", "20us", "100us"]),
    ("transport", "rto-max", 0.3, &["5us", "50us", "1ms"]),
    ("transport", "nack-interval", 0.3, &["0s", "1us", "10us"]),
    ("transport", "ack-duplicates", 0.2, &["false"]),
    ("transport", "ack-class", 0.2, &["data"]),
    ("transport", "control-first", 0.2, &["false"]),
    ("transport", "strict-window", 0.2, &["true"]),
];

/// Exceptions for links, in the syntax of `topology.links`.
const AILMENTS: [&str; 13] = [
    "down",
    "rate=1Gbps",
    "rate=3Gbps",
    "rate=10Gbps",
    "rate=100Gbps",
    "rate=800Gbps",
    "delay=1ns",
    "delay=7us",
    "delay=100us",
    "rate=3Gbps delay=7us",
    "bit-error-rate=1e-6",
    "packet-loss=0.001",
    "packet-loss=0.3",
];

/// Factors that decide how wild a scenario is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mood {
    /// Probability that a key without habits is set at all.
    pub(crate) boldness: f64,
    /// Factor on the probabilities of hostile keys.
    pub(crate) hostility: f64,
}

impl Mood {
    pub(crate) fn drawn(lots: &mut Lots) -> Self {
        Self {
            boldness: *lots.pick(&[0.0, 0.02, 0.06, 0.2, 0.5]),
            hostility: *lots.pick(&[0.3, 1.0, 1.0, 1.6]),
        }
    }
}

impl Habits {
    /// Value of a key by habit: `None` if it has no habit or a hostile one that is not drawn, `Some(None)` if the key is to stay at its
    /// default.
    pub(crate) fn value(
        &self,
        section: &str,
        key: &str,
        mood: Mood,
        lots: &mut Lots,
    ) -> Option<Option<Value>> {
        let find = |habits: &'static [Habit]| {
            let mut habits = habits.iter();
            habits.find(|habit| (habit.0, habit.1) == (section, key))
        };
        if let Some((.., often, values)) = find(self.usual) {
            return Some(lots.chance(*often).then(|| read(lots.pick::<&str>(values))));
        }
        let (.., often, values) = find(self.hostile)?;
        let set = lots.chance(often * mood.hostility);
        set.then(|| Some(read(lots.pick::<&str>(values))))
    }

    /// True if runs get long without the key.
    pub(crate) fn needs(&self, section: &str, key: &str) -> bool {
        let mut habits = self.usual.iter();
        habits.any(|habit| (habit.0, habit.1, habit.2) == (section, key, 1.0))
    }
}

/// True if runs of some kind of scenario get long without the key.
pub(crate) fn is_needed(section: &str, key: &str) -> bool {
    [PACKETS, SCALE_UP]
        .iter()
        .any(|habits| habits.needs(section, key))
}

/// An exception for the link called `name`.
pub(crate) fn ailment(name: &str, lots: &mut Lots) -> String {
    format!("{name} {}", lots.pick(&AILMENTS))
}

/// A value as a habit writes it.
fn read(text: &str) -> Value {
    if let Some(items) = text.strip_prefix('[') {
        let items = items.trim_end_matches(']').split(", ");
        return Value::List(items.filter(|item| !item.is_empty()).map(read).collect());
    }
    if let Ok(flag) = text.parse() {
        return Value::Boolean(flag);
    }
    if let Ok(number) = text.parse() {
        return Value::Integer(number);
    }
    match text.parse() {
        Ok(number) => Value::Float(number),
        Err(_) => Value::Text(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;
    use clearway_lab::Laboratory;

    #[test]
    fn habits_are_of_keys_that_exist() {
        let universe = Schema::of(&Laboratory::new()).universe();
        let all = [PACKETS, SCALE_UP].map(|habits| [habits.usual, habits.hostile].concat());
        for (section, key, ..) in all.iter().flatten() {
            let full = match *section {
                "" => format!("{key} ("),
                section => format!("{section}.{key} ("),
            };
            assert!(
                universe.iter().any(|known| known.starts_with(&full)),
                "{full}"
            );
        }
    }

    #[test]
    fn values_are_read_as_toml_has_them() {
        assert_eq!(read("[1, 3]").to_string(), "[1, 3]");
        assert_eq!(read("[]").to_string(), "[]");
        assert_eq!(read("1e-9"), Value::Float(1e-9));
        assert_eq!(read("0s").to_string(), "\"0s\"");
        assert_eq!(read("false"), Value::Boolean(false));
    }
}
