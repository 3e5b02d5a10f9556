//! Query parameters. All values are strings; apart from that they follow the rules of a body.

use crate::{
    ContextId, Json, ListTasks, TaskState, Timestamp,
    json::{
        Raw,
        read::{Node, Object, Path, Read},
        write::Writer,
    },
};

use super::v1::operation::{decode_page_size, decode_state_filter};

/// The query as the JSON object it would be in a body. Empty values are omitted.
pub(crate) fn object(pairs: &[(String, String)]) -> Option<Json> {
    if pairs.is_empty() {
        return None;
    }
    let mut writer = Writer::new();
    writer.object(|writer| {
        for (name, value) in pairs.iter().filter(|pair| !pair.1.is_empty()) {
            writer.text(name, value);
        }
    });
    let text = String::from_utf8(writer.finish()).expect("the writer was given UTF-8 only");
    Some(Json::from_checked(text))
}

/// Reads the filters of a list; `state` reads the dialect's state names.
pub(crate) fn decode_list(
    query: &Object<'_, '_>,
    state: fn(Node<'_, '_>) -> Read<TaskState>,
) -> Read<ListTasks> {
    Ok(ListTasks {
        context_id: query.text("contextId")?.map(ContextId::from),
        status: query
            .maybe("status", |node| decode_state_filter(node, |node| numbered(node, state)))?
            .flatten(),
        page_size: query.maybe("pageSize", decode_page_size)?,
        page_token: query.text("pageToken")?,
        history_length: query.count("historyLength")?,
        status_timestamp_after: query.maybe("statusTimestampAfter", decode_time)?,
        include_artifacts: query.maybe("includeArtifacts", decode_flag)?.unwrap_or_default(),
        tenant: query.text("tenant")?,
    })
}

/// The query parameters of a list.
pub(crate) fn list_pairs(req: &ListTasks, name: fn(TaskState) -> &'static str) -> Vec<(String, String)> {
    pairs([
        ("contextId", req.context_id.as_ref().map(ToString::to_string)),
        ("status", req.status.map(|state| name(state).to_owned())),
        ("pageSize", req.page_size.map(|size| size.to_string())),
        ("pageToken", req.page_token.clone()),
        ("historyLength", req.history_length.map(|length| length.to_string())),
        ("statusTimestampAfter", req.status_timestamp_after.map(|after| after.to_string())),
        ("includeArtifacts", req.include_artifacts.then(|| "true".to_owned())),
    ])
}

/// The parameters that have a value.
pub(crate) fn pairs<const N: usize>(pairs: [(&str, Option<String>); N]) -> Vec<(String, String)> {
    pairs.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Numbers arrive as strings in a query.
fn numbered<T>(node: Node<'_, '_>, read: impl Fn(Node<'_, '_>) -> Read<T>) -> Read<T> {
    let number = node.int32().ok().map(|number| number.to_string());
    let number = number.as_deref().and_then(|number| Raw::parse_text(number).ok());
    read(node).or_else(|violation| match number {
        Some(number) => read(Node::new(number, &Path::Root)).map_err(|_| violation),
        None => Err(violation),
    })
}

/// The plus sign of an offset may arrive as a space.
fn decode_time(node: Node<'_, '_>) -> Read<Timestamp> {
    let text = node.string()?.replace(' ', "+");
    Timestamp::parse(&text)
        .ok_or_else(|| node.expected("an RFC 3339 timestamp such as 2026-01-02T03:04:05.678Z"))
}

fn decode_flag(node: Node<'_, '_>) -> Read<bool> {
    match node.string()?.as_ref() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(node.expected("true or false")),
    }
}
