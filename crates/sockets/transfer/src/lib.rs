//! Files over STrack: folders and files from one host to another, verified block by block, and resumed where they were interrupted.
//!
//! ```text
//!   Sending                                       Receiving
//!   offers files    ─────── Offer ───────►    looks what is there
//!   compares        ◄── Accept, Have ─────    digests of blocks that it has
//!   reads, hashes   ─────── blocks ──────►    verifies, writes each at its place
//!                   ─────── Finish ──────►    compares the digest of the file,
//!                   ◄─────── Done ────────    puts it in its place
//! ```
//!
//! Both sides are state machines without IO. Jobs do the disk work, and [`Sources`] and [`ReceiveStore`] execute the jobs on separate
//! threads. Blocks are messages of a connection. They arrive in any order, and the receiver writes each block at its offset on arrival.
//!
//! **Architecture invariants:** a receiver trusts nothing. A block, received or already on the disk, counts only if its digest matches the
//! sender's. Names lead only below the folder, and no link in it is followed. An existing file with the same name is compared and never
//! overwritten, unless the user asks for it. Memory, bytes and files are bounded.

mod blocks;
mod folder;
mod name;
mod net;
mod positioned_io;
mod reason;
mod receiving;
mod record;
mod sending;
mod sources;
mod store;
mod transfer_side;
pub mod wire;

pub use blocks::{BlockLayout, ContentHash, LONGEST_BLOCK, MOST_BLOCKS, SHORTEST_BLOCK};
pub use name::{Name, NameError, PARTIAL_FOLDER};
pub use net::{
    DONE, INTERRUPTED, ReceiveOutcome, SendOutcome, TransferError, TransferObserver, VIOLATION,
    receive, send,
};
pub use reason::{Reason, ReasonKind};
pub use receiving::{ReceiveLimits, Receiving, Unfinished};
pub use sending::Sending;
pub use sources::{SourceError, Sources, shown};
pub use store::ReceiveStore;
pub use transfer_side::{FileOutcome, TransferEvent, TransferProgress, Violation};

// These tests create links.
#[cfg(all(test, unix))]
mod tests;
