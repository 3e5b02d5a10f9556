//! Suggestions for unknown names.

/// The nearest known name, or all of them.
pub(crate) fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match protocol::nearest(name, known.clone()) {
        Some(nearest) => format!("did you mean {nearest}?"),
        None => format!("expected one of {}", known.collect::<Vec<_>>().join(", ")),
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
