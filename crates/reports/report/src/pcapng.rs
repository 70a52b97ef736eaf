//! Captures in the format pcapng (`draft-ietf-opsawg-pcapng`), which Wireshark and related tools read.
//!
//! A file has one section: a header with the name of the program, one interface for each captured link, the frames in the order in
//! which they are given, and finally the numbers of frames that each interface has seen and left out. Times are in picoseconds since
//! the beginning of the run, which readers show as seconds since 1970. Current readers round them down to nanoseconds.

use clearway_units::{Rate, Time};
use std::io::{self, Write};

/// The name of the file in a result folder.
pub const FILE_NAME: &str = "trace.pcapng";

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const LINK_TYPE_ETHERNET: u16 = 1;
/// Units of time: ten to the minus twelfth of a second.
const PICOSECONDS: u8 = 12;

const COMMENT: u16 = 1;
const SECTION_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_SPEED: u16 = 8;
const INTERFACE_TIME_RESOLUTION: u16 = 9;
const INTERFACE_CHECK_SEQUENCE_LENGTH: u16 = 13;
const STATISTICS_RECEIVED: u16 = 4;
const STATISTICS_DROPPED: u16 = 5;

/// A place at which frames were captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedLink {
    /// Name of the link.
    pub name: String,
    /// Rate of the link.
    pub rate: Rate,
    /// Maximum number of bytes kept of a frame.
    pub snap: u32,
}

/// Number of an interface: each call of [`PcapngWriter::interface`] returns the next one, from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterfaceId(u32);

/// Writes a capture piece by piece. It keeps only the number of interfaces, so put a buffer between it and a file.
#[derive(Debug)]
pub struct PcapngWriter<W> {
    to: W,
    interfaces: u32,
    /// Content of the current block.
    block: Vec<u8>,
}

impl<W: Write> PcapngWriter<W> {
    /// Begins a capture made by `application`; `comment` describes its contents.
    ///
    /// # Errors
    /// If writing fails, as in the other methods.
    pub fn new(to: W, application: &str, comment: &str) -> io::Result<Self> {
        let mut writer = Self {
            to,
            interfaces: 0,
            block: Vec::new(),
        };
        writer.put(&BYTE_ORDER_MAGIC.to_le_bytes());
        // Version 1.0.
        writer.put(&[1, 0, 0, 0]);
        // The length of the section is not given.
        writer.put(&u64::MAX.to_le_bytes());
        writer.option(COMMENT, comment.as_bytes());
        writer.option(SECTION_APPLICATION, application.as_bytes());
        writer.end(SECTION_HEADER)?;
        Ok(writer)
    }

    /// Describes an interface. The frames of the interface come after this call.
    pub fn interface(&mut self, link: &CapturedLink) -> io::Result<InterfaceId> {
        self.put(&LINK_TYPE_ETHERNET.to_le_bytes());
        self.put(&[0, 0]);
        self.put(&link.snap.to_le_bytes());
        self.option(INTERFACE_NAME, link.name.as_bytes());
        self.option(INTERFACE_SPEED, &link.rate.as_bps().to_le_bytes());
        self.option(INTERFACE_TIME_RESOLUTION, &[PICOSECONDS]);
        self.option(INTERFACE_CHECK_SEQUENCE_LENGTH, &[0]);
        self.end(INTERFACE_DESCRIPTION)?;
        self.interfaces += 1;
        Ok(InterfaceId(self.interfaces - 1))
    }

    /// Writes a frame of `length` bytes that was seen at `time`; `bytes` are the kept bytes: all, or the first ones.
    pub fn frame(
        &mut self,
        interface: InterfaceId,
        time: Time,
        length: u32,
        bytes: &[u8],
    ) -> io::Result<()> {
        self.put(&interface.0.to_le_bytes());
        self.put_time(time);
        self.put(&(bytes.len() as u32).to_le_bytes());
        self.put(&length.to_le_bytes());
        self.put(bytes);
        self.pad();
        self.end(ENHANCED_PACKET)
    }

    /// Writes, at the end of the file, the numbers of frames that an interface has seen and left out until `time`.
    pub fn statistics(
        &mut self,
        interface: InterfaceId,
        time: Time,
        seen: u64,
        left_out: u64,
    ) -> io::Result<()> {
        self.put(&interface.0.to_le_bytes());
        self.put_time(time);
        self.option(STATISTICS_RECEIVED, &seen.to_le_bytes());
        self.option(STATISTICS_DROPPED, &left_out.to_le_bytes());
        self.end(INTERFACE_STATISTICS)
    }

    /// Flushes the output and returns it.
    pub fn finish(mut self) -> io::Result<W> {
        self.to.flush()?;
        Ok(self.to)
    }

    fn put(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
    }

    /// Writes a time: the upper half comes first in either byte order.
    fn put_time(&mut self, time: Time) {
        let ps = time.as_ps();
        self.put(&((ps >> 32) as u32).to_le_bytes());
        self.put(&(ps as u32).to_le_bytes());
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// Adds an option. The format allows a list without the option that ends it, so this option is left out. A value that is too long is
    /// cut.
    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(u16::MAX.into())];
        self.put(&code.to_le_bytes());
        self.put(&(value.len() as u16).to_le_bytes());
        self.put(value);
        self.pad();
    }

    /// Writes the block, with its length at both ends.
    fn end(&mut self, kind: u32) -> io::Result<()> {
        let length = (self.block.len() as u32 + 12).to_le_bytes();
        self.to.write_all(&kind.to_le_bytes())?;
        self.to.write_all(&length)?;
        self.to.write_all(&self.block)?;
        self.to.write_all(&length)?;
        self.block.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A block: its type and content.
    type Block = (u32, Vec<u8>);

    fn number(bytes: &[u8]) -> u64 {
        let digits = bytes.iter().rev();
        digits.fold(0, |number, &byte| number << 8 | u64::from(byte))
    }

    /// The blocks of a file, whose lengths are checked.
    fn blocks(mut file: &[u8]) -> Vec<Block> {
        let mut blocks = Vec::new();
        while !file.is_empty() {
            let length = number(&file[4..8]) as usize;
            assert_eq!(length % 4, 0);
            let (block, rest) = file.split_at(length);
            assert_eq!(block[length - 4..], block[4..8]);
            blocks.push((number(&block[..4]) as u32, block[8..length - 4].to_vec()));
            file = rest;
        }
        blocks
    }

    fn options(mut bytes: &[u8]) -> Vec<(u16, Vec<u8>)> {
        let mut options = Vec::new();
        while !bytes.is_empty() {
            let length = number(&bytes[2..4]) as usize;
            options.push((number(&bytes[..2]) as u16, bytes[4..4 + length].to_vec()));
            bytes = &bytes[4 + length.next_multiple_of(4)..];
        }
        options
    }

    fn link(name: &str) -> CapturedLink {
        CapturedLink {
            name: name.into(),
            rate: Rate::from_gbps(400),
            snap: 128,
        }
    }

    #[test]
    fn what_is_written_is_what_the_format_says() {
        let mut writer = PcapngWriter::new(Vec::new(), "Clearway", "seed 1").unwrap();
        let first = writer.interface(&link("host3-leaf0")).unwrap();
        let second = writer.interface(&link("leaf0-host3")).unwrap();
        let late = Time::from_ps(0x0123_4567_89ab_cdef);
        writer.frame(second, late, 4160, &[7; 5]).unwrap();
        writer.statistics(first, late, 9, 8).unwrap();
        let file = blocks(&writer.finish().unwrap());
        let kinds: Vec<u32> = file.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [0x0a0d_0d0a, 1, 1, 6, 5]);

        let header = &file[0].1;
        assert_eq!(header[..8], [0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0]);
        assert_eq!(header[8..16], [0xff; 8]);
        assert_eq!(
            options(&header[16..]),
            [(1, b"seed 1".to_vec()), (4, b"Clearway".to_vec())]
        );
        let interface = &file[2].1;
        assert_eq!(interface[..8], [1, 0, 0, 0, 128, 0, 0, 0]);
        let speed = 400_000_000_000u64.to_le_bytes().to_vec();
        assert_eq!(
            options(&interface[8..]),
            [
                (2, b"leaf0-host3".to_vec()),
                (8, speed),
                (9, vec![12]),
                (13, vec![0])
            ]
        );
        let frame = &file[3].1;
        let head = [1, 0x0123_4567, 0x89ab_cdef, 5, 4160];
        let read: Vec<u64> = frame[..20].chunks(4).map(number).collect();
        assert_eq!(read, head);
        assert_eq!(frame[20..], [7, 7, 7, 7, 7, 0, 0, 0]);
        let statistics = options(&file[4].1[12..]);
        assert_eq!(number(&statistics[0].1), 9);
        assert_eq!(number(&statistics[1].1), 8);
    }

    proptest! {
        #[test]
        fn frames_of_any_length_are_read_back(
            frames in prop::collection::vec((any::<u64>(), any::<u16>(), 0..200usize), 0..20),
            name in ".{0,40}",
        ) {
            let mut writer = PcapngWriter::new(Vec::new(), &name, "").unwrap();
            let interface = writer.interface(&link(&name)).unwrap();
            for &(time, length, kept) in &frames {
                let bytes: Vec<u8> = (0..kept as u8).collect();
                writer.frame(interface, Time::from_ps(time), length.into(), &bytes).unwrap();
            }
            let file = blocks(&writer.finish().unwrap());
            prop_assert_eq!(&options(&file[1].1[8..])[0].1[..], name.as_bytes());
            prop_assert_eq!(file.len(), frames.len() + 2);
            for ((_, block), &(time, length, kept)) in file[2..].iter().zip(&frames) {
                prop_assert_eq!(number(&block[4..8]) << 32 | number(&block[8..12]), time);
                prop_assert_eq!(number(&block[12..16]) as usize, kept);
                prop_assert_eq!(number(&block[16..20]), u64::from(length));
                let bytes: Vec<u8> = (0..kept as u8).collect();
                prop_assert_eq!(&block[20..20 + kept], &bytes[..]);
            }
        }
    }
}
