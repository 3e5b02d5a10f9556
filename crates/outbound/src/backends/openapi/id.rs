//! Skill ids of operations: the `operationId`, else method and path. What cannot be in an id ([`name`]) is replaced.

use std::collections::HashSet;

use crate::skill::name::{self, MAX_LENGTH};

/// The id that an operation has if it is the only one with that id.
pub(super) fn natural(operation_id: Option<&str>, method: &str, path: &str) -> String {
    let id: String = match operation_id.filter(|id| !id.trim().is_empty()) {
        Some(id) => id.trim().chars().map(printable).take(MAX_LENGTH).collect(),
        None => {
            let pieces =
                path.split(|sign: char| !sign.is_ascii_alphanumeric()).filter(|piece| !piece.is_empty());
            let words: Vec<_> =
                [method.to_ascii_lowercase().as_str()].into_iter().chain(pieces).map(str::to_owned).collect();
            words.join("_").chars().take(MAX_LENGTH).collect()
        }
    };
    // Ids are segments of paths.
    if id.chars().all(|sign| sign == '.') { "_".repeat(id.len()) } else { id }
}

fn printable(sign: char) -> char {
    if name::is_visible(sign) && !sign.is_whitespace() { sign } else { '_' }
}

/// Makes ids unique: of equal ones all but the first get a number, in the given order.
pub(super) fn unique(natural: &[String]) -> Vec<String> {
    let mut used: HashSet<&str> = HashSet::new();
    let is_first: Vec<bool> = natural.iter().map(|id| used.insert(id)).collect();
    let mut numbered: HashSet<String> = HashSet::new();
    let number = |(id, is_first): (&String, bool)| {
        if is_first {
            return id.clone();
        }
        let candidates = (2..).map(|number| {
            let suffix = format!("_{number}");
            let kept: String = id.chars().take(MAX_LENGTH - suffix.len()).collect();
            format!("{kept}{suffix}")
        });
        let free = |id: &String| !used.contains(id.as_str()) && !numbered.contains(id);
        let id = candidates.into_iter().find(free).expect("there are more numbers than operations");
        numbered.insert(id.clone());
        id
    };
    natural.iter().zip(is_first).map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_is_the_operation_id_as_far_as_it_is_printable() {
        let long = "x".repeat(200);
        for (operation_id, expected) in [
            (Some("repos/get"), "repos/get"),
            (Some("get pet"), "get_pet"),
            (Some("größe"), "größe"),
            (Some("get\u{202e}tep\u{0}"), "get_tep_"),
            (Some(".."), "__"),
            (Some(" "), "get_pets_petId"),
            (None, "get_pets_petId"),
            (Some(long.as_str()), &long[..128]),
        ] {
            assert_eq!(natural(operation_id, "GET", "/pets/{petId}"), expected);
            assert_eq!(name::problem(expected), None);
        }
    }

    #[test]
    fn equal_ids_get_numbers() {
        let long = "ö".repeat(128);
        let ids = ["a", "a", "a_2", "a", &long, &long].map(str::to_owned);
        let longer = format!("{}_2", "ö".repeat(126));
        assert_eq!(unique(&ids), ["a", "a_3", "a_2", "a_4", &long, &longer]);
    }
}
