//! Time-sequence graphs of captured flows, as tcptrace draws them for TCP.

use super::document::Document;
use super::format;
use super::html::paragraph;
use super::plot::{Axis, Join, Plot, Series, Shape, Unit};
use clearway_report::observed::{FlowSequence, RunObservations, SequenceKind};

/// Maximum number of dots of a page, which zooming parts from each other.
const MOST_DOTS: usize = 40_000;
/// Names of the plots, one for each flow of a page.
const IDS: [&str; 4] = ["sequence-0", "sequence-1", "sequence-2", "sequence-3"];

/// The section, if flows were captured.
pub(super) fn section(document: &mut Document, observed: &RunObservations) {
    if observed.sequences.is_empty() {
        return;
    }
    document.open_section("sequences", "Packets of captured flows");
    document.push(&paragraph(
        "Each dot is a packet at the link of a captured host: its time and its sequence number. A slope is a rate; the distance from sent to \
         acknowledged is a round trip along the time, and the data in flight along the numbers. An acknowledgement is at the number of the \
         packet that the receiver expects next.",
    ));
    let several = observed.sequences.iter().any(|graph| graph.queue_pair > 0);
    let plots = IDS.into_iter().zip(&observed.sequences);
    let most = MOST_DOTS / observed.sequences.len();
    document.plots(
        plots
            .map(|(id, graph)| plot(id, graph, several, most))
            .collect(),
    );
    document.close_section();
}

/// The graph of a flow, with at most `most` dots.
fn plot(id: &'static str, graph: &FlowSequence, several: bool, most: usize) -> Plot {
    let kinds: Vec<(SequenceKind, Vec<(f64, f64)>)> = SequenceKind::ALL
        .into_iter()
        .map(|kind| {
            let own = graph.points.iter().filter(|point| point.kind == kind);
            let own = own.map(|point| (point.time.as_us(), f64::from(point.psn)));
            (kind, own.collect())
        })
        .filter(|(_, own): &(_, Vec<_>)| !own.is_empty())
        .collect();
    let most = most / kinds.len().max(1);
    let series = kinds.into_iter().map(|(kind, own)| {
        // Evenly from the first to the last.
        let step = own.len().div_ceil(most).max(1);
        let (x, y): (Vec<f64>, Vec<f64>) = own.into_iter().step_by(step).unzip();
        Series {
            name: kind.name().into(),
            x: x.into(),
            y,
            shape: Shape::Dots,
            join: Join::Never,
            colour: colour(kind),
        }
    });
    let series: Vec<Series> = series.collect();
    let drawn: usize = series.iter().map(|series| series.y.len()).sum();
    let all = graph.points.len();
    let connection = match several {
        true => format!(", queue pair {}", graph.queue_pair),
        false => String::new(),
    };
    Plot {
        id,
        title: format!(
            "Flow {}{connection}: host {} to host {}",
            graph.flow, graph.src, graph.dst
        ),
        note: match drawn < all {
            true => format!(
                "{} of {} drawn, evenly",
                format::count(drawn as u64),
                format::counted(all, "packet", "packets")
            ),
            false => format::counted(all, "packet", "packets"),
        },
        x: Axis {
            group: Some("time"),
            ..Axis::from_zero("time", Unit::Time)
        },
        y: Axis::from_zero("packet sequence number", Unit::Count),
        series,
        rules: Vec::new(),
    }
}

/// Colour among those of curves: what is lost or marked stands out.
const fn colour(kind: SequenceKind) -> usize {
    match kind {
        SequenceKind::Sent => 0,
        SequenceKind::Received => 5,
        SequenceKind::Acknowledged => 2,
        SequenceKind::Marked | SequenceKind::MarkEchoed => 4,
        SequenceKind::Retransmitted => 1,
        SequenceKind::Trimmed => 6,
        SequenceKind::NegativelyAcknowledged => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_report::observed::SequencePoint;
    use clearway_units::Time;

    fn graph(packets: u32) -> FlowSequence {
        let points = (0..packets).flat_map(|psn| {
            let at = |ns: u64, kind, psn| SequencePoint {
                time: Time::from_ps((u64::from(psn) * 10 + ns) * 1000),
                kind,
                psn,
            };
            let again = (psn % 100 == 7).then(|| at(900, SequenceKind::Retransmitted, psn));
            [
                at(0, SequenceKind::Sent, psn),
                at(500, SequenceKind::Acknowledged, psn + 1),
            ]
            .into_iter()
            .chain(again)
        });
        FlowSequence {
            flow: 3,
            queue_pair: 0,
            src: 1,
            dst: 5,
            points: points.collect(),
        }
    }

    #[test]
    fn a_graph_has_a_series_for_each_kind_that_occurs() {
        let plot = plot("sequence-0", &graph(200), false, 10_000);
        assert_eq!(plot.title, "Flow 3: host 1 to host 5");
        assert_eq!(plot.note, "402 packets");
        let names: Vec<&str> = plot.series.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["sent", "sent again", "acknowledged"]);
        let again = &plot.series[1];
        assert_eq!(
            (again.x.to_vec(), &again.y[..]),
            (vec![0.97, 1.97], &[7.0, 107.0][..])
        );
    }

    #[test]
    fn many_packets_are_drawn_evenly_and_rare_ones_all() {
        let plot = plot("sequence-0", &graph(50_000), true, 3000);
        assert_eq!(plot.title, "Flow 3, queue pair 0: host 1 to host 5");
        let counts: Vec<usize> = plot.series.iter().map(|one| one.y.len()).collect();
        assert_eq!(counts, [1000, 500, 1000]);
        assert_eq!(plot.note, "2,500 of 100,500 packets drawn, evenly");
    }
}
