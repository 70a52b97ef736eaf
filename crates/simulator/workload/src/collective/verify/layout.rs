//! Layout of the buffers: their contents before and after a collective.

use crate::collective::{BlockOwners, Collective, Operation};

/// Contents that a rank holds at a place before the collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    Nothing,
    Zeros,
    Own,
}

/// Contents that a rank must hold at a place after the collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Anything,
    Sum,
    From(u32),
}

/// Layout of the buffers of a collective.
pub(super) struct Layout<'a> {
    operation: Operation,
    owners: &'a BlockOwners,
    pub(super) ranks: u32,
    size: u64,
    /// Bytes of the space in which messages are placed.
    pub(super) extent: u64,
}

impl<'a> Layout<'a> {
    pub(super) fn from_collective(collective: &'a Collective) -> Option<Self> {
        let (size, ranks) = (collective.size.as_u64(), collective.graph.ranks());
        let operation = collective.operation;
        let extent = match operation {
            Operation::AllToAll => size.checked_mul(ranks.into())?,
            Operation::Broadcast { root: rank } | Operation::ParameterServer { server: rank }
                if rank.0 >= ranks =>
            {
                return None;
            }
            _ => size,
        };
        if extent == 0 || ranks == 0 {
            return None;
        }
        Some(Self {
            operation,
            owners: &collective.owners,
            ranks,
            size,
            extent,
        })
    }

    /// Offsets at which the contents before or after the collective change, in addition to the bounds of messages.
    pub(super) fn boundaries(&self) -> Vec<u64> {
        let mut boundaries = vec![0, self.extent];
        let mut add = |from: u64| {
            let blocks = self.owners.blocks(self.size, self.ranks);
            boundaries.extend(blocks.map(|(_, block)| from + block.start));
        };
        match self.operation {
            Operation::ReduceScatter | Operation::AllGather => add(0),
            Operation::AllToAll => {
                let buffers = 0..self.ranks;
                buffers.for_each(|rank| add(u64::from(rank) * self.size));
            }
            Operation::AllReduce
            | Operation::Broadcast { .. }
            | Operation::ParameterServer { .. } => {}
        }
        boundaries
    }

    fn owner(&self, at: u64) -> u32 {
        self.owners.owner(at, (self.size, self.ranks))
    }

    pub(super) fn before(&self, rank: u32, at: u64) -> Before {
        let own_if = |is_own: bool| if is_own { Before::Own } else { Before::Nothing };
        match self.operation {
            Operation::AllReduce | Operation::ReduceScatter => Before::Own,
            Operation::AllGather => own_if(self.owner(at) == rank),
            Operation::Broadcast { root } => own_if(root.0 == rank),
            Operation::AllToAll => own_if(at / self.size == u64::from(rank)),
            Operation::ParameterServer { server } if server.0 == rank => Before::Zeros,
            Operation::ParameterServer { .. } => Before::Own,
        }
    }

    pub(super) fn after(&self, rank: u32, at: u64) -> After {
        match self.operation {
            Operation::AllReduce => After::Sum,
            Operation::ReduceScatter if self.owner(at) == rank => After::Sum,
            Operation::ReduceScatter => After::Anything,
            Operation::AllGather => After::From(self.owner(at)),
            Operation::Broadcast { root } => After::From(root.0),
            Operation::AllToAll if self.owner(at % self.size) == rank => {
                After::From((at / self.size) as u32)
            }
            Operation::AllToAll => After::Anything,
            Operation::ParameterServer { server } if server.0 == rank => After::Anything,
            Operation::ParameterServer { .. } => After::Sum,
        }
    }

    /// True if the sum must have the data of `rank`.
    pub(super) fn contributes(&self, rank: u32) -> bool {
        !matches!(self.operation, Operation::ParameterServer { server } if server.0 == rank)
    }
}
