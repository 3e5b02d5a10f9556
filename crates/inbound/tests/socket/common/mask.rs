//! Replaces random values by placeholders, so that the rest of a response can be compared.

/// Replaces random ids by `TASK`, `CTX` and `UUID`.
pub(crate) fn mask(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (name, length) = random(rest).unwrap_or(("", 0));
        let taken = if length == 0 { first.len_utf8() } else { length };
        out.push_str(if length == 0 { &rest[..taken] } else { name });
        rest = &rest[taken..];
    }
    out
}

/// The placeholder of the random id that a text begins with, and the id's length.
fn random(text: &str) -> Option<(&'static str, usize)> {
    let alphanumeric = |from: usize, length: usize| {
        let bytes = text.as_bytes().get(from..from + length)?;
        bytes.iter().all(u8::is_ascii_alphanumeric).then_some(())
    };
    if text.starts_with("task_") {
        return alphanumeric(5, 29).map(|()| ("TASK", 34));
    }
    if text.starts_with("ctx_") {
        return alphanumeric(4, 29).map(|()| ("CTX", 33));
    }
    let dashes = [8, 13, 18, 23].iter().all(|at| text.as_bytes().get(*at) == Some(&b'-'));
    if dashes {
        let groups = [(0, 8), (9, 4), (14, 4), (19, 4), (24, 12)];
        return groups
            .iter()
            .try_for_each(|(from, length)| alphanumeric(*from, *length))
            .map(|()| ("UUID", 36));
    }
    None
}
