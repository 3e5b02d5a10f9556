//! Deduplication of messages by idempotency key.
//!
//! A message has a key when its caller sent an `Idempotency-Key`, or when its message id is a UUID and
//! therefore meant to be unique. Keys are unique within the caller's scope, and for a follow-up within its
//! task. The content is stored as a hash: the same key with the same content is a retry and gets the first
//! reply; the same key with other content is rejected.

use std::hash::Hasher as _;

use aws_lc_rs::digest::{SHA256, digest};
use protocol::{Message, SendMessage, dialect::v1, json::write::Writer};
use siphasher::sip128::{Hasher128 as _, SipHasher24};
use uuid::Variant;

use crate::{
    access::scope::Scope,
    error::{Error, Result},
    store::MessageKey,
};

/// Maximum length of an `Idempotency-Key`.
const MAX_KEY_BYTES: usize = 255;

/// Which messages get an idempotency key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dedupe {
    /// Messages sent with an `Idempotency-Key`, and those whose id is a UUID of version 4 or 7.
    #[default]
    Auto,
    /// All messages: every message id is a key.
    Always,
    /// Only messages sent with an `Idempotency-Key`.
    Off,
}

/// The idempotency key of a message; `None` when retries of it cannot be detected.
pub(crate) fn key(
    dedupe: Dedupe,
    seal: &[u8; 32],
    scope: &Scope,
    given: Option<&str>,
    req: &SendMessage,
) -> Result<Option<MessageKey>> {
    let id = req.message.id.as_str();
    let (kind, name) = match given {
        Some(given) if given.is_empty() || given.len() > MAX_KEY_BYTES => {
            return Err(Error::invalid("Idempotency-Key", "expected 1 to 255 bytes"));
        }
        Some(given) => ("header", given),
        // The draft dialect has no message ids.
        None if id.is_empty() => return Ok(None),
        None if dedupe == Dedupe::Always || dedupe == Dedupe::Auto && is_unique(id) => ("message", id),
        None => return Ok(None),
    };
    Ok(Some(MessageKey { key: key_digest(seal, scope, kind, name), hash: content_digest(req) }))
}

/// Whether an id is unique by construction: a UUID of version 4 or 7.
fn is_unique(id: &str) -> bool {
    uuid::Uuid::try_parse(id)
        .is_ok_and(|id| id.get_variant() == Variant::RFC4122 && matches!(id.get_version_num(), 4 | 7))
}

fn key_digest(seal: &[u8; 32], scope: &Scope, kind: &str, name: &str) -> [u8; 16] {
    let mut hasher = SipHasher24::new_with_key(seal[..16].first_chunk().expect("the seal key has 32 bytes"));
    let scope = scope.parts();
    let principal = principal_in_digest(&scope.principal);
    for part in
        [["", &scope.tenant], principal, ["", &scope.agent], ["", &scope.end_user], ["", kind], ["", name]]
    {
        hasher.write_usize(part[0].len() + part[1].len());
        hasher.write(part[0].as_bytes());
        hasher.write(part[1].as_bytes());
    }
    hasher.finish128().as_bytes()
}

/// The name of a principal in digests, in two pieces. That of a caller with a certificate is the one that earlier versions
/// gave it, without the kind of the name, so that keys of their messages are recognised: digests cannot be migrated, unlike
/// scopes. It is unique too: only a subject has `=` before any `:`, or a URI that is none, which gets a name of its own.
fn principal_in_digest(principal: &str) -> [&str; 2] {
    let is_like_subject = |uri: &str| uri.find(['=', ':']).is_some_and(|at| uri[at..].starts_with('='));
    match (principal.strip_prefix("mtls:dn:"), principal.strip_prefix("mtls:uri:")) {
        (Some(subject), _) => ["mtls:", subject],
        (_, Some(uri)) if is_like_subject(uri) => ["mtls:=", uri],
        (_, Some(uri)) => ["mtls:", uri],
        (None, None) => ["", principal],
    }
}

/// Whether two messages have the same content, ignoring their ids. Detects retries in the draft dialect,
/// which has no message ids.
pub(crate) fn same_content(one: &Message, other: &Message) -> bool {
    one.role == other.role
        && one.parts == other.parts
        && one.metadata == other.metadata
        && one.extensions == other.extensions
        && one.reference_task_ids == other.reference_task_ids
}

/// Covers the message, the skill and the request metadata in the model's form; independent of the request's
/// configuration and wire form.
fn content_digest(req: &SendMessage) -> [u8; 16] {
    let mut writer = Writer::new();
    v1::message::encode(&mut writer, &req.message);
    if let Some(metadata) = &req.metadata {
        writer.raw(metadata.as_str());
    }
    if let Some(skill) = &req.skill {
        writer.string(skill);
    }
    let digest = digest(&SHA256, &writer.finish());
    std::array::from_fn(|at| digest.as_ref()[at])
}

#[cfg(test)]
mod tests {
    use protocol::{Message, Part, Role};

    use super::*;

    fn send(id: &str, text: &str) -> SendMessage {
        SendMessage::new(Message::new(id, Role::User, vec![Part::text(text)]))
    }

    const V4: &str = "3f2b8c1e-7d4a-4b6f-9c0d-5e8a1b2c3d4e";

    fn key_of(dedupe: Dedupe, agent: &str, given: Option<&str>, id: &str, text: &str) -> Option<MessageKey> {
        key(dedupe, &[7; 32], &Scope::anonymous("default", agent), given, &send(id, text)).unwrap()
    }

    #[test]
    fn uuid_or_header_is_a_key_and_other_ids_are_not() {
        let v1 = "3f2b8c1e-7d4a-1b6f-9c0d-5e8a1b2c3d4e";
        let v7 = "01890a5d-ac96-774b-bcce-b302099a8057";
        assert!(key_of(Dedupe::Auto, "a", None, V4, "x").is_some());
        assert!(key_of(Dedupe::Auto, "a", None, v7, "x").is_some());
        assert!(key_of(Dedupe::Auto, "a", None, v1, "x").is_none());
        assert!(key_of(Dedupe::Auto, "a", None, "m-1", "x").is_none());
        assert!(key_of(Dedupe::Always, "a", None, "m-1", "x").is_some());
        assert!(key_of(Dedupe::Off, "a", None, V4, "x").is_none());
        assert!(key_of(Dedupe::Off, "a", Some("k"), V4, "x").is_some());
        let long = "k".repeat(256);
        let refused = key(Dedupe::Auto, &[7; 32], &Scope::anonymous("d", "a"), Some(&long), &send(V4, "x"));
        assert!(refused.is_err());
    }

    #[test]
    fn names_of_certificates_in_digests_are_the_earlier_ones_and_unique() {
        let name = |principal| principal_in_digest(principal).concat();
        for (principal, earlier) in [
            ("mtls:dn:CN=alice", "mtls:CN=alice"),
            ("mtls:uri:spiffe://example/a=b", "mtls:spiffe://example/a=b"),
            ("mtls:uri:uri:CN=alice", "mtls:uri:CN=alice"),
            ("mtls:uri:alice", "mtls:alice"),
            ("key:alice", "key:alice"),
        ] {
            assert_eq!(name(principal), earlier);
        }
        assert_eq!(name("mtls:uri:CN=alice"), "mtls:=CN=alice");
    }

    #[test]
    fn key_depends_on_scope_and_hash_on_content() {
        let one = key_of(Dedupe::Auto, "a", None, V4, "x").unwrap();
        assert_eq!(key_of(Dedupe::Auto, "a", None, V4, "x"), Some(one));
        assert_ne!(key_of(Dedupe::Auto, "b", None, V4, "x").unwrap().key, one.key);
        let other = key_of(Dedupe::Auto, "a", None, V4, "y").unwrap();
        assert_eq!(other.key, one.key);
        assert_ne!(other.hash, one.hash);
    }
}
