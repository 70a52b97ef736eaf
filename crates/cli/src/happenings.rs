//! Single events of a run for its timeline.

use clearway_lab::cc::LossCause;
use clearway_lab::record::{self, HappeningRecord, HappeningRecorder, merge_all};
use clearway_lab::{Assembly, Finished};
use clearway_report::{Happening, HappeningRow, Happenings};

/// So many drops, losses, pauses and dependencies are kept of each, the first ones: more than a viewer shows at a glance, and at most a
/// few megabytes for each switch of a fabric that loses packets everywhere.
const MOST: usize = 20_000;

/// A recorder for one domain.
pub(crate) fn recorder() -> HappeningRecorder {
    HappeningRecorder::new(MOST)
}

/// What the recorders of all domains have seen, and which flows started which.
pub(crate) fn happenings(
    assembly: &Assembly,
    finished: &Finished,
    recorders: impl IntoIterator<Item = HappeningRecorder>,
) -> Happenings {
    let log = merge_all(recorders).map(HappeningRecorder::finish);
    let log = log.unwrap_or_default();
    let dependencies = assembly.dependencies(finished, MOST);
    let pairs = dependencies.pairs.iter();
    Happenings {
        rows: log.records.into_iter().map(row).collect(),
        left_out: log.left_out + dependencies.left_out,
        dependencies: pairs.map(|(cause, effect)| (cause.0, effect.0)).collect(),
    }
}

fn row(record: HappeningRecord) -> HappeningRow {
    let what = match record.what {
        record::Happening::Dropped { link, flow } => Happening::Dropped {
            link: link.0,
            flow: flow.0,
        },
        record::Happening::LossDetected {
            flow,
            cause,
            packets,
        } => Happening::LossDetected {
            flow: flow.0,
            cause: words(cause),
            packets,
        },
        record::Happening::Pause { link, classes } => Happening::Pause {
            link: link.0,
            classes,
        },
    };
    HappeningRow {
        time: record.time,
        what,
    }
}

const fn words(cause: LossCause) -> &'static str {
    match cause {
        LossCause::OutOfOrder => "out of order",
        LossCause::Probe => "probe",
        LossCause::Timeout => "timeout",
        LossCause::GoBack => "go back",
    }
}
