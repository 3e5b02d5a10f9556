//! The signed request to start the work of one task.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use a2ad_inbound::{AgentSettings, AuthMethods, NamedSecret};
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use engine::{
    Origin, Scope, Store as _,
    ids::Tag,
    log::Log,
    store::{Accept, Change, JournalChange, NewContext, PrincipalCaps, SkillSource, Visibility, WorkState},
    task::PublicIds,
};
use protocol::{Message, Part, Role, TaskState, Timestamp, model::Secret};

use crate::common::{Answer, NOW, Server, Setup, hold_time, member, request, with_timeout};

const PATH: &str = "/_agent-native/a2a/_process-task";
const SECRET: &str = "a secret of the test";

fn now() -> i64 {
    Timestamp::parse(NOW).unwrap().as_millis() / 1_000
}

fn signature(secret: &str, text: &str) -> String {
    let key = hmac::Key::new(HMAC_SHA256, secret.as_bytes());
    hmac::sign(&key, text.as_bytes()).as_ref().iter().fold(String::new(), |mut digits, byte| {
        write!(digits, "{byte:02x}").unwrap();
        digits
    })
}

/// A token for a task that expires in so many seconds.
fn token(task: &str, expires_in: i64) -> String {
    let exp = now() + expires_in;
    format!("v1.{exp}.{}", signature(SECRET, &format!("v1|{task}|{exp}")))
}

/// A server that can verify signatures.
async fn open() -> Server {
    let mut setup = Setup::default();
    let secret = NamedSecret { name: "TEST_SECRET".into(), secret: Secret::new(SECRET) };
    setup.options.auth.secret = Some(secret);
    setup.open().await
}

async fn start(server: &Server, token: &str, task: &str) -> Answer {
    let head = format!("POST {PATH} HTTP/1.1\r\nauthorization: Bearer {token}");
    server.exchange(&head, &format!(r#"{{"taskId":"{task}"}}"#)).await
}

/// Records a task of another caller whose work is queued, as another process would.
async fn queue(server: &Server) -> String {
    let store = &server.store;
    let at = Timestamp::parse(NOW).unwrap();
    let (no, tag) = (store.reserve(1).await.unwrap(), Tag::random());
    let ids = store.ids();
    let names = PublicIds { task: ids.task(no, tag), context: ids.context(no, ids.context_tag(tag)) };
    let message = Message::new("m", Role::User, vec![Part::text("hello")]);
    let accept = Accept {
        no,
        tag,
        scope: Scope::anonymous("default", "echo"),
        client_id: None,
        skill: None,
        skill_source: SkillSource::Server,
        admitted: false,
        origin: Origin::default(),
        context: NewContext::Own,
        log: Log::pack([(names.status(TaskState::Submitted, None, at), Some(Arc::new(message)))]),
        state: TaskState::Submitted,
        status_at: at,
        visibility: Visibility::Visible,
        work: WorkState::Due(at),
        saved: None,
        journal: JournalChange::Keep,
        deadline: None,
        progress_size: 0,
        key: None,
        webhook: None,
        caps: PrincipalCaps::default(),
        asking_turns: 0,
    };
    store.commit(Change::Accept(Box::new(accept))).await.unwrap();
    names.task.to_string()
}

#[tokio::test(start_paused = true)]
async fn queued_work_of_the_signed_task_starts_at_once() {
    let _held = hold_time();
    let started = tokio::time::Instant::now();
    let server = open().await;
    // The runner has read the store by now, and reads it again in five seconds.
    let before = server.call("echo", "SendMessage", &crate::common::send_params("hi", "")).await;
    assert!(before.body.contains("TASK_STATE_COMPLETED"), "{}", before.body);
    let (task, other) = (queue(&server).await, queue(&server).await);
    let answer = start(&server, &token(&task, 300), &task).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    assert_eq!(answer.body, format!(r#"{{"ok":true,"taskId":"{task}","state":"submitted"}}"#));
    let state = async |id: &str| {
        let body = server.post_v1("/", &request("GetTask", &format!(r#"{{"id":"{id}"}}"#))).await.body;
        member(&body, "state")
    };
    with_timeout(async { while state(&task).await != "TASK_STATE_COMPLETED" {} }).await;
    assert_eq!(state(&other).await, "TASK_STATE_SUBMITTED", "only the work of one task starts");
    assert!(started.elapsed() < Duration::from_secs(1), "time stood still");
    // A task that has ended is left alone.
    let answer = start(&server, &token(&task, 300), &task).await;
    assert_eq!(answer.body, format!(r#"{{"ok":true,"taskId":"{task}","state":"completed"}}"#));
}

#[tokio::test]
async fn task_that_runs_or_waits_is_left_alone() {
    let server = open().await;
    let working = server.hold().await;
    let answer = start(&server, &token(&working, 300), &working).await;
    assert_eq!(answer.body, format!(r#"{{"ok":true,"taskId":"{working}","state":"working"}}"#));
    let asks = server.call("approver", "SendMessage", &crate::common::send_params("jump", "")).await.body;
    let asks = member(&asks, "id");
    let answer = start(&server, &token(&asks, 300), &asks).await;
    assert_eq!(answer.body, format!(r#"{{"ok":true,"taskId":"{asks}","state":"input-required"}}"#));
}

#[tokio::test]
async fn token_must_be_signed_for_the_task_and_be_valid_now() {
    let server = open().await;
    let (task, other) = (server.hold().await, server.hold().await);
    let valid = token(&task, 300);
    let (exp, digits) = valid.strip_prefix("v1.").unwrap().split_once('.').unwrap();
    let wrong_secret = format!("v1.{exp}.{}", signature("another secret", &format!("v1|{task}|{exp}")));
    for (case, token) in [
        ("of another task", token(&other, 300)),
        ("expired", token(&task, -1)),
        ("six minutes ahead", token(&task, 360)),
        ("beyond the clock difference", token(&task, 331)),
        ("far ahead", format!("v1.99999999999999999999.{digits}")),
        ("of another secret", wrong_secret),
        ("in upper case", valid.to_uppercase().replace("V1", "v1")),
        ("with another expiry", format!("v1.{}.{digits}", now() + 299)),
        ("with a leading zero", format!("v1.0{exp}.{digits}")),
        ("with a signed number", format!("v1.+{exp}.{digits}")),
        ("of another version", valid.replace("v1.", "v2.")),
        ("too short", valid[..valid.len() - 1].to_owned()),
        ("too long", format!("{valid}00")),
        ("without a signature", format!("v1.{exp}.")),
        ("without an expiry", format!("v1..{digits}")),
        ("the secret itself", SECRET.replace(' ', "")),
        ("unsigned", "x".into()),
    ] {
        let refused = start(&server, &token, &task).await;
        assert_eq!((refused.status, refused.header("www-authenticate")), (401, Some("Bearer")), "{case}");
        assert!(refused.body.contains(r#""reason":"UNAUTHENTICATED""#), "{case}: {}", refused.body);
        assert!(!refused.body.contains(digits), "{case}: {}", refused.body);
    }
    for head in ["", "\r\nauthorization: Basic eDp5", "\r\nx-api-key: y"] {
        let body = format!(r#"{{"taskId":"{task}"}}"#);
        let refused = server.exchange(&format!("POST {PATH} HTTP/1.1{head}"), &body).await;
        assert_eq!(refused.status, 401, "{head}");
    }
    let twice =
        format!("POST {PATH} HTTP/1.1\r\nauthorization: Bearer {valid}\r\nauthorization: Bearer {valid}");
    assert_eq!(server.exchange(&twice, "{}").await.status, 401);
    for valid in [token(&task, 0), token(&task, 330)] {
        assert_eq!(start(&server, &valid, &task).await.status, 200);
    }
}

/// A token as the package `@agent-native/core` signs it, so many milliseconds ago.
fn package_token(task: &str, ago: i64) -> String {
    let time = now() * 1_000 - ago;
    format!("{time}.{}", signature(SECRET, &format!("{task}:{time}")))
}

#[tokio::test]
async fn token_of_the_package_is_valid_for_its_task_and_five_minutes() {
    let server = open().await;
    let (task, other) = (server.hold().await, server.hold().await);
    for ago in [0, 299_000, -59_000] {
        assert_eq!(start(&server, &package_token(&task, ago), &task).await.status, 200, "{ago}");
    }
    let time = now() * 1_000;
    for (case, token) in [
        ("of another task", package_token(&other, 0)),
        ("older than five minutes", package_token(&task, 301_000)),
        ("more than a minute ahead", package_token(&task, -62_000)),
        ("of another secret", format!("{time}.{}", signature("another", &format!("{task}:{time}")))),
        ("of the other form", format!("{time}.{}", signature(SECRET, &format!("v1|{task}|{time}")))),
        ("in the other form", format!("v1.{}", package_token(&task, 0))),
    ] {
        assert_eq!(start(&server, &token, &task).await.status, 401, "{case}");
    }
}

#[tokio::test]
async fn unknown_task_is_not_found() {
    let server = open().await;
    for task in ["task_00000000000000000000000000000", "chosen by a client", "x"] {
        let answer = start(&server, &token(task, 300), task).await;
        assert_eq!(answer.status, 404, "{}", answer.body);
        assert!(answer.body.contains(r#""reason":"TASK_NOT_FOUND""#), "{}", answer.body);
    }
}

#[tokio::test]
async fn malformed_body_is_refused_with_the_name_of_its_member() {
    let server = open().await;
    let token = token("task_x", 300);
    let post = async |kind: &str, body: &str| {
        let head = format!("POST {PATH} HTTP/1.1\r\nauthorization: Bearer {token}\r\ncontent-type: {kind}");
        server.exchange(&head, body).await
    };
    let long = format!(r#"{{"taskId":"{}"}}"#, "x".repeat(4 << 10));
    for (body, status, problem) in [
        ("", 400, "not JSON"),
        ("{", 400, "not JSON"),
        ("[]", 400, "expected an object"),
        ("{}", 400, "taskId: required"),
        (r#"{"taskId":5}"#, 400, "taskId: expected a string"),
        (r#"{"taskId":""}"#, 400, "taskId: expected a non-empty string"),
        (r#"{"taskId":"task_x","force":true}"#, 400, "force: this member is not known"),
        (r#"{"taskId":"task_x","taskId":"task_x"}"#, 400, "taskId: expected once"),
        (long.as_str(), 413, "larger than 4096 bytes"),
    ] {
        let refused = post("application/json", body).await;
        assert_eq!(refused.status, status, "{body}");
        assert!(refused.body.contains(problem), "{body}: {}", refused.body);
    }
    assert_eq!(post("text/plain", r#"{"taskId":"task_x"}"#).await.status, 415);
}

#[tokio::test]
async fn path_is_not_part_of_json_rpc() {
    let server = open().await;
    let task = server.hold().await;
    // A call of JSON-RPC gets the answer of this path, which has no envelope.
    let head = format!("POST {PATH} HTTP/1.1\r\nauthorization: Bearer {}", token(&task, 300));
    let answer = server.exchange(&head, &request("tasks/get", &format!(r#"{{"id":"{task}"}}"#))).await;
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("this member is not known") && !answer.body.contains("jsonrpc\":\"2.0"));
    let refused = server.get(PATH).await;
    assert_eq!((refused.status, refused.header("allow")), (405, Some("POST")));
    // The prefix is still JSON-RPC, and the names elsewhere stay reserved.
    let call = request("tasks/get", &format!(r#"{{"id":"{task}"}}"#));
    assert!(server.post("/_agent-native/a2a", &call).await.body.contains(&task));
    for path in ["/a2a/_process-task", "/_process-task", "/_agent-native/a2a/_process-task/"] {
        let head = format!("POST {path} HTTP/1.1\r\nauthorization: Bearer {}", token(&task, 300));
        let answer = server.exchange(&head, &format!(r#"{{"taskId":"{task}"}}"#)).await;
        assert_eq!(answer.status, 404, "{path}");
    }
}

/// The signature is the authority: neither the settings of agents nor credentials of callers matter.
#[tokio::test]
async fn signature_needs_a_secret_and_no_other_credential() {
    let server = Server::open().await;
    let task = server.hold().await;
    let refused = start(&server, &token(&task, 300), &task).await;
    assert_eq!(refused.status, 503, "{}", refused.body);
    assert!(refused.body.contains("auth.secret_env"), "{}", refused.body);

    let mut setup = Setup::default();
    let secret = NamedSecret { name: "TEST_SECRET".into(), secret: Secret::new(SECRET) };
    setup.options.auth.secret = Some(secret);
    for agent in ["echo", "approver"] {
        let closed = AgentSettings { auth: AuthMethods::NONE, ..AgentSettings::default() };
        setup.options.agents.insert(agent.into(), closed);
    }
    let server = setup.open().await;
    let task = queue(&server).await;
    assert_eq!(start(&server, &token(&task, 300), &task).await.status, 200);
}
