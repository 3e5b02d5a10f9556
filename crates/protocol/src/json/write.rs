//! Writing a document front to back into one buffer.
//!
//! The writer inserts commas and escapes strings; the caller closes what it opens. Absent values are not
//! written: the `maybe_…` and `…_unless_empty` methods implement that ProtoJSON rule.

use base64::Engine as _;

use super::{Json, lex};

/// Builds one JSON document.
#[derive(Default)]
pub struct Writer {
    out: Vec<u8>,
    comma: bool,
}

impl Writer {
    /// An empty writer with capacity for a typical message.
    pub fn new() -> Self {
        Self { out: Vec::with_capacity(512), comma: false }
    }

    /// A writer that appends its document to the buffer.
    pub fn append_to(out: Vec<u8>) -> Self {
        Self { out, comma: false }
    }

    /// The finished document.
    pub fn finish(self) -> Vec<u8> {
        self.out
    }

    /// Writes an object; `fields` writes its members.
    pub fn object(&mut self, fields: impl FnOnce(&mut Self)) {
        self.open(b'{');
        fields(self);
        self.close(b'}');
    }

    /// Writes an array; `each` writes one element per item.
    pub fn array<T>(&mut self, items: impl IntoIterator<Item = T>, mut each: impl FnMut(&mut Self, T)) {
        self.open(b'[');
        for item in items {
            each(self, item);
        }
        self.close(b']');
    }

    /// Writes a member name; the caller must write the value next.
    pub fn key(&mut self, name: &str) -> &mut Self {
        self.string(name);
        self.out.push(b':');
        self.comma = false;
        self
    }

    /// Writes a string value.
    pub fn string(&mut self, text: &str) {
        self.separate();
        if lex::is_plain(text.as_bytes()) {
            self.out.reserve(text.len() + "\"\":".len());
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

    /// A string field, omitted if absent.
    pub fn maybe_text(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(name, value);
        }
    }

    /// A raw JSON field, omitted if absent.
    pub fn maybe_json(&mut self, name: &str, value: Option<&Json>) {
        if let Some(value) = value {
            self.key(name).raw(value.as_str());
        }
    }

    /// A boolean field, omitted if absent.
    pub fn maybe_flag(&mut self, name: &str, value: Option<bool>) {
        if let Some(value) = value {
            self.key(name).boolean(value);
        }
    }

    /// A boolean field, omitted if false.
    pub fn flag_if_set(&mut self, name: &str, value: bool) {
        self.maybe_flag(name, value.then_some(true));
    }

    /// A list of strings.
    pub fn texts<S: AsRef<str>>(&mut self, name: &str, values: &[S]) {
        self.key(name).array(values, |writer, value| writer.string(value.as_ref()));
    }

    /// A list of strings, omitted if empty.
    pub fn texts_unless_empty<S: AsRef<str>>(&mut self, name: &str, values: &[S]) {
        if !values.is_empty() {
            self.texts(name, values);
        }
    }

    /// Opens an object or an array, for callers that cannot write the content in a closure.
    pub(crate) fn open(&mut self, bracket: u8) {
        self.separate();
        self.out.push(bracket);
        self.comma = false;
    }

    /// Closes an object or an array.
    pub(crate) fn close(&mut self, bracket: u8) {
        self.out.push(bracket);
        self.comma = true;
    }

    /// Writes the comma between two values.
    fn separate(&mut self) {
        if self.comma {
            self.out.push(b',');
        }
        self.comma = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_separate_values() {
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
