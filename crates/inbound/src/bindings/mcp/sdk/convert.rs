//! Between the types of the library and ours. Pure.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use protocol::{Content, Error, Json, Part, TaskId};
use rmcp::model::{
    CallToolResult, ContentBlock, ErrorData, JsonObject, MetaObject, Resource, ResourceContents,
};

use crate::bindings::mcp::{
    cards::CardResource,
    tools::{self, Output},
};

/// The member of a result's metadata that names its task.
const TASK: &str = "a2ad/taskId";

const JSON: &str = "application/json";

/// The tree of the library. Numbers beyond 64 bits lose digits in it.
#[expect(clippy::disallowed_types, reason = "the MCP library uses this type")]
pub(super) type Tree = serde_json::Value;

pub(super) fn tool(tool: tools::Tool) -> rmcp::model::Tool {
    let tools::Tool { name, title, description, input_schema, output_schema } = tool;
    let mut converted = rmcp::model::Tool::new(name, description, object(&input_schema));
    converted.title = Some(title);
    converted.output_schema = output_schema.map(|schema| object(&schema).into());
    converted
}

/// The members of a schema. A number that the tree cannot hold makes the whole schema unusable.
fn object(schema: &Json) -> JsonObject {
    serde_json::from_str(schema.as_str())
        .unwrap_or_else(|_| JsonObject::from_iter([("type".to_owned(), Tree::from("object"))]))
}

pub(super) fn resource(card: CardResource) -> Resource {
    let CardResource { uri, name, title, description } = card;
    Resource::new(uri, name).with_title(title).with_description(description).with_mime_type(JSON)
}

pub(super) fn contents(uri: String, card: String) -> ResourceContents {
    ResourceContents::text(card, uri).with_mime_type(JSON)
}

/// A result. The first JSON object in it, which is the one that an output schema describes, is also the structured
/// content; its text has every digit.
pub(super) fn done(task: Option<&TaskId>, parts: &[Part], output: Output) -> CallToolResult {
    let structured = parts.iter().find_map(json_object).and_then(|object| serde_json::from_str(object).ok());
    if structured.is_none() && output == Output::Described {
        // Clients reject a result without it.
        let mut shown =
            vec![Part::text("the result has no JSON object, although the tool has an output schema:")];
        shown.extend_from_slice(parts);
        return failed(task, &shown);
    }
    let mut result = CallToolResult::success(blocks(parts));
    result.structured_content = structured;
    result.with_meta(task.map(meta))
}

/// The result of a call that failed.
pub(super) fn failed(task: Option<&TaskId>, parts: &[Part]) -> CallToolResult {
    CallToolResult::error(blocks(parts)).with_meta(task.map(meta))
}

/// The result of a call that was refused. Clients show it; they hide errors of the protocol.
pub(super) fn refused(error: &Error) -> CallToolResult {
    let violations =
        error.violations.iter().map(|violation| format!("; {}: {}", violation.field, violation.problem));
    let text: String = std::iter::once(error.message.clone()).chain(violations).collect();
    CallToolResult::error(vec![ContentBlock::text(text)])
}

pub(super) fn invalid_params(text: impl Into<String>) -> ErrorData {
    ErrorData::invalid_params(text.into(), None)
}

fn meta(task: &TaskId) -> MetaObject {
    MetaObject(JsonObject::from_iter([(TASK.to_owned(), Tree::from(task.as_str()))]))
}

fn json_object(part: &Part) -> Option<&str> {
    match &part.content {
        Content::Data(json) => json.is_object().then_some(json.as_str()),
        // JSON that is too large for a data part.
        Content::Text(text) if part.media_type.as_deref() == Some(JSON) => {
            text.trim_start().starts_with('{').then_some(text)
        }
        _ => None,
    }
}

fn blocks(parts: &[Part]) -> Vec<ContentBlock> {
    parts.iter().enumerate().map(|(index, part)| block(index, part)).collect()
}

fn block(index: usize, part: &Part) -> ContentBlock {
    let media_type = part.media_type.as_deref();
    let name = part.filename.as_deref().unwrap_or("file");
    match &part.content {
        Content::Text(text) => ContentBlock::text(text),
        Content::Data(json) => ContentBlock::text(json.as_str()),
        Content::Url(url) => {
            let link = Resource::new(url, name);
            ContentBlock::resource_link(match media_type {
                Some(media_type) => link.with_mime_type(media_type),
                None => link,
            })
        }
        Content::Raw(bytes) => {
            let base64 = BASE64_STANDARD.encode(bytes);
            match media_type {
                Some(image) if image.starts_with("image/") => ContentBlock::image(base64, image),
                Some(audio) if audio.starts_with("audio/") => ContentBlock::audio(base64, audio),
                _ => {
                    let media_type = media_type.unwrap_or("application/octet-stream");
                    let blob = ResourceContents::blob(base64, format!("a2a://parts/{index}/{name}"));
                    ContentBlock::resource(blob.with_mime_type(media_type))
                }
            }
        }
    }
}
