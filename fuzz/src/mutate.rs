//! Generates inputs: first the corpus unchanged, then corpus entries edited, spliced and mixed with dictionary
//! tokens.
//!
//! An input depends only on the corpus, the dictionary, the seed and its own number; so a run can be repeated, and
//! its work distributed among threads in any way. Edits work at three levels. Byte edits produce input that no
//! grammar would. Token edits move identifiers, quoted strings and punctuation as a whole. Value edits find where a
//! bracketed value ends and keep JSON well-formed, so that many inputs get past the first parser.

use std::ops::Range;

use fastrand::Rng;

/// Edited inputs stay below this length in bytes; longer corpus entries are only used unchanged.
const MAX_LENGTH: usize = 16 * 1024;

/// Values that have broken decoders before.
#[rustfmt::skip]
const VALUES: &[&str] = &[
    "null", "true", "false", "0", "-0", "-1", "1.0", "5e0", "1e400", "-1e-400", "2147483647", "2147483648", "-2147483649",
    "9007199254740993", "18446744073709551616", "\"\"", "\"0\"", "\"-1\"", "\"1e3\"", "\"null\"", "\"\\ud800\"", "\"\\u0000\"",
    "\"\\ud83d\\ude00\"", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "[]", "{}", "[null]", "{\"\":{}}", "{\"a\":1,\"a\":2}", "[[],{}]",
];

/// Turns a number into an input.
pub struct Mutator {
    corpus: Vec<Vec<u8>>,
    /// Indexes of the corpus entries short enough to be edited.
    editable: Vec<usize>,
    dictionary: &'static [&'static str],
    seed: u64,
}

impl Mutator {
    /// Creates a mutator over a corpus.
    pub fn new(corpus: Vec<Vec<u8>>, dictionary: &'static [&'static str], seed: u64) -> Self {
        let editable = (0..corpus.len()).filter(|at| corpus[*at].len() <= MAX_LENGTH / 2).collect();
        Self { corpus, editable, dictionary, seed }
    }

    /// The input with this number. The first ones are the corpus itself.
    pub fn input(&self, number: u64) -> Vec<u8> {
        if let Some(entry) = usize::try_from(number).ok().and_then(|at| self.corpus.get(at)) {
            return entry.clone();
        }
        let mut rng = Rng::with_seed(mix(self.seed ^ mix(number)));
        // Of two entries the longer one: it has more positions where a single edit leaves the rest intact.
        let (one, other) = (self.entry(&mut rng), self.entry(&mut rng));
        let mut input = if one.len() > other.len() { one.to_vec() } else { other.to_vec() };
        let edits = if rng.bool() { &EDITS[..VALUE_EDITS] } else { &EDITS[..] };
        // One edit half of the time, two a quarter of the time, and so on.
        for _ in 0..=rng.u32(..).trailing_ones().min(8) {
            let edit = edits[rng.usize(..edits.len())];
            edit(self, &mut rng, &mut input);
            input.truncate(MAX_LENGTH);
        }
        input
    }

    fn entry(&self, rng: &mut Rng) -> &[u8] {
        rng.choice(&self.editable).map_or(&[], |at| &self.corpus[*at])
    }

    fn token(&self, rng: &mut Rng) -> &'static str {
        let tokens = if rng.u8(..4) == 0 { VALUES } else { self.dictionary };
        rng.choice(tokens).unwrap_or(&"")
    }
}

/// Distributes consecutive numbers over the whole range (the finalizer of SplitMix64).
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

type Edit = fn(&Mutator, &mut Rng, &mut Vec<u8>);

const EDITS: [Edit; 17] = [
    rename,
    replace_value,
    borrow_value,
    wrap_value,
    repeat_value,
    remove_value,
    replace_token,
    remove_token,
    swap_tokens,
    insert_token,
    splice,
    flip_bit,
    set_byte,
    insert_bytes,
    remove_bytes,
    repeat_bytes,
    truncate,
];
/// The first of the edits, so many, keep JSON well-formed. Half of the inputs use only these.
const VALUE_EDITS: usize = 6;

#[expect(clippy::ptr_arg, reason = "all edits have one signature, and some change the length")]
fn flip_bit(_: &Mutator, rng: &mut Rng, input: &mut Vec<u8>) {
    if let Some(at) = position(rng, input.len()) {
        input[at] ^= 1 << rng.u8(..8);
    }
}

#[expect(clippy::ptr_arg, reason = "all edits have one signature, and some change the length")]
fn set_byte(_: &Mutator, rng: &mut Rng, input: &mut Vec<u8>) {
    if let Some(at) = position(rng, input.len()) {
        input[at] = rng.u8(..);
    }
}

fn insert_bytes(_: &Mutator, rng: &mut Rng, input: &mut Vec<u8>) {
    let bytes: Vec<u8> = (0..rng.usize(1..=4)).map(|_| rng.u8(..)).collect();
    insert(input, rng.usize(..=input.len()), &bytes);
}

fn remove_bytes(_: &Mutator, rng: &mut Rng, input: &mut Vec<u8>) {
    input.drain(span(rng, input.len()));
}

fn repeat_bytes(_: &Mutator, rng: &mut Rng, input: &mut Vec<u8>) {
    let span = span(rng, input.len());
    let copies = input[span.clone()].repeat(rng.usize(1..=8));
    insert(input, span.end, &copies);
}

fn truncate(_: &Mutator, rng: &mut Rng, input: &mut Vec<u8>) {
    input.truncate(rng.usize(..=input.len()));
}

/// Joins the head of this input and the tail of another.
fn splice(mutator: &Mutator, rng: &mut Rng, input: &mut Vec<u8>) {
    let other = mutator.entry(rng);
    input.truncate(rng.usize(..=input.len()));
    input.extend_from_slice(&other[rng.usize(..=other.len())..]);
}

fn insert_token(mutator: &Mutator, rng: &mut Rng, input: &mut Vec<u8>) {
    let token = mutator.token(rng);
    insert(input, rng.usize(..=input.len()), token.as_bytes());
}

fn replace_token(mutator: &Mutator, rng: &mut Rng, input: &mut Vec<u8>) {
    if let Some(old) = rng.choice(tokens(input)) {
        let new = mutator.token(rng);
        let quoted = input[old.start] == b'"' && !new.starts_with('"');
        let new = if quoted { format!("\"{new}\"") } else { new.to_owned() };
        input.splice(old, new.into_bytes());
    }
}

fn remove_token(_: &Mutator, rng: &mut Rng, input: &mut Vec<u8>) {
    if let Some(token) = rng.choice(tokens(input)) {
        input.drain(token);
    }
}

fn swap_tokens(_: &Mutator, rng: &mut Rng, input: &mut Vec<u8>) {
    let tokens = tokens(input);
    if let (Some(one), Some(other)) = (rng.choice(&tokens), rng.choice(&tokens))
        && one.end <= other.start
    {
        let (first, second) = (input[one.clone()].to_vec(), input[other.clone()].to_vec());
        input.splice(other.clone(), first);
        input.splice(one.clone(), second);
    }
}

/// Renames a member of an object to a name from the dictionary.
fn rename(mutator: &Mutator, rng: &mut Rng, input: &mut Vec<u8>) {
    let tokens = tokens(input);
    let names = (0..tokens.len()).filter(|at| is_name(input, &tokens, *at));
    if let (Some(at), Some(token)) = (rng.choice(names.collect::<Vec<_>>()), rng.choice(mutator.dictionary)) {
        input.splice(tokens[at].clone(), format!("\"{token}\"").into_bytes());
    }
}

fn replace_value(_: &Mutator, rng: &mut Rng, input: &mut Vec<u8>) {
    if let (Some(value), Some(new)) = (rng.choice(values(input)), rng.choice(VALUES)) {
        input.splice(value, new.bytes());
    }
}

/// Replaces a value by one of another input, of the same type if possible.
fn borrow_value(mutator: &Mutator, rng: &mut Rng, input: &mut Vec<u8>) {
    let other = mutator.entry(rng);
    let Some(value) = rng.choice(values(input)) else { return };
    let (alike, different): (Vec<_>, Vec<_>) =
        values(other).into_iter().partition(|new| kind(other[new.start]) == kind(input[value.start]));
    if let Some(new) = rng.choice(alike).or_else(|| rng.choice(different)) {
        input.splice(value, other[new].iter().copied());
    }
}

fn wrap_value(_: &Mutator, rng: &mut Rng, input: &mut Vec<u8>) {
    let depth = [1, 1, 2, 28, 29, 30, 31, 64, 65, 129, 2_000][rng.usize(..11)];
    let (open, close) = if rng.bool() { ("[", "]") } else { ("{\"a\":", "}") };
    if let Some(value) = rng.choice(values(input)) {
        insert(input, value.end, close.repeat(depth).as_bytes());
        insert(input, value.start, open.repeat(depth).as_bytes());
    }
}

/// Repeats a value, or a member with its name, once or more.
fn repeat_value(_: &Mutator, rng: &mut Rng, input: &mut Vec<u8>) {
    if let Some(member) = rng.choice(members(input)) {
        let copies = [b",", &input[member.clone()]].concat().repeat(rng.usize(1..=3));
        insert(input, member.end, &copies);
    }
}

/// Removes a value, or a member with its name, and the adjacent comma.
fn remove_value(_: &Mutator, rng: &mut Rng, input: &mut Vec<u8>) {
    if let Some(mut member) = rng.choice(members(input)) {
        if input.get(member.end) == Some(&b',') {
            member.end += 1;
        } else if member.start > 0 && input[member.start - 1] == b',' {
            member.start -= 1;
        }
        input.drain(member);
    }
}

fn position(rng: &mut Rng, length: usize) -> Option<usize> {
    (length > 0).then(|| rng.usize(..length))
}

/// A range of bytes, usually a short one.
fn span(rng: &mut Rng, length: usize) -> Range<usize> {
    let start = rng.usize(..=length);
    let longest = if rng.u8(..4) == 0 { length } else { 8 };
    start..start + rng.usize(..=longest.min(length - start))
}

fn insert(input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    input.splice(at..at, bytes.iter().copied());
}

/// Ranges of quoted strings, identifiers or numbers, and single punctuation characters, without white space.
fn tokens(text: &[u8]) -> Vec<Range<usize>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let length = match text[at] {
            b'"' => quoted_length(&text[at..]),
            byte if is_word_byte(byte) => text[at..].iter().take_while(|byte| is_word_byte(**byte)).count(),
            _ => 1,
        };
        if !text[at].is_ascii_whitespace() {
            tokens.push(at..at + length);
        }
        at += length;
    }
    tokens
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'.') || byte >= 0x80
}

fn quoted_length(text: &[u8]) -> usize {
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

fn is_name(text: &[u8], tokens: &[Range<usize>], at: usize) -> bool {
    tokens.get(at + 1).is_some_and(|next| text[next.start] == b':')
}

/// The JSON type of a value that begins with this byte.
fn kind(first: u8) -> u8 {
    match first {
        b'-' | b'0'..=b'9' => b'0',
        b't' | b'f' => b't',
        other => other,
    }
}

/// Ranges of values, brackets included.
fn values(text: &[u8]) -> Vec<Range<usize>> {
    let tokens = tokens(text);
    let starts = |at: &usize| {
        !matches!(text[tokens[*at].start], b',' | b':' | b'}' | b']') && !is_name(text, &tokens, *at)
    };
    let ends = ends(text, &tokens);
    (0..tokens.len()).filter(starts).map(|at| tokens[at].start..ends[at]).collect()
}

/// Ranges of values that have siblings: array elements alone, members of objects together with their names.
fn members(text: &[u8]) -> Vec<Range<usize>> {
    let tokens = tokens(text);
    let ends = ends(text, &tokens);
    let mut members = Vec::new();
    for at in 1..tokens.len() {
        let follows_opening = matches!(text[tokens[at - 1].start], b',' | b'{' | b'[');
        if follows_opening && !matches!(text[tokens[at].start], b',' | b'}' | b']') {
            let value = if is_name(text, &tokens, at) { at + 2 } else { at };
            members.extend(ends.get(value).map(|end| tokens[at].start..*end));
        }
    }
    members
}

/// For each token, where the value that begins with it ends: after its closing bracket, or after the token itself.
fn ends(text: &[u8], tokens: &[Range<usize>]) -> Vec<usize> {
    let mut ends: Vec<usize> = tokens.iter().map(|token| token.end).collect();
    let mut open = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match text[token.start] {
            b'{' | b'[' => {
                ends[at] = text.len();
                open.push(at);
            }
            b'}' | b']' => {
                if let Some(opened) = open.pop() {
                    ends[opened] = token.end;
                }
            }
            _ => {}
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutator(seed: u64) -> Mutator {
        let corpus = [r#"{"a":[1,{"b":"c d"}], "e":null}"#, "", "plain words, no JSON", "\"open"];
        Mutator::new(corpus.map(Vec::from).into(), &["word", "other"], seed)
    }

    #[test]
    fn input_depends_only_on_seed_and_number() {
        let (mutator, twin, other_seed) = (mutator(1), mutator(1), mutator(2));
        let backwards: Vec<_> = (0..500).rev().map(|number| twin.input(number)).collect();
        let forwards: Vec<_> = (0..500).map(|number| mutator.input(number)).collect();
        assert!(forwards.iter().eq(backwards.iter().rev()));
        let differing = (0..500).filter(|number| other_seed.input(*number) != mutator.input(*number)).count();
        assert!(differing > 300, "{differing}");
    }

    #[test]
    fn corpus_is_first_and_unchanged() {
        let mutator = mutator(1);
        assert_eq!(mutator.input(2), b"plain words, no JSON");
        assert_eq!(mutator.input(3), b"\"open");
    }

    #[test]
    fn values_and_members_end_where_their_brackets_close() {
        let text = br#"{"a":[1,{"b":"c d"}], "e":null}"#;
        let show = |ranges: Vec<Range<usize>>| {
            let pieces: Vec<_> =
                ranges.into_iter().map(|range| String::from_utf8_lossy(&text[range])).collect();
            pieces.join(" | ")
        };
        assert_eq!(
            show(values(text)),
            r#"{"a":[1,{"b":"c d"}], "e":null} | [1,{"b":"c d"}] | 1 | {"b":"c d"} | "c d" | null"#
        );
        assert_eq!(show(members(text)), r#""a":[1,{"b":"c d"}] | 1 | {"b":"c d"} | "b":"c d" | "e":null"#);
    }

    #[test]
    fn every_edit_accepts_every_input() {
        let mutator = mutator(1);
        let mut rng = Rng::with_seed(1);
        for start in ["", "\"", "{", "]", "\\", "\"\\", "{\"a\":", "a,b", "[[[", "é{\"é\":\"é"] {
            for edit in EDITS {
                for _ in 0..50 {
                    edit(&mutator, &mut rng, &mut start.into());
                }
            }
        }
    }
}
