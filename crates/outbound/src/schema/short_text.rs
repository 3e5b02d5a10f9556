//! The text of an error, which may contain a large value. What is too long is not written at all.

use std::fmt::{self, Display, Write};

const MAX: usize = 500;

struct ShortText(String);

/// The beginning of a text.
pub(super) fn short_text(value: impl Display) -> String {
    let mut short = ShortText(String::new());
    let ShortText(mut text) = match write!(short, "{value}") {
        Ok(()) => return short.0,
        Err(fmt::Error) => short,
    };
    text.push('…');
    text
}

impl Write for ShortText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let free = MAX - self.0.len();
        if text.len() <= free {
            self.0.push_str(text);
            return Ok(());
        }
        self.0.push_str(&text[..text.floor_char_boundary(free)]);
        Err(fmt::Error)
    }
}
