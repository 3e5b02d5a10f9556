//! The config of a webhook as both generations nest it: any number of schemes, and no task.

use crate::{
    PushConfig,
    json::{
        read::{Node, Object, Read},
        write::Writer,
    },
    model::{PushAuth, Secret},
};

/// What a webhook's address should have been.
const URL: &str = "an absolute http or https URL";
const SCHEMES: &str = "at least one scheme";

/// Reads the nested config; which task it is for stands around it.
pub(crate) fn decode(node: Node<'_, '_>) -> Read<PushConfig> {
    let object = node.object()?;
    Ok(PushConfig {
        id: object.text("id")?.map(Into::into),
        task_id: None,
        url: object.need("url", URL, decode_url)?,
        token: object.text("token")?.map(Secret::new),
        authentication: object.maybe("authentication", decode_auth)?.flatten(),
        tenant: None,
    })
}

/// Writes the members both generations have.
pub(crate) fn encode_members(writer: &mut Writer, config: &PushConfig) {
    writer.text("url", &config.url);
    writer.maybe_text("token", config.token.as_ref().map(Secret::expose));
    if let Some(auth) = &config.authentication {
        writer.key("authentication").object(|writer| {
            writer.texts("schemes", &auth.schemes);
            writer.maybe_text("credentials", auth.credentials.as_ref().map(Secret::expose));
        });
    }
}

fn decode_url(node: Node<'_, '_>) -> Read<String> {
    let url = node.filled_string()?;
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let web = scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http");
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let has_host = web && !host.is_empty() && !host.starts_with(':');
    let clean = !url.contains(|character: char| character.is_whitespace() || character.is_control());
    if has_host && clean { Ok(url) } else { Err(node.expected(URL)) }
}

/// No scheme and no credentials are no authentication.
fn decode_auth(node: Node<'_, '_>) -> Read<Option<PushAuth>> {
    let object = node.object()?;
    let schemes = decode_schemes(&object)?;
    let credentials = object.text("credentials")?.map(Secret::new);
    match (schemes.is_empty(), &credentials) {
        (true, None) => Ok(None),
        (true, Some(_)) => Err(object.lacks("schemes", SCHEMES)),
        (false, _) => Ok(Some(PushAuth { schemes, credentials })),
    }
}

/// A list, or one scheme by itself as some write it.
fn decode_schemes(object: &Object<'_, '_>) -> Read<Vec<String>> {
    let schemes = object.maybe("schemes", |node| {
        if node.text().starts_with('"') {
            return Ok(vec![node.filled_string()?]);
        }
        node.list(|node| node.filled_string())
    })?;
    Ok(schemes.unwrap_or_default())
}
