//! Parts: one member names the type of the content, another holds it.

use std::borrow::Cow;

use crate::{
    Content, Json, Part,
    dialect::{Style, v1::message::PARTS},
    json::{
        read::{Node, Object, Path, Read},
        write::Writer,
    },
};

use super::carrier;

/// The member that names the content type. Decoding accepts both.
#[derive(Clone, Copy)]
pub(crate) enum Tag {
    /// `draft`.
    Type,
    /// `v03`.
    Kind,
}

/// Metadata member that marks a data part whose value is not an object and is wrapped as `{"value": …}`.
const COMPAT: &str = "data_part_compat";
const CARRIED: [&str; 2] = ["mediaType", "filename"];
const TAGS: &str = "text, file or data";

/// Reads the `parts` of a message or an artifact.
pub(crate) fn decode_parts(object: &Object<'_, '_>, max: usize) -> Read<Vec<Part>> {
    object.list_required_in_request("parts", PARTS, |node| decode_list(node, max))
}

/// Reads a list of parts: at most `max`, and in a request at least one.
pub(crate) fn decode_list(node: Node<'_, '_>, max: usize) -> Read<Vec<Part>> {
    node.non_empty_list(max, "parts", PARTS, decode)
}

/// Writes a list of parts.
pub(crate) fn encode_list(writer: &mut Writer, parts: &[Part], tag: Tag, style: Style) {
    writer.array(parts, |writer, part| encode(writer, part, tag, style));
}

/// Reads a part.
pub(crate) fn decode(node: Node<'_, '_>) -> Read<Part> {
    let object = node.object()?;
    let metadata = object.json_object("metadata")?;
    match decode_tag(&object)?.as_ref() {
        "text" => {
            let text = object.need("text", "a string", |node| node.string())?.into_owned();
            Ok(part_with_carried(Content::Text(text), metadata))
        }
        "data" => {
            let data = object.need("data", "an object", |node| node.any())?;
            let (data, metadata) = unwrap(data, metadata);
            Ok(part_with_carried(Content::Data(data), metadata))
        }
        _ => object.need("file", "a file", |node| decode_file(node, metadata)),
    }
}

/// Writes a part.
pub(crate) fn encode(writer: &mut Writer, part: &Part, tag: Tag, style: Style) {
    writer.object(|writer| match &part.content {
        Content::Text(text) => {
            encode_tag(writer, "text", tag, style);
            writer.text("text", text);
            writer.maybe_json("metadata", metadata_with_carried(part, "text/plain").as_ref());
        }
        Content::Data(data) if style.data_as_text => {
            encode_tag(writer, "text", tag, style);
            writer.text("text", data.as_str());
            writer.maybe_json("metadata", part.metadata.as_ref());
        }
        Content::Data(data) => {
            encode_tag(writer, "data", tag, style);
            let (data, metadata) = wrap(data, metadata_with_carried(part, "application/json"));
            writer.key("data").raw(data.as_str());
            writer.maybe_json("metadata", metadata.as_ref());
        }
        Content::Raw(_) | Content::Url(_) => {
            encode_tag(writer, "file", tag, style);
            encode_file(writer.key("file"), part);
            writer.maybe_json("metadata", part.metadata.as_ref());
        }
    });
}

/// The content type a part declares; if it declares none, the only content member it has.
fn decode_tag<'a>(object: &Object<'a, '_>) -> Read<Cow<'a, str>> {
    let read = |node: Node<'a, '_>| match node.token() {
        Ok(tag) if matches!(tag.as_ref(), "text" | "file" | "data") => Ok(tag),
        _ => Err(node.expected(TAGS)),
    };
    if let Some(tag) = object.maybe("kind", read)?.or(object.maybe("type", read)?) {
        return Ok(tag);
    }
    let set = |name: &&str| object.present(name).is_some_and(|raw| !raw.is_null());
    let mut present = ["text", "file", "data"].into_iter().filter(set);
    match (present.next(), present.next()) {
        (Some(tag), None) => Ok(Cow::Borrowed(tag)),
        (None, _) => Err(object.expected("one of text, file, data")),
        _ => Err(object.expected("only one of text, file, data")),
    }
}

fn encode_tag(writer: &mut Writer, holds: &str, tag: Tag, style: Style) {
    let (own, other) = match tag {
        Tag::Type => ("type", "kind"),
        Tag::Kind => ("kind", "type"),
    };
    writer.text(own, holds);
    if style.both_tags {
        writer.text(other, holds);
    }
}

/// Bytes or a URI, under the member names of the schema or of the published examples.
fn decode_file(node: Node<'_, '_>, metadata: Option<Json>) -> Read<Part> {
    let object = node.object()?;
    let bytes = |name| object.maybe(name, |node| node.bytes().map(Content::Raw));
    let uri = |name| object.maybe(name, |node| node.string().map(|uri| Content::Url(uri.into_owned())));
    let contents =
        [bytes("bytes")?, bytes("fileWithBytes")?, bytes("data")?, uri("uri")?, uri("fileWithUri")?];
    let mut contents = contents.into_iter().flatten();
    match (contents.next(), contents.next()) {
        (Some(content), None) => Ok(Part {
            content,
            media_type: object.text("mimeType")?,
            filename: object.text("name")?,
            metadata,
        }),
        (None, _) => Err(node.expected("one of bytes, uri")),
        _ => Err(node.expected("only one of bytes, uri")),
    }
}

fn encode_file(writer: &mut Writer, part: &Part) {
    writer.object(|writer| {
        writer.maybe_text("name", part.filename.as_deref());
        writer.maybe_text("mimeType", part.media_type.as_deref());
        match &part.content {
            Content::Raw(bytes) => writer.key("bytes").base64(bytes),
            Content::Url(uri) => writer.text("uri", uri),
            Content::Text(_) | Content::Data(_) => {}
        }
    });
}

/// These versions allow only objects as data: any other value is wrapped and marked in the metadata. A
/// value too large to be wrapped is left unchanged.
pub(crate) fn wrap(data: &Json, metadata: Option<Json>) -> (Cow<'_, Json>, Option<Json>) {
    let wrapped = (!data.is_object()).then(|| Json::parse(&format!(r#"{{"value":{}}}"#, data.as_str())).ok());
    match wrapped.flatten() {
        None => (Cow::Borrowed(data), metadata),
        Some(wrapped) => (Cow::Owned(wrapped), carrier::with_member(metadata.as_ref(), COMPAT, "true")),
    }
}

/// The value inside a marked wrapper, and the metadata without the marker.
pub(crate) fn unwrap(data: Json, metadata: Option<Json>) -> (Json, Option<Json>) {
    let wrapped = |flag: Node<'_, '_>| {
        let object = Node::new(data.as_raw(), &Path::Root).object().ok()?;
        let values = object.entries(|name, node| Ok((name == "value").then(|| node.any().ok()).flatten()));
        match &values.ok()?[..] {
            [Some(value)] if flag.text() == "true" => Some(value.clone()),
            _ => None,
        }
    };
    let (metadata, value) = carrier::take_member(metadata, COMPAT, wrapped);
    (value.unwrap_or(data), metadata)
}

/// A text or data part with the media type and file name carried in its metadata.
pub(crate) fn part_with_carried(content: Content, metadata: Option<Json>) -> Part {
    let read = |carried: &Object<'_, '_>| Ok((carried.text("mediaType")?, carried.text("filename")?));
    let (metadata, carried) = carrier::take_carried(metadata, &CARRIED, read);
    let (media_type, filename) = carried.unwrap_or_default();
    Part { content, media_type, filename, metadata }
}

/// The metadata of a text or data part with its file name and its media type added, unless the latter is the
/// default.
pub(crate) fn metadata_with_carried(part: &Part, default: &str) -> Option<Json> {
    let media_type = part.media_type.as_deref().filter(|media_type| *media_type != default);
    if media_type.is_none() && part.filename.is_none() {
        return part.metadata.clone();
    }
    carrier::with_carried(part.metadata.as_ref(), |writer| {
        writer.maybe_text("mediaType", media_type);
        writer.maybe_text("filename", part.filename.as_deref());
    })
}
