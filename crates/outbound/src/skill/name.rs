//! Which names that a server or a document gives can be ids of skills. Pure.
//!
//! Ids are shown on cards, in logs and in terminals, and are segments of paths. Characters that cannot be seen, or that
//! change the order in which others are shown, make one id look like another.

/// Maximum length of an id, in characters.
pub(crate) const MAX_LENGTH: usize = 128;

/// Why a name cannot be an id.
pub(crate) fn problem(name: &str) -> Option<&'static str> {
    if name.trim().is_empty() {
        return Some("its name is empty");
    }
    if name.chars().count() > MAX_LENGTH {
        return Some("its name has more than 128 characters");
    }
    let hidden = name.contains(|sign| !is_visible(sign));
    hidden.then_some("its name has control characters, or characters that change the direction of text")
}

/// Whether a character is neither a control character nor one that changes the direction of text (the property
/// `Bidi_Control` of Unicode).
pub(crate) fn is_visible(sign: char) -> bool {
    let is_bidi = matches!(
        sign,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    !sign.is_control() && !is_bidi
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_that_cannot_be_shown_is_no_id() {
        let longest = "ö".repeat(MAX_LENGTH);
        for name in ["a", "get pet", "größe", "名前", "repos/get", &longest] {
            assert_eq!(problem(name), None, "{name:?}");
        }
        let long = longest + "ö";
        let hidden =
            ["a\nb", "a\u{0}", "a\u{7f}", "a\u{85}", "\u{202e}a", "a\u{2066}b", "a\u{200f}", "\u{61c}a"];
        for name in ["", " ", &long].into_iter().chain(hidden) {
            assert!(problem(name).is_some(), "{name:?}");
        }
    }
}
