//! Frames of priority flow control (IEEE 802.1Qbb, on the MAC control frames of IEEE 802.3).

use super::error::WireError;
use super::network::{ETHERNET, mac};
use crate::packet::{Class, ClassSet};

/// Destination address of all pause frames; no bridge forwards frames to it.
const DESTINATION: [u8; 6] = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x01];
const ETHERTYPE: [u8; 2] = [0x88, 0x08];
const PRIORITY_PAUSE: [u8; 2] = [0x01, 0x01];
/// The shortest frame, without the frame check sequence.
const LENGTH: usize = 60;
/// The longest time that fits: until the next frame.
const UNTIL_FURTHER_NOTICE: [u8; 2] = [0xff; 2];

/// Sender of a pause frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseSource {
    /// A host, by its number.
    Host(u32),
    /// A switch, by its number.
    Switch(u32),
}

/// Makes the frame by which `source` holds back `classes` and lets all other data classes go, of `length` bytes or 60 if that
/// is more. It says something of every data class: the longest time of those that are held back, none of the others.
pub fn encode_pause(source: PauseSource, classes: ClassSet, length: usize) -> Vec<u8> {
    let source = match source {
        PauseSource::Host(number) => mac(false, number),
        PauseSource::Switch(number) => mac(true, number),
    };
    let mut frame = Vec::with_capacity(LENGTH);
    frame.extend(DESTINATION);
    frame.extend(source);
    frame.extend(ETHERTYPE);
    frame.extend(PRIORITY_PAUSE);
    frame.extend([0x00, 0xfe]);
    for number in 0..Class::COUNT as u8 {
        let held = Class::new(number).is_some_and(|class| classes.contains(class));
        frame.extend(if held { UNTIL_FURTHER_NOTICE } else { [0, 0] });
    }
    frame.resize(LENGTH.max(length), 0);
    frame
}

/// Reads the classes that a frame holds back; `None` of a frame of another kind.
pub(super) fn read(frame: &[u8]) -> Option<Result<ClassSet, WireError>> {
    let content = frame.get(ETHERNET..)?;
    if frame[..6] != DESTINATION || frame[12..ETHERNET] != ETHERTYPE {
        return None;
    }
    let Some(content) = content.get(..4 + 2 * Class::COUNT) else {
        return Some(Err(WireError::TooShort));
    };
    if content[..2] != PRIORITY_PAUSE {
        return Some(Err(WireError::NotOurs));
    }
    let mut classes = ClassSet::EMPTY;
    for number in 0..Class::COUNT {
        let enabled = content[3] >> number & 1 == 1;
        let time = &content[4 + 2 * number..][..2];
        if let Some(class) = Class::new(number as u8)
            && enabled
            && *time != [0, 0]
        {
            classes.insert(class);
        }
    }
    Some(Ok(classes))
}
