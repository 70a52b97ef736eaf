//! The table of totals: packets and other counts over a whole run.

use serde::{Deserialize, Serialize};

/// Unit of a total.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TotalUnit {
    /// Packets.
    Packets,
    /// Expiries of timers.
    Timeouts,
    /// Pause frames.
    Frames,
}

/// Condition under which tables for people show a total; `summary.json` has all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ShowCondition {
    /// In every run.
    Always,
    /// In runs that have any.
    IfAny,
    /// In no run: the total nearly follows from others.
    Never,
}

/// Declaration of a total: a line of the table.
#[derive(Debug, Clone, Copy)]
pub struct Total {
    /// Path in `summary.json`.
    pub path: &'static str,
    /// Unit of the total.
    pub unit: TotalUnit,
    /// Condition under which tables show it.
    pub shown: ShowCondition,
    /// True for a part of the data packets sent, so that tables show the percentage.
    pub part_of_sent: bool,
    /// Heading in a comparison of runs.
    pub label: &'static str,
    /// Words after the number on the terminal.
    pub phrase: &'static str,
    /// Meaning, in a sentence.
    pub meaning: &'static str,
    /// Value in the counts of a run.
    pub of: fn(&PacketCounts) -> u64,
}

/// Declares [`PacketCounts`] and its table.
macro_rules! totals {
    ($(
        $(#[doc = $meaning:literal])+
        $(#[serde($serde:ident)])?
        $field:ident: $unit:ident, $shown:ident, $part_of_sent:literal, $label:literal, $phrase:literal;
    )+) => {
        /// Packets of a whole run, over all hosts and switches: the object `packets` of `summary.json`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        pub struct PacketCounts {
            $($(#[doc = $meaning])+ $(#[serde($serde)])? pub $field: u64,)+
        }

        impl PacketCounts {
            /// All totals, in the order of the table.
            pub const TOTALS: &'static [Total] = &[$(Total {
                path: concat!("packets.", stringify!($field)),
                unit: TotalUnit::$unit,
                shown: ShowCondition::$shown,
                part_of_sent: $part_of_sent,
                label: $label,
                phrase: $phrase,
                meaning: concat!($($meaning),+).trim_ascii(),
                of: |counts| counts.$field,
            }),+];
        }
    };
}

totals! {
    /// Data packets that hosts put on the wire, retransmissions included.
    data_sent: Packets, Always, false, "data sent", "data packets sent";
    /// Data packets that arrived at their receiver, duplicates included.
    data_delivered: Packets, Never, false, "data delivered", "data packets delivered";
    /// Data packets that were sent again.
    retransmitted: Packets, Always, true, "retransmitted", "retransmitted";
    /// Packets dropped at a queue or for want of a route.
    dropped: Packets, Always, false, "dropped", "dropped in the network";
    /// Of the dropped, packets of lossless classes that found even the headroom full.
    #[serde(default)]
    headroom_drops: Packets, IfAny, false, "headroom drops", "dropped in lossless classes: the headroom is too small";
    /// Of the dropped, speculative packets (1RC) that agents of links did not let through.
    #[serde(default)]
    agent_drops: Packets, IfAny, false, "speculative drops", "speculative packets dropped by links, as 1RC means it";
    /// Of the dropped, packets that an event took a link away from: in front of it, on it, or arriving for it while it was down.
    #[serde(default)]
    link_down_drops: Packets, IfAny, false, "link-down drops", "lost with links that went down or were down";
    /// Of the dropped, packets to destinations that no way led to any more.
    #[serde(default)]
    no_route_drops: Packets, IfAny, false, "no-route drops", "dropped because no way led to their destination";
    /// Data packets whose payload a full queue cut off; they are not dropped, and not among the delivered.
    #[serde(default)]
    trimmed: Packets, IfAny, true, "trimmed", "trimmed by full queues";
    /// Packets that a switch marked as having met congestion.
    marked: Packets, Always, true, "marked", "marked for congestion";
    /// Acknowledgements sent.
    acks: Packets, Never, false, "acknowledgements", "acknowledgements sent";
    /// Probes sent.
    probes: Packets, IfAny, false, "probes", "probes sent";
    /// Congestion notification packets sent.
    cnps: Packets, IfAny, false, "CNPs", "congestion notifications sent";
    /// Pause frames of priority flow control sent; resumes are not counted.
    pfc_pauses: Frames, IfAny, false, "pauses", "pauses by flow control";
    /// Packets lost to bit errors on a link; not among the dropped.
    corrupted: Packets, IfAny, false, "corrupted", "lost to bit errors";
    /// Control packets of rate allocation (s-PERC, 1RC) sent; their reflections are not counted.
    #[serde(default)]
    rate_controls: Packets, IfAny, false, "rate control", "control packets of rate allocation";
    /// Control packets of rate allocation that did not come back in time.
    #[serde(default)]
    rate_controls_lost: Packets, IfAny, false, "rate control lost", "control packets of rate allocation lost: rates are wrong until links have forgotten them";
    /// Speculative data packets sent (1RC).
    #[serde(default)]
    speculative: Packets, IfAny, true, "speculative", "sent before a rate was known";
    /// Negative acknowledgements that came: of trimmed packets, or requests to go back; with 1RC, losses that it had not foreseen.
    #[serde(default)]
    nacks: Packets, IfAny, false, "NACKs", "negative acknowledgements";
    /// Pulls that receivers sent: credit for senders (RCCC).
    #[serde(default)]
    pulls: Packets, IfAny, false, "pulls", "pulls: credit of receivers";
    /// Retransmission timeouts that expired.
    #[serde(default)]
    timeouts: Timeouts, IfAny, false, "timeouts", "retransmission timeouts";
    /// Delivered data packets that the receiver already had.
    duplicates: Packets, IfAny, false, "received twice", "received twice";
}

/// One packet in this many causes a warning.
const MANY: u64 = 500;

impl PacketCounts {
    /// Suspicious counts, in words for people.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.timeouts > 0 && self.dropped + self.corrupted == 0 {
            warnings.push(format!(
                "{} retransmission timeouts expired although no packet was lost: some packets waited longer than `transport.rto`; \
                 a longer timeout avoids the load of these retransmissions",
                self.timeouts
            ));
        }
        if self.timeouts + self.dropped + self.corrupted + self.trimmed == 0
            && self.retransmitted * MANY >= self.data_sent.max(1)
        {
            warnings.push(format!(
                "{} packets were sent again though none was lost: on ways of different length or load others had overtaken them by more than \
                 the transport waits for; with selective repeat a larger `transport.ooo-factor` waits longer",
                self.retransmitted
            ));
        }
        if self.no_route_drops > 0 {
            warnings.push(format!(
                "{} packets were dropped because events had cut all ways to their destination: their flows can go on only if a link comes up again",
                self.no_route_drops
            ));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn timeouts_without_a_loss_are_suspicious() {
        let warned = |timeouts, dropped, corrupted| {
            let counts = PacketCounts {
                timeouts,
                dropped,
                corrupted,
                ..PacketCounts::default()
            };
            !counts.warnings().is_empty()
        };
        assert!(warned(1, 0, 0));
        assert!(!warned(0, 0, 0) && !warned(1, 1, 0) && !warned(1, 0, 1));
    }

    #[test]
    fn retransmissions_without_a_loss_are_suspicious_if_they_are_many() {
        let warned = |retransmitted, [dropped, corrupted, trimmed, timeouts]: [u64; 4]| {
            let counts = PacketCounts {
                data_sent: 10_000,
                retransmitted,
                dropped,
                corrupted,
                trimmed,
                timeouts,
                ..PacketCounts::default()
            };
            let warnings = counts.warnings();
            warnings.iter().any(|warning| warning.contains("overtaken"))
        };
        assert!(warned(20, [0; 4]));
        assert!(!warned(19, [0; 4]) && !warned(0, [0; 4]));
        for loss in 0..4 {
            let mut losses = [0; 4];
            losses[loss] = 1;
            assert!(!warned(20, losses), "{losses:?}");
        }
        assert!(PacketCounts::default().warnings().is_empty());
    }

    #[test]
    fn every_total_reads_the_field_of_its_path() {
        let mut paths = BTreeSet::new();
        for total in PacketCounts::TOTALS {
            assert!(paths.insert(total.path), "{}", total.path);
            assert!(total.meaning.ends_with('.'), "{}", total.meaning);
            let mut json = serde_json::to_value(PacketCounts::default()).unwrap();
            let (object, field) = total.path.split_once('.').unwrap();
            assert_eq!(object, "packets");
            json[field] = 7.into();
            let counts = serde_json::from_value(json).unwrap();
            for other in PacketCounts::TOTALS {
                assert_eq!(
                    (other.of)(&counts),
                    if other.path == total.path { 7 } else { 0 }
                );
            }
        }
    }
}
