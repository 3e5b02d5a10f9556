//! F-cursor: cursors that callers send back: page tokens, `Last-Event-ID`, and the ids of server-sent events.
//!
//! Each input is used in three ways: as a token or header by itself, as a list position that a token is made of, and
//! as changes to that token. A token is accepted only exactly as it was issued: one that could be written in two
//! ways, or that is accepted for another query, would defeat its authentication.

use engine::{
    Scope,
    cursor::{PageTokens, last_event_id},
    ids::TaskNo,
    store::ListPosition,
};
use protocol::{ListTasks, TaskState, Timestamp};

use crate::Target;

pub(crate) const TARGET: Target = Target {
    id: "F-cursor",
    name: "page tokens and event ids: only issued tokens are accepted",
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
    if let Some(position) = tokens.open(&text) {
        assert_eq!(tokens.token(position), text, "a token has exactly one accepted form");
    }
    check_event_id(&text);

    let (position, rest) = split_position(input);
    let token = tokens.token(position);
    assert_eq!(tokens.open(&token), Some(position));
    let damaged = damage(&token, rest);
    assert_eq!(tokens.open(&damaged), (damaged == token).then_some(position), "{damaged}");
    has_one_accepted_form(&tokens, &token);
    accepted_for_its_query_only(&token, &text);
}

/// The last character of a token has two unused bits, which a lenient decoder would ignore.
fn has_one_accepted_form(tokens: &PageTokens, token: &str) {
    let (start, last) = token.split_at(token.len() - 1);
    for step in 1..=3 {
        let neighbour: String = last.bytes().map(|last| char::from(last + step)).collect();
        assert_eq!(tokens.open(&format!("{start}{neighbour}")), None);
    }
    for padded in [format!("{token}="), format!("{token}\n"), format!(" {token}")] {
        assert_eq!(tokens.open(&padded), None, "{padded:?}");
    }
}

/// Whatever is parsed as a number is that number in digits; what a stream writes as its `id:` is parsed back.
fn check_event_id(text: &str) {
    if let Some(number) = last_event_id(text) {
        let digits = text.trim();
        assert_eq!(digits.trim_start_matches('0'), number.to_string().trim_start_matches('0'));
        assert!(!digits.is_empty());
        assert_eq!(last_event_id(&number.to_string()), Some(number));
    }
}

/// The same token is rejected from another caller, for another agent, or with any other filter.
fn accepted_for_its_query_only(token: &str, text: &str) {
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
    let other_agent = Scope::anonymous("default", &format!("echo{text}."));
    assert_eq!(PageTokens::new(KEY, &other_agent, &ListTasks::default()).open(token), None);
    // Page size and included fields are not part of the query.
    let shown = ListTasks { page_size: Some(1), include_artifacts: true, ..ListTasks::default() };
    assert!(tokens(&shown).open(token).is_some());
}

fn tokens(filter: &ListTasks) -> PageTokens {
    PageTokens::new(KEY, &Scope::anonymous("default", "echo"), filter)
}

/// The first sixteen bytes as a list position, padded with zeros, and the rest.
fn split_position(input: &[u8]) -> (ListPosition, &[u8]) {
    let (head, rest) = input.split_at(input.len().min(16));
    let mut bytes = [0; 16];
    bytes[..head.len()].copy_from_slice(head);
    let number = u128::from_be_bytes(bytes);
    let half = |half: u128| i64::from_be_bytes((half as u64).to_be_bytes());
    let position =
        ListPosition { status_at: Timestamp::from_millis(half(number >> 64)), no: TaskNo(half(number)) };
    (position, rest)
}

/// Changes the token by two bytes per change: position, and new character.
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

/// Valid tokens, valid headers, and near misses of both.
fn corpus() -> Vec<Vec<u8>> {
    let position = |at, no| ListPosition { status_at: Timestamp::from_millis(at), no: TaskNo(no) };
    let positions = [
        position(0, 0),
        position(1_790_000_000_000, 42),
        position(i64::MAX, i64::MAX),
        position(i64::MIN, -1),
    ];
    let tokens = tokens(&ListTasks::default());
    let mut corpus: Vec<Vec<u8>> =
        positions.iter().map(|position| tokens.token(*position).into_bytes()).collect();
    for position in positions {
        let sixteen = [position.status_at.as_millis().to_be_bytes(), position.no.0.to_be_bytes()].concat();
        corpus.push([sixteen.as_slice(), &[42, b'A', 7, 0]].concat());
        corpus.push(sixteen);
    }
    #[rustfmt::skip]
    let ids = [
        "", "0", "1", " 12 ", "007", "-1", "+1", "1.5", "0x10", "18446744073709551615", "18446744073709551616",
    ];
    corpus.extend(ids.map(|id| id.as_bytes().to_vec()));
    corpus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corpus_passes_and_four_tokens_are_accepted() {
        let tokens = tokens(&ListTasks::default());
        let opens = |input: &&Vec<u8>| tokens.open(&String::from_utf8_lossy(input)).is_some();
        assert_eq!(corpus().iter().filter(opens).count(), 4);
        corpus().iter().for_each(|input| run(input));
    }

    #[test]
    fn damage_applies_each_change() {
        assert_eq!(damage("abc", &[]), "abc");
        assert_eq!(damage("abc", &[1, b'x']), "axc");
        assert_eq!(damage("abc", &[1, b'x' | 0x80]), "axbc");
        assert_eq!(damage("abc", &[1, 0]), "ac");
    }
}
