//! Runs whose links are metered.

use clearway_lab::{Assembly, Finished, RunDecision, RunOptions, Watch};

/// Runs to the end on two threads.
pub(crate) fn run(assembly: &Assembly) -> Finished {
    let options = RunOptions {
        threads: 2.into(),
        on_progress: &mut |_| RunDecision::Continue,
        on_flow: &mut |_, _, _| (),
    };
    let finished = assembly.run(options, Watch::Links);
    assert_eq!(finished.stopped, None);
    finished
}
