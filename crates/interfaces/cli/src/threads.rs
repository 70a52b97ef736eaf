//! Note on threads that had nothing to do.

use crate::messages::say;
use clearway_lab::{Assembly, Rounds, Threads};

/// Rounds of a run from which the note is worth reading; fewer are over in an instant.
const MANY: u64 = 1_000;

/// Tells the user if most of the work of a run that was to have several `threads` was done by one, and why.
pub(crate) fn tell(threads: Threads, rounds: Rounds, assembly: &Assembly) {
    // Threads that nobody asked for are only there if there is something to share.
    let Threads::Exactly(threads) = threads else {
        return;
    };
    if let Some(note) = note(threads.get(), rounds, assembly) {
        say(&note);
    }
}

fn note(threads: usize, rounds: Rounds, assembly: &Assembly) -> Option<String> {
    if threads == 1 || rounds.total < MANY || rounds.shared_work * 2 >= rounds.work {
        return None;
    }
    let topology = &assembly.topology;
    let shortest = topology.shortest_delay();
    let link = topology
        .links_up()
        .find(|link| topology.link_delay(*link) == shortest);
    let name = link.map_or_else(String::new, |link| {
        format!(" ({})", topology.link_name(link))
    });
    let alone = rounds.total - rounds.shared;
    Some(format!(
        "note: `--threads {threads}` did not help: {alone} of {} rounds carried too little to share and ran on one thread; \
         a round is at most as long as the shortest delay of a link, which is {shortest}{name}",
        rounds.total
    ))
}
