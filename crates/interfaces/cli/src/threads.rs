//! Note about idle threads.

use crate::messages::say;
use clearway_lab::{Assembly, Rounds, Threads};

/// Least number of rounds for the note; shorter runs are over in an instant.
const MANY: u64 = 1_000;

/// Tells the user if one of several requested `threads` did most of the work, and why.
pub(crate) fn tell(threads: Threads, rounds: Rounds, assembly: &Assembly) {
    // An automatic number of threads already considers the work to share.
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
