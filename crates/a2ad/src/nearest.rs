//! What was probably meant by an unknown name.

/// A hint for an unknown name: the nearest known one, or all of them.
pub(crate) fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match protocol::nearest(name, known.clone()) {
        Some(nearest) => format!("did you mean {nearest}?"),
        None => format!("there are {}", known.collect::<Vec<_>>().join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_the_nearest_name_or_all_of_them() {
        let known = ["listen", "public_url"];
        assert_eq!(hint("lisen", known.into_iter()), "did you mean listen?");
        assert_eq!(hint("colour", known.into_iter()), "there are listen, public_url");
    }
}
