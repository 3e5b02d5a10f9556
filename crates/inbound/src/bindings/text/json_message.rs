//! A plain message as a JSON object: `{"message": "text", "chatId"?: "…", "metadata"?: {…}}`, and the result as one.

use protocol::{
    ContextId, Error, Message, SendMessage, Violation,
    error::excerpt,
    json::{
        Raw,
        read::{Node, Object, Path},
        write::Writer,
    },
    operation::{MAX_ID_BYTES, decode_metadata},
};

use super::{CallSummary, user_message};

/// The members of a message.
const MEMBERS: [&str; 3] = ["message", "chatId", "metadata"];
/// The name of `chatId` in A2A 1.0.
const CONTEXT: &str = "message.contextId";

/// Reads a message; `None` if the body does not have its form: an object with a `message` that is no object, and none of
/// the members that identify JSON-RPC.
pub(crate) fn read(body: &[u8]) -> Option<Result<SendMessage, Error>> {
    let raw = Raw::parse(body).ok()?;
    let object = Node::new(raw, &Path::Root).bounded().object().ok()?;
    let is_plain = object.present("message").is_some_and(|message| !message.get().starts_with('{'));
    let is_call = ["jsonrpc", "method"].iter().any(|name| object.present(name).is_some());
    (is_plain && !is_call).then(|| decode(&object).map_err(Error::invalid_params))
}

fn decode(object: &Object<'_, '_>) -> Result<SendMessage, Violation> {
    if let Some(name) = object.unknown(&MEMBERS) {
        let problem = format!("this member is not known; the members are {}", MEMBERS.join(", "));
        return Err(Violation::new(excerpt(name), problem));
    }
    if let Some(name) = object.repeated() {
        return Err(Violation::new(name, "expected once, stands twice"));
    }
    let text = object.need("message", "a text", |node| node.string())?;
    let context_id = object.text("chatId")?.map(ContextId::from);
    if context_id.as_ref().is_some_and(|id| id.as_str().len() > MAX_ID_BYTES) {
        return Err(Violation::new("chatId", format_args!("expected at most {MAX_ID_BYTES} bytes")));
    }
    // Agents read it in the message, and a skill is requested in the metadata of the request.
    let metadata = decode_metadata(object)?;
    let message = Message { context_id, metadata: metadata.clone(), ..user_message(&text) };
    Ok(SendMessage { metadata, ..SendMessage::new(message) })
}

/// An error with the names of this form.
pub(super) fn with_own_names(mut error: Error) -> Error {
    for violation in error.violations.iter_mut().filter(|violation| violation.field == CONTEXT) {
        violation.field = "chatId".to_owned();
        error.message = error.message.replace(CONTEXT, "chatId");
    }
    error
}

/// The result as a JSON object.
pub(super) fn encode(shown: &CallSummary<'_>) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.object(|out| {
        out.text("message", &shown.text);
        out.maybe_text("chatId", shown.context);
        out.maybe_text("taskId", shown.task.map(|task| task.0));
        out.maybe_text("state", shown.task.map(|task| task.1));
    });
    writer.finish()
}
