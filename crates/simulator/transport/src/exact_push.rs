//! Vectors that mostly have one element: hosts with one flow, flows with one message.
//!
//! A vector that grows takes room for four elements at first. Of 262 144 hosts with a flow each, that would be 0.8 GB for nothing.

/// Appends an element; the first one gets memory for itself alone.
#[inline]
pub(crate) fn push<E>(vector: &mut Vec<E>, element: E) {
    if vector.capacity() == 0 {
        vector.reserve_exact(1);
    }
    vector.push(element);
}
