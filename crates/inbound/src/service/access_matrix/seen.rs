//! A response in a form that can be compared: status, headers, body and trailers as text, with ids masked.

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use bytes::Bytes;
use http::HeaderMap;
use protocol::grpc::decode_status;

use super::{principals::Principal, world::Owner};

/// What a caller has received.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) status: u16,
    headers: Vec<String>,
    /// Bytes as the characters with their numbers, so that protobuf messages can be searched too.
    pub(super) body: String,
}

impl std::fmt::Debug for Seen {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let body: String = self.body.chars().take(400).collect();
        write!(out, "{} {:?} {body:?}", self.status, self.headers)
    }
}

impl Seen {
    pub(super) fn new(status: u16, headers: &HeaderMap, body: &Bytes, trailers: Option<&HeaderMap>) -> Self {
        let mut lines: Vec<String> =
            headers.iter().chain(trailers.into_iter().flatten()).map(header).collect();
        lines.sort();
        Self { status, headers: lines, body: body.iter().map(|byte| char::from(*byte)).collect() }
    }

    /// The value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// Whether status and headers are those of another response, which may have trailers too.
    pub(super) fn has_head_of(&self, other: &Self) -> bool {
        self.status == other.status && self.headers.iter().all(|line| other.headers.contains(line))
    }

    /// With the id that was asked for, and all ids that the server makes, masked.
    pub(super) fn masked(self, asked: &str) -> Self {
        let mask = |text: &str| mask_made(&text.replace(asked, "<asked>"));
        let headers = self.headers.iter().map(|line| mask(line)).collect();
        Self { headers, body: mask(&self.body), ..self }
    }

    /// This response, followed by another one.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.headers.extend(other.headers);
        Self { body: self.body + &other.body, ..self }
    }

    /// The text of somebody other than this caller, if there is one; of anybody, without a caller.
    pub(super) fn foreign_marker(&self, own: Option<Principal>) -> Option<&'static str> {
        let others = Principal::ALL.into_iter().filter(|principal| Some(*principal) != own);
        let is_shown = |marker: &str| {
            self.body.contains(marker) || self.headers.iter().any(|line| line.contains(marker))
        };
        others.map(Principal::marker).find(|marker| is_shown(marker))
    }

    pub(super) fn has_marker_of(&self, owner: &Owner) -> bool {
        self.body.contains(owner.principal.marker())
    }

    /// The first value of a member of this name in a JSON body.
    pub(super) fn member(&self, name: &str) -> String {
        let start =
            self.body.find(&format!("\"{name}\":\"")).unwrap_or_else(|| panic!("no {name} in {self:?}"));
        let value = &self.body[start + name.len() + 4..];
        value[..value.find('"').unwrap()].to_owned()
    }
}

/// A header as a line; the details of a gRPC status are decoded, because ids in them could not be masked otherwise.
fn header((name, value): (&http::HeaderName, &http::HeaderValue)) -> String {
    let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
    if name == "grpc-status-details-bin" {
        let details = STANDARD_NO_PAD.decode(&text).unwrap();
        return format!("{name}: {:?}", decode_status(&details));
    }
    format!("{name}: {text}")
}

/// An id of the same form that nobody has.
pub(super) fn absent(id: &str) -> String {
    const UUID_LENGTH: usize = 36;
    let (at, letters) = match id.len() {
        UUID_LENGTH => (UUID_LENGTH - 1, ['a', 'b']),
        length @ 20.. => (length - 10, ['x', 'y']),
        // The numbers in names that callers choose are unique.
        _ => (0, ['x', 'y']),
    };
    let letter = if id[at..].starts_with(letters[0]) { letters[1] } else { letters[0] };
    format!("{}{letter}{}", &id[..at], &id[at + 1..])
}

/// Masks ids that the server makes, and those that askers choose for tasks of their own.
fn mask_made(text: &str) -> String {
    let (mut masked, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(first) = rest.chars().next() {
        let length = made_id(rest);
        if length > 0 {
            masked.push_str("<id>");
        } else {
            masked.push(first);
        }
        rest = &rest[length.max(first.len_utf8())..];
    }
    masked
}

/// The length of the id with which a text begins, or 0.
fn made_id(text: &str) -> usize {
    let is_made = |from: usize, length: usize| {
        text.as_bytes()
            .get(from..from + length)
            .is_some_and(|bytes| bytes.iter().all(u8::is_ascii_alphanumeric))
    };
    for (prefix, length) in [("task_", 29), ("ctx_", 29), ("own-", 6)] {
        if text.starts_with(prefix) && is_made(prefix.len(), length) {
            return prefix.len() + length;
        }
    }
    let dashes = [8, 13, 18, 23].iter().all(|at| text.as_bytes().get(*at) == Some(&b'-'));
    let groups = [(0, 8), (9, 4), (14, 4), (19, 4), (24, 12)];
    if dashes && groups.iter().all(|(from, length)| is_made(*from, *length)) { 36 } else { 0 }
}
