//! Spelling suggestions for unknown names.

/// Number of characters of an unknown name that are compared: no known name is longer.
const LONGEST: usize = 64;

/// The most similar known name, ignoring case; `None` if none is similar enough.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = |text: &str| text.chars().take(LONGEST).collect::<String>().to_lowercase();
    let name = lower(name);
    let distances = known.into_iter().map(|known| (strsim::osa_distance(&name, &lower(known)), known));
    // Longer names tolerate more typing errors.
    let near = distances.filter(|(distance, known)| *distance <= 1 + known.len() / 5);
    near.min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_typing_errors_are_recognised() {
        let known = ["listen", "public_url", "SendMessage"];
        for (name, expected) in [
            ("listen", Some("listen")),
            ("lissten", Some("listen")),
            ("lsiten", Some("listen")),
            ("liste", Some("listen")),
            ("Listen", Some("listen")),
            ("sendmesage", Some("SendMessage")),
            ("colour", None),
            ("", None),
            (&"listen".repeat(100_000), None),
        ] {
            assert_eq!(nearest(name, known), expected, "{}", &name[..name.len().min(20)]);
        }
    }
}
