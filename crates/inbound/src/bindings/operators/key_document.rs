//! API keys as JSON.

use engine::ApiKey;
use protocol::{json::write::Writer, model::Secret};

/// The text for an operator who has made a key that its agent does not accept.
pub(super) fn not_accepted(agent: &str) -> String {
    format!("agent {agent:?} does not accept API keys; add \"api-key\" to its auth")
}

/// A list of keys as JSON.
pub(super) fn list(keys: &[ApiKey]) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.object(|out| {
        out.key("keys").array(keys, |out, key| out.object(|out| write_members(out, key)));
    });
    writer.finish()
}

/// A key as JSON.
pub(super) fn one(key: &ApiKey) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.object(|out| write_members(out, key));
    writer.finish()
}

/// A new key as JSON, with its text.
pub(super) fn created(key: &ApiKey, text: &Secret, warning: Option<&str>) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.object(|out| {
        write_members(out, key);
        out.text("key", text.expose());
        out.maybe_text("warning", warning);
    });
    writer.finish()
}

fn write_members(out: &mut Writer, key: &ApiKey) {
    out.text("id", &key.id);
    out.text("agent", &key.agent);
    out.text("owner", &key.owner);
    out.text("scope", &key.scope());
    out.text("masked", &key.masked());
    out.text("createdAt", &key.created_at.to_string());
    out.maybe_text("revokedAt", key.revoked_at.map(|time| time.to_string()).as_deref());
}
