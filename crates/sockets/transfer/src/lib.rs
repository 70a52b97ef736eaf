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
//! Both sides are state machines without IO. Work on disks is done by jobs, which [`Sources`] and [`ReceiveStore`] carry out on their own
//! threads. Blocks are messages of a connection, which come in any order, and are written at once at their offsets.
//!
//! **Architecture invariants:** a receiver believes nothing. A block counts if its digest is the sender's, also one that lay on the disk;
//! names lead nowhere but below the folder, in which no link is followed; what has its name already is compared and never written to,
//! unless the user says so; memory is bounded, and so are bytes and files.

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

// They make links.
#[cfg(all(test, unix))]
mod tests;
