//! Reliable delivery: retransmission of lost packets, and receivers that put messages together.
//!
//! [`go_back_n`] sends all packets again from the first lost one, as RoCEv2 NICs do. [`selective_repeat`] sends lost packets alone, as
//! STrack and Ultra Ethernet do. A [profile](crate::Profile) chooses one for all flows of a transport.

pub mod go_back_n;
pub mod selective_repeat;
