//! Skills over plain HTTP.

use a2ad_inbound::{AcceptedVersions, AgentSettings, AuthMethods, Profile};
use engine::ExtendedCard;

use crate::common::{Answer, NOW, Server, Setup, agents, mask, member};

async fn open() -> Server {
    setup().open().await
}

fn setup() -> Setup {
    let skills = ["forms", "form", "forces", "a/b {c}", "secret"];
    let agents = vec![agents::skilled(&skills), agents::fails(), agents::chats(), agents::panics()];
    let mut setup = Setup { agents, ..Setup::default() };
    let secret = AgentSettings { extended_card: ExtendedCard::Protected, ..AgentSettings::default() };
    setup.options.extended_skills = vec![("skilled", "secret")];
    setup.options.agents.insert("skilled".into(), secret);
    let closed = AgentSettings { auth: AuthMethods::NONE, ..AgentSettings::default() };
    setup.options.agents.insert("demo".into(), closed);
    let disabled = AgentSettings { enabled: false, ..AgentSettings::default() };
    setup.options.agents.insert("currency".into(), disabled);
    setup.options.max_body_bytes = 1_000;
    setup
}

async fn run(server: &Server, path: &str, content_type: &str, body: &str) -> Answer {
    server.exchange(&format!("POST {path} HTTP/1.1\r\ncontent-type: {content_type}"), body).await
}

async fn run_text(server: &Server, path: &str, text: &str) -> Answer {
    run(server, path, "text/plain; charset=utf-8", text).await
}

/// The task that `Location` names, read over HTTP+JSON.
async fn task_of(server: &Server, answer: &Answer) -> String {
    let location = answer.header("location").unwrap();
    let task = server.get(location).await;
    assert_eq!(task.status, 200, "{location}: {}", task.body);
    assert_eq!(Some(member(&task.body, "id").as_str()), answer.header("a2ad-task"));
    task.body
}

#[tokio::test]
async fn result_of_one_part_is_the_body_and_the_task_is_at_its_location() {
    let server = open().await;
    let text = "text/plain; charset=utf-8";
    let forms = "/a2a/skilled/run/forms";
    for (path, kind, body, media_type, expected) in [
        ("/run/echo", "application/json", r#"{"a": 1.50}"#, "application/json", r#"{"a":1.50}"#),
        ("/run/echo", "application/json; x=y", "[null]", "application/json", "[null]"),
        ("/run/echo", "application/vnd.x+json", "\"x\"", "application/json", "\"x\""),
        ("/run/echo", "application/json", "", "application/json", "{}"),
        ("/run/echo", "text/plain", "two\nlines ü", text, "two\nlines ü"),
        ("/a2a/echo/run/echo", "text/plain", "", text, ""),
        ("/a2a/chats/run/chats", "text/plain", "hi", text, "reply to hi"),
        ("/a2a/skilled/run/a%2Fb%20%7Bc%7D", "text/plain", "markdown", "text/markdown; charset=utf-8", "# x"),
        (forms, "text/plain", "nothing", "application/json", r#"{"parts":[]}"#),
        (forms, "text/plain", "two", "application/json", r#"{"parts":[{"text":"one"},{"data":[2]}]}"#),
        (forms, "text/plain", "url", "application/json", r#"{"parts":[{"url":"http://example.test/x"}]}"#),
        (forms, "text/plain", "file", "image/x-test", "\0a\n"),
    ] {
        let answer = run(&server, path, kind, body).await;
        assert_eq!((answer.status, answer.body.as_str()), (200, expected), "{path} {body}");
        assert_eq!(answer.header("content-type"), Some(media_type), "{path} {body}");
        check_not_shown_as_page(&answer);
        assert_eq!(answer.header("a2ad-state"), Some("completed"), "{path} {body}");
        let task = task_of(&server, &answer).await;
        assert!(task.contains(r#""metadata":{"a2ad":{"origin":"run"}}"#), "{task}");
    }
    // Without a content type the body is JSON.
    let answer = server.exchange("POST /run/echo HTTP/1.1", "1").await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "1"));
}

/// A browser must not run the result as a page of the server.
fn check_not_shown_as_page(answer: &Answer) {
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(answer.header("content-security-policy"), Some("default-src 'none'; sandbox"));
}

#[tokio::test]
async fn only_plain_text_and_json_are_shown_by_browsers() {
    let server = open().await;
    for (form, media_type, disposition) in [
        ("html", "text/html; charset=utf-8", Some("attachment")),
        ("markdown", "text/markdown; charset=utf-8", Some("attachment")),
        ("file", "image/x-test", Some("attachment; filename*=UTF-8''a%20%C3%BC.bin")),
        ("two", "application/json", None),
    ] {
        let answer = run_text(&server, "/a2a/skilled/run/forms", form).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(media_type)), "{form}");
        assert_eq!(answer.header("content-disposition"), disposition, "{form}");
        check_not_shown_as_page(&answer);
    }
    let text = run_text(&server, "/run/echo", "hi").await;
    assert_eq!(text.header("content-disposition"), None);
}

#[tokio::test]
async fn state_of_the_task_is_the_status() {
    let server = open().await;
    for (path, text, status, state, said) in [
        (
            "/a2a/approver/run/approver",
            "jump",
            409,
            "input-required",
            "May I proceed with: jump? Answer approve or deny.",
        ),
        ("/a2a/skilled/run/forms", "reject", 422, "rejected", "arguments.x: expected a number"),
        ("/a2a/fails/run/fails", "hi", 502, "failed", "out of paper"),
    ] {
        let answer = run_text(&server, path, text).await;
        assert_eq!((answer.status, answer.header("a2ad-state")), (status, Some(state)), "{}", answer.body);
        let expected = format!(
            r#"{{"taskId":"TASK","contextId":"CTX","state":"{state}","message":"{said}","parts":[{{"text":"{said}"}}]}}"#
        );
        assert_eq!(mask(&answer.body), expected);
        let task = task_of(&server, &answer).await;
        assert!(task.contains(r#""origin":"run""#) && task.contains(said), "{task}");
    }
    let login = run_text(&server, "/a2a/approver/run/approver-auth", "jump").await;
    assert_eq!((login.status, login.header("a2ad-state")), (409, Some("auth-required")), "{}", login.body);
    assert!(login.body.contains(r#"{"data":{"schemes":["Bearer"]}}"#), "{}", login.body);
    let task = task_of(&server, &login).await;
    assert!(task.contains("TASK_STATE_AUTH_REQUIRED"), "{task}");
    let panicked = run_text(&server, "/a2a/panics/run/panics", "hi").await;
    assert_eq!((panicked.status, panicked.header("a2ad-state")), (502, Some("failed")));
}

#[tokio::test]
async fn call_that_is_not_finished_in_time_continues_at_its_location() {
    let server = open().await;
    for (query, prefer) in [("?wait=0", ""), ("?wait=0.02", ""), ("", "respond-async"), ("", "wait=0")] {
        let head = format!("POST /run/echo{query} HTTP/1.1\r\ncontent-type: text/plain\r\nprefer: {prefer}");
        let answer = server.exchange(&head, "hold on").await;
        assert_eq!((answer.status, answer.header("a2ad-state")), (202, Some("working")), "{query} {prefer}");
        assert_eq!(mask(&answer.body), r#"{"taskId":"TASK","contextId":"CTX","state":"working"}"#);
        let location = answer.header("location").unwrap();
        let cancelled = server.exchange(&format!("POST {location}:cancel HTTP/1.1"), "").await;
        assert!(cancelled.body.contains("TASK_STATE_CANCELED"), "{}", cancelled.body);
    }
    // Without a time it waits for half a minute; who cancels the task meanwhile ends the wait.
    let mut wire = server.connect().await;
    wire.send("POST /run/echo HTTP/1.1\r\ncontent-type: text/plain\r\nidempotency-key: k", "hold").await;
    let repeated = async || {
        let head = "POST /run/echo?wait=0 HTTP/1.1\r\ncontent-type: text/plain\r\nidempotency-key: k";
        server.exchange(head, "hold").await
    };
    let mut found = repeated().await;
    while found.header("a2ad-replayed").is_none() {
        // The repeated request came first: cancel its task, and the other one is the repetition.
        found = repeated().await;
    }
    let location = found.header("location").unwrap();
    server.exchange(&format!("POST {location}:cancel HTTP/1.1"), "").await;
    let answer = wire.answer().await;
    assert_eq!((answer.status, answer.header("a2ad-state")), (409, Some("canceled")), "{}", answer.body);
    assert_eq!(answer.header("location"), Some(location));
}

#[tokio::test]
async fn location_is_of_a_version_that_is_accepted() {
    let all = AcceptedVersions::default();
    for (accepted_versions, path, query) in [
        (AcceptedVersions { lenient_version: false, ..all }, "/tasks/", "?A2A-Version=1.0"),
        (AcceptedVersions { v1: false, ..all }, "/v1/tasks/", ""),
        (AcceptedVersions { v1: false, lenient_version: false, ..all }, "/v1/tasks/", ""),
    ] {
        let server = Setup::with(|options| options.accepted_versions = accepted_versions).open().await;
        let answer = run_text(&server, "/run/echo", "hi").await;
        let task = answer.header("a2ad-task").unwrap();
        let expected = format!("/a2a/echo{path}{task}{query}");
        assert_eq!(answer.header("location"), Some(expected.as_str()));
        task_of(&server, &answer).await;
    }
}

#[tokio::test]
async fn task_that_cannot_be_read_has_no_location() {
    let draft_only = AcceptedVersions { v1: false, v03: false, ..AcceptedVersions::default() };
    let send_only = AgentSettings { profile: Profile::pinkfish(), ..AgentSettings::default() };
    for setup in [
        Setup::with(|options| options.accepted_versions = draft_only),
        Setup::with(|options| {
            options.agents.insert("echo".into(), send_only);
        }),
    ] {
        let server = setup.open().await;
        let answer = run_text(&server, "/run/echo", "hi").await;
        assert_eq!((answer.status, answer.body.as_str(), answer.header("location")), (200, "hi", None));
        assert!(answer.header("a2ad-task").is_some());
    }
}

#[tokio::test]
async fn unknown_and_hidden_skills_are_the_same() {
    let server = open().await;
    let unknown = run_text(&server, "/a2a/skilled/run/secrex", "x").await;
    let hidden = run_text(&server, "/a2a/skilled/run/secret", "x").await;
    assert_eq!((unknown.status, hidden.status), (404, 404));
    assert_eq!(unknown.body.replace("secrex", "secret"), hidden.body);
    assert!(hidden.body.contains("this agent has no skill \\\"secret\\\""), "{}", hidden.body);
    assert!(!hidden.body.contains("did you mean"), "{}", hidden.body);
    let near = run_text(&server, "/a2a/skilled/run/Forns", "x").await;
    assert!(near.body.contains("did you mean forms, forces?"), "{}", near.body);
    for (path, status, reason) in [
        ("/run/%ff", 404, "METHOD_NOT_FOUND"),
        ("/a2a/nobody/run/echo", 404, "AGENT_DISABLED"),
        ("/a2a/currency/run/convert", 404, "AGENT_DISABLED"),
        ("/a2a/demo/run/echo", 401, "UNAUTHENTICATED"),
        ("/a2a/demo/run/nothing", 401, "UNAUTHENTICATED"),
    ] {
        let answer = run_text(&server, path, "x").await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (status, Some("application/json")),
            "{path}"
        );
        assert!(answer.body.starts_with(&format!(r#"{{"error":{{"code":{status},"#)), "{}", answer.body);
        assert!(answer.body.contains(reason), "{path}: {}", answer.body);
    }
}

#[tokio::test]
async fn caller_with_a_credential_may_run_skills_of_the_extended_card() {
    let server = setup().open_with_callers().await;
    let call = async |caller: &str, path: &str| {
        let head = format!("POST {path} HTTP/1.1\r\ncontent-type: text/plain{caller}");
        server.exchange(&head, "markdown").await
    };
    let alice = "\r\ntest-caller: alice";
    let secret = "/a2a/skilled/run/secret";
    let answer = call(alice, secret).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "# x"));
    assert_eq!(call("", secret).await.status, 404);
    assert!(call(alice, "/a2a/skilled/run/secrex").await.body.contains("did you mean secret?"));
    // The task belongs to that caller.
    let task = async |caller: &str| {
        let location = answer.header("location").unwrap();
        server.exchange(&format!("GET {location} HTTP/1.1{caller}"), "").await.status
    };
    assert_eq!((task(alice).await, task("").await, task("\r\ntest-caller: bob").await), (200, 404, 404));
    // An agent that requires a credential.
    assert_eq!(call(alice, "/a2a/demo/run/echo").await.status, 200);
}

#[tokio::test]
async fn bad_requests_name_what_is_wrong_and_create_no_task() {
    let server = open().await;
    let deep = format!("{}{}", "[".repeat(31), "]".repeat(31));
    let long = "x".repeat(1_001);
    for (request, kind, body, status, said) in [
        ("/run/echo", "application/json", "{", 400, "the body is not JSON"),
        ("/run/echo", "application/json", "{} {}", 400, "the body is not JSON"),
        ("/run/echo", "application/json", deep.as_str(), 400, "30"),
        ("/run/echo", "application/x-www-form-urlencoded", "a=b", 415, "send application/json or text/plain"),
        ("/run/echo", "text/html", "x", 415, "text/html"),
        ("/run/echo", "text/plain", long.as_str(), 413, "1000"),
        ("/run/echo?wait=soon", "text/plain", "x", 400, "wait"),
        ("/run/echo?wait=-1", "text/plain", "x", 400, "expected a number of seconds from 0 to 3600"),
    ] {
        let answer = run(&server, request, kind, body).await;
        assert_eq!(answer.status, status, "{request} {body}: {}", answer.body);
        assert!(answer.body.contains(said), "{request} {body}: {}", answer.body);
    }
    for (method, path) in [("GET", "/run/echo"), ("PUT", "/a2a/echo/run/echo")] {
        let answer = server.exchange(&format!("{method} {path} HTTP/1.1"), "").await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")), "{path}");
        assert!(answer.body.starts_with(r#"{"error":{"code":405,"#), "{}", answer.body);
    }
    let listed = server.get("/tasks").await;
    assert!(listed.body.contains(r#""totalSize":0"#), "{}", listed.body);
}

#[tokio::test]
async fn idempotency_key_returns_the_first_result() {
    let server = open().await;
    let call = async |body: &str| {
        let head = "POST /run/echo HTTP/1.1\r\ncontent-type: application/json\r\nidempotency-key: once";
        server.exchange(head, body).await
    };
    let (first, second) = (call(r#"{"a":1}"#).await, call(r#"{"a": 1}"#).await);
    assert_eq!((first.header("a2ad-replayed"), second.header("a2ad-replayed")), (None, Some("true")));
    assert_eq!((first.header("location"), &first.body), (second.header("location"), &second.body));
    let other = call(r#"{"a":2}"#).await;
    assert_eq!(other.status, 409, "{}", other.body);
    assert!(other.body.contains("MESSAGE_ID_REUSED"), "{}", other.body);
}

#[tokio::test]
async fn stream_has_progress_chunks_and_the_end() {
    let (paced, pace) = agents::paced();
    let server = Setup { agents: vec![paced, agents::fails()], ..Setup::default() }.open().await;
    let stream = async |path: &str| {
        let head = format!("POST {path} HTTP/1.1\r\ncontent-type: text/plain\r\naccept: text/event-stream");
        server.open_stream(&head, "go").await
    };
    let (mut wire, head) = stream("/a2a/paced/run/paced").await;
    let state = |id: u8, name: &str, state: &str| {
        let data = format!(r#"{{"taskId":"TASK","contextId":"CTX","state":"{state}"}}"#);
        format!("id: {id}\nevent: {name}\ndata: {data}\n\n")
    };
    let chunk = |id: u8, text: &str, append: bool, last: bool| {
        // Only the first chunk has the name.
        let name = if append { "" } else { r#""name":"paced-result","# };
        let data = format!(
            r#"{{"artifactId":"words",{name}"append":{append},"lastChunk":{last},"parts":[{{"text":"{text}"}}]}}"#
        );
        format!("id: {id}\nevent: artifact\ndata: {data}\n\n")
    };
    assert_eq!(mask(&wire.event().await.unwrap()), state(1, "task", "submitted"));
    assert_eq!(mask(&wire.event().await.unwrap()), state(2, "progress", "working"));
    let task = server.get(head.header("location").unwrap()).await;
    assert!(task.body.contains("TASK_STATE_WORKING"), "{}", task.body);
    pace.add_permits(1);
    assert_eq!(wire.event().await.unwrap(), chunk(3, "one", false, false));
    pace.add_permits(2);
    let rest = wire.events().await;
    let expected =
        [chunk(4, "two", true, false), chunk(5, "three", true, true), state(6, "final", "completed")];
    assert_eq!(rest.iter().map(|event| mask(event)).collect::<Vec<_>>(), expected);
    // The final event of a call that failed has the reason.
    let (mut wire, _) = stream("/a2a/fails/run/fails").await;
    let last = wire.events().await.pop().unwrap();
    assert!(
        last.contains("event: final") && last.contains(r#""state":"failed","message":"out of paper""#),
        "{last}"
    );
    assert!(!last.contains(NOW), "{last}");
    // An error before the first event is a response of its own.
    let head = "POST /run/nothing HTTP/1.1\r\ncontent-type: text/plain\r\naccept: text/event-stream";
    assert_eq!(server.exchange(head, "go").await.status, 404);
}

#[tokio::test]
async fn events_are_sent_to_those_who_prefer_them() {
    let server = Server::open().await;
    for (accept, media_type) in [
        ("text/event-stream", "text/event-stream"),
        ("Text/Event-Stream; q=0.5, */*;q=0.1", "text/event-stream"),
        ("application/json;q=0, text/event-stream;q=0.2", "text/event-stream"),
        ("application/json, text/event-stream, */*;q=0.1", "text/plain; charset=utf-8"),
        ("text/event-stream;q=0.1, text/plain", "text/plain; charset=utf-8"),
        ("text/event-stream;q=0.5, */*", "text/plain; charset=utf-8"),
        ("text/event-stream, */*", "text/plain; charset=utf-8"),
        ("text/event-stream;q=0", "text/plain; charset=utf-8"),
        ("image/png", "text/plain; charset=utf-8"),
    ] {
        let mut wire = server.connect().await;
        let head = format!("POST /run/echo HTTP/1.1\r\ncontent-type: text/plain\r\naccept: {accept}");
        wire.send(&head, "go").await;
        let head = wire.head().await;
        assert_eq!((head.status, head.header("content-type")), (200, Some(media_type)), "{accept}");
    }
}
