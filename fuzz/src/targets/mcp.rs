//! F-mcp: what MCP servers send, as the lines of a process and as the events of an HTTP response.
//!
//! Each input is read whole and in pieces. Whatever it is, a client gets replies that can be shown.

use outbound::{
    backend::{Failure, Question, Reply},
    backends::mcp::{replies_to_events, replies_to_lines},
};

use crate::Target;

pub(crate) const TARGET: Target = Target {
    id: "F-mcp",
    name: "messages of MCP servers: at most one reply for each call, wherever the bytes are split",
    run,
    corpus,
    dictionary: DICTIONARY,
    inputs: 200_000,
};

#[rustfmt::skip]
const DICTIONARY: &[&str] = &[
    "jsonrpc", "2.0", "id", "method", "params", "result", "error", "code", "message", "data", "-32042", "-32602",
    "content", "type", "text", "image", "audio", "resource", "resource_link", "mimeType", "blob", "uri", "name",
    "structuredContent", "isError", "resultType", "input_required", "complete", "task", "taskId", "pollIntervalMs",
    "inputRequests", "requestState", "elicitation/create", "requestedSchema", "mode", "form", "url", "elicitationId",
    "notifications/progress", "notifications/cancelled", "notifications/tools/list_changed", "progressToken",
    "progress", "total", "_meta", "tools", "nextCursor", "inputSchema", "data: ", "event: message", "id: ", "retry: ",
    ": ", "\n\n", "\r\n", "\u{feff}",
];

/// Requests that are open while an input is read.
const OPEN: usize = 8;

thread_local! {
    static RUNTIME: tokio::runtime::Runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime without I/O needs nothing of the system");
}

fn run(input: &[u8]) {
    let replies = RUNTIME.with(|runtime| runtime.block_on(replies_to_lines(input)));
    // An error may have no id.
    let answered =
        replies.iter().filter(|reply| !matches!(reply, Reply::Failed(_) | Reply::AskForCredentials(_)));
    assert!(answered.count() <= OPEN, "a request is answered once");
    replies.iter().for_each(check);

    let whole = replies_to_events(&[input]);
    whole.iter().for_each(check);
    let (first, second) = input.split_at(input.first().map_or(0, |at| usize::from(*at) % (input.len() + 1)));
    let split = replies_to_events(&[first, second]);
    assert_eq!(format!("{split:?}"), format!("{whole:?}"), "the pieces of a stream do not matter");
}

/// A reply can be shown: a question has parts, and everything that is asked is kept.
fn check(reply: &Reply) {
    match reply {
        Reply::Ask(Question { parts, state }) | Reply::AskForCredentials(Question { parts, state }) => {
            assert!(!parts.is_empty() && state.as_str().len() > 2);
        }
        Reply::Failed(Failure { retryable, .. }) => assert!(!retryable, "the server may have begun the call"),
        Reply::Done(_) | Reply::Streamed | Reply::Rejected(_) => {}
    }
}

fn corpus() -> Vec<Vec<u8>> {
    let messages = [
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a"}],"structuredContent":{"a":1}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"no"}],"isError":true}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"audio","data":"AA==","mimeType":"audio/wav"}]}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"resource","resource":{"uri":"a:/b","text":"t"}},{"type":"resource_link","uri":"a:/b","name":"b"}]}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{"n":{"type":"string"}},"required":["n"]}}}},"requestState":"s"}}"#,
        r#"{"jsonrpc":"2.0","id":"1","error":{"code":-32042,"message":"log in","data":{"elicitations":[{"mode":"url","url":"https://a.example","message":"?","elicitationId":"1"}]}}}"#,
        r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"no id"}}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0.5,"total":1,"message":"m"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"task","task":{"taskId":"t","status":"working","createdAt":"2026-01-01T00:00:00Z","ttlMs":null}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}],"nextCursor":"c"}}"#,
    ];
    let lines = messages.map(|message| format!("{message}\n"));
    let events = messages.map(|message| format!("event: message\nid: 7\ndata: {message}\n\n"));
    let mixed =
        [lines.concat(), events.concat(), ": ping\r\n\r\nretry: 5\r\rdata: {\rdata: }\r\r".to_owned()];
    lines.into_iter().chain(events).chain(mixed).map(String::into_bytes).collect()
}
