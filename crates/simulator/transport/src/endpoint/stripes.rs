//! Messages that are striped over several queue pairs: done when all of their parts are.

use clearway_units::{Bytes, FlowId, MessageId};
use rustc_hash::FxHashMap;

/// A message of which not all parts are done.
#[derive(Debug, Clone, Copy)]
struct Open {
    left: u8,
    /// Bytes of the parts that are done.
    bytes: u64,
}

/// The messages at one end of which not all parts are done. Empty while flows have one queue pair.
#[derive(Debug, Default)]
pub(crate) struct Stripes {
    open: FxHashMap<(FlowId, MessageId), Open>,
}

impl Stripes {
    /// Begins a message of `parts` parts; does nothing if the message is known.
    pub(crate) fn begin(&mut self, flow: FlowId, message: MessageId, parts: u8) {
        let left = parts.max(1);
        let open = Open { left, bytes: 0 };
        self.open.entry((flow, message)).or_insert(open);
    }

    /// Counts a part as done. Returns the length of the message if it was the last part.
    pub(crate) fn on_part(
        &mut self,
        flow: FlowId,
        message: MessageId,
        bytes: Bytes,
    ) -> Option<Bytes> {
        let open = self.open.get_mut(&(flow, message))?;
        open.left -= 1;
        open.bytes = open.bytes.saturating_add(bytes.as_u64());
        if open.left > 0 {
            return None;
        }
        let bytes = Bytes::new(open.bytes);
        self.open.remove(&(flow, message));
        Some(bytes)
    }
}
