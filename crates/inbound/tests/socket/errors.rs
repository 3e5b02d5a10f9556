//! Every error of 1.0 over JSON-RPC, byte for byte.

use std::time::Duration;

use crate::common::{Answer, NOW, Server, Setup, Wire, hold_time, mask, member, request, send_params};

/// An error response with these facts and this invalid field.
fn error(
    id: &str,
    code: i32,
    reason: &str,
    message: &str,
    facts: &str,
    violation: Option<(&str, &str)>,
) -> String {
    let violation = violation.map_or(String::new(), |(field, problem)| {
        format!(
            r#",{{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{{"field":"{field}","description":"{problem}"}}]}}"#
        )
    });
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{message}","data":[{{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"{reason}","domain":"a2a-protocol.org","metadata":{{{facts}"timestamp":"{NOW}"}}}}{violation}]}}}}"#
    )
}

fn invalid(code: i32, id: &str, field: &str, problem: &str) -> String {
    let reason = if code == -32600 { "INVALID_REQUEST" } else { "INVALID_PARAMS" };
    let message = if field.is_empty() { problem.to_owned() } else { format!("{field}: {problem}") };
    error(id, code, reason, &message, "", Some((field, problem)))
}

#[tokio::test]
async fn invalid_envelopes_are_rejected() {
    let server = Server::open().await;
    let batch = "expected one request object; batches are not served, send each request by itself";
    let not_json = "the body is not JSON: line 1, column 1: expected one JSON-RPC request object";
    let cases = [
        ("{", error("null", -32700, "PARSE_ERROR", not_json, "", None)),
        ("[]", invalid(-32600, "null", "", batch)),
        ("5", invalid(-32600, "null", "", "expected an object")),
        (r#"{"id":7,"method":"GetTask"}"#, invalid(-32600, "7", "jsonrpc", r#"required, expected \"2.0\""#)),
        (
            r#"{"jsonrpc":"2.0","id":{},"method":"GetTask"}"#,
            invalid(-32600, "null", "id", "expected a string, an integer or null"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":"a"}"#,
            invalid(-32600, "\"a\"", "method", "required, expected a method name"),
        ),
        (
            r#"{"jsonrpc":"1.0","id":"a","method":"GetTask"}"#,
            invalid(-32600, "\"a\"", "jsonrpc", r#"expected \"2.0\""#),
        ),
    ];
    for (body, expected) in cases {
        let answer = server.post_v1("/", body).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")), "{body}");
        assert_eq!(answer.body, expected, "{body}");
    }
    let long = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"GetTask"}}"#, "x".repeat(1_025));
    let expected = invalid(-32600, "null", "id", "expected at most 1024 bytes");
    assert_eq!(server.post_v1("/", &long).await.body, expected, "a long id is not repeated");
    let empty = server.exchange("POST / HTTP/1.1\r\na2a-version: 1.0\r\ncontent-length: 0", "").await;
    assert!(empty.body.contains(r#""code":-32700"#), "{}", empty.body);
}

#[tokio::test]
async fn invalid_parameters_are_named() {
    let server = Server::open().await;
    let part =
        |part: &str| format!(r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{part}]}}}}"#);
    let cases = [
        ("GetTask", "{}".to_owned(), "id", "required, expected a non-empty string"),
        ("GetTask", "[]".to_owned(), "params", "expected an object"),
        ("SendMessage", "{}".to_owned(), "message", "required, expected a message"),
        ("SendMessage", part(r#"{"raw":"%"}"#), "message.parts[0].raw", "expected a base64 string"),
        (
            "SendMessage",
            part(r#"{"text":"a","url":"b"}"#),
            "message.parts[0]",
            "expected only one of text, raw, url, data",
        ),
        ("SendMessage", part(""), "message.parts", "expected at least one part"),
        (
            "SendStreamingMessage",
            send_params("hi", "").replace("ROLE_USER", "user"),
            "message.role",
            "expected ROLE_USER or ROLE_AGENT",
        ),
        ("ListTasks", r#"{"pageSize":0}"#.to_owned(), "pageSize", "expected an integer from 1 to 100"),
        (
            "ListTasks",
            r#"{"pageToken":"x"}"#.to_owned(),
            "pageToken",
            "expected a nextPageToken of the same caller and the same filters",
        ),
    ];
    for (method, params, field, problem) in cases {
        let answer = server.call("echo", method, &params).await;
        assert_eq!(
            (answer.status, answer.body),
            (200, invalid(-32602, "1", field, problem)),
            "{method} {params}"
        );
    }
}

#[tokio::test]
async fn unknown_and_finished_tasks_are_rejected() {
    let server = Server::open().await;
    let missing = error("1", -32001, "TASK_NOT_FOUND", "task not found: x", r#""taskId":"x","#, None);
    for method in ["GetTask", "CancelTask", "SubscribeToTask"] {
        assert_eq!(server.call("echo", method, r#"{"id":"x"}"#).await.body, missing, "{method}");
    }
    assert_eq!(
        server.call("echo", "SendMessage", &send_params("hi", r#","taskId":"x""#)).await.body,
        missing
    );

    let sent = server.call("echo", "SendMessage", &send_params("hi", "")).await.body;
    let (id, context) = (member(&sent, "id"), member(&sent, "contextId"));
    let params = format!(r#"{{"id":"{id}"}}"#);
    let over = "is TASK_STATE_COMPLETED and can no longer be canceled";
    let expected = error(
        "1",
        -32002,
        "TASK_NOT_CANCELABLE",
        &format!("task TASK {over}"),
        r#""taskId":"TASK","state":"TASK_STATE_COMPLETED","#,
        None,
    );
    assert_eq!(mask(&server.call("echo", "CancelTask", &params).await.body), expected);
    let unsupported = |message: &str| error("1", -32004, "UNSUPPORTED_OPERATION", message, "", None);
    assert_eq!(
        server.call("echo", "SubscribeToTask", &params).await.body,
        unsupported("the task is TASK_STATE_COMPLETED and will not change any more; get it instead")
    );
    let more =
        server.call("echo", "SendMessage", &send_params("more", &format!(r#","taskId":"{id}""#))).await;
    let text = "task TASK is TASK_STATE_COMPLETED and takes no more messages; send one without taskId";
    assert_eq!(mask(&more.body), unsupported(text));
    let other = format!(r#","taskId":"{id}","contextId":"not-{context}""#);
    assert_eq!(
        server.call("echo", "SendMessage", &send_params("more", &other)).await.body,
        invalid(-32602, "1", "message.contextId", "expected the context of the task, or none")
    );
}

#[tokio::test]
async fn unsupported_operations_are_rejected() {
    let server = Server::open().await;
    let push = error(
        "1",
        -32003,
        "PUSH_NOTIFICATION_NOT_SUPPORTED",
        "push notifications are not supported by this agent; stream the task or poll it instead",
        "",
        None,
    );
    let params = r#"{"taskId":"x","id":"y","url":"http://localhost/"}"#;
    for method in ["Create", "Get", "Delete"].map(|verb| format!("{verb}TaskPushNotificationConfig")) {
        assert_eq!(server.call("echo", &method, params).await.body, push, "{method}");
    }
    assert_eq!(server.call("echo", "ListTaskPushNotificationConfigs", r#"{"taskId":"x"}"#).await.body, push);
    let with_push = send_params("hi", "")
        .replace("]}}", r#"]},"configuration":{"taskPushNotificationConfig":{"url":"http://localhost/"}}}"#);
    assert_eq!(server.call("echo", "SendMessage", &with_push).await.body, push);

    let card = error(
        "1",
        -32004,
        "UNSUPPORTED_OPERATION",
        "this agent has no extended card; its public card is complete",
        "",
        None,
    );
    assert_eq!(server.call("echo", "GetExtendedAgentCard", "{}").await.body, card);
    let unknown = server.call("echo", "tasks/get", "{}").await;
    assert!(unknown.body.starts_with(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found: \"tasks/get\"; A2A 1.0 has SendMessage, "#), "{}", unknown.body);

    let nobody = server.call("nobody", "GetTask", r#"{"id":"x"}"#).await;
    let text = r#"there is no agent \"nobody\" here, or it is disabled"#;
    assert_eq!((nobody.status, nobody.body), (404, error("1", -32000, "AGENT_DISABLED", text, "", None)));
}

#[tokio::test]
async fn unsupported_versions_are_rejected() {
    let server = Server::open().await;
    let body = request("ListTasks", "{}");
    for version in ["1.0", "1", "1.0.3"] {
        let answer = server.exchange(&format!("POST / HTTP/1.1\r\nA2A-Version: {version}"), &body).await;
        assert!(answer.body.contains("\"result\""), "{version}: {}", answer.body);
    }
    let accepted_versions = r#""supportedVersions":"1.0, 0.3, 0.1","#;
    let text = r#"A2A-Version \"1.1\" is not supported; use 1.0, 0.3, 0.1"#;
    let unknown = error("1", -32009, "VERSION_NOT_SUPPORTED", text, accepted_versions, None);
    for head in ["POST / HTTP/1.1\r\na2a-version: 1.1", "POST /?A2A-Version=1.1 HTTP/1.1"] {
        // The version is checked before the method.
        for method in ["ListTasks", "message/send", "tasks/send", "tasks/get", "no-such-method"] {
            let answer = server.exchange(head, &request(method, "{}")).await;
            assert_eq!((answer.status, answer.body.as_str()), (200, unknown.as_str()), "{method}");
        }
    }
    let text = "A2A-Version 0.x for a method of 1.0 is not supported; use 1.0, 0.3, 0.1";
    let older = error("1", -32009, "VERSION_NOT_SUPPORTED", text, accepted_versions, None);
    for head in ["POST / HTTP/1.1\r\na2a-version: 0.3", "POST /?A2A-Version=0.1 HTTP/1.1"] {
        let answer = server.exchange(head, &body).await;
        assert_eq!((answer.status, answer.body.as_str()), (200, older.as_str()));
    }
}

#[tokio::test]
async fn unsupported_media_types_are_rejected() {
    let server = Server::open().await;
    let body = request("ListTasks", "{}");
    for good in ["application/json", "Application/JSON; charset=utf-8", "application/a2a+json"] {
        let answer = server.exchange(&format!("POST / HTTP/1.1\r\ncontent-type: {good}"), &body).await;
        assert_eq!(answer.status, 200, "{good}");
    }
    for bad in ["text/plain", "application/xml", "application/jsonx"] {
        let answer = server
            .exchange(&format!("POST / HTTP/1.1\r\na2a-version: 1.0\r\ncontent-type: {bad}; q=1"), &body)
            .await;
        let text = format!(r#"Content-Type \"{bad}\" is not supported; send application/json"#);
        let expected = error("null", -32600, "UNSUPPORTED_MEDIA_TYPE", &text, "", None);
        assert_eq!((answer.status, answer.body), (415, expected));
    }
}

/// The response to a request whose rest the server waits for, while time advances.
async fn response_while_time_advances(wire: &mut Wire) -> Answer {
    let mut answer = std::pin::pin!(wire.answer());
    loop {
        tokio::select! {
            answer = &mut answer => return answer,
            () = tokio::time::advance(Duration::from_secs(1)) => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn body_over_the_limit_is_rejected() {
    let _time = hold_time();
    let server = Setup::with(|options| options.max_body_bytes = 1_000).open().await;
    let text = "the body is larger than 1000 bytes; send files by url instead";
    let expected = error("null", -32600, "BODY_TOO_LARGE", text, r#""maxBodyBytes":"1000","#, None);
    let frame = request("SendMessage", &send_params("", "")).len();
    let fits = server.post("/", &request("SendMessage", &send_params(&"x".repeat(1_000 - frame), ""))).await;
    assert_eq!(fits.status, 200, "{}", fits.body);
    let answer =
        server.post_v1("/", &request("SendMessage", &send_params(&"x".repeat(1_001 - frame), ""))).await;
    assert_eq!((answer.status, answer.body.as_str()), (413, expected.as_str()));
    // The rest of a body that is too large is read for a while, because its sender reads no response before that.
    let mut wire = server.connect().await;
    wire.write(b"POST / HTTP/1.1\r\nhost: x\r\na2a-version: 1.0\r\ncontent-length: 100000000\r\n\r\n").await;
    wire.write(&[b'x'; 2_000]).await;
    let answer = response_while_time_advances(&mut wire).await;
    assert_eq!((answer.status, answer.body.as_str()), (413, expected.as_str()));
    let mut wire = server.connect().await;
    wire.write(b"POST / HTTP/1.1\r\nhost: x\r\na2a-version: 1.0\r\ntransfer-encoding: chunked\r\n\r\n").await;
    wire.write(format!("400\r\n{}\r\n", "x".repeat(1_024)).as_bytes()).await;
    let answer = response_while_time_advances(&mut wire).await;
    assert_eq!((answer.status, answer.body), (413, expected));
}

#[tokio::test(start_paused = true)]
async fn stalled_body_times_out() {
    let _time = hold_time();
    let server = Server::open().await;
    let mut wire = server.connect().await;
    wire.write(b"POST / HTTP/1.1\r\nhost: x\r\na2a-version: 1.0\r\ncontent-length: 10\r\n\r\n{").await;
    // The timeout runs from the first byte; the test cannot observe when that arrives.
    let answer = response_while_time_advances(&mut wire).await;
    let text = "the request body timed out: too few bytes arrived; send it again";
    assert_eq!(
        (answer.status, answer.body),
        (408, error("null", -32000, "DEADLINE_EXCEEDED", text, "", None))
    );
}

#[tokio::test]
async fn idempotency_key_of_another_message_is_rejected() {
    let server = Server::open().await;
    let send = async |text: &str| {
        let head = "POST / HTTP/1.1\r\nidempotency-key: once";
        server.exchange(head, &request("SendMessage", &send_params(text, ""))).await
    };
    assert_eq!(send("one").await.status, 200);
    let text = "this key was used for another message before; use a new one, or send the same message again";
    let expected = error("1", -32602, "MESSAGE_ID_REUSED", text, r#""taskId":"TASK","#, None);
    let reused = send("two").await;
    assert_eq!((reused.status, mask(&reused.body)), (200, expected));
}

#[tokio::test]
async fn idempotency_key_that_is_not_utf8_is_rejected() {
    let server = Server::open().await;
    let body = request("SendMessage", &send_params("one", ""));
    let expected = invalid(-32602, "1", "Idempotency-Key", "expected text in UTF-8, 1 to 255 bytes");
    for key in [b"once\xff".as_slice(), b"\xc3".as_slice()] {
        let mut wire = server.connect().await;
        let head = format!("a2a-version: 1.0\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        wire.write(&[b"POST / HTTP/1.1\r\nidempotency-key: ", key, b"\r\n", head.as_bytes()].concat()).await;
        let answer = wire.answer().await;
        assert_eq!((answer.status, answer.body.as_str()), (200, expected.as_str()));
    }
    let tasks = server.call("echo", "ListTasks", "{}").await.body;
    assert!(tasks.contains(r#""totalSize":0"#), "{tasks}");
}

/// Protobuf decoders stop at 100 levels, and an object takes three of them.
#[tokio::test]
async fn values_nested_more_than_30_deep_are_rejected_in_every_binding() {
    let server = Server::open().await;
    let nested = |depth: usize| format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
    let fields = ["parts[0].data", "parts[0].metadata", "metadata"];
    for (at, field) in fields.into_iter().enumerate() {
        for (depth, refused) in [(30, false), (31, true)] {
            let value = nested(depth);
            let message = |parts: &str, head: &str| match at {
                0 => format!(r#"{{"messageId":"m",{head},"{parts}":[{{DATA}}]}}"#),
                1 => format!(r#"{{"messageId":"m",{head},"{parts}":[{{TEXT,"metadata":{value}}}]}}"#),
                _ => format!(r#"{{"messageId":"m",{head},"{parts}":[{{TEXT}}],"metadata":{value}}}"#),
            };
            let with =
                |body: String, text: &str, data: String| body.replace("TEXT", text).replace("DATA", &data);
            let v1 = with(
                message("parts", r#""role":"ROLE_USER""#),
                r#""text":"x""#,
                format!(r#""data":{value}"#),
            );
            let v03 = with(
                message("parts", r#""role":"user""#),
                r#""kind":"text","text":"x""#,
                format!(r#""kind":"data","data":{value}"#),
            );
            let proto = with(
                message("content", r#""role":"ROLE_USER""#),
                r#""text":"x""#,
                format!(r#""data":{{"data":{value}}}"#),
            );
            let rpc = |method: &str, message: &str| request(method, &format!(r#"{{"message":{message}}}"#));
            for (path, body, parts) in [
                ("/a2a/echo", rpc("SendMessage", &v1), "parts"),
                ("/a2a/echo", rpc("message/send", &v03), "parts"),
                ("/a2a/echo/message:send", format!(r#"{{"message":{v1}}}"#), "parts"),
                ("/a2a/echo/v1/message:send", format!(r#"{{"message":{proto}}}"#), "content"),
            ] {
                let answer = server.post(path, &body).await;
                let field = format!("\"message.{}", field.replace("parts", parts));
                let named = answer.body.contains(&field) && answer.body.contains("nested at most 30 deep");
                assert_eq!(named, refused, "{path} {depth}: {}", &answer.body[..answer.body.len().min(600)]);
            }
        }
    }
}
