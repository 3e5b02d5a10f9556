//! Reads DER, the encoding of certificates, as far as that is needed to name their holder and their validity. Pure.

pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;
pub(super) const OBJECT_ID: u8 = 0x06;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;

/// The values that follow each other in some bytes.
#[derive(Clone, Copy)]
pub(super) struct Values<'a>(&'a [u8]);

/// One value.
#[derive(Clone, Copy)]
pub(super) struct Value<'a> {
    pub(super) tag: u8,
    pub(super) content: &'a [u8],
    /// Tag, length and content.
    pub(super) whole: &'a [u8],
}

impl<'a> Values<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next value, which has to have this tag.
    pub(super) fn expect(&mut self, tag: u8) -> Option<Value<'a>> {
        self.next().filter(|value| value.tag == tag)
    }
}

impl<'a> Value<'a> {
    /// What a sequence or a set contains.
    pub(super) fn values(&self) -> Values<'a> {
        Values(self.content)
    }
}

/// Ends at the first value that is cut off.
impl<'a> Iterator for Values<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        let (&[tag, first], rest) = self.0.split_first_chunk::<2>()?;
        let (length, header) = match first {
            0..=0x7f => (usize::from(first), 2),
            0x81..=0x83 => {
                let count = usize::from(first & 0x7f);
                let bytes = rest.get(..count)?;
                (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), 2 + count)
            }
            // No value of a certificate is that long, and DER has no other form.
            _ => return None,
        };
        let whole = self.0.get(..header + length)?;
        self.0 = &self.0[header + length..];
        Some(Value { tag, content: &whole[header..], whole })
    }
}
