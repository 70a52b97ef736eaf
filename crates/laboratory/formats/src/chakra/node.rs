//! Conversion of the nodes of a trace to operations.

use super::proto::{Node, Value};
use super::roofline::Roofline;
use crate::groups::is_all;
use crate::text::shown;
use clearway_units::{Bytes, Span};
use clearway_workload::graph::Rank;
use clearway_workload::program::{CollectiveKind, Operation};

/// The units of a rank, which `is_cpu_op` selects.
pub(super) const GPU: u8 = 0;
pub(super) const CPU: u8 = 1;

/// Types of nodes.
pub(super) const METADATA: i32 = 1;
const MEM_LOAD: i32 = 2;
const MEM_STORE: i32 = 3;
pub(super) const COMP: i32 = 4;
pub(super) const SEND: i32 = 5;
pub(super) const RECV: i32 = 6;
pub(super) const COLL: i32 = 7;

/// Collectives by their number as `comm_type`.
pub(super) const COLLECTIVES: [CollectiveKind; 10] = [
    CollectiveKind::AllReduce,
    CollectiveKind::Reduce,
    CollectiveKind::AllGather,
    CollectiveKind::Gather,
    CollectiveKind::Scatter,
    CollectiveKind::Broadcast,
    CollectiveKind::AllToAll,
    CollectiveKind::ReduceScatter,
    // REDUCE_SCATTER_BLOCK: all parts have the same size, as in every collective here.
    CollectiveKind::ReduceScatter,
    CollectiveKind::Barrier,
];

/// Parts of a trace that are read but not simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Skipped {
    /// A node of unknown type.
    Unknown,
    /// A node that moves memory.
    Memory,
    /// A computation with an amount but without a duration.
    NoDuration,
    /// A computation of the processor with an amount but without a duration, where computations of the GPU are estimated.
    NotOfGpu,
    /// An estimated computation whose memory is unknown.
    NoTensor,
    /// A communication of the processor.
    OfProcessor,
    /// A message of zero bytes.
    Empty,
    /// Process groups in an unknown form.
    Groups,
    /// A dependency on a missing node.
    Parent,
    /// A collective with a priority.
    Priority,
    /// A collective whose group has a name of older versions of STAGE.
    LegacyGroup,
    /// A collective whose dimensions are not a list of booleans.
    Dimensions,
    /// An unknown attribute.
    Attribute,
}

impl Skipped {
    pub(super) fn message(self) -> &'static str {
        match self {
            Self::Unknown => "is of an unknown type and takes no time",
            Self::Memory => "moves memory, which takes no time here",
            Self::NoDuration => {
                "has `num_ops` but no duration, and takes no time: set `peak-tflops` and `memory-bandwidth` to have it estimated"
            }
            Self::NotOfGpu => {
                "has `num_ops` and `is_cpu_op` but no duration, and takes no time: only computations of the GPU are estimated"
            }
            Self::NoTensor => {
                "has `num_ops` but no `tensor_size`, and is estimated without its memory; in ASTRA-sim it takes no time"
            }
            Self::OfProcessor => {
                "communicates with `is_cpu_op`, and is a computation of its duration as in ASTRA-sim"
            }
            Self::Empty => "has no bytes to send, and sends one because a message needs a packet",
            Self::Groups => "lists process groups in a way that is not understood",
            Self::Parent => {
                "depends on a node that is not in the trace, and does not wait for it: PyTorch names parents that it does not write"
            }
            Self::Priority => {
                "has a `comm_priority`, which is not used; in ASTRA-sim it counts with the scheduling policy EXPLICIT"
            }
            Self::LegacyGroup => {
                "has a `comm_group` but no `pg_name`, and is a call of all ranks, as in ASTRA-sim"
            }
            Self::Dimensions => {
                "has an `involved_dim` that is not a list of booleans, and is a call of its whole group"
            }
            Self::Attribute => "is not known, and not used",
        }
    }
}

/// Operation that a node becomes.
pub(super) enum Action<'a> {
    Operation(Operation),
    /// A call on the group of this name; `bytes` is the number in the trace.
    Call {
        kind: CollectiveKind,
        bytes: Bytes,
        group: &'a str,
        /// Whether each dimension takes part, if some do not.
        dimensions: Option<&'a [bool]>,
    },
}

/// Operation that `node` of `rank` becomes, and the part of the node that is not simulated.
pub(super) fn action(
    node: &Node,
    rank: Rank,
    roofline: Option<Roofline>,
) -> Result<(Action<'_>, Option<Skipped>), Fault> {
    let attributes = Attributes(node);
    let communicates = matches!(node.kind, SEND | RECV | COLL);
    if communicates
        && attributes
            .integer("is_cpu_op")
            .is_some_and(|is_cpu| is_cpu != 0)
    {
        let operation = Action::Operation(compute(node, CPU)?);
        return Ok((operation, Some(Skipped::OfProcessor)));
    }
    let nothing = || {
        let (unit, span) = (GPU, Span::ZERO);
        Action::Operation(Operation::Compute { unit, span })
    };
    match node.kind {
        COMP => {
            let (operation, skipped) = attributes.computation(roofline)?;
            Ok((Action::Operation(operation), skipped))
        }
        SEND => {
            attributes.own("comm_src", rank)?;
            let bytes = attributes.bytes()?;
            let operation = Operation::Send {
                to: attributes.rank("comm_dst")?,
                bytes,
                tag: attributes.tag()?,
            };
            let skipped = (bytes == Bytes::ZERO).then_some(Skipped::Empty);
            Ok((Action::Operation(operation), skipped))
        }
        RECV => {
            attributes.own("comm_dst", rank)?;
            let operation = Operation::Receive {
                from: Some(attributes.rank("comm_src")?),
                bytes: attributes.bytes()?,
                tag: Some(attributes.tag()?),
            };
            Ok((Action::Operation(operation), None))
        }
        COLL => Ok((attributes.call()?, None)),
        METADATA => Ok((nothing(), None)),
        MEM_LOAD | MEM_STORE => Ok((nothing(), Some(Skipped::Memory))),
        _ => Ok((nothing(), Some(Skipped::Unknown))),
    }
}

fn compute(node: &Node, unit: u8) -> Result<Operation, Fault> {
    const PS_PER_US: u64 = 1_000_000;
    let span = node.duration_micros.checked_mul(PS_PER_US);
    let span = span.map(Span::from_ps).ok_or_else(|| Fault {
        message: "computes for more than 213 days".into(),
        fix: "write `duration_micros` in microseconds".into(),
    })?;
    Ok(Operation::Compute { unit, span })
}

/// Fault of a node, and its fix.
pub(super) struct Fault {
    pub(super) message: String,
    pub(super) fix: String,
}

struct Attributes<'a>(&'a Node);

impl<'a> Attributes<'a> {
    fn value(&self, name: &str) -> Option<&'a Value> {
        let attribute = self.0.attr.iter().find(|attribute| attribute.name == name);
        attribute.and_then(|attribute| attribute.value.as_ref())
    }

    fn integer(&self, name: &str) -> Option<i128> {
        self.value(name).and_then(Value::integer)
    }

    /// Number under `name`, which must exist and be in range.
    fn number<T: TryFrom<i128>>(&self, name: &str) -> Result<T, Fault> {
        let value = self.integer(name);
        let number = value.and_then(|value| T::try_from(value).ok());
        number.ok_or_else(|| Fault {
            message: match value {
                Some(value) => format!("has {value} as `{name}`"),
                None => format!("lacks the number `{name}`"),
            },
            fix: format!("write `{name}` as an integer attribute from 0 on"),
        })
    }

    fn rank(&self, name: &str) -> Result<Rank, Fault> {
        self.number(name).map(Rank)
    }

    /// Checks that the rank under `name`, if present, is the rank of the file.
    fn own(&self, name: &str, rank: Rank) -> Result<(), Fault> {
        match self.integer(name) {
            Some(other) if other != rank.0.into() => Err(Fault {
                message: format!("has {other} as `{name}`, but stands in the trace of rank {rank}"),
                fix: "check that each rank has its own trace".into(),
            }),
            _ => Ok(()),
        }
    }

    fn bytes(&self) -> Result<Bytes, Fault> {
        self.number("comm_size").map(Bytes::new)
    }

    /// The tag, 0 unless given. As in ASTRA-sim, a negative tag means the unsigned number with the same bits.
    fn tag(&self) -> Result<u32, Fault> {
        match self.integer("comm_tag") {
            Some(tag) if i128::from(i32::MIN) <= tag && tag < 0 => Ok(tag as i32 as u32),
            Some(_) => self.number("comm_tag"),
            None => Ok(0),
        }
    }

    /// The positive number under `name`.
    fn amount(&self, name: &str) -> Option<u64> {
        let number = self
            .integer(name)
            .and_then(|number| u64::try_from(number).ok());
        number.filter(|&number| number > 0)
    }

    /// Computation with the duration of the node, else with a duration estimated from its operations.
    fn computation(
        &self,
        roofline: Option<Roofline>,
    ) -> Result<(Operation, Option<Skipped>), Fault> {
        let is_cpu = self.integer("is_cpu_op");
        let recorded = compute(self.0, if is_cpu == Some(0) { GPU } else { CPU })?;
        let operations = self.amount("num_ops");
        let Some(operations) = operations.filter(|_| self.0.duration_micros == 0) else {
            return Ok((recorded, None));
        };
        let Some(roofline) = roofline else {
            return Ok((recorded, Some(Skipped::NoDuration)));
        };
        if is_cpu.is_some_and(|is_cpu| is_cpu != 0) {
            return Ok((recorded, Some(Skipped::NotOfGpu)));
        }
        let bytes = self.amount("tensor_size").map_or(Bytes::ZERO, Bytes::new);
        let span = roofline.span_of(operations, bytes).ok_or_else(|| Fault {
            message: format!("computes for more than 213 days with {operations} as `num_ops`"),
            fix: "check the number, and the peak performance and memory bandwidth of the GPUs"
                .into(),
        })?;
        let skipped =
            (roofline.memory.is_some() && bytes == Bytes::ZERO).then_some(Skipped::NoTensor);
        Ok((Operation::Compute { unit: GPU, span }, skipped))
    }

    fn call(&self) -> Result<Action<'a>, Fault> {
        let number: usize = self.number("comm_type")?;
        let kind = *COLLECTIVES.get(number).ok_or_else(|| Fault {
            message: format!("has {number} as `comm_type`"),
            fix: "write one of the ten collectives of Chakra, 0 to 9".into(),
        })?;
        let dimensions = ["involved_dim", "involve_dims"]
            .into_iter()
            .find_map(|name| {
                let value = self.value(name);
                value.and_then(|value| match value {
                    Value::BoolList(list) if list.values.contains(&false) => Some(&list.values[..]),
                    _ => None,
                })
            });
        let bytes = match kind {
            CollectiveKind::Barrier => Bytes::ZERO,
            _ => self.bytes()?,
        };
        let group = match self.value("pg_name") {
            Some(Value::String(name)) => name.as_str(),
            None => "",
            Some(_) => {
                return Err(Fault {
                    message: "has a `pg_name` that is not text".into(),
                    fix: "write `pg_name` as a string attribute".into(),
                });
            }
        };
        if dimensions.is_some() && !is_all(group) {
            return Err(Fault {
                message: format!("names some dimensions and the group `{}`", shown(group)),
                fix: "write `involved_dim` or `pg_name`, not both".into(),
            });
        }
        Ok(Action::Call {
            kind,
            bytes,
            group,
            dimensions,
        })
    }
}

/// Name of a node in messages.
pub(super) fn shown_node(node: &Node, rank: Rank) -> String {
    match node.name.is_empty() {
        true => format!("node {} of rank {rank}", node.id),
        false => format!("node {} (`{}`) of rank {rank}", node.id, shown(&node.name)),
    }
}
