//! What is open ends when its caller may not have it any more, over every binding.

use std::{collections::BTreeMap, time::Duration};

use a2ad_inbound::{AgentSettings, AuthMethod, AuthMethods};
use engine::{AgentSwitch, DEFAULT_TENANT, NewApiKey, SwitchState};
use protocol::{ErrorKind, Message, Operation, Part, Role, SendMessage, grpc::Service, model::Secret};
use tokio::{task::JoinHandle, time::timeout};

use crate::{
    common::{
        Server, Setup, Wire,
        channel::{Channel, Outcome},
        member, request, send_params,
    },
    tokens::signer::Signer,
};

/// How soon everything has to end.
pub(crate) const LIMIT: Duration = Duration::from_secs(1);
const ACME_SECRET: &str = "a secret of acme, also 32 bytes.";
/// [`NOW`](crate::common::NOW) in seconds.
const NOW: i64 = 1_767_323_045;

/// A server whose agent `echo` requires an API key or a token.
pub(crate) async fn open() -> Server {
    Setup::with(|options| {
        let auth = [AuthMethod::ApiKey, AuthMethod::Jwt].into_iter().collect::<AuthMethods>();
        options.agents.insert("echo".into(), AgentSettings { auth, ..AgentSettings::default() });
        options.auth.org_secrets =
            [("acme.example", ACME_SECRET), ("other.example", "a secret of another organisation")]
                .map(|(domain, secret)| (domain.to_owned(), Secret::new(secret)))
                .into();
    })
    .open()
    .await
}

/// Makes an API key; returns its id and the header with it.
pub(crate) async fn key(server: &Server, owner: &str) -> (String, String) {
    let new = NewApiKey { tenant: DEFAULT_TENANT, agent: "echo", owner: Some(owner), prefix: "a2ad_" };
    let (key, text) = server.engine.create_api_key(&new, 20).await.unwrap();
    (key.id, format!("authorization: Bearer {}", text.expose()))
}

/// The header with a token of acme, which is refused this many seconds after [`NOW`], less 0.3 s.
pub(crate) fn token(seconds: i64) -> String {
    let claims = format!(r#"{{"sub":"alice","org_domain":"acme.example","exp":{}}}"#, NOW + seconds - 30);
    format!("authorization: Bearer {}", Signer::hs256(ACME_SECRET.as_bytes()).token(&claims))
}

pub(crate) async fn disable(server: &Server, agent: &str) {
    let switch = AgentSwitch {
        tenant: DEFAULT_TENANT.into(),
        agent: agent.into(),
        state: SwitchState::Disabled,
        at: server.engine.clock().now(),
        by: "test".into(),
    };
    server.engine.switch_agent(switch).await.unwrap();
}

/// What one caller has open: each belongs to a task that does not end by itself.
struct Open {
    streams: Vec<(&'static str, Wire)>,
    waiting: Vec<(&'static str, Wire)>,
    /// Streams, then a call that waits.
    grpc: Vec<JoinHandle<Outcome>>,
}

const V03: &str =
    r#"{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"hold"}]}}"#;
const DRAFT: &str = r#"{"id":"d","message":{"role":"user","parts":[{"type":"text","text":"hold"}]}}"#;
const PROTO: &str = r#"{"request":{"messageId":"m","role":"ROLE_USER","content":[{"text":"hold"}]}}"#;

impl Open {
    async fn new(server: &Server, credential: &str) -> Self {
        let v1 = || send_params("hold", "");
        let mut streams = Vec::new();
        for (head, body) in [
            ("POST / HTTP/1.1\r\na2a-version: 1.0", request("SendStreamingMessage", &v1())),
            ("POST / HTTP/1.1\r\na2a-version: 0.3", request("message/stream", V03)),
            ("POST / HTTP/1.1", request("tasks/sendSubscribe", DRAFT)),
            ("POST /a2a/echo/message:stream HTTP/1.1\r\na2a-version: 1.0", v1()),
            ("POST /a2a/echo/v1/message:stream HTTP/1.1", PROTO.to_owned()),
            (
                "POST /run/echo HTTP/1.1\r\naccept: text/event-stream\r\ncontent-type: text/plain",
                "hold".into(),
            ),
        ] {
            let body = with_own_id(&body, streams.len());
            let (mut wire, _) = server.open_stream(&format!("{head}\r\n{credential}"), &body).await;
            wire.event().await.unwrap();
            streams.push((head, wire));
        }
        let mut waiting = Vec::new();
        for (head, body) in [
            ("POST / HTTP/1.1\r\na2a-version: 1.0", request("SendMessage", &v1())),
            ("POST / HTTP/1.1\r\na2a-version: 0.3", request("message/send", V03)),
            ("POST /a2a/echo/message:send HTTP/1.1\r\na2a-version: 1.0", v1()),
            ("POST /a2a/echo HTTP/1.1\r\ncontent-type: text/plain", "hold".into()),
            ("POST /run/echo HTTP/1.1\r\ncontent-type: text/plain", "hold".into()),
        ] {
            let mut wire = server.connect().await;
            wire.send(&format!("{head}\r\n{credential}"), &with_own_id(&body, 100 + waiting.len())).await;
            waiting.push((head, wire));
        }
        let message = |id: &str| SendMessage::new(Message::new(id, Role::User, vec![Part::text("hold")]));
        let mut grpc = Vec::new();
        for (service, operation) in [
            (Service::V1, Operation::SendStreamingMessage(message("g1"))),
            (Service::V03, Operation::SendStreamingMessage(message("g2"))),
            (Service::V1, Operation::SendMessage(message("g3"))),
        ] {
            let channel = Channel::open(server).await;
            let credential = credential.split_once(": ").unwrap().1.to_owned();
            grpc.push(tokio::spawn(async move {
                let metadata = [("a2a-agent", "echo"), ("authorization", &*credential)];
                channel.call(service, &operation, &metadata).await
            }));
        }
        let expected = format!(r#""totalSize":{}"#, streams.len() + waiting.len() + grpc.len());
        let list = format!("POST / HTTP/1.1\r\na2a-version: 1.0\r\n{credential}");
        let mut listed = String::new();
        let begun = timeout(10 * LIMIT, async {
            while !listed.contains(&expected) {
                listed = server.exchange(&list, &request("ListTasks", "{}")).await.body;
            }
        });
        assert!(begun.await.is_ok(), "{expected}: {listed}");
        Self { streams, waiting, grpc }
    }

    /// Checks that everything ends now with this error.
    async fn ends_with(self, kind: ErrorKind, text: &str) {
        let row = kind.row();
        let ended = timeout(LIMIT, async {
            for (what, mut wire) in self.streams {
                let last = wire.events().await.pop().unwrap_or_default();
                assert!(last.contains("\"error\"") || last.contains("\"code\""), "{what}: {last}");
                assert!(!last.contains("retry:"), "{what}: {last}");
            }
            for (what, mut wire) in self.waiting {
                let answer = wire.answer().await;
                // 0.3 has one text for each code.
                let has_code = answer.body.contains(&format!(r#""code":{}"#, row.legacy_code));
                assert!(has_code || answer.body.contains(text), "{what}: {answer:?}");
                assert!([row.http, row.rpc_http].contains(&answer.status), "{what}: {answer:?}");
                let challenge = answer.header("www-authenticate");
                assert_eq!(challenge.is_some(), kind == ErrorKind::Unauthenticated, "{what}: {answer:?}");
            }
            for call in self.grpc {
                let outcome = call.await.unwrap();
                assert_eq!(outcome.status.error.unwrap().kind, kind);
                assert!(outcome.status.message.contains(text), "{}", outcome.status.message);
            }
        });
        ended.await.expect("everything ends within a second");
    }
}

/// A body whose message is no repetition of another one.
fn with_own_id(body: &str, id: usize) -> String {
    body.replace(r#""messageId":"m""#, &format!(r#""messageId":"m{id}""#))
}

/// A stream of another caller; it has to go on.
async fn stream(server: &Server, credential: &str) -> (Wire, String) {
    let head = format!("POST /a2a/echo HTTP/1.1\r\na2a-version: 1.0\r\n{credential}");
    let (mut wire, _) = server
        .open_stream(&head, &request("SendStreamingMessage", &with_own_id(&send_params("hold", ""), 200)))
        .await;
    let task = member(&wire.event().await.unwrap(), "id");
    (wire, task)
}

/// Checks that a stream goes on: the end of its task is its last event.
async fn goes_on(server: &Server, credential: &str, (mut wire, task): (Wire, String)) {
    let head = format!("POST /a2a/echo HTTP/1.1\r\na2a-version: 1.0\r\n{credential}");
    let canceled = server.exchange(&head, &request("CancelTask", &format!(r#"{{"id":"{task}"}}"#))).await;
    assert_eq!(canceled.status, 200, "{canceled:?}");
    assert!(wire.events().await.last().unwrap().contains("TASK_STATE_CANCELED"));
}

#[tokio::test]
async fn revoked_api_key_ends_what_is_open_with_it() {
    let server = open().await;
    let (id, credential) = key(&server, "alice").await;
    let (_, second) = key(&server, "alice").await;
    let (_, other) = key(&server, "bob").await;
    let alices = Open::new(&server, &credential).await;
    let (of_second_key, of_bob) = (stream(&server, &second).await, stream(&server, &other).await);
    assert!(server.engine.revoke_api_key(&id).await.unwrap());
    alices.ends_with(ErrorKind::Unauthenticated, "unknown or revoked").await;
    goes_on(&server, &second, of_second_key).await;
    goes_on(&server, &other, of_bob).await;
}

#[tokio::test]
async fn disabled_agent_ends_what_is_open_with_it() {
    let server = open().await;
    let (_, credential) = key(&server, "alice").await;
    let open = Open::new(&server, &credential).await;
    let (mut other, _) = server
        .open_stream(
            "POST /a2a/slow-writer HTTP/1.1\r\na2a-version: 1.0",
            &request("SendStreamingMessage", &send_params("sea sections=1 delay=1s", "")),
        )
        .await;
    disable(&server, "echo").await;
    open.ends_with(ErrorKind::AgentDisabled, "or it is disabled").await;
    assert!(other.events().await.last().unwrap().contains("TASK_STATE_COMPLETED"));
}

#[tokio::test]
async fn removed_or_replaced_secret_of_an_organisation_ends_what_is_open_with_it() {
    for replacement in [None, Some("another secret of acme, 32 bytes")] {
        let server = open().await;
        let credential = token(600);
        let of_acme = Open::new(&server, &credential).await;
        let other = Signer::hs256(b"a secret of another organisation")
            .token(&format!(r#"{{"sub":"alice","org_domain":"other.example","exp":{}}}"#, NOW + 600));
        let other = format!("authorization: Bearer {other}");
        let of_other = stream(&server, &other).await;
        let mut secrets: BTreeMap<_, _> =
            [("other.example".to_owned(), Secret::new("a secret of another organisation"))].into();
        secrets.extend(replacement.map(|secret| ("acme.example".to_owned(), Secret::new(secret))));
        server.service.set_org_secrets(&secrets);
        of_acme.ends_with(ErrorKind::Unauthenticated, "was removed or replaced").await;
        goes_on(&server, &other, of_other).await;
        let head = format!("GET /tasks HTTP/1.1\r\na2a-version: 1.0\r\n{credential}");
        assert_eq!(server.exchange(&head, "").await.status, 401);
    }
}

#[tokio::test]
async fn expired_token_ends_streams_that_can_be_resumed_and_no_calls() {
    let server = open().await;
    let (credential, fresh) = (token(1), token(600));
    let Open { streams, waiting, grpc } = Open::new(&server, &credential).await;
    let of_fresh = stream(&server, &fresh).await;
    server.engine.clock().advance(Duration::from_secs(1));
    let list = format!("POST / HTTP/1.1\r\na2a-version: 1.0\r\n{credential}");
    assert_eq!(server.exchange(&list, &request("ListTasks", "{}")).await.status, 401);
    let mut tasks = Vec::new();
    timeout(LIMIT, async {
        for (what, mut wire) in streams {
            assert_eq!(wire.events().await.pop().as_deref(), Some("retry: 1000\n"), "{what}");
        }
        let mut grpc = grpc.into_iter();
        for call in grpc.by_ref().take(2) {
            let outcome = call.await.unwrap();
            assert_eq!(outcome.status.error.unwrap().kind, ErrorKind::Unauthenticated);
            assert!(outcome.status.message.contains("subscribe to it again"), "{}", outcome.status.message);
        }
        tasks.extend(grpc);
    })
    .await
    .expect("streams end within a second");
    // A stream is resumed with a new token, and calls get their answer.
    let list = format!("POST / HTTP/1.1\r\na2a-version: 1.0\r\n{fresh}");
    let ids = server.exchange(&list, &request("ListTasks", r#"{"pageSize":100}"#)).await.body;
    for id in ids.match_indices(r#"{"id":""#).map(|(at, _)| member(&ids[at..], "id")) {
        if id != of_fresh.1 {
            server.exchange(&list, &request("CancelTask", &format!(r#"{{"id":"{id}"}}"#))).await;
        }
    }
    for (what, mut wire) in waiting {
        let answer = wire.answer().await;
        assert_eq!(answer.header("www-authenticate"), None, "{what}: {answer:?}");
        assert!(format!("{answer:?}").to_lowercase().contains("cancel"), "{what}: {answer:?}");
    }
    for call in tasks {
        assert_eq!(call.await.unwrap().status.code, 0);
    }
    goes_on(&server, &fresh, of_fresh).await;
}
