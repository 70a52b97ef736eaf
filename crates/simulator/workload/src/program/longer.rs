//! Receives that take more than comes: they may run, and are probably not meant.

use super::matching::{Numbers, order, partners};
use super::{JobProgram, Operation, OperationId};
use clearway_units::Bytes;

/// The first receive that takes more than its message brings, and how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongerReceives {
    /// The receive.
    pub receive: OperationId,
    /// Bytes that it takes.
    pub takes: Bytes,
    /// The send that comes to it.
    pub send: OperationId,
    /// Bytes that it brings.
    pub brings: Bytes,
    /// Number of such receives.
    pub count: usize,
}

impl JobProgram {
    /// Receives that take more than comes to them; `None` without any, or if messages cannot be matched, which
    /// [`graph`](Self::graph) refuses.
    pub fn longer_receives(&self) -> Option<LongerReceives> {
        // No receive takes less than its message brings, so that equal sums mean that each takes as much.
        let sum = |(takes, brings): (u128, u128), (_, operation)| match operation {
            Operation::Receive { bytes, .. } => (takes + u128::from(bytes.as_u64()), brings),
            Operation::Send { bytes, .. } => (takes, brings + u128::from(bytes.as_u64())),
            _ => (takes, brings),
        };
        let (takes, brings) = self.numbered().fold((0, 0), sum);
        if takes == brings {
            return None;
        }
        let numbers = Numbers::from_program(self).ok()?;
        let orders: Vec<Vec<u32>> = self.ranks.iter().map(order).collect();
        let partner = partners(self, &numbers, &orders).ok()?;
        let mut longer: Option<LongerReceives> = None;
        for (receive, operation) in self.numbered() {
            let Operation::Receive { bytes: takes, .. } = operation else {
                continue;
            };
            let send = numbers.id(partner[numbers.number(receive) as usize]);
            let Operation::Send { bytes: brings, .. } = self.operation(send) else {
                continue;
            };
            if takes > brings {
                let first = LongerReceives {
                    receive,
                    takes,
                    send,
                    brings,
                    count: 0,
                };
                longer.get_or_insert(first).count += 1;
            }
        }
        longer
    }
}

impl LongerReceives {
    /// Text of a warning of them, with operations as `name` calls them.
    pub fn message(&self, name: &dyn Fn(OperationId) -> String) -> String {
        let others = match self.count {
            1 => String::new(),
            count => format!(" (and {} more like it)", count - 1),
        };
        format!(
            "{} takes {} B, but the message that comes to it, {}, has {} B, and is all that is waited for{others}",
            name(self.receive),
            self.takes.as_u64(),
            name(self.send),
            self.brings.as_u64(),
        )
    }
}
