//! Operations of a rank under construction, with their names.

use super::kineto::micros;
use clearway_units::Span;
use clearway_workload::program::{Operation, OperationDependency};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Name of an operation in messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OperationName {
    /// Name of the communication; nothing for a computation.
    pub(super) call: Option<Arc<str>>,
    pub(super) at: At,
}

/// Place of an operation in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    /// Time in nanoseconds.
    Time(i64),
    /// Number of a communication of a trace without times, from 1.
    Number(i64),
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Time(at) => write!(f, "at {} us", micros(at)),
            Self::Number(number) => write!(f, "(its communication {number})"),
        }
    }
}

/// Operations of a rank under construction.
#[derive(Default)]
pub(super) struct Build {
    pub(super) operations: Vec<Operation>,
    pub(super) waits: Vec<(u32, OperationDependency)>,
    pub(super) names: Vec<OperationName>,
    /// The operation after which each item is over.
    pub(super) ends: Vec<u32>,
    /// Names of communications, each once.
    known: BTreeMap<String, Arc<str>>,
}

impl Build {
    pub(super) fn compute(&mut self, nanoseconds: u64, at: At, after: &[u32]) {
        let first = self.operations.len();
        let span = Span::from_ps(nanoseconds * 1000);
        self.operations.push(Operation::Compute { unit: GPU, span });
        self.names.push(OperationName { call: None, at });
        self.end(first, at, after);
    }

    /// Names the operations since the last name.
    pub(super) fn name(&mut self, call: &str, at: At) {
        let name = match self.known.get(call) {
            Some(name) => Arc::clone(name),
            None => {
                let name: Arc<str> = call.into();
                self.known.insert(call.to_owned(), Arc::clone(&name));
                name
            }
        };
        let call = Some(name);
        self.names
            .resize(self.operations.len(), OperationName { call, at });
    }

    /// Ends an item whose operations begin with `first`: they begin after those of `after`.
    pub(super) fn end(&mut self, first: usize, at: At, after: &[u32]) {
        let own = first as u32..self.operations.len() as u32;
        for operation in own.clone() {
            let waits = after
                .iter()
                .map(|&other| (operation, OperationDependency::over(other)));
            self.waits.extend(waits);
        }
        let end = match own.len() {
            1 => own.start,
            count => {
                let end = self.operations.len() as u32;
                self.operations.push(Operation::Compute {
                    unit: GPU,
                    span: Span::ZERO,
                });
                self.names.push(OperationName { call: None, at });
                let before: Vec<u32> = if count == 0 {
                    after.to_vec()
                } else {
                    own.collect()
                };
                let waits = before
                    .into_iter()
                    .map(|other| (end, OperationDependency::over(other)));
                self.waits.extend(waits);
                end
            }
        };
        self.ends.push(end);
    }
}

/// The unit that computes.
const GPU: u8 = 0;
