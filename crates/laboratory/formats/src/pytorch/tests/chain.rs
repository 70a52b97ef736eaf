//! The chain of computations, by hand.

use super::super::timeline::{Item, ItemKind, Processor, Talk, Window, Work, schedule};

fn work(start: i64, end: i64, launch: i64) -> Work {
    Work {
        start,
        end,
        stream: 0,
        launch: Some(launch),
    }
}

fn talk(start: i64, end: i64, stream: usize, launch: i64) -> Talk {
    Talk {
        start,
        end,
        stream,
        launch: Some(launch),
    }
}

/// The schedule as text: computations as their time, communications as their number, each with its dependencies.
fn shown(works: &[Work], talks: &[Talk], waits: &[i64], syncs: &[(i64, i64)]) -> String {
    let ends = works
        .iter()
        .map(|work| work.end)
        .chain(talks.iter().map(|talk| talk.end));
    let window = Window {
        from: 0,
        to: ends.max().unwrap_or(0),
        works: works.to_vec(),
        talks: talks.to_vec(),
    };
    let processor = Processor {
        is_known: true,
        waits: waits.to_vec(),
        syncs: syncs.to_vec(),
    };
    let items = schedule(&window, &processor);
    let shown = |(index, item): (usize, &Item)| {
        assert!(item.after.iter().all(|&other| other < index));
        let kind = match item.kind {
            ItemKind::Compute(span) => format!("{span}"),
            ItemKind::Talk(talk) => format!("talk {talk}"),
        };
        format!("{kind} {:?}", item.after)
    };
    let items: Vec<String> = items.iter().enumerate().map(shown).collect();
    items.join(", ")
}

#[test]
fn computations_without_communication_are_one() {
    assert_eq!(
        shown(&[work(0, 10, 0), work(15, 20, 1)], &[], &[], &[]),
        "20 [], 0 [0]"
    );
    assert_eq!(shown(&[], &[], &[], &[]), "0 []");
}

#[test]
fn time_that_only_communicates_does_not_count() {
    // Computation from 0 to 10 and from 30 to 40, communication from 10 to 28; the processor needs two more.
    let works = [work(0, 10, 0), work(30, 40, 5)];
    let talks = [talk(10, 28, 1, 1)];
    // The kernel is started before the end of the communication and waits for it, so its two come after it, too.
    let late = shown(&works, &talks, &[3], &[]);
    assert_eq!(late, "10 [], talk 0 [0], 12 [0, 1], 0 [2]");
    // A kernel that is started later is late because of the processor.
    let works = [work(0, 10, 0), work(30, 40, 29)];
    assert_eq!(
        shown(&works, &talks, &[3], &[]),
        "10 [], talk 0 [0], 20 [0], 10 [2, 1], 0 [3]"
    );
    // Where the processor waits for the communication, its two come after it.
    let synced = shown(&works, &talks, &[], &[(2, 29)]);
    assert_eq!(synced, "10 [], talk 0 [0], 12 [0, 1], 0 [2]");
}

#[test]
fn the_processor_may_be_late() {
    // The second kernel is started at 25 and begins at 27: the GPU waits for the processor, and not for the communication.
    let works = [work(0, 10, 0), work(27, 40, 25)];
    let talks = [talk(10, 30, 1, 1)];
    assert_eq!(
        shown(&works, &talks, &[50], &[]),
        "10 [], talk 0 [0], 28 [0], 0 [2, 1]"
    );
    // The processor waits for 6 of these 15.
    assert_eq!(
        shown(&works, &talks, &[50], &[(12, 15), (20, 23)]),
        "10 [], talk 0 [0], 22 [0], 0 [2, 1]"
    );
    // A communication that the processor starts late comes after its work, although another one goes on.
    let talks = [talk(10, 30, 1, 1), talk(22, 26, 2, 20)];
    assert_eq!(
        shown(&works, &talks, &[50], &[]),
        "10 [], talk 0 [0], 12 [0], talk 1 [2], 16 [2], 0 [4, 1, 3]"
    );
}

#[test]
fn communication_beside_computation_is_waited_for_where_a_stream_waits() {
    // Three kernels; the communication begins after the first and ends during the second.
    let works = [work(0, 10, 0), work(10, 30, 2), work(30, 40, 4)];
    let talks = [talk(10, 20, 1, 1)];
    // The last kernel comes after a wait, so it waits for the communication.
    assert_eq!(
        shown(&works, &talks, &[3], &[]),
        "10 [], talk 0 [0], 20 [0], 10 [2, 1], 0 [3]"
    );
    // The only wait comes after the last kernel, so nothing does.
    assert_eq!(
        shown(&works, &talks, &[5], &[]),
        "10 [], talk 0 [0], 30 [0], 0 [2, 1]"
    );
    // The only wait comes before the communication.
    assert_eq!(
        shown(&works, &talks, &[0], &[]),
        "10 [], talk 0 [0], 30 [0], 0 [2, 1]"
    );
    // Nothing is known about waits.
    assert_eq!(
        shown(&works, &talks, &[], &[]),
        "10 [], talk 0 [0], 20 [0], 10 [2, 1], 0 [3]"
    );
}

#[test]
fn a_communication_waits_only_for_what_was_started_before_it() {
    // The second kernel is started after the communication, which is late because of the one before it.
    let works = [work(0, 10, 0), work(10, 20, 3)];
    let talks = [talk(10, 25, 1, 1), talk(25, 30, 1, 2)];
    assert_eq!(
        shown(&works, &talks, &[9], &[]),
        "10 [], talk 0 [0], talk 1 [0, 1], 10 [0], 0 [3, 1, 2]"
    );
    // Started before it.
    let works = [work(0, 10, 0), work(10, 20, 1)];
    let talks = [talk(10, 25, 1, 0), talk(25, 30, 1, 2)];
    assert_eq!(
        shown(&works, &talks, &[9], &[]),
        "10 [], talk 0 [0], 10 [0], talk 1 [2, 1], 0 [2, 1, 3]"
    );
}

#[test]
fn a_gap_before_a_communication_is_computation() {
    let works = [work(0, 10, 0)];
    let talks = [talk(14, 20, 1, 12)];
    assert_eq!(
        shown(&works, &talks, &[], &[]),
        "14 [], talk 0 [0], 0 [0, 1]"
    );
}

#[test]
fn communications_of_a_stream_are_in_order() {
    let talks = [talk(0, 5, 1, 0), talk(5, 9, 1, 1), talk(5, 8, 2, 2)];
    // The third is on another stream, and no stream waits in between.
    assert_eq!(
        shown(&[], &talks, &[7], &[]),
        "talk 0 [], talk 1 [0], talk 2 [], 0 [0, 1, 2]"
    );
    // A stream waits after the first is started, and before the third is.
    let talks = [talk(0, 5, 1, 0), talk(5, 9, 1, 1), talk(5, 8, 2, 4)];
    assert_eq!(
        shown(&[], &talks, &[3], &[]),
        "talk 0 [], talk 1 [0], talk 2 [0], 0 [0, 1, 2]"
    );
}

#[test]
fn communication_on_the_stream_of_the_computation() {
    let works = [work(0, 10, 0), work(20, 30, 2)];
    let talks = [talk(10, 20, 0, 1)];
    assert_eq!(
        shown(&works, &talks, &[9], &[]),
        "10 [], talk 0 [0], 10 [0, 1], 0 [2]"
    );
}

#[test]
fn communications_without_time_are_in_order() {
    let talks = [talk(5, 5, 1, 0), talk(5, 5, 2, 1), talk(5, 5, 1, 2)];
    let works = [work(5, 5, 3)];
    assert_eq!(
        shown(&works, &talks, &[], &[]),
        "5 [], talk 0 [0], talk 1 [0, 1], talk 2 [0, 1, 2], 0 [0, 1, 2, 3], 0 [4]"
    );
}
