//! Version negotiation over JSON-RPC: which generation is selected, and that responses and errors use it.

use a2ad_inbound::AcceptedVersions;

use crate::common::{
    Answer, Server, Setup,
    generation::{Client, Generation, UserMessage},
    member, request,
};

/// The generation of a response, and its error code or 0.
fn dialect_and_code(answer: &Answer) -> (String, i32) {
    let label = answer.header("a2ad-dialect").unwrap_or_else(|| panic!("no label: {}", answer.body));
    let code = answer
        .body
        .split_once(r#""error":{"code":"#)
        .map_or("0", |(_, rest)| rest.split(',').next().unwrap());
    let (dialect, profile) = label.split_once(";profile=").unwrap();
    assert_eq!(profile, "neutral");
    (dialect.to_owned(), code.parse().unwrap())
}

async fn ask(server: &Server, version: Option<&str>, body: &str) -> Answer {
    let version = version.map_or(String::new(), |version| format!("\r\nA2A-Version: {version}"));
    server.exchange(&format!("POST / HTTP/1.1{version}"), body).await
}

/// A request with valid parameters for the generation of its method.
fn of(method: &str) -> String {
    let generation = match method {
        "tasks/send" | "tasks/sendSubscribe" => Generation::Draft,
        "message/send" | "message/stream" => Generation::V03,
        "SendMessage" | "SendStreamingMessage" => Generation::V1,
        _ => return request(method, r#"{"id":"x","taskId":"x"}"#),
    };
    request(method, &generation.send_params(UserMessage::new("hi")))
}

const SLASHED: [&str; 14] = [
    "tasks/send",
    "tasks/sendSubscribe",
    "tasks/pushNotification/set",
    "tasks/pushNotification/get",
    "message/send",
    "message/stream",
    "tasks/pushNotificationConfig/set",
    "tasks/pushNotificationConfig/get",
    "tasks/pushNotificationConfig/list",
    "tasks/pushNotificationConfig/delete",
    "agent/getAuthenticatedExtendedCard",
    "tasks/get",
    "tasks/cancel",
    "tasks/resubscribe",
];

#[tokio::test]
async fn method_name_selects_the_generation() {
    let server = Server::open().await;
    let check = async |version: Option<&str>, method: &str, expected: (&str, i32)| {
        let answer = ask(&server, version, &of(method)).await;
        let (dialect, code) = dialect_and_code(&answer);
        assert_eq!((dialect.as_str(), code), expected, "{version:?} {method}: {}", answer.body);
    };
    for version in [None, Some(""), Some("1.0"), Some("1"), Some("1.0.7"), Some(" 1.0 ")] {
        check(version, "SendMessage", ("1.0", 0)).await;
        check(version, "ListTasks", ("1.0", 0)).await;
        check(version, "GetTask", ("1.0", -32001)).await;
    }
    for version in
        [None, Some(""), Some("0.1"), Some("0.0.1"), Some("0.2"), Some("0.2.6"), Some("0.3"), Some("0.3.0")]
    {
        check(version, "tasks/send", ("draft", 0)).await;
        check(version, "tasks/pushNotification/get", ("draft", -32003)).await;
        check(version, "message/send", ("0.3", 0)).await;
        check(version, "tasks/list", ("0.3", 0)).await;
        check(version, "tasks/pushNotificationConfig/list", ("0.3", -32003)).await;
        check(version, "agent/getAuthenticatedExtendedCard", ("0.3", -32004)).await;
    }
    for version in ["0.1", "0.2", "0.3"] {
        for method in ["SendMessage", "ListTasks", "GetTask", "GetExtendedAgentCard"] {
            check(Some(version), method, ("1.0", -32009)).await;
        }
    }
    for method in SLASHED {
        check(Some("1.0"), method, ("1.0", -32601)).await;
    }
    for version in ["9", "10", "1.00", "1.1", "2.0", "0.5", "0", "abc", "1.0-beta"] {
        for method in SLASHED.into_iter().chain(["SendMessage", "GetTask", "tasks/make"]) {
            check(Some(version), method, ("1.0", -32009)).await;
        }
    }
}

#[tokio::test]
async fn unknown_method_error_is_in_the_named_generation() {
    let server = Server::open().await;
    // The draft's error has no field for details.
    let bare = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found","data":null}}"#;
    for (version, methods) in [
        (None, &["tasks/make", "", "rpc.discover"][..]),
        (Some("0.1"), &["tasks/make", "message/sent", "Sendmessage", "", "rpc.discover"]),
    ] {
        for method in methods {
            let answer = ask(&server, version, &of(method)).await;
            assert_eq!(
                (dialect_and_code(&answer).0.as_str(), answer.body.as_str()),
                ("draft", bare),
                "{version:?} {method}"
            );
        }
    }
    for method in ["tasks/make", "message/sent", "Sendmessage", "", "rpc.discover"] {
        let answer = ask(&server, Some("0.3"), &of(method)).await;
        let start = format!(
            r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":-32601,"message":"Method not found","data":{{"errors":[{{"field":"method","message":"\"{method}\" is not a method; "#
        );
        assert!(answer.body.starts_with(&start), "{}", answer.body);
        assert_eq!(dialect_and_code(&answer).0, "0.3");
    }
    let answer = ask(&server, Some("1.0"), &of("tasks/make")).await;
    assert_eq!(dialect_and_code(&answer), ("1.0".into(), -32601));
    assert!(answer.body.contains("METHOD_NOT_FOUND"), "{}", answer.body);
}

#[tokio::test]
async fn unknown_method_error_suggests_the_nearest_method() {
    let server = Server::open().await;
    for (version, method, dialect, near) in [
        (None, "SendMesage", "1.0", "SendMessage"),
        (None, "sendMessage", "1.0", "SendMessage"),
        (Some("1.0"), "GetTasks", "1.0", "GetTask"),
        (None, "message/sned", "0.3", "message/send"),
        (None, "tasks/gett", "0.3", "tasks/get"),
        (None, "tasks/sendsubscribe", "0.3", "tasks/sendSubscribe"),
        (Some("0.3"), "message/streem", "0.3", "message/stream"),
    ] {
        let answer = ask(&server, version, &of(method)).await;
        assert_eq!(
            dialect_and_code(&answer),
            (dialect.into(), -32601),
            "{version:?} {method}: {}",
            answer.body
        );
        let named = format!(r#"\"{method}\""#);
        assert!(answer.body.contains(&named), "{}", answer.body);
        assert!(answer.body.contains(&format!("did you mean {near}?")), "{}", answer.body);
    }
    // Without a similar method the error lists all methods.
    let answer = ask(&server, Some("1.0"), &of("paint")).await;
    assert!(answer.body.contains("SendMessage, SendStreamingMessage, GetTask, "), "{}", answer.body);
    // A long method name is truncated in the error text.
    for version in [None, Some("0.3"), Some("1.0")] {
        let answer = ask(&server, version, &of(&"x".repeat(100_000))).await;
        assert!(answer.body.len() < 2_000, "{}", answer.body.len());
    }
}

#[tokio::test]
async fn shared_method_names_follow_the_version_or_the_task() {
    let server = Server::open().await;
    for creator in Generation::ALL {
        let client = Client { server: &server, path: "/", generation: creator };
        let id = client.send(UserMessage::new("hold").without_waiting()).await.id;
        let about = format!(r#"{{"id":"{id}"}}"#);
        let origin = if creator == Generation::Draft { "draft" } else { "0.3" };
        let bare = format!(r#"{{"id":1,"method":"tasks/get","params":{about}}}"#);
        let whole = request("tasks/get", &about);
        let cases = [
            (None, &whole, origin),
            (Some(""), &whole, origin),
            (Some("0.1"), &whole, "draft"),
            (Some("0.2"), &whole, "0.3"),
            (Some("0.3"), &whole, "0.3"),
            (None, &bare, "draft"),
        ];
        for (version, body, dialect) in cases {
            let answer = ask(&server, version, body).await;
            assert_eq!(dialect_and_code(&answer), (dialect.into(), 0), "{creator:?} {version:?} {body}");
            let marks = (answer.body.contains(r#""kind":"task""#), answer.body.contains("sessionId"));
            assert_eq!(marks, (dialect == "0.3", dialect == "draft"), "{}", answer.body);
        }
        // Subscribing and cancelling select the generation in the same way.
        let mut wire = server.connect().await;
        wire.send("POST / HTTP/1.1", &request("tasks/resubscribe", &about)).await;
        let head = wire.head().await;
        assert_eq!(head.header("a2ad-dialect"), Some(format!("{origin};profile=neutral").as_str()));
        wire.event().await.unwrap();
        let canceled = ask(&server, None, &request("tasks/cancel", &about)).await;
        assert_eq!(dialect_and_code(&canceled), (origin.into(), 0));
        assert!(canceled.body.contains(r#""state":"canceled""#), "{}", canceled.body);
        let last = wire.event().await.unwrap();
        assert_eq!(last.contains(r#""kind":"status-update""#), origin == "0.3", "{last}");
        assert_eq!(wire.event().await, None);
    }
    // The error for an unknown task can be read by both generations; another caller's task gives the same error.
    let elsewhere = Client { server: &server, path: "/a2a/approver", generation: Generation::Draft };
    let id = elsewhere.send(UserMessage::new("x")).await.id;
    for id in ["nothing", id.as_str()] {
        let answer = ask(&server, None, &request("tasks/get", &format!(r#"{{"id":"{id}"}}"#))).await;
        assert_eq!(dialect_and_code(&answer).0, "draft");
        let error = r#"{"code":-32001,"message":"Task not found","data":null}"#;
        let expected = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#);
        assert_eq!((answer.status, answer.body), (200, expected));
    }
}

#[tokio::test]
async fn task_with_a_numeric_id_is_found() {
    let server = Server::open().await;
    let sent = r#"{"method":"tasks/send","params":{"id":1,"message":{"parts":[{"text":"hi"}]}}}"#;
    let sent = ask(&server, None, sent).await;
    assert_eq!((dialect_and_code(&sent), member(&sent.body, "id")), (("draft".into(), 0), "1".into()));
    for body in
        [r#"{"method":"tasks/get","params":{"id":1}}"#.to_owned(), request("tasks/get", r#"{"id":1}"#)]
    {
        let got = ask(&server, None, &body).await;
        assert_eq!(dialect_and_code(&got), ("draft".into(), 0), "{body}: {}", got.body);
    }
}

#[tokio::test]
async fn version_header_overrides_the_query_parameter() {
    let server = Server::open().await;
    let unknown = request("tasks/make", "{}");
    let cases = [
        ("/?A2A-Version=1.0", "", "1.0"),
        ("/?x=y&a2a-version=0.3", "", "0.3"),
        ("/?A2A-Version=0.1", "", "draft"),
        ("/?A2A-Version=", "", "draft"),
        ("/?A2A-Version=%31%2e0", "", "1.0"),
        ("/?A2A-Version=1.0", "\r\na2a-version: 0.3", "0.3"),
        ("/?A2A-Version=0.3", "\r\nA2A-VERSION: 1.0", "1.0"),
    ];
    for (path, header, dialect) in cases {
        let answer = server.exchange(&format!("POST {path} HTTP/1.1{header}"), &unknown).await;
        assert_eq!(dialect_and_code(&answer), (dialect.into(), -32601), "{path} {header}");
    }
    for unknown in ["7.7", "%31%zz"] {
        let answer = server.post(&format!("/?A2A-Version={unknown}"), &of("message/send")).await;
        assert_eq!(dialect_and_code(&answer), ("1.0".into(), -32009));
    }
}

#[tokio::test]
async fn only_the_draft_may_omit_the_jsonrpc_version() {
    let server = Server::open().await;
    let without = |method: &str, version: &str| of(method).replace(r#""jsonrpc":"2.0","#, version);
    for method in
        ["tasks/send", "tasks/get", "tasks/cancel", "tasks/resubscribe", "tasks/pushNotification/get"]
    {
        let code = match method {
            "tasks/send" => 0,
            "tasks/pushNotification/get" => -32003,
            _ => -32001,
        };
        let answer = ask(&server, None, &without(method, "")).await;
        assert_eq!(dialect_and_code(&answer), ("draft".into(), code), "{method}: {}", answer.body);
        assert!(answer.body.starts_with(r#"{"jsonrpc":"2.0","id":1,"#), "{}", answer.body);
    }
    // The id is optional too.
    let nameless = without("tasks/send", "").replace(r#""id":1,"#, "");
    let answer = ask(&server, None, &nameless).await;
    assert!(answer.body.starts_with(r#"{"jsonrpc":"2.0","id":null,"result":"#), "{}", answer.body);

    for method in ["message/send", "tasks/list", "agent/getAuthenticatedExtendedCard", "SendMessage", "x"] {
        let answer = ask(&server, None, &without(method, "")).await;
        assert_eq!(dialect_and_code(&answer), ("draft".into(), -32600), "{method}: {}", answer.body);
    }
    for wrong in [r#""jsonrpc":"1.0","#, r#""jsonrpc":2.0,"#, r#""jsonrpc":null,"#] {
        for method in ["tasks/send", "tasks/get", "message/send", "SendMessage"] {
            let answer = ask(&server, None, &without(method, wrong)).await;
            assert_eq!(dialect_and_code(&answer).1, -32600, "{wrong} {method}: {}", answer.body);
        }
    }
}

fn setup_with(accepted_versions: AcceptedVersions) -> Setup {
    Setup::with(|options| options.accepted_versions = accepted_versions)
}

#[tokio::test]
async fn methods_of_a_disabled_generation_are_rejected() {
    let all = AcceptedVersions::default();
    let none = AcceptedVersions { draft: false, v03: false, ..all };
    let cases = [
        (AcceptedVersions { draft: false, ..all }, None, "tasks/send", ("draft", -32004)),
        (AcceptedVersions { draft: false, ..all }, None, "message/send", ("0.3", 0)),
        (AcceptedVersions { draft: false, ..all }, None, "tasks/get", ("0.3", -32001)),
        (AcceptedVersions { draft: false, ..all }, None, "SendMessage", ("1.0", 0)),
        (AcceptedVersions { v03: false, ..all }, None, "message/send", ("0.3", -32004)),
        (AcceptedVersions { v03: false, ..all }, None, "tasks/get", ("draft", -32001)),
        (AcceptedVersions { v03: false, ..all }, None, "tasks/send", ("draft", 0)),
        (AcceptedVersions { v1: false, ..all }, None, "SendMessage", ("1.0", -32009)),
        (AcceptedVersions { v1: false, ..all }, Some("1.0"), "SendMessage", ("1.0", -32009)),
        (AcceptedVersions { v1: false, ..all }, None, "message/send", ("0.3", 0)),
        (AcceptedVersions { v1: false, ..all }, None, "tasks/send", ("draft", 0)),
        (none, None, "tasks/get", ("0.3", -32004)),
        (none, None, "tasks/send", ("draft", -32004)),
        (none, None, "message/send", ("0.3", -32004)),
        (none, None, "SendMessage", ("1.0", 0)),
        (AcceptedVersions { lenient_version: false, ..all }, None, "SendMessage", ("1.0", -32009)),
        (AcceptedVersions { lenient_version: false, ..all }, Some(""), "GetTask", ("1.0", -32009)),
        (
            AcceptedVersions { draft: false, lenient_version: false, ..all },
            None,
            "tasks/send",
            ("draft", -32004),
        ),
        (
            AcceptedVersions { draft: false, lenient_version: false, ..all },
            None,
            "tasks/get",
            ("0.3", -32001),
        ),
        (AcceptedVersions { lenient_version: false, ..all }, Some("1.0"), "SendMessage", ("1.0", 0)),
        (AcceptedVersions { lenient_version: false, ..all }, None, "message/send", ("0.3", 0)),
        (AcceptedVersions { lenient_version: false, ..all }, None, "tasks/send", ("draft", 0)),
    ];
    for (accepted_versions, version, method, (dialect, code)) in cases {
        let server = setup_with(accepted_versions).open().await;
        let answer = ask(&server, version, &of(method)).await;
        assert_eq!(
            dialect_and_code(&answer),
            (dialect.into(), code),
            "{accepted_versions:?} {version:?} {method}: {}",
            answer.body
        );
    }
    let server = setup_with(AcceptedVersions { v1: false, ..all }).open().await;
    let answer = ask(&server, None, &of("SendMessage")).await;
    assert!(answer.body.contains(r#""supportedVersions":"0.3, 0.1""#), "{}", answer.body);
    let server = setup_with(AcceptedVersions { draft: false, ..all }).open().await;
    let answer = ask(&server, None, &of("tasks/send")).await;
    let error = r#"{"code":-32004,"message":"This operation is not supported","data":null}"#;
    assert_eq!(answer.body, format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#));
}

#[tokio::test]
async fn disabled_version_is_rejected_for_every_method() {
    let all = AcceptedVersions::default();
    let cases = [
        (AcceptedVersions { v1: false, ..all }, "1.0", "message/send"),
        (AcceptedVersions { v1: false, ..all }, "1.0", "tasks/get"),
        (AcceptedVersions { v1: false, ..all }, "1.0", "tasks/make"),
        (AcceptedVersions { v03: false, ..all }, "0.3", "tasks/get"),
        (AcceptedVersions { v03: false, ..all }, "0.2", "tasks/send"),
        (AcceptedVersions { draft: false, ..all }, "0.1", "tasks/get"),
        (AcceptedVersions { draft: false, ..all }, "0.1", "message/send"),
    ];
    for (accepted_versions, version, method) in cases {
        let server = setup_with(accepted_versions).open().await;
        let answer = ask(&server, Some(version), &of(method)).await;
        assert_eq!(
            dialect_and_code(&answer),
            ("1.0".into(), -32009),
            "{accepted_versions:?} {version} {method}: {}",
            answer.body
        );
    }
}

/// The error object of a response.
fn error(answer: &Answer) -> &str {
    let (_, rest) = answer.body.split_once(r#""error":"#).unwrap_or_else(|| panic!("{}", answer.body));
    rest.strip_suffix('}').unwrap()
}

#[tokio::test]
async fn errors_have_the_fixed_texts_of_the_older_generations() {
    let server = Server::open().await;
    let client = Client { server: &server, path: "/", generation: Generation::V1 };
    let over = format!(r#"{{"id":"{}"}}"#, client.send(UserMessage::new("hi")).await.id);
    let reason =
        |field: &str, message: &str| format!(r#"{{"errors":[{{"field":"{field}","message":"{message}"}}]}}"#);
    // Request in the draft and in 0.3, expected code and text, and expected details.
    let not_json = reason("", "the body is not JSON: line 1, column 1: expected one JSON-RPC request object");
    let batch =
        reason("", "expected one request object; batches are not served, send each request by itself");
    let cases = [
        ("{".to_owned(), "{".to_owned(), -32700, "Invalid JSON payload", Some(not_json)),
        ("[]".to_owned(), "[]".to_owned(), -32600, "Request payload validation error", Some(batch)),
        (
            r#"{"jsonrpc":"2.0"}"#.to_owned(),
            r#"{"jsonrpc":"2.0"}"#.to_owned(),
            -32600,
            "Request payload validation error",
            Some(reason("method", "required, expected a method name")),
        ),
        (request("nothing", "{}"), request("nothing", "{}"), -32601, "Method not found", None),
        (
            request("tasks/get", "{}"),
            request("tasks/get", "{}"),
            -32602,
            "Invalid parameters",
            Some(reason("id", "required, expected a non-empty string")),
        ),
        (
            request("tasks/send", r#"{"id":"x","message":{"role":"user","parts":[]}}"#),
            request("message/send", r#"{"message":{"messageId":"m","role":"user","parts":[]}}"#),
            -32602,
            "Invalid parameters",
            Some(reason("message.parts", "expected at least one part")),
        ),
        (
            request("tasks/get", r#"{"id":"x"}"#),
            request("tasks/get", r#"{"id":"x"}"#),
            -32001,
            "Task not found",
            None,
        ),
        (
            request("tasks/cancel", &over),
            request("tasks/cancel", &over),
            -32002,
            "Task cannot be canceled",
            None,
        ),
        (
            request(
                "tasks/pushNotification/set",
                r#"{"id":"x","pushNotificationConfig":{"url":"http://x/"}}"#,
            ),
            request(
                "tasks/pushNotificationConfig/set",
                r#"{"taskId":"x","pushNotificationConfig":{"url":"http://x/"}}"#,
            ),
            -32003,
            "Push Notification is not supported",
            None,
        ),
    ];
    for (draft, v03, code, text, data) in cases {
        let answer = ask(&server, Some("0.1"), &draft).await;
        let details = data.as_deref().unwrap_or("null");
        assert_eq!((answer.status, dialect_and_code(&answer)), (200, ("draft".into(), code)), "{draft}");
        assert_eq!(
            error(&answer),
            format!(r#"{{"code":{code},"message":"{text}","data":{details}}}"#),
            "{draft}"
        );
        let unattributed = ask(&server, None, &draft).await;
        if !draft.contains("tasks/") {
            assert_eq!(unattributed.body, answer.body, "without a version the error is that of the draft");
        }

        let answer = ask(&server, Some("0.3"), &v03).await;
        let details = data.filter(|_| code == -32600 || code == -32602);
        let details = details.map_or(String::new(), |data| format!(r#","data":{data}"#));
        assert_eq!((answer.status, dialect_and_code(&answer)), (200, ("0.3".into(), code)), "{v03}");
        if code == -32601 {
            let start = r#"{"code":-32601,"message":"Method not found","data":{"errors":[{"field":"method","message":"\"nothing\" is not a method; "#;
            assert!(error(&answer).starts_with(start), "{}", answer.body);
            continue;
        }
        assert_eq!(error(&answer), format!(r#"{{"code":{code},"message":"{text}"{details}}}"#), "{v03}");
    }
    let card = ask(&server, None, &request("agent/getAuthenticatedExtendedCard", "{}")).await;
    assert_eq!(error(&card), r#"{"code":-32004,"message":"This operation is not supported"}"#);
}

#[tokio::test]
async fn errors_before_decoding_are_in_the_named_generation() {
    let server = Setup::with(|options| options.max_body_bytes = 1_000).open().await;
    let text = "Request payload validation error";
    let kind = r#"Content-Type \"text/html\" is not supported; send application/json"#;
    let large = "the body is larger than 1000 bytes; send files by url instead";
    let long = request("tasks/send", &Generation::Draft.send_params(UserMessage::new(&"x".repeat(1_000))));
    for (version, dialect) in [("", "draft"), ("0.1", "draft"), ("0.3", "0.3")] {
        for (media_type, body, status, told_why) in
            [("text/html", "{}", 415, kind), ("application/json", long.as_str(), 413, large)]
        {
            let head = format!("POST / HTTP/1.1\r\na2a-version: {version}\r\ncontent-type: {media_type}");
            let answer = server.exchange(&head, body).await;
            assert_eq!((answer.status, dialect_and_code(&answer)), (status, (dialect.into(), -32600)));
            let data = format!(r#"{{"errors":[{{"field":"","message":"{told_why}"}}]}}"#);
            assert_eq!(error(&answer), format!(r#"{{"code":-32600,"message":"{text}","data":{data}}}"#));
            assert!(answer.body.starts_with(r#"{"jsonrpc":"2.0","id":null,"#));
        }
    }
}

#[tokio::test]
async fn idempotency_key_of_another_message_is_an_invalid_parameter() {
    let server = Server::open().await;
    let why = "this key was used for another message before; use a new one, or send the same message again";
    let data = format!(r#"{{"errors":[{{"field":"","message":"{why}"}}]}}"#);
    for generation in [Generation::Draft, Generation::V03] {
        let send = async |text: &str| {
            let head = format!("POST / HTTP/1.1\r\nidempotency-key: {generation:?}");
            let method = generation.method(protocol::OperationKind::SendMessage);
            server.exchange(&head, &request(method, &generation.send_params(UserMessage::new(text)))).await
        };
        assert_eq!(dialect_and_code(&send("one").await), (generation.name().into(), 0));
        let reused = send("two").await;
        assert_eq!((reused.status, dialect_and_code(&reused)), (200, (generation.name().into(), -32602)));
        assert_eq!(
            error(&reused),
            format!(r#"{{"code":-32602,"message":"Invalid parameters","data":{data}}}"#)
        );
    }
}
