//! Schedules in both forms, and each reason for rejection.

use super::binary::{CALC, RECV, SEND};
use super::*;
use clearway_units::Span;
use clearway_workload::graph::{Rank, Task, TaskDependency, TaskId};
use clearway_workload::program::{OperationDependency, RankProgram};
use proptest::prelude::*;

const PAIR: &str = "\
num_ranks 2
rank 0 {
  compute: calc 1500 cpu 1   // on the second processor
  l2: send 4096b to 1 tag 7 cpu 0 nic 0
  l2 requires compute
}
rank 1 {
  l1: recv 4096b from 0 tag 7
  l2: calc 100
  l2 irequires l1
  /* over
  two lines */ send 1b to 0
}
";

fn pair() -> String {
    PAIR.replace(
        "  l2 requires compute\n",
        "  l2 requires compute\n  recv 1b from 0\n",
    )
    .replace("recv 1b from 0", "recv 1b from 1")
}

fn error(text: &str) -> String {
    let graph = parse_goal("x.goal", text).and_then(|file| file.graph());
    let error = graph.unwrap_err();
    assert!(!error.fix.is_empty());
    error.to_string()
}

fn refused(text: &str, message: &str) {
    let found = error(text);
    let first = found.lines().next().unwrap();
    assert_eq!(first, format!("x.goal:{message}"), "{text}");
}

/// A schedule of two ranks with these lines, from line 3 and from line 5 on.
fn two(first: &str, second: &str) -> String {
    format!("num_ranks 2\nrank 0 {{\n{first}\n}} rank 1 {{\n{second}\n}}\n")
}

#[test]
fn a_pair_becomes_a_message_between_computations() {
    let text = pair();
    let file = parse_goal("pair.goal", &text).unwrap();
    assert_eq!(file.warnings, []);
    let graph = file.graph().unwrap();
    graph.check().unwrap();
    let compute = |rank, unit, ns| Task::Compute {
        rank: Rank(rank),
        unit,
        span: Span::from_ns(ns),
    };
    let message = |src, dst, bytes| Task::Message {
        src: Rank(src),
        dst: Rank(dst),
        bytes: Bytes::new(bytes),
    };
    let tasks: Vec<Task> = graph.numbered().map(|(_, task)| task).collect();
    assert_eq!(
        tasks,
        [
            compute(0, 1, 1500),
            message(0, 1, 4096),
            compute(1, 0, 100),
            message(1, 0, 1)
        ]
    );
    assert_eq!(graph.needs(TaskId(1)), [TaskDependency::over(TaskId(0))]);
}

#[test]
fn the_text_may_be_written_in_many_ways() {
    for text in [
        "num_ranks 1\nrank 0 {\n}\n",
        "\u{feff}\r\nnum_ranks 1 rank 0 {}",
        "// c\nnum_ranks\t1 // c\n/* a\n*/ rank 0 // c\n{ a:calc 0 }",
        "num_ranks 1\r\nrank 0 {\r\n a1_:  calc 5 cpu 255\r\n}\r\n",
    ] {
        let file = parse_goal("x.goal", text).unwrap();
        assert_eq!(
            file.graph().unwrap().len(),
            usize::from(text.contains("calc"))
        );
    }
    let text = two(
        "send 8 b to 1 tag 0\nsend 8b to 1 nic 0",
        "recv 8b from -1 tag -1 cpu 3\nrecv 9b from 0",
    );
    assert_eq!(
        parse_goal("x.goal", &text).unwrap().graph().unwrap().len(),
        2
    );
}

#[test]
fn what_is_not_simulated_is_a_warning() {
    let text = two(
        "calc 1\nl1: send 0b to 1 nic 1\nsend 0b to 1\nsend 5b to 0",
        "recv 9b from 0\nrecv 0b from 0 nic 2",
    );
    let text = text.replace("send 5b to 0\n", "send 5b to 0\nrecv 5b from 0\n");
    let file = parse_goal("x.goal", &text).unwrap();
    let warnings: Vec<String> = file.warnings.iter().map(FileWarning::to_string).collect();
    assert_eq!(
        warnings,
        [
            "x.goal:4: `l1` of rank 0 (line 4) runs on a network interface other than 0, but each rank has one (and 1 more like it)",
            "x.goal:4: `l1` of rank 0 (line 4) has no bytes to send, and sends one because a message needs a packet (and 1 more like it)",
            "x.goal:6: the operation of rank 0 on line 6 has its own rank as receiver, which takes no time",
        ]
    );
    assert_eq!(
        file.graph().unwrap().bytes_sent(),
        [Bytes::new(2), Bytes::ZERO]
    );
}

#[test]
fn each_word_of_an_operation_is_used_warned_about_or_known_to_be_unused() {
    // The processor of a send or receive, which takes no processor time, as the module says.
    const UNUSED: [&str; 2] = ["send cpu", "recv cpu"];
    let outcome = |calc: &str, send: &str, recv: &str| {
        let first = format!("calc 5{calc}\nsend 9b to 1{send}\nsend 9b to 1 tag 3");
        let text = two(
            &first,
            &format!("recv 9b from 0{recv}\nrecv 9b from 0 tag -1"),
        );
        let file = parse_goal("x.goal", &text).unwrap();
        (file.program, file.warnings)
    };
    let base = outcome("", "", "");
    assert_ne!(outcome(" cpu 1", "", ""), base);
    for word in ["tag", "cpu", "nic"] {
        let changed = format!(" {word} 3");
        for (operation, changed) in [
            ("send", outcome("", &changed, "")),
            ("recv", outcome("", "", &changed)),
        ] {
            let name = format!("{operation} {word}");
            let is_unused = UNUSED.contains(&name.as_str());
            assert_eq!(changed == base, is_unused, "{name}");
        }
    }
}

#[test]
fn faults_of_the_frame_are_named() {
    refused("", "1:1: `end of file` stands where it cannot");
    refused("ranks 2", "1:1: `ranks` stands where it cannot");
    refused("num_ranks 0\n", "1:11: `0` is not a valid number of ranks");
    refused(
        "num_ranks 2\nrank 0 {\n}\n",
        "3:2: the file has 2 ranks to describe, but ends before rank 1",
    );
    refused(
        "num_ranks 2\nrank 1 {\n}\n",
        "2:6: rank 1 stands where rank 0 belongs",
    );
    refused(
        "num_ranks 1\nrank 0 {\n}\nrank 1 {\n}\n",
        "4:1: `rank` after the last of 1 rank",
    );
    refused(
        "num_ranks 1\nrank 0 {\ncalc 5\n",
        "3:7: rank 0 lacks its `}`",
    );
    refused(
        "num_ranks 1\nrank 0 calc 5\n",
        "2:8: `calc` stands where it cannot",
    );
}

#[test]
fn faults_of_statements_are_named() {
    let statement = |line: &str, message: &str| refused(&two(line, ""), message);
    statement("sned 5b to 1", "3:1: `sned` is not an operation");
    statement("l1: snd 5b to 1", "3:5: `snd` stands where it cannot");
    statement("send 5 to 1", "3:8: `to` stands where it cannot");
    statement("send 5b from 1", "3:9: `from` stands where it cannot");
    statement("send 5b to -1", "3:12: `-1` is not a valid rank");
    statement(
        "send 5b to 4294967295",
        "3:12: `4294967295` is not a valid rank",
    );
    statement("send 5b to 1 tag -1", "3:18: a send has no wildcard tag");
    statement(
        "send 5b to 1 nic 0 cpu 0",
        "3:20: `cpu` after the end of the statement",
    );
    statement("send 5b to 1 cpu 256", "3:18: `256` is not a valid cpu");
    statement(
        "send 18446744073709551616b to 1",
        "3:6: `18446744073709551616` is not a valid size",
    );
    statement("recv 5b from -10", "3:14: `-10` is not a valid rank");
    statement(
        "calc 18446744073709552",
        "3:6: `18446744073709552` is not a valid time in nanoseconds",
    );
    statement("calc 5 nic 0", "3:8: `nic` stands where it cannot");
    statement("calc 5 calc 6", "3:8: `calc` stands where it cannot");
    statement("é", "3:1: `é` stands where it cannot");
    statement(
        "a: calc 5\na: calc 6",
        "4:1: label `a` stands twice in rank 0, first on line 3",
    );
    statement(
        "a: calc 5\na requires b",
        "4:12: no operation of rank 0 above this line is called `b`",
    );
    statement(
        "b: calc 5\na irequires b",
        "4:1: no operation of rank 0 above this line is called `a`",
    );
    statement("a: calc 5\na requires 7", "4:12: `7` is not a valid label");
    statement(
        "a: calc 5\na needs a",
        "4:3: `needs` stands where it cannot",
    );
    statement(
        "a: calc 5\na requires a b",
        "4:14: `b` after the end of the statement",
    );
}

#[test]
fn faults_between_ranks_name_rank_and_line() {
    let between = |first: &str, second: &str, message: &str| refused(&two(first, second), message);
    between(
        "l1: send 5b to 1 tag 3",
        "recv 5b from 0 tag 4",
        "5: the operation of rank 1 on line 5 receives from rank 0 with tag 4, but no send is left for it",
    );
    between(
        "l1: send 5b to 1 tag 3",
        "",
        "3: `l1` of rank 0 (line 3) sends to rank 1 with tag 3, but no receive is left there for it",
    );
    between(
        "l1: send 5b to 1",
        "l2: recv 4b from 0",
        "5: `l2` of rank 1 (line 5) takes 4 B, but the message that comes to it, `l1` of rank 0 (line 3), has 5 B",
    );
    between(
        "l1: send 5b to 2",
        "",
        "3: `l1` of rank 0 (line 3) names rank 2, but there are 2 ranks",
    );
    between(
        "l1: send 5b to 1\nl2: recv 5b from 1\nl1 requires l2",
        "l1: send 5b to 0\nl2: recv 5b from 0\nl1 requires l2",
        "3: operations wait for one another in a circle: `l1` of rank 0 (line 3), `l2` of rank 0 (line 4), `l1` of rank 1 (line 7), `l2` of rank 1 (line 8), each for the next and the last for the first",
    );
    between(
        "l1: send 5b to 0\nsend 5b to 0\nrecv 5b from -1\nl3: recv 5b from -1",
        "send 5b to 0",
        "5: the operation of rank 0 on line 5 receives from any rank, and at its turn ranks 0 and 1 both have a message for it: which one comes depends on the network",
    );
}

/// Any program of sends and receives that GOAL can express, whether or not it can run.
fn any_program() -> impl Strategy<Value = JobProgram> {
    let number = || prop_oneof![0u32..4, 0..u32::MAX];
    let wild = move || proptest::option::of(number());
    let operation = prop_oneof![
        (any::<u8>(), 0..u64::MAX / 1000).prop_map(|(unit, ns)| Operation::Compute {
            unit,
            span: Span::from_ns(ns)
        }),
        (number(), any::<u64>(), number()).prop_map(|(to, bytes, tag)| Operation::Send {
            to: Rank(to),
            bytes: Bytes::new(bytes),
            tag
        }),
        (wild(), any::<u64>(), wild()).prop_map(|(from, bytes, tag)| Operation::Receive {
            from: from.map(Rank),
            bytes: Bytes::new(bytes),
            tag
        }),
    ];
    let rank = (
        proptest::collection::vec(operation, 0..8),
        proptest::collection::vec((any::<u32>(), any::<u32>(), any::<bool>()), 0..8),
    );
    let rank = rank.prop_map(|(operations, waits)| {
        let count = operations.len().max(1) as u32;
        let waits = waits.into_iter().map(|(who, operation, is_begun)| {
            let operation = operation % count;
            (
                who % count,
                OperationDependency {
                    operation,
                    is_begun,
                },
            )
        });
        let waits = if operations.is_empty() {
            Vec::new()
        } else {
            waits.collect()
        };
        RankProgram::new(operations, waits)
    });
    proptest::collection::vec(rank, 1..5).prop_map(|ranks| JobProgram {
        ranks,
        groups: Vec::new(),
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read(program in any_program()) {
        let text = write_goal(&program).unwrap();
        let file = parse_goal("x.goal", &text).unwrap();
        prop_assert_eq!(&file.program, &program);
        let bytes = write_goal_binary(&program).unwrap();
        let binary = parse_goal_binary("x.bin", &bytes).unwrap();
        prop_assert_eq!(&binary.program, &program);
        match (file.graph(), binary.graph()) {
            (Ok(graph), Ok(same)) => {
                graph.check().unwrap();
                prop_assert_eq!(graph, same);
            }
            (Err(text), Err(binary)) => {
                prop_assert!(text.line > 0 && binary.line == 0);
                prop_assert_eq!(text.fix, binary.fix);
            }
            (text, binary) => panic!("{text:?} {binary:?}"),
        }
    }
}

#[test]
fn the_binary_form_is_that_of_txt2bin() {
    let file = parse_goal("x.goal", PAIR).unwrap();
    let bytes = write_goal_binary(&file.program).unwrap();
    let mut expected: Vec<u8> = Vec::new();
    let mut put = |bytes: &[u8]| expected.extend(bytes);
    put(&4223u64.to_le_bytes());
    put(&2u32.to_le_bytes());
    put(&[1, 0]);
    for place in [38u64, 132, 132, 269] {
        put(&place.to_le_bytes());
    }
    let list = |numbers: &[u32]| {
        numbers
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let (mut first, mut second) = (list(&[2, 1, 0]), list(&[3, 2, 0, 2]));
    let one =
        |out: &mut Vec<u8>, counts: [u32; 5], kind: u8, peer: u32, size: u64, tag: u32, cpu: u8| {
            out.extend(counts[0].to_le_bytes());
            out.push(kind);
            out.extend(peer.to_le_bytes());
            out.extend(size.to_le_bytes());
            out.extend(tag.to_le_bytes());
            out.extend([cpu, 0]);
            counts[1..]
                .iter()
                .for_each(|count| out.extend(count.to_le_bytes()));
        };
    one(&mut first, [0, 1, 0, 0, 1], CALC, 0, 1500, 0, 1);
    one(&mut first, [1, 0, 1, 0, 1], SEND, 1, 4096, 7, 0);
    first.extend(1u32.to_le_bytes());
    one(&mut second, [0, 0, 0, 1, 0], RECV, 0, 4096, 7, 0);
    one(&mut second, [1, 0, 1, 0, 1], CALC, 0, 100, 0, 0);
    one(&mut second, [0, 0, 1, 0, 1], SEND, 0, 1, 0, 0);
    second.extend(1u32.to_le_bytes());
    expected.extend(first);
    expected.extend(second);
    assert_eq!(bytes, expected);
    assert!(is_goal_binary(&bytes) && !is_goal_binary(&bytes[1..]));
}

#[test]
fn what_goal_cannot_say_is_refused() {
    let write = |operation| {
        let program = JobProgram {
            ranks: vec![RankProgram::new(vec![operation], Vec::new())],
            groups: Vec::new(),
        };
        let error = write_goal(&program).unwrap_err();
        assert_eq!(write_goal_binary(&program), Err(error.clone()));
        error.to_string()
    };
    let (unit, tag, bytes) = (0, ANY, Bytes::ZERO);
    let span = Span::from_ps(1500);
    assert!(write(Operation::Compute { unit, span }).contains("nanoseconds"));
    let to = Rank(0);
    assert!(write(Operation::Send { to, bytes, tag }).contains("any"));
    let (kind, group) = (clearway_workload::CollectiveKind::Barrier, 0);
    assert!(write(Operation::Collective { kind, bytes, group }).contains("collectives"));
}

#[test]
fn broken_binary_schedules_name_rank_and_node() {
    let file = parse_goal("x.goal", PAIR).unwrap();
    let bytes = write_goal_binary(&file.program).unwrap();
    let refused = |change: &dyn Fn(&mut Vec<u8>), message: &str| {
        let mut bytes = bytes.clone();
        change(&mut bytes);
        let error = parse_goal_binary("x.bin", &bytes).unwrap_err();
        assert!(!error.fix.is_empty() && error.line == 0);
        assert!(error.to_string().starts_with("x.bin: "));
        assert!(error.message.contains(message), "{}", error.message);
    };
    // Rank 0 begins at byte 8 + 38, with a count, one root and two records.
    let node = |index: usize, field: usize| 46 + 12 + 39 * index + field;
    refused(&|b| b[0] = 0, "4223");
    refused(&|b| b.truncate(10), "table of ranks");
    refused(&|b| b.truncate(30), "table of ranks");
    refused(&|b| b[8..12].fill(0), "no ranks");
    refused(&|b| b.truncate(100), "operations of rank 0 is wrong");
    refused(&|b| b[14] = 0, "operations of rank 0 is wrong");
    refused(&|b| b[30] = 0, "operations of rank 1 is wrong");
    refused(&|b| b[46] = 1, "rank 0");
    refused(&|b| b[46] = 9, "the announced size");
    refused(&|b| b[node(0, 4)] = 4, "node 0 of rank 0 is neither");
    refused(
        &|b| b[node(1, 5)..node(1, 9)].fill(255),
        "node 1 of rank 0 sends to any rank",
    );
    refused(
        &|b| b[node(1, 17)..node(1, 21)].fill(255),
        "node 1 of rank 0 sends with any tag",
    );
    refused(
        &|b| b[node(0, 9)..node(0, 17)].fill(255),
        "node 0 of rank 0 computes",
    );
    refused(
        &|b| b[node(1, 0)] = 2,
        "node 1 of rank 0 has 1 dependencies, but says 2",
    );
    refused(
        &|b| b[node(0, 23)] = 2,
        "node 0 of rank 0 refers to a place outside",
    );
    refused(
        &|b| b[node(0, 27)] = 1,
        "node 0 of rank 0 refers to a place outside",
    );
    refused(
        &|b| b[node(0, 31)..node(0, 39)].copy_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0]),
        "node 0, rank 0 has more dependents",
    );
    refused(&|b| b[node(0, 23)] = 0, "the announced size");
    refused(
        &|b| b[node(2, 0)] = 2,
        "node 0 of rank 0 has a dependent that does not exist",
    );
    refused(&|b| b[54] = 1, "the list of roots of rank 0");
}

#[test]
fn faults_between_ranks_of_a_binary_schedule_name_the_node() {
    let file = parse_goal("x.goal", PAIR).unwrap();
    let bytes = write_goal_binary(&file.program).unwrap();
    let graph = parse_goal_binary("x.bin", &bytes).unwrap().graph();
    assert_eq!(
        graph.unwrap_err().to_string(),
        "x.bin: node 2 of rank 1 sends to rank 0 with tag 0, but no receive is left there for it\n  fix: add the receive at rank 0, or remove the send"
    );
}
