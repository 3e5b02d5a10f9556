//! A private key as a PEM document (RFC 7468). Pure.

use base64::{Engine as _, engine::general_purpose::STANDARD};

const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";
/// Characters of a line.
const LINE: usize = 64;

/// Writes a key in PKCS #8, without a line break at the end.
pub(super) fn encode(key: &[u8]) -> String {
    let text = STANDARD.encode(key);
    let mut document = format!("{BEGIN}\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE));
        document.push_str(line);
        document.push('\n');
        rest = after;
    }
    document + END
}

/// Reads a document with one key.
pub(super) fn decode(document: &str) -> Option<Vec<u8>> {
    let text = document.trim().strip_prefix(BEGIN)?.strip_suffix(END)?;
    let text: String = text.split_ascii_whitespace().collect();
    STANDARD.decode(text).ok()
}
