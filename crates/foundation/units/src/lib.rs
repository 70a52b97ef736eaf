//! Exact units, identifiers, random streams and described parameters: the vocabulary of all Clearway crates.
//!
//! * [`Time`] and [`Span`] count picoseconds, [`Rate`] bit/s, [`Bytes`] bytes, all in `u64`. No floating point time exists anywhere.
//! * All of them parse from and print to text with units (`"1us"`, `"400Gbps"`, `"2MB"`), and printing loses nothing.
//! * [`RandomStream`] gives each entity of a run its own generator, so a new node does not shift the numbers of others.
//! * [`statistics`] has the statistics for results and for the judgement of figures: nearest ranks, bins of equal count, rank correlation.
//! * [`parameters!`](crate::parameters) declares a settings struct once and yields its defaults, keys, parser and documentation.

mod byte_rate;
mod decimal;
mod digest;
mod id;
mod parameter;
mod parameter_set;
mod plugin;
mod random;
mod rate;
mod relative_size;
mod size;
pub mod statistics;
mod suggest;
mod time;
mod value_domain;

pub use byte_rate::ByteRate;
pub use decimal::ParseUnitError;
pub use digest::{Digest, mix64};
pub use id::{FlowId, HostId, MessageId};
pub use parameter::{Parameter, Value};
pub use parameter_set::{OmitDefaults, ParameterInfo, ParameterSet, SetError};
pub use random::{Purpose, RandomStream};
pub use rate::{Rate, WireClock};
pub use relative_size::RelativeSize;
pub use size::{Bytes, Packets};
pub use suggest::{nearest, suggestion};
pub use time::{Span, Time};
pub use value_domain::ValueDomain;
