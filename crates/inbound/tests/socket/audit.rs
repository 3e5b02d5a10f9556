//! The audit log: each change of operators and each refusal of a caller is recorded, without secrets.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use a2ad_inbound::{AgentSettings, Audit, AuditEntry, AuthMethod, AuthMethods, AuthOptions, RateLimits};
use futures_util::future::{BoxFuture, FutureExt as _};
use protocol::model::Secret;

use crate::{
    common::{Server, Setup, member, request, send_params},
    operators::{ADMIN, send},
};

/// Keeps the entries.
#[derive(Debug, Default)]
struct Recorded(Mutex<Vec<AuditEntry>>);

impl Audit for Recorded {
    fn record(&self, entry: AuditEntry) -> BoxFuture<'static, ()> {
        self.0.lock().unwrap().push(entry);
        std::future::ready(()).boxed()
    }

    fn refuse(&self, entry: AuditEntry) {
        self.0.lock().unwrap().push(entry);
    }

    fn read(&self, after: u64, max: usize, _: Duration) -> BoxFuture<'static, std::io::Result<Vec<String>>> {
        std::future::ready(Ok(vec![format!(r#"{{"seq":{},"max":{max}}}"#, after + 1)])).boxed()
    }
}

impl Recorded {
    /// The only entry since the last call.
    #[track_caller]
    fn only(&self) -> AuditEntry {
        let mut entries = std::mem::take(&mut *self.0.lock().unwrap());
        assert_eq!(entries.len(), 1, "{entries:?}");
        entries.remove(0)
    }

    #[track_caller]
    fn none(&self) {
        assert_eq!(*self.0.lock().unwrap(), []);
    }
}

async fn open() -> (Server, Arc<Recorded>) {
    let recorded = Arc::new(Recorded::default());
    let mut setup = Setup::default();
    setup.options.auth = AuthOptions { admin_token: Some(Secret::new(ADMIN)), ..AuthOptions::default() };
    setup.options.audit = Some(Arc::clone(&recorded) as Arc<dyn Audit>);
    let auth = AuthMethods::NONE.with(AuthMethod::ApiKey);
    setup.options.agents.insert("currency".into(), AgentSettings { auth, ..AgentSettings::default() });
    (setup.open().await, recorded)
}

#[tokio::test]
async fn every_change_of_an_operator_is_recorded() {
    let (server, recorded) = open().await;
    let task = server.hold().await;
    let created = send(&server, "POST", "/console/api/keys", r#"{"agent":"currency","owner":"alice"}"#).await;
    let key = member(&created.body, "id");
    let entry = recorded.only();
    assert_eq!(
        (entry.who.as_str(), entry.action, entry.agent.as_deref()),
        ("operator", "key.create", Some("currency"))
    );
    assert_eq!((entry.key.as_deref(), entry.refused), (Some(&*key), None));
    assert!(entry.peer.is_some() && entry.request_id.is_some());
    let secret = member(&created.body, "key");
    for (method, path, action, subject) in [
        ("DELETE", format!("/console/api/keys/{key}"), "key.revoke", "currency"),
        ("POST", "/console/api/agents/approver/disable".into(), "agent.disable", "approver"),
        ("POST", "/console/api/agents/approver/enable".into(), "agent.enable", "approver"),
        ("POST", format!("/console/api/tasks/{task}/cancel"), "task.cancel", "echo"),
    ] {
        assert_eq!(send(&server, method, &path, "").await.status, 200, "{path}");
        let entry = recorded.only();
        assert_eq!((entry.action, entry.agent.as_deref()), (action, Some(subject)));
        assert!(!format!("{entry:?}").contains(&secret));
    }
    // So are attempts that fail.
    send(&server, "POST", "/console/api/agents/nobody/disable", "").await;
    let entry = recorded.only();
    assert_eq!((entry.action, entry.refused.as_deref()), ("agent.disable", Some("AGENT_DISABLED")));
    // Reading is no change.
    for path in ["keys", "agents", "tasks", "counts"] {
        assert_eq!(send(&server, "GET", &format!("/console/api/{path}"), "").await.status, 200);
    }
    recorded.none();
}

#[tokio::test]
async fn every_refusal_of_a_caller_is_recorded_without_its_credential() {
    let (server, recorded) = open().await;
    let created = send(&server, "POST", "/console/api/keys", r#"{"agent":"echo","owner":"bob"}"#).await;
    let key = member(&created.body, "key");
    recorded.only();
    let other_agent = format!("x-api-key: {key}");
    for (line, headers, action, reason, who) in [
        ("POST /a2a/currency", "", "refused.credential", "UNAUTHENTICATED", "anonymous"),
        ("POST /a2a/currency", "x-api-key: canary-1", "refused.credential", "UNAUTHENTICATED", "anonymous"),
        ("POST /a2a/currency", &other_agent, "refused.permission", "PERMISSION_DENIED", "key:bob"),
        ("GET /a2a/currency/tasks", "", "refused.credential", "UNAUTHENTICATED", "anonymous"),
        (
            "GET /console/api/keys",
            "authorization: Bearer canary-2",
            "refused.credential",
            "UNAUTHENTICATED",
            "anonymous",
        ),
        ("POST /a2a/echo", "origin: http://evil.test", "refused.host_or_origin", "", "anonymous"),
    ] {
        let head = format!("{line} HTTP/1.1\r\ncontent-type: application/json\r\n{headers}");
        let answer = server.exchange(head.trim_end(), "{}").await;
        assert!(matches!(answer.status, 401 | 403), "{line} {headers}: {answer:?}");
        let entry = recorded.only();
        assert_eq!((entry.action, entry.who.as_str()), (action, who), "{line} {headers}: {entry:?}");
        assert!(entry.refused.as_deref().unwrap().contains(reason), "{entry:?}");
        assert!(entry.peer.is_some() && entry.route.is_some(), "{entry:?}");
        let text = format!("{entry:?}");
        assert!(!text.contains("canary") && !text.contains(&key), "{text}");
    }
    // Other errors are not refusals.
    server.get("/nothing").await;
    server.post("/a2a/echo", "{").await;
    recorded.none();
}

#[tokio::test]
async fn the_log_is_read_over_the_api() {
    let (server, _) = open().await;
    let read = send(&server, "GET", "/console/api/audit?after=6&limit=2&wait=0", "").await;
    assert_eq!((read.status, &*read.body), (200, r#"{"entries":[{"seq":7,"max":2}]}"#));
    for (query, text) in [
        ("?after=x", "after: expected a number"),
        ("?limit=0", "limit: expected a number from 1 to 1000"),
        ("?wait=31", "wait: expected a number from 0 to 30"),
    ] {
        let answer = send(&server, "GET", &format!("/console/api/audit{query}"), "").await;
        crate::operators::refused(&answer, 400, "INVALID_PARAMS", &[text]);
    }
    let without = crate::operators::open().await;
    let answer = send(&without, "GET", "/console/api/audit", "").await;
    crate::operators::refused(&answer, 404, "NOT_FOUND", &["the audit log is off"]);
}

#[tokio::test]
async fn a_call_over_its_rate_is_recorded() {
    let recorded = Arc::new(Recorded::default());
    let mut setup = Setup::default();
    setup.options.rate_limits = RateLimits { per_key: "1/h".parse().ok(), ..RateLimits::default() };
    setup.options.audit = Some(Arc::clone(&recorded) as Arc<dyn Audit>);
    let server = setup.open_with_callers().await;
    let head = "POST /a2a/echo HTTP/1.1\r\na2a-version: 1.0\r\ntest-caller: alice";
    let body = request("SendMessage", &send_params("hi", ""));
    assert_eq!(server.exchange(head, &body).await.status, 200);
    recorded.none();
    assert_eq!(server.exchange(head, &body).await.status, 429);
    let entry = recorded.only();
    assert_eq!((entry.action, entry.refused.as_deref()), ("refused.rate", Some("RATE_LIMITED")));
    assert_eq!((entry.who.as_str(), entry.agent.as_deref()), ("alice", Some("echo")));
    assert!(entry.peer.is_some() && entry.request_id.is_some());
}
