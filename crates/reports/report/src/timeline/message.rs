//! Protocol buffers, to the extent that a timeline needs: varints, 64-bit values, texts and nested messages.
//!
//! The encoder is written by hand because it is shorter than the declarations for a library. Fields are written in the order of the calls,
//! so equal calls give equal bytes.

/// A message under construction, with its fields so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Message(Vec<u8>);

/// Wire type of a field.
#[derive(Clone, Copy)]
enum Wire {
    Varint = 0,
    Fixed64 = 1,
    Length = 2,
}

impl Message {
    /// An integer, a truth value or an enumeration.
    pub(super) fn number(mut self, field: u32, value: u64) -> Self {
        self.key(field, Wire::Varint);
        self.varint(value);
        self
    }

    /// A `fixed64`.
    pub(super) fn fixed(mut self, field: u32, value: u64) -> Self {
        self.key(field, Wire::Fixed64);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// A `double`.
    pub(super) fn double(self, field: u32, value: f64) -> Self {
        self.fixed(field, value.to_bits())
    }

    /// A `string`.
    pub(super) fn text(mut self, field: u32, text: &str) -> Self {
        self.length_delimited(field, text.as_bytes());
        self
    }

    /// A message.
    pub(super) fn message(mut self, field: u32, message: &Self) -> Self {
        self.length_delimited(field, &message.0);
        self
    }

    /// The encoded fields.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn length_delimited(&mut self, field: u32, bytes: &[u8]) {
        self.key(field, Wire::Length);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn key(&mut self, field: u32, wire: Wire) {
        self.varint(u64::from(field) << 3 | wire as u64);
    }

    /// Writes seven bits in each byte, the lowest first; the top bit is set if more bytes follow.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_encoding_guide() {
        let number = Message::default().number(1, 150);
        assert_eq!(number.bytes(), [0x08, 0x96, 0x01]);
        let text = Message::default().text(2, "testing");
        assert_eq!(text.bytes(), b"\x12\x07testing");
        let outer = Message::default().message(3, &number);
        assert_eq!(outer.bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
    }

    #[test]
    fn large_fields_and_values() {
        let most = Message::default().number(16, u64::MAX);
        let mut expected = vec![0x80, 0x01];
        expected.extend([0xff; 9]);
        expected.push(0x01);
        assert_eq!(most.bytes(), expected);
        let double = Message::default().double(44, 1.0);
        assert_eq!(
            double.bytes(),
            [0xe1, 0x02, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f],
            "44 << 3 | 1, little endian"
        );
        let fixed = Message::default().fixed(1, 0x0102);
        assert_eq!(fixed.bytes(), [0x09, 2, 1, 0, 0, 0, 0, 0, 0]);
    }
}
