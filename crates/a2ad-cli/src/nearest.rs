//! Suggestions for unknown names.

/// The longest list of names in a suggestion; a document may have a thousand operations.
const MAX_LISTED: usize = 20;

/// The nearest known name, or all of them, if they are not too many.
pub(crate) fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    if let Some(nearest) = protocol::nearest(name, known.clone()) {
        return format!("did you mean {nearest}?");
    }
    let listed = known.clone().take(MAX_LISTED).collect::<Vec<_>>().join(", ");
    match known.count().saturating_sub(MAX_LISTED) {
        0 => format!("expected one of {listed}"),
        more => format!("expected one of {listed} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_the_nearest_name_or_all_names() {
        let known = ["listen", "public_url"];
        assert_eq!(hint("lisen", known.into_iter()), "did you mean listen?");
        assert_eq!(hint("colour", known.into_iter()), "expected one of listen, public_url");
    }
}
