//! The nested webhook config of both versions: any number of schemes, no task id.

use crate::{
    Json, PushConfig,
    dialect::v1::push::{URL, decode_url},
    json::{
        read::{Node, Object, Path, Read},
        write::Writer,
    },
    model::{PushAuth, Secret},
};

const SCHEMES: &str = "at least one scheme";
/// The members that the specification defines.
const AUTH_MEMBERS: &[&str] = &["schemes", "credentials"];

/// Reads the nested config; the enclosing object has the task id.
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

/// Writes the members both versions have.
pub(crate) fn encode_members(writer: &mut Writer, config: &PushConfig) {
    writer.text("url", &config.url);
    writer.maybe_text("token", config.token.as_ref().map(Secret::expose));
    if let Some(auth) = &config.authentication {
        writer.key("authentication").object(|writer| {
            writer.texts("schemes", &auth.schemes);
            writer.maybe_text("credentials", auth.credentials.as_ref().map(Secret::expose));
            if let Some(extra) = &auth.extra {
                encode_extra(writer, extra);
            }
        });
    }
}

/// Neither schemes nor credentials means no authentication.
fn decode_auth(node: Node<'_, '_>) -> Read<Option<PushAuth>> {
    let object = node.object()?;
    let schemes = decode_schemes(&object)?;
    let credentials = object.text("credentials")?.map(Secret::new);
    match (schemes.is_empty(), &credentials) {
        (true, None) => Ok(None),
        (true, Some(_)) => Err(object.lacks("schemes", SCHEMES)),
        (false, _) => Ok(Some(PushAuth { schemes, credentials, extra: decode_extra(&object)? })),
    }
}

/// The members that the specification does not define, as an object; `None` if there are none.
fn decode_extra(object: &Object<'_, '_>) -> Read<Option<Json>> {
    if object.unknown(AUTH_MEMBERS).is_none() {
        return Ok(None);
    }
    let mut writer = Writer::new();
    let mut violation = Ok(Vec::new());
    writer.object(|writer| {
        violation = object.entries(|name, node| {
            if !AUTH_MEMBERS.contains(&name) {
                writer.key(name).raw(node.any()?.as_str());
            }
            Ok(())
        });
    });
    violation?;
    let text = String::from_utf8(writer.finish()).map_err(|_| object.expected("an object"))?;
    Json::parse(&text).map(Some).map_err(|_| object.expected("an object with small extra members"))
}

fn encode_extra(writer: &mut Writer, extra: &Json) {
    let written = Node::new(extra.as_raw(), &Path::Root).object().and_then(|object| {
        object.entries(|name, node| {
            writer.key(name).raw(node.text());
            Ok(())
        })
    });
    debug_assert!(written.is_ok(), "the reader accepts objects only");
}

/// A list, or a single string as some clients send.
fn decode_schemes(object: &Object<'_, '_>) -> Read<Vec<String>> {
    let schemes = object.maybe("schemes", |node| {
        if node.text().starts_with('"') {
            return Ok(vec![node.non_empty_string()?]);
        }
        node.texts("strings", |node| node.non_empty_string())
    })?;
    Ok(schemes.unwrap_or_default())
}
