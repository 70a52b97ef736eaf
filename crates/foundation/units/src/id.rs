//! Identifiers: small integers with a type.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u32);

        impl $name {
            /// The identifier as an index into a `Vec`.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// A host: one NIC with one address. Numbered from zero.
    HostId
}
id! {
    /// A flow (a connection, a queue pair) from one host to another, unique in a run.
    FlowId
}
id! {
    /// A message on a flow, numbered from zero on each flow.
    MessageId
}
