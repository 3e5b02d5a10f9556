//! The nearest of several names to one that was mistyped.

/// A hint for an unknown name: the nearest of the known ones, or all of them.
pub(crate) fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match nearest(name, known.clone()) {
        Some(nearest) => format!("did you mean {nearest}?"),
        None => format!("there are {}", known.collect::<Vec<_>>().join(", ")),
    }
}

/// The known name that differs least, if it differs by a few letters only.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let measured = known.map(|candidate| (distance(name, candidate), candidate));
    let close = measured.filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4);
    close.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// How many letters have to be added, left out, changed or swapped with their neighbour; upper case counts as lower.
fn distance(from: &str, to: &str) -> usize {
    let letters = |text: &str| -> Vec<char> { text.to_lowercase().chars().collect() };
    let (from, to) = (letters(from), letters(to));
    let mut before = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for row in 1..=from.len() {
        let mut this = vec![row];
        for column in 1..=to.len() {
            let same = usize::from(from[row - 1] != to[column - 1]);
            let mut best = (last[column - 1] + same).min(last[column] + 1).min(this[column - 1] + 1);
            if row > 1 && column > 1 && from[row - 1] == to[column - 2] && from[row - 2] == to[column - 1] {
                best = best.min(before[column - 2] + 1);
            }
            this.push(best);
        }
        before = std::mem::replace(&mut last, this);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_single_slips() {
        for (from, to, expected) in [
            ("listen", "listen", 0),
            ("lissten", "listen", 1),
            ("lsiten", "listen", 1),
            ("liste", "listen", 1),
            ("Listen", "listen", 0),
            ("", "abc", 3),
            ("abc", "", 3),
        ] {
            assert_eq!(distance(from, to), expected, "{from} {to}");
        }
    }

    #[test]
    fn a_hint_is_the_nearest_name_or_all_of_them() {
        let known = ["listen", "public_url"];
        assert_eq!(hint("lisen", known.into_iter()), "did you mean listen?");
        assert_eq!(hint("colour", known.into_iter()), "there are listen, public_url");
    }
}
