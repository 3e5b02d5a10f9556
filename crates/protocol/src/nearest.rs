//! Spelling suggestions for unknown names.

/// Number of characters of an unknown name that are compared: no known name is longer.
const LONGEST: usize = 64;
/// The longest list of names in a suggestion; a document may have a thousand operations.
const MAX_LISTED: usize = 20;

/// The most similar known name, ignoring case; `None` if none is similar enough.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    similar(name, known).min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

/// The most similar known names, at most `max`, the most similar first.
pub fn nearest_few<'a>(max: usize, name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found: Vec<_> = similar(name, known).collect();
    found.sort_by_key(|(distance, _)| *distance);
    found.into_iter().take(max).map(|(_, known)| known).collect()
}

/// The nearest known name, or all of them, if they are not too many.
pub fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    if let Some(nearest) = nearest(name, known.clone()) {
        return format!("did you mean {nearest}?");
    }
    let listed = known.clone().take(MAX_LISTED).collect::<Vec<_>>().join(", ");
    match known.count().saturating_sub(MAX_LISTED) {
        0 => format!("expected one of {listed}"),
        more => format!("expected one of {listed} and {more} more"),
    }
}

/// The known names that are similar enough, with their distance.
fn similar<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> impl Iterator<Item = (usize, &'a str)> {
    let lower = |text: &str| text.chars().take(LONGEST).collect::<String>().to_lowercase();
    let name = lower(name);
    known.into_iter().filter_map(move |known| {
        // Longer names tolerate more typing errors.
        let tolerance = 1 + known.len() / 5;
        let other = lower(known);
        // The distance is at least the difference in length, which is known at once.
        if name.chars().count().abs_diff(other.chars().count()) > tolerance {
            return None;
        }
        let distance = strsim::osa_distance(&name, &other);
        (distance <= tolerance).then_some((distance, known))
    })
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
        assert_eq!(nearest_few(2, "tok", ["took", "talk", "tok", "tik"]), ["tok", "took"]);
    }

    #[test]
    fn a_hint_is_the_nearest_name_or_all_names() {
        let known = ["listen", "public_url"];
        assert_eq!(hint("lisen", known.into_iter()), "did you mean listen?");
        assert_eq!(hint("colour", known.into_iter()), "expected one of listen, public_url");
    }
}
