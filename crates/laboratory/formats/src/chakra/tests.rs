//! Reading and writing of traces, and each reason for rejection.

use super::attributes::{IGNORED, READ};
use super::node::{COLL, COMP, RECV, SEND};
use super::proto::{Attribute, BoolList, IoInfo, Value};
use super::*;
use crate::groups::{self, MOST_MEMBERS, MOST_NAMES};
use clearway_units::{Rate, Span};
use clearway_workload::graph::{Task, TaskId};
use clearway_workload::program::{CollectiveCall, ExpansionFault};
use flate2::Compression;
use flate2::write::GzEncoder;
use insta::assert_snapshot;
use proptest::prelude::*;
use prost::Message;
use std::io::Write;
use std::num::NonZero;

fn attribute(name: &str, value: Value) -> Attribute {
    Attribute {
        name: name.into(),
        value: Some(value),
    }
}

fn node(id: u64, kind: i32, deps: &[u64], attr: impl Into<Vec<Attribute>>) -> Node {
    Node {
        id,
        kind,
        data_deps: deps.to_vec(),
        attr: attr.into(),
        ..Node::default()
    }
}

fn message(id: u64, kind: i32, src: i32, dst: i32, deps: &[u64]) -> Node {
    let attr = [
        attribute("comm_size", Value::Int64(1000)),
        attribute("comm_src", Value::Int32(src)),
        attribute("comm_dst", Value::Int32(dst)),
    ];
    node(id, kind, deps, attr)
}

fn call(id: u64, kind: i64, group: &str) -> Node {
    let attr = [
        attribute("comm_size", Value::Uint64(1000)),
        attribute("comm_type", Value::Int64(kind)),
        attribute("pg_name", Value::String(group.into())),
    ];
    node(id, COLL, &[], attr)
}

fn bytes(nodes: &[Node]) -> Vec<u8> {
    let version = "1.0.2-chakra.1.0.0".into();
    let mut bytes = GlobalMetadata { version }.encode_length_delimited_to_vec();
    for node in nodes {
        bytes.extend(node.encode_length_delimited_to_vec());
    }
    bytes
}

fn read(traces: &[Vec<u8>], groups: &str) -> Result<ChakraTrace, FileError> {
    let mut reader = ChakraReader::new(traces.len() as u32, ChakraOptions::default());
    reader.groups("groups.json", groups)?;
    for (rank, trace) in traces.iter().enumerate() {
        reader.rank(&format!("t.{rank}.et"), trace.as_slice())?;
    }
    Ok(reader.finish())
}

/// Every rank sends to every other rank, and ends when it has received all messages.
fn to_all(
    call: &CollectiveCall<'_>,
    graph: &mut Graph,
) -> Result<Vec<Vec<TaskId>>, ExpansionFault> {
    let mut ends = vec![Vec::new(); call.group.len()];
    for (&src, &start) in call.group.iter().zip(call.starts) {
        for (&dst, ends) in call.group.iter().zip(&mut ends) {
            if src != dst {
                let bytes = call.bytes.max(Bytes::new(1));
                ends.push(graph.message((src, dst), bytes, [start]));
            }
        }
    }
    Ok(ends)
}

fn graph(ranks: &[&[Node]], groups: &str) -> Result<(Graph, Vec<String>), FileError> {
    let traces: Vec<Vec<u8>> = ranks.iter().map(|nodes| bytes(nodes)).collect();
    let trace = read(&traces, groups)?;
    let graph = trace.graph(&mut to_all)?;
    graph.check().unwrap();
    Ok((
        graph,
        trace.warnings.iter().map(FileWarning::to_string).collect(),
    ))
}

fn refused(ranks: &[&[Node]], message: &str) {
    let error = graph(ranks, "empty").unwrap_err();
    assert!(!error.fix.is_empty());
    let text = error.to_string();
    assert_eq!(text.lines().next().unwrap(), message);
}

#[test]
fn nodes_become_tasks_in_the_order_of_their_ids() {
    let gpu = |id, micros, deps: &[u64]| Node {
        duration_micros: micros,
        ..node(id, COMP, deps, [attribute("is_cpu_op", Value::Int64(0))])
    };
    let cpu = Node {
        ctrl_deps: vec![3],
        duration_micros: 7,
        ..node(5, COMP, &[], [])
    };
    let first = [message(9, SEND, 0, 1, &[3, 5]), cpu, gpu(3, 2, &[])];
    let second = [message(1, RECV, 0, 1, &[]), gpu(2, 4, &[1])];
    let (graph, warnings) = graph(&[&first, &second], "empty").unwrap();
    assert!(warnings.is_empty());
    let tasks: Vec<Task> = graph.numbered().map(|(_, task)| task).collect();
    let compute = |rank, unit, us| Task::Compute {
        rank: Rank(rank),
        unit,
        span: Span::from_us(us),
    };
    let (src, dst, bytes) = (Rank(0), Rank(1), Bytes::new(1000));
    let message = Task::Message { src, dst, bytes };
    assert_eq!(
        tasks,
        [
            compute(0, 0, 2),
            compute(0, 1, 7),
            message,
            compute(1, 0, 4)
        ]
    );
    let needs: Vec<usize> = graph
        .numbered()
        .map(|(id, _)| graph.needs(id).len())
        .collect();
    assert_eq!(needs, [0, 1, 2, 1]);
}

#[test]
fn integers_of_every_type_are_numbers() {
    for value in [
        Value::Int32(1000),
        Value::Int64(1000),
        Value::Uint32(1000),
        Value::Uint64(1000),
        Value::Sint32(1000),
        Value::Sint64(1000),
        Value::Fixed32(1000),
        Value::Fixed64(1000),
        Value::Sfixed32(1000),
        Value::Sfixed64(1000),
    ] {
        let mut send = message(0, SEND, 0, 1, &[]);
        send.attr[0].value = Some(value);
        let receive = message(0, RECV, 0, 1, &[]);
        let (graph, _) = graph(&[&[send], &[receive]], "empty").unwrap();
        assert_eq!(graph.bytes_sent()[0], Bytes::new(1000));
    }
}

#[test]
fn a_packed_trace_is_the_same() {
    let trace = bytes(&[call(0, 0, ""), call(1, 2, "0")]);
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(&trace).unwrap();
    let packed = packed.finish().unwrap();
    let plain = read(&[trace.clone(), trace.clone()], "empty").unwrap();
    assert_eq!(read(&[packed.clone(), trace], "empty").unwrap(), plain);
    let cut = packed[..packed.len() - 12].to_vec();
    let error = read(&[cut], "empty").unwrap_err();
    assert!(
        error
            .message
            .contains("of the trace of rank 0 cannot be read")
    );
}

#[test]
fn groups_come_from_a_file_from_metadata_or_are_all() {
    let collective = |trace: &ChakraTrace, index: u32| {
        let operation = trace.program.operation(OperationId {
            rank: Rank(0),
            index,
        });
        match operation {
            Operation::Collective { kind, bytes, group } => {
                let ranks: Vec<u32> = trace.program.groups[group as usize]
                    .iter()
                    .map(|r| r.0)
                    .collect();
                (kind, bytes.as_u64(), ranks)
            }
            other => panic!("{other:?}"),
        }
    };
    let (sum, gather) = (CollectiveKind::AllReduce, CollectiveKind::AllGather);
    for values in [
        r#"[[[{"pg_name": "7", "ranks": [1, 0]}, {"pg_name": 8, "ranks": []}]]]"#,
        r#"['[{"pg_name": "7", "ranks": [1, 0]}]']"#,
        r#"["[{\"pg_name\": \"7\", \"ranks\": [1, 0], \"pg_desc\": \"x\"}]"]"#,
    ] {
        let metadata = Node {
            inputs: Some(IoInfo {
                values: values.into(),
            }),
            ..node(0, METADATA, &[], [])
        };
        let nodes = [call(1, 0, ""), call(2, 2, "7"), metadata, call(3, 2, "1")];
        let other = bytes(&[call(1, 0, "0")]);
        let trace = read(&[bytes(&nodes), other], r#"{"1": [0]}"#).unwrap();
        assert_eq!(trace.warnings, []);
        assert_eq!(collective(&trace, 1), (sum, 1000, vec![0, 1]));
        assert_eq!(collective(&trace, 2), (gather, 2000, vec![1, 0]));
        assert_eq!(collective(&trace, 3), (gather, 1000, vec![0]));
        assert_eq!(trace.program.groups.len(), 3);
        // The comm-group file takes precedence over a trace.
        let trace = read(&[bytes(&nodes), bytes(&[])], r#"{"1": [0], "7": [0]}"#).unwrap();
        assert_eq!(collective(&trace, 2), (gather, 1000, vec![0]));
    }
}

/// A metadata node that lists groups.
fn noting(id: u64, groups: &str) -> Node {
    let values = format!("['[{groups}]']");
    Node {
        inputs: Some(IoInfo { values }),
        ..node(id, METADATA, &[], [])
    }
}

#[test]
fn a_noted_group_without_a_list_is_that_of_all_ranks() {
    let metadata = noting(0, r#"{"pg_name": "1", "ranks": []}"#);
    let nodes = [metadata, call(1, 2, "1")];
    let trace = read(&[bytes(&nodes), bytes(&nodes)], "empty").unwrap();
    assert_eq!(trace.program.groups, [[Rank(0), Rank(1)]]);
    let graph = trace.graph(&mut to_all).unwrap();
    assert_eq!(graph.bytes_sent(), [Bytes::new(2000); 2]);
}

#[test]
fn a_group_has_one_list_of_ranks() {
    let (one, other) = (
        r#"{"pg_name": "1", "ranks": [0]}"#,
        r#"{"pg_name": "1", "ranks": [0, 1]}"#,
    );
    let message = "with node 5 of rank 0 group `1` is listed twice, with different ranks";
    let both = format!("{one}, {other}");
    for nodes in [
        vec![noting(5, &both)],
        vec![noting(4, one), noting(5, other)],
    ] {
        refused(&[&nodes, &[]], &format!("t.0.et: {message}"));
    }
    let again = [noting(4, one), noting(5, one)];
    graph(&[&again, &[]], "empty").unwrap();
}

#[test]
fn what_is_not_simulated_is_a_warning() {
    let odd = |id, kind| Node {
        name: "odd".into(),
        ..node(id, kind, &[], [])
    };
    let counted = node(4, COMP, &[], [attribute("num_ops", Value::Int64(5))]);
    let mut launch = message(5, SEND, 0, 1, &[]);
    launch.attr.push(attribute("is_cpu_op", Value::Bool(true)));
    let mut empty = message(6, SEND, 0, 1, &[]);
    empty.attr[0].value = Some(Value::Int64(0));
    let groups = Node {
        inputs: Some(IoInfo {
            values: "pg_name".into(),
        }),
        ..node(7, METADATA, &[], [])
    };
    let first = [
        odd(1, 8),
        odd(2, 0),
        odd(3, 2),
        counted,
        launch,
        empty,
        groups,
        node(8, COMP, &[99, 98, 1], []),
        node(9, COMP, &[97], []),
    ];
    let (_, warnings) = graph(&[&first, &[message(1, RECV, 0, 1, &[])]], "empty").unwrap();
    assert_eq!(
        warnings,
        [
            "t.0.et: node 1 (`odd`) of rank 0 is of an unknown type and takes no time (and 1 more like it)",
            "t.0.et: node 3 (`odd`) of rank 0 moves memory, which takes no time here",
            "t.0.et: node 4 of rank 0 has `num_ops` but no duration, and takes no time: set `peak-tflops` and `memory-bandwidth` to have it estimated",
            "t.0.et: node 5 of rank 0 communicates with `is_cpu_op`, and is a computation of its duration as in ASTRA-sim",
            "t.0.et: node 6 of rank 0 has no bytes to send, and sends one because a message needs a packet",
            "t.0.et: node 7 of rank 0 lists process groups in a way that is not understood",
            "t.0.et: node 8 of rank 0 depends on a node that is not in the trace, and does not wait for it: PyTorch names parents that it does not write (and 2 more like it)",
        ]
    );
}

#[test]
fn attributes_are_read_ignored_or_warned_about() {
    let with = |further: Vec<Attribute>| {
        let mut call = call(4, 0, "1");
        call.attr.extend(further);
        let (graph, warnings) = graph(&[&[call.clone()], &[call]], r#"{"1": [0, 1]}"#).unwrap();
        (graph, warnings.join("\n"))
    };
    let plain = with(vec![]);
    assert_eq!(plain.1, "");
    for name in READ {
        assert!(
            IGNORED.iter().all(|(ignored, _)| *ignored != name),
            "{name}"
        );
    }
    for (name, _) in IGNORED {
        let ignored = with(vec![attribute(name, Value::Int64(1))]);
        assert_eq!(ignored, plain, "{name}");
    }
    let priority = |priority| with(vec![attribute("comm_priority", Value::Int32(priority))]);
    assert_eq!(priority(0), plain);
    assert_snapshot!(priority(5).1, @"t.0.et: node 4 of rank 0 has a `comm_priority`, which is not used; in ASTRA-sim it counts with the scheduling policy EXPLICIT (and 1 more like it)");
    let dimensions = |value| with(vec![attribute("involved_dim", value)]);
    let all = Value::BoolList(BoolList {
        values: vec![true; 2],
    });
    assert_eq!(dimensions(all), plain);
    assert_snapshot!(dimensions(Value::Int64(1)).1, @"t.0.et: node 4 of rank 0 has an `involved_dim` that is not a list of booleans, and is a call of its whole group (and 1 more like it)");
    assert_eq!(with(vec![attribute("comm_group", Value::Int32(1))]), plain);
    let colour = |name| attribute(name, Value::Int64(1));
    assert_snapshot!(with(vec![colour("colour"), colour("color")]).1, @"t.0.et: attribute `colour` of node 4 of rank 0 is not known, and not used (and 3 more like it)");

    let mut legacy = call(4, 0, "");
    legacy.attr.retain(|attribute| attribute.name != "pg_name");
    legacy.attr.push(attribute("comm_group", Value::Int32(1)));
    let (_, warnings) = graph(&[&[legacy.clone()], &[legacy]], "empty").unwrap();
    assert_snapshot!(warnings.join("\n"), @"t.0.et: node 4 of rank 0 has a `comm_group` but no `pg_name`, and is a call of all ranks, as in ASTRA-sim (and 1 more like it)");
}

/// A computation of `operations` on `tensor` bytes, and `further` attributes.
fn estimated(id: u64, operations: i64, tensor: u64, further: &[Attribute]) -> Node {
    let attr = [
        attribute("num_ops", Value::Int64(operations)),
        attribute("tensor_size", Value::Uint64(tensor)),
    ];
    node(id, COMP, &[], [&attr, further].concat())
}

#[test]
fn computations_without_a_duration_are_estimated_from_their_operations() {
    let on = |is_cpu| [attribute("is_cpu_op", Value::Bool(is_cpu))];
    let recorded = Node {
        duration_micros: 7,
        ..estimated(3, 312_000_000, 0, &on(false))
    };
    let nodes = [
        estimated(1, 312_000_000, 1, &on(false)),
        estimated(2, 312_000_000, 4_078_000, &[]),
        recorded,
        estimated(4, 624, 0, &on(false)),
        estimated(5, 312_000_000, 1, &on(true)),
    ];
    let trace = bytes(&nodes);
    let durations = |memory: Option<Rate>| {
        let peak = NonZero::new(312_000_000_000_000).unwrap();
        let mut reader = ChakraReader::new(1, with_roofline(Roofline { peak, memory }));
        reader.rank("t.0.et", trace.as_slice()).unwrap();
        let trace = reader.finish();
        let computations = trace.program.ranks[0].operations().iter();
        let durations = computations.map(|operation| match *operation {
            Operation::Compute { unit, span } => (unit, span.as_ps()),
            _ => panic!("computations alone"),
        });
        let warnings = trace.warnings.iter().map(FileWarning::to_string);
        (durations.collect::<Vec<_>>(), warnings.collect::<Vec<_>>())
    };
    let processor = "t.0.et: node 5 of rank 0 has `num_ops` and `is_cpu_op` but no duration, and takes no time: only computations of the GPU are estimated";
    // 312 million operations at 312 TFLOP/s are 1 us, and 4.078 MB at 2039 GB/s are 2 us.
    let (spans, warnings) = durations(None);
    assert_eq!(
        spans,
        [
            (0, 1_000_000),
            (0, 1_000_000),
            (0, 7_000_000),
            (0, 2),
            (1, 0)
        ]
    );
    assert_eq!(warnings, [processor]);
    let (spans, warnings) = durations(Some(Rate::from_gbps(16_312)));
    assert_eq!(
        spans,
        [
            (0, 1_000_000),
            (0, 2_000_000),
            (0, 7_000_000),
            (0, 2),
            (1, 0)
        ]
    );
    let tensor = "t.0.et: node 4 of rank 0 has `num_ops` but no `tensor_size`, and is estimated without its memory; in ASTRA-sim it takes no time";
    assert_eq!(warnings, [processor, tensor]);
}

#[test]
fn an_estimate_beyond_64_bits_is_refused() {
    let peak = NonZero::<u64>::MIN;
    let roofline = Roofline { peak, memory: None };
    let trace = bytes(&[estimated(4, i64::MAX, 1, &[])]);
    let mut reader = ChakraReader::new(1, with_roofline(roofline));
    let error = reader.rank("t.0.et", trace.as_slice()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "t.0.et: node 4 of rank 0 computes for more than 213 days with 9223372036854775807 as `num_ops`\n  fix: check the number, and the peak performance and memory bandwidth of the GPUs"
    );
}

#[test]
fn faults_of_nodes_name_file_rank_and_node() {
    let one = |node: Node, message: &str| {
        refused(
            &[&[], &[node]],
            &format!("t.1.et: node 4 of rank 1 {message}"),
        );
    };
    let without = |kind, name: &str| {
        let mut node = message(
            4,
            kind,
            i32::from(kind == SEND),
            i32::from(kind == RECV),
            &[],
        );
        node.attr.retain(|attribute| attribute.name != name);
        node
    };
    one(without(SEND, "comm_size"), "lacks the number `comm_size`");
    one(without(SEND, "comm_dst"), "lacks the number `comm_dst`");
    one(without(RECV, "comm_src"), "lacks the number `comm_src`");
    one(
        message(4, SEND, 0, 1, &[]),
        "has 0 as `comm_src`, but stands in the trace of rank 1",
    );
    one(
        message(4, RECV, 1, 0, &[]),
        "has 0 as `comm_dst`, but stands in the trace of rank 1",
    );
    one(message(4, SEND, 1, -1, &[]), "has -1 as `comm_dst`");
    one(call(4, 10, ""), "has 10 as `comm_type`");
    one(
        call(4, 0, "5"),
        "calls on group `5`, but the ranks of this group are not known",
    );
    let mut number = call(4, 0, "");
    number.attr[2].value = Some(Value::Int32(3));
    one(number, "has a `pg_name` that is not text");
    let mut sliced = call(4, 0, "");
    let values = vec![true, false];
    sliced.attr.push(attribute(
        "involved_dim",
        Value::BoolList(BoolList { values }),
    ));
    one(
        sliced.clone(),
        "names some dimensions as `involved_dim`, but the ranks have none",
    );
    sliced.attr[2].value = Some(Value::String("5".into()));
    one(sliced, "names some dimensions and the group `5`");
    let mut huge = call(4, 2, "");
    huge.attr[0].value = Some(Value::Uint64(u64::MAX));
    one(huge, "brings in more than 2^64 bytes with all others");
    let duration_micros = u64::MAX;
    one(
        Node {
            duration_micros,
            ..node(4, COMP, &[], [])
        },
        "computes for more than 213 days",
    );
    refused(
        &[&[call(4, 0, ""), call(4, 0, "")]],
        "t.0.et: node 4 of rank 0 stands twice",
    );
}

fn with_roofline(roofline: Roofline) -> ChakraOptions {
    ChakraOptions {
        roofline: Some(roofline),
        ..ChakraOptions::default()
    }
}

/// Each rank calls along the second dimension of two, then along both.
#[test]
fn calls_along_dimensions_are_of_rows() {
    let sliced = |id, values: &[bool]| {
        let mut node = call(id, 0, "");
        node.attr.push(attribute(
            "involved_dim",
            Value::BoolList(BoolList {
                values: values.to_vec(),
            }),
        ));
        node
    };
    let read = |dimensions: &[u32]| {
        let options = ChakraOptions {
            dimensions: dimensions.to_vec(),
            ..ChakraOptions::default()
        };
        let mut reader = ChakraReader::new(6, options);
        for rank in 0..6 {
            let nodes = [sliced(1, &[false, true, true]), sliced(2, &[true; 3])];
            reader.rank(&format!("t.{rank}.et"), bytes(&nodes).as_slice())?;
        }
        Ok::<_, FileError>(reader.finish().program.groups)
    };
    let group = |ranks: &[u32]| ranks.iter().copied().map(Rank).collect::<Vec<_>>();
    let all = group(&[0, 1, 2, 3, 4, 5]);
    assert_eq!(
        read(&[2, 3]).unwrap(),
        [group(&[0, 2, 4]), all, group(&[1, 3, 5])]
    );
    assert_snapshot!(read(&[4, 2]).unwrap_err(), @"
    t.0.et: node 1 of rank 0 names some dimensions as `involved_dim`, but 6 ranks are not 4 x 2
      fix: write `dimensions` in the workload, such as [8, 4], or use a network with dimensions; or name the ranks as a process group
    ");
    assert_snapshot!(read(&[2, 3, 1, 1]).unwrap_err(), @"
    t.0.et: node 1 of rank 0 names some dimensions as `involved_dim`, but for 3 dimensions of 4
      fix: write `dimensions` in the workload, such as [8, 4], or use a network with dimensions; or name the ranks as a process group
    ");
}

#[test]
fn faults_between_traces_name_file_rank_and_node() {
    refused(
        &[&[message(4, SEND, 0, 1, &[])], &[]],
        "t.0.et: node 4 of rank 0 sends to rank 1 with tag 0, but no receive is left there for it",
    );
    let mut tagged = message(6, RECV, 0, 1, &[]);
    tagged.attr.push(attribute("comm_tag", Value::Int32(-1)));
    refused(
        &[&[message(4, SEND, 0, 1, &[])], &[tagged]],
        "t.1.et: node 6 of rank 1 receives from rank 0 with tag 4294967295, but no send is left for it",
    );
    refused(
        &[&[call(4, 0, "")], &[call(5, 6, "")]],
        "t.1.et: node 5 of rank 1 calls all-to-all of 1000 B, but its partner, node 4 of rank 0, all-reduce of 1000 B",
    );
    refused(
        &[&[call(4, 0, ""), call(8, 0, "")], &[call(5, 0, "")]],
        "t.0.et: node 8 of rank 0 is a collective in which rank 1 takes no part: it has fewer calls on that group",
    );
    refused(
        &[&[node(1, COMP, &[2], []), node(2, COMP, &[1], [])]],
        "t.0.et: operations wait for one another in a circle: node 1 of rank 0, node 2 of rank 0, each for the next and the last for the first",
    );
}

#[test]
fn broken_files_are_refused() {
    let trace = bytes(&[call(0, 0, "")]);
    let refused = |trace: &[u8], message: &str| {
        let error = read(&[trace.to_vec()], "empty").unwrap_err();
        assert!(error.message.contains(message), "{}", error.message);
        assert!(error.line == 0 && !error.fix.is_empty());
    };
    refused(&[], "the trace of rank 0 is empty");
    refused(
        &trace[..trace.len() - 1],
        "message 1 of the trace of rank 0 cannot be read: the file ends within it",
    );
    refused(
        &[&trace[..], &[0x80]].concat(),
        "message 2 of the trace of rank 0 cannot be read: the file ends within its length",
    );
    refused(
        &[0xff; 9],
        "message 0 of the trace of rank 0 cannot be read: its length is not a number",
    );
    refused(&[0xff, 0xff, 0xff, 0xff, 0x0f], "is too large");
    refused(b"\x01\x0f", "message 0");
    refused(b"num_ranks 2\nrank 0 {\n", "message 0");
}

/// Endless bytes, with the number of bytes read.
struct Endless<'a> {
    head: &'a [u8],
    byte: u8,
    taken: usize,
}

impl Read for Endless<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = match self.head.read(buffer)? {
            0 => {
                buffer.fill(self.byte);
                buffer.len()
            }
            count => count,
        };
        self.taken += count;
        Ok(count)
    }
}

#[test]
fn a_trace_without_an_end_is_refused_where_it_goes_wrong() {
    let plain = bytes(&[node(1, COMP, &[], [])]);
    let again: Vec<u8> = bytes(&[call(7, 0, "")])[bytes(&[]).len()..].to_vec();
    for (head, byte, message) in [
        (
            plain.clone(),
            0,
            "after 1 node, rank 0 has a node without id, name and type",
        ),
        (
            [plain.clone(), again.clone(), again].concat(),
            1,
            "node 7 of rank 0 stands twice",
        ),
    ] {
        let mut endless = Endless {
            head: &head,
            byte,
            taken: 0,
        };
        let error = ChakraReader::new(1, ChakraOptions::default())
            .rank("t", &mut endless)
            .unwrap_err();
        assert_eq!(error.message, message);
        assert!(endless.taken < 1 << 16, "{} bytes", endless.taken);
    }
    let zeros = [plain, vec![0; 10_000_000]].concat();
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(&zeros).unwrap();
    let error = read(&[packed.finish().unwrap()], "empty").unwrap_err();
    assert!(error.message.contains("without id"), "{}", error.message);
}

#[test]
fn nodes_and_their_dependencies_are_counted() {
    let mut pending = Pending::default();
    let mut many = node(1, COMP, &[], []);
    many.ctrl_deps = vec![0; MOST_DEPENDENCIES / 2];
    many.data_deps = vec![0; MOST_DEPENDENCIES / 2 + 1];
    let fault = pending.admit(&many, Rank(3)).map_err(|fault| fault.message);
    assert_eq!(
        fault,
        Err("rank 3 has more than 16777216 nodes or 67108864 dependencies".into())
    );
    let Err(error) = Frames::new([0x81, 0x80, 0x80, 0x08].as_slice()).next::<Node>() else {
        panic!("a message of more than 16 MiB");
    };
    assert!(error.to_string().contains("16777217 bytes"), "{error}");
}

#[test]
fn nodes_of_all_ranks_are_counted() {
    let mut reader = ChakraReader::new(3, ChakraOptions::default());
    reader
        .rank("t.0.et", bytes(&[call(0, 0, "")]).as_slice())
        .unwrap();
    reader.counts = (MOST_NODES_OF_ALL - 1, MOST_DEPENDENCIES_OF_ALL);
    reader
        .rank("t.1.et", bytes(&[call(0, 0, "")]).as_slice())
        .unwrap();
    let error = reader.rank("t.2.et", bytes(&[call(0, 0, "")]).as_slice());
    assert_eq!(
        error.unwrap_err().to_string(),
        "t.2.et: with rank 2 the traces have more than 33554432 nodes or 134217728 dependencies\n  fix: run a trace of fewer ranks or iterations"
    );
}

/// Many long names are rejected before all are stored: the trace has no end.
#[test]
fn names_of_called_groups_are_counted() {
    struct Named {
        next: u64,
        frame: std::io::Cursor<Vec<u8>>,
    }
    impl Read for Named {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            if self.frame.position() == self.frame.get_ref().len() as u64 {
                self.next += 1;
                let name = format!("{}{}", "x".repeat(MOST_NAMES / 8), self.next);
                let node = call(self.next, 0, &name);
                self.frame = std::io::Cursor::new(node.encode_length_delimited_to_vec());
            }
            self.frame.read(buffer)
        }
    }
    let mut trace = Named {
        next: 0,
        frame: std::io::Cursor::new(bytes(&[])),
    };
    let error = ChakraReader::new(1, ChakraOptions::default())
        .rank("t.0.et", &mut trace)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "t.0.et: with node 8 of rank 0 the trace calls on groups whose names have more than 67108864 bytes together\n  fix: list each group once, under a short name, and only those that are called on"
    );
    assert!(trace.next <= 9);
}

#[test]
fn groups_of_all_ranks_are_written_out_for_calls_alone() {
    let ranks = 1u32 << 20;
    let most = (MOST_MEMBERS >> 20) as u64;
    let names: Vec<String> = (1..=1000u64)
        .map(|number| format!(r#"{{"pg_name": {number}, "ranks": []}}"#))
        .collect();
    let listed = noting(0, &names.join(","));
    let trace = |calls: u64| {
        let calls = (1..=calls).map(|number| call(number, 0, &number.to_string()));
        bytes(
            &[listed.clone()]
                .into_iter()
                .chain(calls)
                .collect::<Vec<_>>(),
        )
    };
    let mut reader = ChakraReader::new(ranks, ChakraOptions::default());
    // A thousand million ranks, if all were expanded.
    reader.rank("t.0.et", trace(most).as_slice()).unwrap();
    assert_eq!(reader.trace.program.groups.len() as u64, most);
    // Repeated groups take no further room.
    reader.rank("t.1.et", trace(most).as_slice()).unwrap();
    let error = reader.rank("t.2.et", trace(most + 1).as_slice());
    assert_eq!(
        error.unwrap_err().message,
        "with group `9`, which node 9 of rank 2 calls on, the traces have groups with more than 8388608 ranks together"
    );
}

#[test]
fn listed_groups_are_counted() {
    let mut tally = groups::Tally::default();
    for _ in 0..groups::MOST_GROUPS {
        tally.add("", 0).unwrap();
    }
    let full = tally
        .add("", 0)
        .map_err(|groups::GroupsTooLarge(what)| what);
    assert_eq!(full, Err("more than 1048576 groups".into()));

    // Each list of a node is another one's size.
    let members: Vec<String> = (0..1u32 << 16).map(|rank| rank.to_string()).collect();
    let members = members.join(",");
    let mut reader = ChakraReader::new(1 << 17, ChakraOptions::default());
    let node = |id: u64| {
        let groups: Vec<String> = (0..8)
            .map(|group| format!(r#"{{"pg_name": "{id}-{group}", "ranks": [{members}]}}"#))
            .collect();
        noting(id, &groups.join(","))
    };
    let trace = bytes(&(0..17).map(node).collect::<Vec<_>>());
    let error = reader.rank("t.0.et", trace.as_slice()).unwrap_err();
    assert_eq!(
        error.message,
        "with node 16 of rank 0 the trace lists groups with more than 8388608 ranks together"
    );

    let long = "x".repeat(MOST_NAMES / 8);
    let name = |group: u32| format!(r#""{long}{group}": [0]"#);
    let names: Vec<String> = (0..8).map(name).collect();
    let file = format!("{{{}}}", names.join(","));
    let error = ChakraReader::new(1, ChakraOptions::default())
        .groups("g.json", &file)
        .unwrap_err();
    assert!(
        error
            .message
            .ends_with("the file has groups whose names have more than 67108864 bytes together"),
        "{}",
        error.message
    );
}

/// Names are looked up in a map. With a linear search this test would take minutes.
#[test]
fn many_groups_are_told_apart() {
    let count = 200_000u64;
    let mut names = groups::Names::default();
    for round in 0..2 {
        for number in 0..count {
            let name = format!("{:x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            assert_eq!(names.number(&name), Ok(number as u32), "{round}");
        }
    }
    assert_eq!(names.all().len() as u64, count);
}

#[test]
fn faults_of_comm_groups_have_a_place() {
    for (groups, message) in [
        (
            "{\"1\": [0, 1",
            "groups.json:1:11: EOF while parsing a list",
        ),
        ("{\n\"1\": [0,, 1]}", "groups.json:2:9: expected value"),
        (
            "[]",
            "groups.json:1:1: invalid type: sequence, expected lists of ranks under their names",
        ),
        (
            "{\"1\": 5}",
            "groups.json:1: group 1 is not a list of ranks",
        ),
        (
            "{\n\"1\": [0],\n\"2\": [\"0\"]}",
            "groups.json:3: group 2 is not a list of ranks",
        ),
        (
            "{\"1\": [0.5]}",
            "groups.json:1: group 1 is not a list of ranks",
        ),
        ("{\"1\": []}", "groups.json:1: group 1 has no ranks"),
        ("{\"1\": [0, 0]}", "groups.json:1: group 1 has rank 0 twice"),
        (
            "{\"1\": [0, 2]}",
            "groups.json:1: group 1 has rank 2, but there are traces of 2 ranks",
        ),
        (
            "{\"0\": [0]}",
            "groups.json:1: group 0 has 1 rank, but the name belongs to the group of all 2",
        ),
        (
            "{\"1\": [0],\n\"2\": [1],\n\"1\": [1]}",
            "groups.json:3: group 1 stands twice, with different ranks",
        ),
    ] {
        let error = ChakraReader::new(2, ChakraOptions::default())
            .groups("groups.json", groups)
            .unwrap_err();
        assert_eq!(error.to_string().lines().next().unwrap(), message);
    }
    let twice = "{\"1\": [0], \"1\": [0]}";
    for sound in [" empty\n", twice] {
        ChakraReader::new(2, ChakraOptions::default())
            .groups("g", sound)
            .unwrap();
    }
}

#[test]
fn traces_are_found_by_their_prefix() {
    let folder = clearway_testing::Folder::new("chakra");
    let prefix = folder.join("job");
    let missing = read_chakra(&prefix, None, ChakraOptions::default())
        .unwrap_err()
        .to_string();
    assert!(
        missing.contains("job.0.et: there are no traces"),
        "{missing}"
    );
    let write = |name: &str, content: &[u8]| std::fs::write(folder.join(name), content).unwrap();
    write("job.0.et", &bytes(&[call(0, 0, "3")]));
    write("job.2.et", &bytes(&[call(0, 0, "3")]));
    write("job.x.et", b"");
    write("other.1.et", b"");
    write("groups.json", b"{\"3\": [0, 2]}");
    let gap = read_chakra(&prefix, None, ChakraOptions::default())
        .unwrap_err()
        .to_string();
    assert!(gap.contains("job.1.et: it does not exist, but"), "{gap}");
    write("job.1.et", &bytes(&[]));
    let trace = read_chakra(
        &prefix,
        Some(&folder.join("groups.json")),
        ChakraOptions::default(),
    )
    .unwrap();
    assert_eq!(trace.program.groups, [[Rank(0), Rank(2)]]);
    let unknown = read_chakra(&prefix, None, ChakraOptions::default())
        .unwrap_err()
        .to_string();
    assert!(
        unknown.contains("job.0.et: node 0 of rank 0 calls on group `3`"),
        "{unknown}"
    );
}

/// Rounds in which all ranks compute, exchange messages along a ring or call a collective on one of the groups.
fn any_job() -> impl Strategy<Value = JobProgram> {
    let round = prop_oneof![
        (0u64..1000, 0u8..2).prop_map(|(us, unit)| (0usize, us, unit)),
        (1u64..100_000, 0u8..200).prop_map(|(bytes, tag)| (1, bytes, tag)),
        (1u64..1000, 0u8..20).prop_map(|(part, choice)| (2, 12 * part, choice)),
    ];
    (2u32..5, proptest::collection::vec(round, 0..6)).prop_map(|(ranks, rounds)| {
        let all: Vec<Rank> = (0..ranks).map(Rank).collect();
        let groups = vec![all.iter().rev().copied().collect(), vec![Rank(0), Rank(1)]];
        let rank = |own: u32| {
            let (mut operations, mut waits) = (Vec::new(), Vec::new());
            for &(what, amount, choice) in &rounds {
                let before = operations.len() as u32;
                let bytes = Bytes::new(amount);
                let kinds = CollectiveKind::ALL;
                match what {
                    0 => operations.push(Operation::Compute {
                        unit: choice,
                        span: Span::from_us(amount),
                    }),
                    1 => {
                        let (to, from) = (Rank((own + 1) % ranks), Rank((own + ranks - 1) % ranks));
                        let tag = choice.into();
                        operations.push(Operation::Send { to, bytes, tag });
                        operations.push(Operation::Receive {
                            from: Some(from),
                            bytes,
                            tag: Some(tag),
                        });
                    }
                    _ => {
                        let group = u32::from(choice) % 2;
                        let kind = kinds[usize::from(choice / 2) % kinds.len()];
                        let bytes = if kind == CollectiveKind::Barrier {
                            Bytes::ZERO
                        } else {
                            bytes
                        };
                        if group == 0 || own < 2 {
                            operations.push(Operation::Collective { kind, bytes, group });
                        }
                    }
                }
                for index in before..operations.len() as u32 {
                    waits.extend(
                        before
                            .checked_sub(1)
                            .map(|last| (index, OperationDependency::over(last))),
                    );
                }
            }
            RankProgram::new(operations, waits)
        };
        JobProgram {
            ranks: (0..ranks).map(rank).collect(),
            groups,
        }
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read(program in any_job()) {
        let files = write_chakra(&program).unwrap();
        let trace = read(&files.traces, &files.groups).unwrap();
        prop_assert_eq!(trace.program.len(), program.len());
        // The groups may have other numbers, but the tasks are the same.
        let expected = program.graph(&mut to_all).unwrap();
        expected.check().unwrap();
        prop_assert_eq!(trace.graph(&mut to_all).unwrap(), expected);
    }
}

#[test]
fn what_chakra_cannot_say_is_refused() {
    let write = |operation, waits: &[(u32, OperationDependency)]| {
        let program = JobProgram {
            ranks: vec![RankProgram::new(vec![operation], waits.to_vec())],
            groups: vec![vec![Rank(0), Rank(1)]],
        };
        write_chakra(&program).unwrap_err().to_string()
    };
    let span = Span::from_us(1);
    let compute = |unit, span| Operation::Compute { unit, span };
    assert!(write(compute(2, span), &[]).contains("GPU"));
    assert!(write(compute(0, Span::from_ns(1)), &[]).contains("microseconds"));
    assert!(
        write(compute(0, span), &[(0, OperationDependency::begun(0))]).contains("end of nodes")
    );
    let (from, bytes, tag) = (None, Bytes::new(3), Some(1));
    assert!(write(Operation::Receive { from, bytes, tag }, &[]).contains("any rank"));
    let (kind, group) = (CollectiveKind::AllGather, 0);
    assert!(write(Operation::Collective { kind, bytes, group }, &[]).contains("same size"));
    let bytes = Bytes::new(u64::MAX);
    let (to, tag) = (Rank(0), 0);
    assert!(write(Operation::Send { to, bytes, tag }, &[]).contains("2^63"));
}
