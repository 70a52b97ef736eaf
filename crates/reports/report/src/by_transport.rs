//! Results by transport, where sections of the workload name transports.
//!
//! Figures are the same as in [`by_section`](crate::by_section), over the flows of all sections with one transport. Packets are counted
//! at the senders, including packets of flows that did not complete.

use crate::by_section::{Collected, FlowFigures};
use crate::record::{FlowTimes, TransportRow};
use serde::{Deserialize, Serialize};

/// Figures of the flows of one transport.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TransportSummary {
    /// Name of the transport.
    pub name: String,
    /// Names of the sections whose flows use the transport.
    pub sections: Vec<String>,
    /// Figures of all flows of the transport.
    #[serde(flatten)]
    pub figures: FlowFigures,
    /// Data packets sent, retransmissions included.
    pub data_sent: u64,
    /// Data packets that were sent again.
    pub retransmitted: u64,
    /// Retransmission timeouts that expired.
    pub timeouts: u64,
}

/// Flows by transport, in the order of the transports; empty if the run has one transport. `names` are the names of the sections.
pub(crate) fn by_transport(
    flows: &[FlowTimes],
    transports: &[TransportRow],
    names: &[String],
) -> Vec<TransportSummary> {
    if transports.len() < 2 {
        return Vec::new();
    }
    let mut collected = vec![Collected::default(); transports.len()];
    for flow in flows {
        let has = |transport: &TransportRow| transport.sections.contains(&flow.section);
        // Flows outside the listed sections use the transport of `[transport]`.
        let place = transports.iter().position(has).unwrap_or(0);
        collected[place].add(flow);
    }
    let summary = |(transport, collected): (&TransportRow, Collected)| {
        let mut sections: Vec<String> = Vec::new();
        for section in &transport.sections {
            let name = names.get(*section as usize).cloned().unwrap_or_default();
            if !sections.contains(&name) {
                sections.push(name);
            }
        }
        TransportSummary {
            name: transport.name.clone(),
            sections,
            figures: collected.figures(),
            data_sent: transport.data_sent,
            retransmitted: transport.retransmitted,
            timeouts: transport.timeouts,
        }
    };
    transports.iter().zip(collected).map(summary).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use clearway_units::Span;

    fn flow(number: u32, section: u32, us: Option<u64>) -> FlowTimes {
        FlowTimes {
            section,
            bytes: 1_000_000,
            ideal_fct: Span::from_us(10),
            ..FlowTimes::from(&sample::flow(number, us.map(Span::from_us)))
        }
    }

    fn transport(name: &str, sections: &[u32]) -> TransportRow {
        TransportRow {
            name: name.into(),
            sections: sections.to_vec(),
            data_sent: 100,
            retransmitted: sections.len() as u64,
            timeouts: 0,
        }
    }

    #[test]
    fn flows_count_for_the_transport_of_their_section() {
        let names = ["storage", "training", "storage"].map(String::from);
        let flows = [
            flow(0, 0, Some(20)),
            flow(1, 1, Some(50)),
            flow(2, 2, Some(20)),
            flow(3, 2, None),
            // Posted by a program, outside every section.
            flow(4, 3, Some(20)),
        ];
        let transports = [transport("rocev2", &[0, 2]), transport("strack", &[1])];
        let summaries = by_transport(&flows, &transports, &names);
        let [first, second] = summaries.as_slice() else {
            panic!("two transports");
        };
        assert_eq!(
            (first.name.as_str(), &first.sections[..]),
            ("rocev2", &names[..1])
        );
        assert_eq!((first.figures.flows, first.figures.completed), (4, 3));
        assert_eq!(first.figures.slowdown.unwrap().max, 2.0);
        assert_eq!(
            (second.figures.flows, second.figures.slowdown.unwrap().p50),
            (1, 5.0)
        );
        assert_eq!((first.retransmitted, second.retransmitted), (2, 1));
    }

    #[test]
    fn one_transport_is_not_broken_down() {
        let names = ["storage".to_owned()];
        assert_eq!(by_transport(&[flow(0, 0, None)], &[], &names), []);
        let one = [transport("rocev2", &[0])];
        assert_eq!(by_transport(&[flow(0, 0, None)], &one, &names), []);
    }
}
