//! The log of single events of a run, for its timeline.

use clearway_lab::record::{TraceEventRecorder, merge_all};
use clearway_lab::{Assembly, Finished};
use clearway_report::EventLog;

/// Number of first drops, losses, pauses and dependencies kept of each kind. This is more than a viewer shows at a glance, and at most a
/// few megabytes per switch in a fabric that loses packets everywhere.
const MOST: usize = 20_000;

/// A recorder for one domain.
pub(crate) fn recorder() -> TraceEventRecorder {
    TraceEventRecorder::new(MOST)
}

/// Log of the events in the recorders of all domains, and of dependencies between flows.
pub(crate) fn event_log(
    assembly: &Assembly,
    finished: &Finished,
    recorders: impl IntoIterator<Item = TraceEventRecorder>,
) -> EventLog {
    let log = merge_all(recorders).map(TraceEventRecorder::finish);
    let log = log.unwrap_or_default();
    let dependencies = assembly.dependencies(finished, MOST);
    let pairs = dependencies.pairs.iter();
    EventLog {
        left_out: log.left_out + dependencies.left_out,
        dependencies: pairs.map(|(cause, effect)| (cause.0, effect.0)).collect(),
        ..log
    }
}
