//! Writing a document front to back into one buffer.
//!
//! The writer keeps track of commas and escapes strings; it trusts its caller to close what it opened. Absent
//! values are written by not writing them: the `maybe_…` calls and `…_unless_empty` read as the ProtoJSON
//! rule they stand for.

use base64::Engine as _;

use super::Json;

/// Builds one JSON document.
#[derive(Default)]
pub struct Writer {
    out: Vec<u8>,
    comma: bool,
}

impl Writer {
    /// An empty writer with room for a typical message.
    pub fn new() -> Self {
        Self { out: Vec::with_capacity(512), comma: false }
    }

    /// A writer that puts its document behind what the buffer already holds.
    pub fn append_to(out: Vec<u8>) -> Self {
        Self { out, comma: false }
    }

    /// The finished document.
    pub fn finish(self) -> Vec<u8> {
        self.out
    }

    /// Writes one object whose fields are written by `fields`.
    pub fn object(&mut self, fields: impl FnOnce(&mut Self)) {
        self.open(b'{');
        fields(self);
        self.close(b'}');
    }

    /// Writes one array with an element per item.
    pub fn array<T>(&mut self, items: impl IntoIterator<Item = T>, mut each: impl FnMut(&mut Self, T)) {
        self.open(b'[');
        for item in items {
            each(self, item);
        }
        self.close(b']');
    }

    /// Writes a field name; the value must follow.
    pub fn key(&mut self, name: &str) -> &mut Self {
        self.string(name);
        self.out.push(b':');
        self.comma = false;
        self
    }

    /// Writes a string value.
    pub fn string(&mut self, text: &str) {
        self.separate();
        if is_plain(text.as_bytes()) {
            self.out.push(b'"');
            self.out.extend_from_slice(text.as_bytes());
            self.out.push(b'"');
        } else {
            serde_json::to_writer(&mut self.out, text).expect("a string can always be written to memory");
        }
    }

    /// Writes a number.
    pub fn int(&mut self, number: i64) {
        self.separate();
        self.out.extend_from_slice(number.to_string().as_bytes());
    }

    /// Writes a boolean.
    pub fn boolean(&mut self, value: bool) {
        self.raw(if value { "true" } else { "false" });
    }

    /// Writes text that is already JSON.
    pub fn raw(&mut self, json: &str) {
        self.raw_bytes(json.as_bytes());
    }

    /// Writes bytes that are already JSON.
    pub fn raw_bytes(&mut self, json: &[u8]) {
        self.separate();
        self.out.extend_from_slice(json);
    }

    /// Writes bytes as a standard, padded base64 string.
    pub fn base64(&mut self, bytes: &[u8]) {
        self.separate();
        let text = base64::engine::general_purpose::STANDARD.encode(bytes);
        self.out.push(b'"');
        self.out.extend_from_slice(text.as_bytes());
        self.out.push(b'"');
    }

    /// A string field.
    pub fn text(&mut self, name: &str, value: &str) {
        self.key(name).string(value);
    }

    /// A string field, left out when absent.
    pub fn maybe_text(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(name, value);
        }
    }

    /// A raw JSON field, left out when absent.
    pub fn maybe_json(&mut self, name: &str, value: Option<&Json>) {
        if let Some(value) = value {
            self.key(name).raw(value.as_str());
        }
    }

    /// A boolean field, left out when absent.
    pub fn maybe_flag(&mut self, name: &str, value: Option<bool>) {
        if let Some(value) = value {
            self.key(name).boolean(value);
        }
    }

    /// A boolean field, left out when false.
    pub fn flag_if_set(&mut self, name: &str, value: bool) {
        self.maybe_flag(name, value.then_some(true));
    }

    /// A list of strings.
    pub fn texts<S: AsRef<str>>(&mut self, name: &str, values: &[S]) {
        self.key(name).array(values, |writer, value| writer.string(value.as_ref()));
    }

    /// A list of strings, left out when empty.
    pub fn texts_unless_empty<S: AsRef<str>>(&mut self, name: &str, values: &[S]) {
        if !values.is_empty() {
            self.texts(name, values);
        }
    }

    /// Begins an object or an array, for who cannot wrap what is inside in a closure.
    pub(crate) fn open(&mut self, bracket: u8) {
        self.separate();
        self.out.push(bracket);
        self.comma = false;
    }

    /// Ends it.
    pub(crate) fn close(&mut self, bracket: u8) {
        self.out.push(bracket);
        self.comma = true;
    }

    /// Puts the comma between two values and notes that a value stands here now.
    fn separate(&mut self) {
        if self.comma {
            self.out.push(b',');
        }
        self.comma = true;
    }
}

/// Whether a text needs no escape. Every byte is looked at, so that many are looked at in one step.
fn is_plain(text: &[u8]) -> bool {
    text.iter().fold(true, |plain, &byte| plain & (byte >= b' ') & (byte != b'"') & (byte != b'\\'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_stand_between_values_and_nowhere_else() {
        let mut writer = Writer::new();
        writer.object(|writer| {
            writer.text("a", "x\n\"");
            writer.key("b").array([1, 2], |writer, number| writer.int(number));
            writer.key("c").object(|_| {});
            writer.maybe_text("d", None);
            writer.key("e").base64(&[0xfb, 0xff]);
            writer.flag_if_set("f", true);
        });
        let text = String::from_utf8(writer.finish()).unwrap();
        assert_eq!(text, r#"{"a":"x\n\"","b":[1,2],"c":{},"e":"+/8=","f":true}"#);
    }
}
