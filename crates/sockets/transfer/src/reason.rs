//! Reasons why a file is not transferred.

use std::fmt;

/// Longest detail of a reason on the wire, in bytes.
pub(crate) const LONGEST_DETAIL: usize = 512;

/// Kind of a reason; the number is the code on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasonKind {
    /// A file with this name exists already.
    Exists,
    /// The receiver does not accept the name.
    Name,
    /// Another transfer of the same file is in progress.
    Busy,
    /// More bytes or files than the receiver accepts from one sender.
    Limit,
    /// Obstacle at the file's place: a folder or a link, or a file in place of a parent folder.
    InTheWay,
    /// The receiver cannot write.
    Write,
    /// The source changed during the transfer.
    Changed,
    /// The sender cannot read.
    Read,
    /// The content at the receiver differs from the sender's, although all blocks have arrived.
    Content,
    /// The sender has withdrawn the file, and the receiver confirms this.
    Withdrawn,
    /// A reason that this release does not know.
    Other,
}

const KINDS: [ReasonKind; 11] = [
    ReasonKind::Other,
    ReasonKind::Exists,
    ReasonKind::Name,
    ReasonKind::Busy,
    ReasonKind::Limit,
    ReasonKind::InTheWay,
    ReasonKind::Write,
    ReasonKind::Changed,
    ReasonKind::Read,
    ReasonKind::Content,
    ReasonKind::Withdrawn,
];

impl ReasonKind {
    pub(crate) fn code(self) -> u8 {
        KINDS.iter().position(|kind| *kind == self).unwrap_or(0) as u8
    }

    pub(crate) fn from_code(code: u8) -> Self {
        KINDS.get(usize::from(code)).copied().unwrap_or(Self::Other)
    }
}

/// Reason why a file is not transferred.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// Kind of the reason.
    pub kind: ReasonKind,
    /// Details, such as an error of the operating system; may be empty.
    pub detail: String,
}

impl Reason {
    /// A reason. Drops control characters from the detail, which may come from another host and appears on terminals.
    pub fn new(kind: ReasonKind, detail: &str) -> Self {
        let mut plain: String = detail.chars().filter(|c| !c.is_control()).collect();
        let end = (0..=LONGEST_DETAIL)
            .rev()
            .find(|end| plain.is_char_boundary(*end))
            .unwrap_or(0);
        plain.truncate(end);
        Self {
            kind,
            detail: plain,
        }
    }

    /// Advice to the user.
    pub fn fix(&self) -> &'static str {
        match self.kind {
            ReasonKind::Exists => {
                "move it away at the receiver, give it another `--out`, or give it `--overwrite`"
            }
            ReasonKind::Name => "rename the file",
            ReasonKind::Busy => "wait for the other transfer to end",
            ReasonKind::Limit => "give the receiver a larger `--limit`, or send less",
            ReasonKind::InTheWay => "move it away at the receiver, or give it another `--out`",
            ReasonKind::Write => {
                "make room there and check that the folder is writable; received data is kept, and the same command continues"
            }
            ReasonKind::Changed => {
                "send it again when no program writes to it; unchanged blocks are not sent twice"
            }
            ReasonKind::Read => "see that the file is there and can be read",
            ReasonKind::Content => "send it again; look at the memory and the disks of both hosts",
            ReasonKind::Withdrawn => "see what the sender says",
            ReasonKind::Other => "use the same release at both ends",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            ReasonKind::Exists => "the receiver has a file of this name",
            ReasonKind::Name => "the receiver does not take this name",
            ReasonKind::Busy => "the receiver is receiving this file already",
            ReasonKind::Limit => "the receiver does not take so much",
            ReasonKind::InTheWay => "something is in the way at the receiver",
            ReasonKind::Write => "the receiver cannot write it",
            ReasonKind::Changed => "it has changed while it was being sent",
            ReasonKind::Read => "the sender cannot read it",
            ReasonKind::Content => "the received data differs from the sent data",
            ReasonKind::Withdrawn => "the sender has withdrawn it",
            ReasonKind::Other => "the other end does not take it",
        })?;
        match self.detail.as_str() {
            "" => Ok(()),
            detail => write!(f, ": {detail}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_page_on_transfers() {
        let page = include_str!("../../../../docs/src/transfer.md");
        for (code, kind) in (0..).zip(KINDS) {
            assert_eq!((kind.code(), ReasonKind::from_code(code)), (code, kind));
            let row = format!("| {code} | {kind:?} |");
            assert!(page.contains(&row), "{row} is missing");
        }
        assert_eq!(ReasonKind::from_code(200), ReasonKind::Other);
    }

    #[test]
    fn details_are_short_and_cannot_move_a_cursor() {
        let reason = Reason::new(ReasonKind::Other, &"\u{1b}[2J\u{e4}".repeat(300));
        assert!(reason.detail.starts_with("[2J\u{e4}[2J") && reason.detail.len() <= LONGEST_DETAIL);
        assert_eq!(
            Reason::new(ReasonKind::Busy, "").to_string(),
            "the receiver is receiving this file already"
        );
    }
}
