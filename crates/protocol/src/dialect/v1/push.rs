//! Push notification configs: flat objects with one authentication scheme.

use crate::{
    ConfigId, PushConfig, TaskId, Violation,
    json::{
        read::{Node, Read},
        write::Writer,
    },
    model::{PushAuth, Secret},
};

/// Reads a config that names its task.
pub fn decode_with_task(node: Node<'_, '_>) -> Read<PushConfig> {
    node.object()?.need_text("taskId")?;
    decode(node)
}

/// Reads a config; one that is part of a send has no task yet.
pub fn decode(node: Node<'_, '_>) -> Read<PushConfig> {
    let object = node.object()?;
    Ok(PushConfig {
        id: object.text("id")?.map(ConfigId::from),
        task_id: object.text("taskId")?.map(TaskId::from),
        url: object.need("url", URL, decode_url)?,
        token: object.text("token")?.map(Secret::new),
        authentication: object.maybe("authentication", decode_auth)?,
        tenant: object.text("tenant")?,
    })
}

/// Writes a config.
pub fn encode(writer: &mut Writer, config: &PushConfig) {
    writer.object(|writer| {
        writer.maybe_text("tenant", config.tenant.as_deref());
        writer.maybe_text("id", config.id.as_ref().map(AsRef::as_ref));
        writer.maybe_text("taskId", config.task_id.as_ref().map(AsRef::as_ref));
        writer.text("url", &config.url);
        writer.maybe_text("token", config.token.as_ref().map(Secret::expose));
        if let Some(auth) = &config.authentication {
            writer.key("authentication").object(|writer| {
                writer.maybe_text("scheme", auth.schemes.first().map(String::as_str));
                writer.maybe_text("credentials", auth.credentials.as_ref().map(Secret::expose));
            });
        }
    });
}

/// Expectation text for a webhook URL.
pub(crate) const URL: &str = "an absolute http or https URL";

/// Reads a webhook URL.
pub(crate) fn decode_url(node: Node<'_, '_>) -> Read<String> {
    let url = node.non_empty_string()?;
    if is_url(&url) { Ok(url) } else { Err(node.expected(URL)) }
}

/// Whether this is an absolute http or https URL.
pub(crate) fn is_url(url: &str) -> bool {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let web = scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http");
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let has_host = web && !host.is_empty() && !host.starts_with(':');
    let clean = !url.contains(|character: char| character.is_whitespace() || character.is_control());
    has_host && clean
}

fn decode_auth(node: Node<'_, '_>) -> Result<PushAuth, Violation> {
    let object = node.object()?;
    Ok(PushAuth::new(object.need_text("scheme")?, object.text("credentials")?.map(Secret::new)))
}
