//! The syntax error of a text that is not JSON.

use serde_json::value::RawValue;

/// Returns `None` if the text is JSON. serde_json is used because its message names what is missing, while
/// [`Raw::parse_text`](super::Raw::parse_text) reports only the position.
pub fn syntax_error(text: &str) -> Option<String> {
    serde_json::from_str::<&RawValue>(text).err().map(|error| error.to_string())
}
