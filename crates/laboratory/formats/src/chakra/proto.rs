//! The parts of an execution trace's messages that are read (schema `et_def.proto` of Chakra), and the frames around the messages.

use prost::Message;
use std::io::{self, Read};

/// The first message of a file.
#[derive(Clone, PartialEq, Message)]
pub(super) struct GlobalMetadata {
    #[prost(string, tag = "1")]
    pub(super) version: String,
}

/// Node of a trace: an operation of a rank, or metadata. The two fields that are not read, `start_time_micros` and `outputs`, have no
/// effect in ASTRA-sim either.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Node {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(int32, tag = "3")]
    pub(super) kind: i32,
    #[prost(uint64, repeated, tag = "4")]
    pub(super) ctrl_deps: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    pub(super) data_deps: Vec<u64>,
    #[prost(uint64, tag = "7")]
    pub(super) duration_micros: u64,
    #[prost(message, optional, tag = "8")]
    pub(super) inputs: Option<IoInfo>,
    #[prost(message, repeated, tag = "10")]
    pub(super) attr: Vec<Attribute>,
}

/// Inputs, as text.
#[derive(Clone, PartialEq, Message)]
pub(super) struct IoInfo {
    #[prost(string, tag = "1")]
    pub(super) values: String,
}

/// A named value.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(
        oneof = "Value",
        tags = "7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 28, 29"
    )]
    pub(super) value: Option<Value>,
}

/// The values of the attributes that are read. Writers disagree on the type of integers.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum Value {
    #[prost(int32, tag = "7")]
    Int32(i32),
    #[prost(int64, tag = "9")]
    Int64(i64),
    #[prost(uint32, tag = "11")]
    Uint32(u32),
    #[prost(uint64, tag = "13")]
    Uint64(u64),
    #[prost(sint32, tag = "15")]
    Sint32(i32),
    #[prost(sint64, tag = "17")]
    Sint64(i64),
    #[prost(fixed32, tag = "19")]
    Fixed32(u32),
    #[prost(fixed64, tag = "21")]
    Fixed64(u64),
    #[prost(sfixed32, tag = "23")]
    Sfixed32(i32),
    #[prost(sfixed64, tag = "25")]
    Sfixed64(i64),
    #[prost(bool, tag = "27")]
    Bool(bool),
    #[prost(message, tag = "28")]
    BoolList(BoolList),
    #[prost(string, tag = "29")]
    String(String),
}

/// List of booleans.
#[derive(Clone, PartialEq, Message)]
pub(super) struct BoolList {
    #[prost(bool, repeated, tag = "1")]
    pub(super) values: Vec<bool>,
}

impl Value {
    /// The number, of any integer type.
    pub(super) fn integer(&self) -> Option<i128> {
        match *self {
            Self::Int32(value) | Self::Sint32(value) | Self::Sfixed32(value) => Some(value.into()),
            Self::Int64(value) | Self::Sint64(value) | Self::Sfixed64(value) => Some(value.into()),
            Self::Uint32(value) | Self::Fixed32(value) => Some(value.into()),
            Self::Uint64(value) | Self::Fixed64(value) => Some(value.into()),
            Self::Bool(value) => Some(value.into()),
            Self::BoolList(_) | Self::String(_) => None,
        }
    }
}

/// Maximum length of a message. A node has some hundred bytes; a node that lists the process groups of many ranks may have some millions. A
/// decoded message may take fifty times as many: its shortest attribute has two.
const LONGEST: u64 = 16 << 20;

/// Reads messages from a file, each after its length as a varint.
pub(super) struct Frames<R> {
    reader: R,
    /// Buffer that is reused between messages.
    buffer: Vec<u8>,
    /// Number of messages read so far.
    pub(super) count: u64,
}

impl<R: Read> Frames<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            count: 0,
        }
    }

    /// The next message; `None` at the end of the file.
    pub(super) fn next<M: Message + Default>(&mut self) -> io::Result<Option<M>> {
        let Some(length) = self.length()? else {
            return Ok(None);
        };
        self.buffer.clear();
        let read = self
            .reader
            .by_ref()
            .take(length)
            .read_to_end(&mut self.buffer)?;
        if (read as u64) < length {
            return Err(io::Error::other("the file ends within it"));
        }
        self.count += 1;
        M::decode(self.buffer.as_slice())
            .map(Some)
            .map_err(io::Error::other)
    }

    fn length(&mut self) -> io::Result<Option<u64>> {
        let mut length = 0u64;
        for shift in (0..35).step_by(7) {
            let Some(byte) = self.byte()? else {
                return match shift {
                    0 => Ok(None),
                    _ => Err(io::Error::other("the file ends within its length")),
                };
            };
            length |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return match length <= LONGEST {
                    true => Ok(Some(length)),
                    false => Err(io::Error::other(format!(
                        "its length of {length} bytes is too large"
                    ))),
                };
            }
        }
        Err(io::Error::other("its length is not a number"))
    }

    /// The next byte; `None` at the end of the file.
    fn byte(&mut self) -> io::Result<Option<u8>> {
        let mut byte = [0];
        loop {
            match self.reader.read(&mut byte) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return Ok((result? > 0).then_some(byte[0])),
            }
        }
    }
}
