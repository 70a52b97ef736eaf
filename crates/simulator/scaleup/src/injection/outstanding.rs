//! Flits of a GPU's own operations that are under way.

use crate::{FlitSizes, OperationKind, PacketClass};

/// Flits of the requests and responses of a GPU's operations that have been sent and are not complete.
#[derive(Debug, Clone)]
pub struct OutstandingFlits {
    sizes: FlitSizes,
    flits: u64,
}

impl OutstandingFlits {
    /// No operations, with packets of these lengths.
    pub fn new(sizes: FlitSizes) -> Self {
        Self { sizes, flits: 0 }
    }
    /// Counts an operation in.
    pub fn on_sent(&mut self, kind: OperationKind) {
        self.flits += self.operation_flits(kind);
    }
    /// Counts an operation out.
    pub fn on_completed(&mut self, kind: OperationKind) {
        self.flits = self.flits.saturating_sub(self.operation_flits(kind));
    }
    /// The flits.
    pub fn flits(&self) -> u64 {
        self.flits
    }

    fn operation_flits(&self, kind: OperationKind) -> u64 {
        [PacketClass::Request, PacketClass::Response]
            .map(|class| u64::from(self.sizes.flits(kind, class)))
            .iter()
            .sum()
    }
}
