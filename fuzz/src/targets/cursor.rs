//! F-cursor: places that callers bring back: page tokens, `Last-Event-ID`, and the ids of server-sent events.
//!
//! Each input is read three ways: as a token or header by itself, as a place that a token is made of, and as
//! damage to that token. What opens is what was made, byte for byte: a token that could be written in two ways, or
//! that opens for another question, would be a hole in the seal.

use engine::{
    Scope,
    cursor::{PageTokens, last_event_id},
    ids::TaskNo,
    store::Place,
};
use protocol::{ListTasks, TaskState, Timestamp};

use crate::Target;

pub(crate) const TARGET: Target = Target {
    id: "F-cursor",
    name: "page tokens and event ids: what opens is what was made",
    run,
    corpus,
    dictionary: DICTIONARY,
    inputs: 200_000,
};

const DICTIONARY: &[&str] =
    &["A", "_", "-", "=", "==", "+", "/", "0", "18446744073709551615", "9", " ", "\u{a0}"];

const KEY: [u8; 32] = [7; 32];

fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let tokens = tokens(&ListTasks::default());
    if let Some(place) = tokens.open(&text) {
        assert_eq!(tokens.token(place), text, "a token opens in the one form it was made in");
    }
    read_as_event_id(&text);

    let (place, rest) = read_place(input);
    let token = tokens.token(place);
    assert_eq!(tokens.open(&token), Some(place));
    let damaged = damage(&token, rest);
    assert_eq!(tokens.open(&damaged), (damaged == token).then_some(place), "{damaged}");
    is_written_in_one_way(&tokens, &token);
    opens_for_its_question_only(&token, &text);
}

/// The last character of a token has two spare bits, which a lenient decoder would let pass.
fn is_written_in_one_way(tokens: &PageTokens, token: &str) {
    let (start, last) = token.split_at(token.len() - 1);
    for step in 1..=3 {
        let neighbour: String = last.bytes().map(|last| char::from(last + step)).collect();
        assert_eq!(tokens.open(&format!("{start}{neighbour}")), None);
    }
    for padded in [format!("{token}="), format!("{token}\n"), format!(" {token}")] {
        assert_eq!(tokens.open(&padded), None, "{padded:?}");
    }
}

/// Whatever is read as a number is that number in digits; what a stream writes as its `id:` is read back.
fn read_as_event_id(text: &str) {
    if let Some(number) = last_event_id(text) {
        let digits = text.trim();
        assert_eq!(digits.trim_start_matches('0'), number.to_string().trim_start_matches('0'));
        assert!(!digits.is_empty());
        assert_eq!(last_event_id(&number.to_string()), Some(number));
    }
}

/// The same token brought by another caller, to another agent, or with any other filter is none.
fn opens_for_its_question_only(token: &str, text: &str) {
    let mut filters = vec![
        ListTasks { status: Some(TaskState::Working), ..ListTasks::default() },
        ListTasks { status_timestamp_after: Some(Timestamp::from_millis(0)), ..ListTasks::default() },
    ];
    if !text.is_empty() {
        filters.push(ListTasks { context_id: Some(text.into()), ..ListTasks::default() });
    }
    for filter in &filters {
        assert_eq!(tokens(filter).open(token), None, "{filter:?}");
    }
    let elsewhere = Scope::anonymous("default", &format!("echo{text}."));
    assert_eq!(PageTokens::new(KEY, &elsewhere, &ListTasks::default()).open(token), None);
    // How much is shown of each task and how many are on a page is no part of the question.
    let shown = ListTasks { page_size: Some(1), include_artifacts: true, ..ListTasks::default() };
    assert!(tokens(&shown).open(token).is_some());
}

fn tokens(filter: &ListTasks) -> PageTokens {
    PageTokens::new(KEY, &Scope::anonymous("default", "echo"), filter)
}

/// The first sixteen bytes as a place, zeros where there are none, and the rest.
fn read_place(input: &[u8]) -> (Place, &[u8]) {
    let (head, rest) = input.split_at(input.len().min(16));
    let mut bytes = [0; 16];
    bytes[..head.len()].copy_from_slice(head);
    let number = u128::from_be_bytes(bytes);
    let half = |half: u128| i64::from_be_bytes((half as u64).to_be_bytes());
    let place = Place { status_at: Timestamp::from_millis(half(number >> 64)), no: TaskNo(half(number)) };
    (place, rest)
}

/// Changes the token as the bytes say, two a change: where, and to which character.
fn damage(token: &str, changes: &[u8]) -> String {
    let mut characters: Vec<char> = token.chars().collect();
    for change in changes.chunks_exact(2).take(8) {
        let at = usize::from(change[0]) % (characters.len() + 1);
        match char::from(change[1] & 0x7f) {
            '\0' if at < characters.len() => drop(characters.remove(at)),
            character if change[1] & 0x80 != 0 => characters.insert(at, character),
            character if at < characters.len() => characters[at] = character,
            _ => {}
        }
    }
    characters.into_iter().collect()
}

/// Tokens that open, headers that are read, and neighbours of both.
fn corpus() -> Vec<Vec<u8>> {
    let place = |at, no| Place { status_at: Timestamp::from_millis(at), no: TaskNo(no) };
    let places = [place(0, 0), place(1_790_000_000_000, 42), place(i64::MAX, i64::MAX), place(i64::MIN, -1)];
    let tokens = tokens(&ListTasks::default());
    let mut corpus: Vec<Vec<u8>> = places.iter().map(|place| tokens.token(*place).into_bytes()).collect();
    for place in places {
        let sixteen = [place.status_at.as_millis().to_be_bytes(), place.no.0.to_be_bytes()].concat();
        corpus.push([sixteen.as_slice(), &[42, b'A', 7, 0]].concat());
        corpus.push(sixteen);
    }
    let ids = [
        "",
        "0",
        "1",
        " 12 ",
        "007",
        "-1",
        "+1",
        "1.5",
        "0x10",
        "18446744073709551615",
        "18446744073709551616",
    ];
    corpus.extend(ids.map(|id| id.as_bytes().to_vec()));
    corpus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_holds_and_some_of_it_opens() {
        let tokens = tokens(&ListTasks::default());
        let opens = |input: &&Vec<u8>| tokens.open(&String::from_utf8_lossy(input)).is_some();
        assert_eq!(corpus().iter().filter(opens).count(), 4);
        corpus().iter().for_each(|input| run(input));
    }

    #[test]
    fn damage_changes_what_it_says() {
        assert_eq!(damage("abc", &[]), "abc");
        assert_eq!(damage("abc", &[1, b'x']), "axc");
        assert_eq!(damage("abc", &[1, b'x' | 0x80]), "axbc");
        assert_eq!(damage("abc", &[1, 0]), "ac");
    }
}
