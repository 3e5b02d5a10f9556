//! Webhooks are notified about every change of the state, at least once and in order, whatever the receiver does.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use a2ad_engine::{
    AgentSwitch, AuthMethod, Call, CallResponse, NewApiKey, ResponseNote, Scope, ScopeParts, Sealer,
    SwitchState,
    push::{
        AddressGate, DeliveryId, ListedDelivery, ListedState, PushPolicy, PushRequest, PushSender, PushSetup,
        Resent, SendResult,
    },
    store::WebhookNo,
};
use futures_util::future::{BoxFuture, FutureExt as _};
use protocol::{
    CancelTask, ConfigId, Dialect, ErrorKind, Operation, PushConfig, PushConfigQuery, PushConfigRef, Reply,
    TaskId, Violation,
    model::{PushAuth, Secret},
};
use tokio::sync::watch;

use crate::common::{
    MessageBuilder, RunningTurn, Setup, TestServer, artifact, bare_message, call_in, done, msg, need_input,
    refusal, reply, scope, task, with_timeout, working,
};

const URL: &str = "https://receiver.example/hook";

/// A receiver: records requests and answers them as configured.
#[derive(Clone)]
struct Receiver(Arc<Inner>);

struct Inner {
    requests: watch::Sender<Vec<PushRequest>>,
    challenges: watch::Sender<usize>,
    answer: Mutex<SendResult>,
}

impl Receiver {
    fn new(answer: SendResult) -> Self {
        Self(Arc::new(Inner {
            requests: watch::Sender::new(Vec::new()),
            challenges: watch::Sender::new(0),
            answer: Mutex::new(answer),
        }))
    }

    fn answer(&self, answer: SendResult) {
        *self.0.answer.lock().unwrap() = answer;
    }

    /// Waits for this many requests.
    async fn requests(&self, count: usize) -> Vec<PushRequest> {
        let mut requests = self.0.requests.subscribe();
        let requests = with_timeout(requests.wait_for(|requests| requests.len() >= count)).await.unwrap();
        requests.clone()
    }

    fn count(&self) -> usize {
        self.0.requests.borrow().len()
    }
}

impl PushSender for Receiver {
    fn check(&self, config: &PushConfig) -> Result<(), Violation> {
        if config.url.starts_with("https://") { Ok(()) } else { Err(Violation::new("url", "not https")) }
    }

    fn is_signing_key(&self, token: &Secret) -> bool {
        token.expose().len() >= 24
    }

    fn send(&self, request: PushRequest) -> BoxFuture<'static, SendResult> {
        let receiver = self.clone();
        async move {
            let answer = receiver.0.answer.lock().unwrap().clone();
            receiver.0.requests.send_modify(|requests| requests.push(request));
            answer
        }
        .boxed()
    }

    fn challenge(
        &self,
        _url: String,
        _timeout: Duration,
        _gate: AddressGate,
    ) -> BoxFuture<'static, SendResult> {
        self.0.challenges.send_modify(|count| *count += 1);
        let answer = self.0.answer.lock().unwrap().clone();
        async move { answer }.boxed()
    }
}

fn policy(waits: usize) -> PushPolicy {
    PushPolicy {
        waits: vec![Duration::from_millis(20); waits],
        probe_interval: Duration::from_millis(50),
        ..PushPolicy::default()
    }
}

fn start(server: &TestServer, receiver: &Receiver, policy: PushPolicy) {
    let sealer = Arc::new(Sealer::new([7; 32]));
    server.engine.start_push(PushSetup { sender: Arc::new(receiver.clone()), sealer, policy });
}

/// A server whose webhooks are received.
fn open(policy: PushPolicy) -> (TestServer, Receiver) {
    let (server, receiver) = (Setup::plain().open(), Receiver::new(SendResult::Accepted));
    start(&server, &receiver, policy);
    (server, receiver)
}

fn body(request: &PushRequest) -> String {
    String::from_utf8(request.body.to_vec()).unwrap()
}

fn secret(answer: &CallResponse) -> Option<String> {
    match answer {
        CallResponse::Noted(ResponseNote::WebhookSecret(secret), _) => Some(secret.expose().to_owned()),
        _ => None,
    }
}

async fn register(server: &TestServer, id: &TaskId, config: PushConfig) -> CallResponse {
    let config = PushConfig { task_id: Some(id.clone()), ..config };
    server.call(scope(), Operation::CreatePushConfig(config)).await.unwrap()
}

/// How deliveries to the webhook of a task are going.
async fn health(server: &TestServer, id: &TaskId) -> String {
    let get = Operation::GetPushConfig(PushConfigRef { task_id: id.clone(), id: None, tenant: None });
    match server.call(scope(), get).await.unwrap() {
        CallResponse::Noted(ResponseNote::PushHealth(health), _) => health,
        _ => panic!("expected the health of a webhook"),
    }
}

/// A task whose agent works.
async fn started(server: &mut TestServer, message: MessageBuilder) -> (TaskId, RunningTurn) {
    let sent = server.send_as(Call::new(scope()), message.return_immediately()).await.unwrap();
    (task(reply(sent)).id, server.agent.turn().await)
}

/// A task that is completed.
async fn completed(server: &mut TestServer, message: MessageBuilder) -> TaskId {
    let sent = server.spawn_send_as(Call::new(scope()), message);
    server.agent.turn().await.end(done());
    task(reply(with_timeout(sent).await.unwrap().unwrap())).id
}

/// What was given up, when nothing else is pending.
async fn dead_letters(server: &TestServer) -> Vec<ListedDelivery> {
    let deliveries = server.engine.deliveries();
    with_timeout(async {
        loop {
            let dead = deliveries.dead(i64::MAX, 10).await.unwrap();
            if !dead.is_empty() && deliveries.pending(WebhookNo(0), 10).await.unwrap().is_empty() {
                return dead;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
}

#[tokio::test]
async fn each_change_of_the_state_is_notified_in_order() {
    let (mut server, receiver) = open(policy(3));
    let call = Call::new(scope());
    let sent = server.send_as(call, msg("go").webhook(URL).return_immediately()).await.unwrap();
    let key = secret(&sent).unwrap();
    let id = task(reply(sent)).id;
    let turn = server.agent.turn().await;
    let first = receiver.requests(1).await;
    assert!(body(&first[0]).contains(r#""state":"TASK_STATE_WORKING""#), "submitted is superseded");
    assert_eq!(first[0].signing_key.expose(), key);
    assert_eq!(first[0].media_type, "application/a2a+json");
    turn.send([artifact("a", "text")]);
    turn.end(need_input("which"));
    let second = receiver.requests(2).await;
    assert!(body(&second[1]).contains("TASK_STATE_INPUT_REQUIRED") && body(&second[1]).contains("which"));
    let follow_up = server.spawn_send_as(Call::new(scope()), msg("that").to(&id));
    server.agent.turn().await.end(done());
    with_timeout(follow_up).await.unwrap().unwrap();
    // The state `working` of the second turn may be superseded.
    let mut all = receiver.requests(3).await;
    if !body(&all[2]).contains("TASK_STATE_COMPLETED") {
        all = receiver.requests(4).await;
    }
    let last = body(all.last().unwrap());
    assert!(last.starts_with(r#"{"task":{"#) && last.contains("TASK_STATE_COMPLETED"), "{last}");
    let ids: Vec<_> = all.iter().map(|request| request.id.clone()).collect();
    let mut sorted = ids.clone();
    sorted.dedup();
    assert_eq!(ids, sorted, "each has an id of its own");
    assert!(ids.iter().all(|one| one.starts_with(id.as_str())));
}

#[tokio::test]
async fn a_failed_delivery_is_repeated_with_the_same_id_and_body() {
    let (mut server, receiver) = open(policy(9));
    receiver.answer(SendResult::Rejected { status: 500, retry_after: None });
    // The sender waits for nobody.
    completed(&mut server, msg("go").webhook(URL)).await;
    receiver.requests(3).await;
    receiver.answer(SendResult::Accepted);
    let all = with_timeout(async {
        loop {
            let count = receiver.count();
            tokio::time::sleep(Duration::from_millis(100)).await;
            if receiver.count() == count {
                return receiver.requests(count).await;
            }
        }
    })
    .await;
    let completed: Vec<_> = all.iter().filter(|one| body(one).contains("COMPLETED")).collect();
    assert!(completed.len() >= 3);
    assert!(completed.iter().all(|one| one.id == completed[0].id && one.body == completed[0].body));
}

#[tokio::test]
async fn what_is_given_up_is_kept_and_can_be_sent_again() {
    let (mut server, receiver) = open(policy(2));
    receiver.answer(SendResult::Failed("the server cannot be reached".into()));
    let id = completed(&mut server, msg("go").webhook(URL)).await;
    let deliveries = server.engine.deliveries();
    let dead = dead_letters(&server).await;
    assert_eq!(health(&server, &id).await, "failed; delivered=0");
    let letter = &dead[0];
    assert!(matches!(letter.state, ListedState::Dead(_)));
    assert_eq!((letter.attempts, letter.host.as_str()), (3, "receiver.example"));
    assert_eq!(letter.error.as_deref(), Some("the server cannot be reached"));
    let failed = deliveries.resend(letter.id).await.unwrap();
    assert_eq!(failed, Resent::Failed("the server cannot be reached".into()));
    receiver.answer(SendResult::Accepted);
    let before = receiver.count();
    assert_eq!(deliveries.resend(letter.id).await.unwrap(), Resent::Delivered);
    let resent = receiver.requests(before + 1).await;
    assert_eq!(resent[before].id, letter.notification);
    assert_eq!(resent[before].body, resent[before - 1].body);
    assert_eq!(deliveries.resend(letter.id).await.unwrap(), Resent::Unknown);
    assert_eq!(deliveries.resend(DeliveryId::Pending(WebhookNo(999))).await.unwrap(), Resent::Unknown);
}

#[tokio::test]
async fn a_receiver_that_is_gone_gets_no_more() {
    let (mut server, receiver) = open(policy(3));
    receiver.answer(SendResult::Rejected { status: 410, retry_after: None });
    let (id, turn) = started(&mut server, msg("go").webhook(URL)).await;
    receiver.requests(1).await;
    with_timeout(async {
        while health(&server, &id).await != "disabled; delivered=0; reason=410" {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    turn.end(done());
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(receiver.count(), 1);
    assert_eq!(server.engine.deliveries().dead(i64::MAX, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_forbidden_address_is_given_up_at_once() {
    let (mut server, receiver) = open(policy(3));
    receiver.answer(SendResult::Forbidden("its address is not public".into()));
    completed(&mut server, msg("go").webhook(URL)).await;
    let dead = dead_letters(&server).await;
    assert_eq!(dead[0].attempts, 1);
}

#[tokio::test]
async fn a_webhook_of_a_finished_task_is_notified_about_its_end() {
    let (mut server, receiver) = open(policy(3));
    let id = completed(&mut server, msg("go")).await;
    let answer = register(&server, &id, PushConfig::new(URL)).await;
    assert!(secret(&answer).is_some());
    assert!(body(&receiver.requests(1).await[0]).contains("COMPLETED"));
}

#[tokio::test]
async fn notifications_have_the_form_of_the_generation_that_registered_the_webhook() {
    let (mut server, receiver) = open(policy(3));
    let id = completed(&mut server, msg("go")).await;
    for (count, dialect) in (1..).zip([Dialect::Draft, Dialect::V03, Dialect::V03Proto]) {
        let config = PushConfig {
            id: Some(ConfigId::from(dialect.label())),
            task_id: Some(id.clone()),
            ..PushConfig::new(URL)
        };
        let create = Operation::CreatePushConfig(config);
        server.call_as(call_in(dialect), create).await.unwrap();
        let requests = receiver.requests(count).await;
        let body = body(&requests[count - 1]);
        assert_eq!(requests[count - 1].media_type, "application/json");
        assert_eq!(body.contains(r#""kind":"task""#), dialect != Dialect::Draft, "{body}");
        assert!(body.contains(r#""state":"completed""#), "{body}");
    }
}

#[tokio::test]
async fn secrets_are_shown_once_and_belong_to_the_owner() {
    let (mut server, _receiver) = open(policy(3));
    let (id, turn) = started(&mut server, msg("go")).await;
    let config = PushConfig {
        id: Some("mine".into()),
        token: Some(Secret::new("a-token-of-at-least-24-bytes")),
        authentication: Some(PushAuth::new("Bearer", Some(Secret::new("credentials")))),
        ..PushConfig::new(URL)
    };
    let created = register(&server, &id, config.clone()).await;
    assert!(secret(&created).is_none(), "the token is the key");
    let Reply::PushConfig(echoed) = reply(created) else { panic!("a config") };
    assert_eq!(echoed.token, config.token);
    let read = PushConfigRef { task_id: id.clone(), id: Some("mine".into()), tenant: None };
    let got = server.call(scope(), Operation::GetPushConfig(read.clone())).await.unwrap();
    let Reply::PushConfig(got) = reply(got) else { panic!("a config") };
    assert_eq!((got.url.as_str(), got.token.unwrap().expose()), (URL, "***"));
    let stranger = a2ad_engine::Scope::anonymous("elsewhere", "scripted");
    for operation in [
        Operation::GetPushConfig(read.clone()),
        Operation::DeletePushConfig(read.clone()),
        Operation::ListPushConfigs(PushConfigQuery::from(id.clone())),
        Operation::CreatePushConfig(PushConfig { task_id: Some(id.clone()), ..PushConfig::new(URL) }),
    ] {
        let error = refusal(server.call(stranger.clone(), operation).await);
        assert_eq!(error.kind, ErrorKind::TaskNotFound);
    }
    for _ in 0..2 {
        let deleted = server.call(scope(), Operation::DeletePushConfig(read.clone())).await.unwrap();
        assert_eq!(reply(deleted), Reply::Deleted);
    }
    let error = refusal(server.call(scope(), Operation::GetPushConfig(read)).await);
    assert_eq!(error.kind, ErrorKind::TaskNotFound);
    turn.end(done());
}

#[tokio::test]
async fn a_task_has_ten_webhooks_at_most_and_pages_of_them() {
    let (mut server, _receiver) = open(policy(3));
    let (id, turn) = started(&mut server, msg("go")).await;
    for number in 0..10 {
        let config = PushConfig { id: Some(format!("c{number}").into()), ..PushConfig::new(URL) };
        register(&server, &id, config).await;
    }
    let eleventh = PushConfig { task_id: Some(id.clone()), ..PushConfig::new(URL) };
    let error = refusal(server.call(scope(), Operation::CreatePushConfig(eleventh)).await);
    assert_eq!(error.kind, ErrorKind::InvalidParams);
    let again = PushConfig { id: Some("c3".into()), ..PushConfig::new(URL) };
    register(&server, &id, again).await;
    let mut query = PushConfigQuery { page_size: Some(4), ..PushConfigQuery::from(id.clone()) };
    let mut seen = Vec::new();
    loop {
        let page = server.call(scope(), Operation::ListPushConfigs(query.clone())).await.unwrap();
        let Reply::PushConfigs(page) = reply(page) else { panic!("a page") };
        seen.extend(page.configs.into_iter().map(|config| config.id.unwrap().to_string()));
        match page.next_page_token {
            Some(token) => query.page_token = Some(token),
            None => break,
        }
    }
    assert_eq!(seen, (0..10).map(|number| format!("c{number}")).collect::<Vec<_>>());
    query.page_token = Some("made-up".into());
    let error = refusal(server.call(scope(), Operation::ListPushConfigs(query)).await);
    assert_eq!(error.kind, ErrorKind::InvalidParams);
    turn.end(done());
}

#[tokio::test]
async fn a_bare_reply_notifies_nobody() {
    let (mut server, receiver) = open(policy(3));
    let sent = server.spawn_send_as(Call::new(scope()), msg("go").webhook(URL));
    let turn = server.agent.turn().await;
    turn.send([bare_message("hello")]);
    with_timeout(sent).await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(receiver.count(), 0);
}

#[tokio::test]
async fn deliveries_continue_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::new(SendResult::Failed("down".into()));
    let mut server = Setup::plain().open_at(folder.path());
    start(&server, &receiver, policy(500));
    let sent = server.spawn_send_as(Call::new(scope()), msg("go").webhook(URL));
    let turn = server.agent.turn().await;
    turn.send([working()]);
    turn.end(done());
    with_timeout(sent).await.unwrap().unwrap();
    receiver.requests(1).await;
    server.engine.drain(Duration::from_secs(5)).await;
    drop((turn, server));
    receiver.answer(SendResult::Accepted);
    let before = receiver.count();
    let server = Setup::plain().open_at(folder.path());
    start(&server, &receiver, policy(500));
    let requests = receiver.requests(before + 1).await;
    let last = requests.last().unwrap();
    assert!(body(last).contains("COMPLETED"));
}

#[tokio::test]
async fn a_receiver_of_the_draft_confirms_its_url_first() {
    let (server, receiver) = (Setup::plain().open(), Receiver::new(SendResult::Failed("no token".into())));
    let mut server = server;
    start(&server, &receiver, PushPolicy { challenge: true, ..policy(200) });
    let sent = server.send_as(call_in(Dialect::Draft), msg("go").client_task("t").return_immediately());
    let id = task(reply(sent.await.unwrap())).id;
    let turn = server.agent.turn().await;
    let config = PushConfig { task_id: Some(id), ..PushConfig::new(URL) };
    server.call_as(call_in(Dialect::Draft), Operation::CreatePushConfig(config)).await.unwrap();
    turn.end(done());
    let mut challenges = receiver.0.challenges.subscribe();
    with_timeout(challenges.wait_for(|count| *count >= 2)).await.unwrap();
    assert_eq!(receiver.count(), 0);
    receiver.answer(SendResult::Accepted);
    receiver.requests(1).await;
}

#[tokio::test]
async fn a_url_that_is_not_allowed_is_refused_when_it_is_registered() {
    let (server, _receiver) = open(policy(3));
    let error = refusal(server.send_as(Call::new(scope()), msg("go").webhook("http://a.example/")).await);
    assert_eq!(error.kind, ErrorKind::InvalidParams);
    assert_eq!(error.violations[0].field, "configuration.taskPushNotificationConfig.url");
}

/// The pending deliveries of a server, when there are this many that are held.
async fn held(server: &TestServer, count: usize) -> Vec<ListedDelivery> {
    with_timeout(async {
        loop {
            let pending = server.engine.deliveries().pending(WebhookNo(0), 10).await.unwrap();
            let is_held =
                |one: &&ListedDelivery| one.error.as_deref().is_some_and(|error| error.starts_with("held: "));
            if pending.iter().filter(is_held).count() == count {
                return pending;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
}

async fn switch(server: &TestServer, state: SwitchState) {
    let scope = scope();
    let (tenant, agent) = (scope.tenant().to_owned(), scope.agent().to_owned());
    let at = server.engine.clock().now();
    server.engine.switch_agent(AgentSwitch { tenant, agent, state, at, by: "test".into() }).await.unwrap();
}

#[tokio::test]
async fn notifications_of_a_disabled_agent_are_held_until_it_is_enabled() {
    let (mut server, receiver) = open(policy(3));
    let (_, turn) = started(&mut server, msg("go").webhook(URL)).await;
    receiver.requests(1).await;
    switch(&server, SwitchState::Disabled).await;
    turn.send([artifact("a", "text")]);
    turn.end(done());
    let pending = held(&server, 1).await;
    let ListedState::Pending(next) = pending[0].state else { panic!("it is pending") };
    assert!(next > server.engine.clock().now());
    assert_eq!((pending[0].attempts, pending[0].error.as_deref()), (0, Some("held: the agent is disabled")));
    // Asked for by an operator, it is held again.
    assert_eq!(server.engine.deliveries().resend(pending[0].id).await.unwrap(), Resent::Scheduled);
    held(&server, 1).await;
    assert_eq!(receiver.count(), 1);
    switch(&server, SwitchState::Enabled).await;
    assert!(body(&receiver.requests(2).await[1]).contains("COMPLETED"));
}

#[tokio::test]
async fn notifications_of_a_revoked_principal_are_held_until_it_has_a_credential_again() {
    let auth = [AuthMethod::ApiKey, AuthMethod::Jwt].into_iter().collect();
    let (mut server, receiver) = (Setup::plain().auth(auth).open(), Receiver::new(SendResult::Accepted));
    let is_removed = Arc::new(AtomicBool::new(false));
    let removed = Arc::clone(&is_removed);
    server.engine.set_revoked_principals(Box::new(move |principal| {
        removed.load(Ordering::Relaxed) && principal == "acme.example#alice"
    }));
    start(&server, &receiver, policy(3));
    let own = scope();
    let new = NewApiKey { tenant: own.tenant(), agent: own.agent(), owner: Some("alice"), prefix: "" };
    let mut keys = Vec::new();
    for _ in 0..2 {
        keys.push(server.engine.create_api_key(&new, 20).await.unwrap().0.id);
    }
    let owner =
        |principal: &str| Scope::new(ScopeParts { principal: principal.into(), ..scope().parts().clone() });
    let mut tasks = Vec::new();
    for (count, principal) in (1..).zip(["key:alice", "acme.example#alice", "key:bob"]) {
        let call = Call::new(owner(principal));
        let sent = server.send_as(call, msg("go").webhook(URL).return_immediately()).await.unwrap();
        tasks.push((owner(principal), task(reply(sent)).id, server.agent.turn().await));
        receiver.requests(count).await;
    }
    // The other key of the same owner is valid: nothing is held yet.
    assert!(server.engine.revoke_api_key(&keys[0]).await.unwrap());
    let (alice, id, turn) = tasks.remove(0);
    turn.end(need_input("which"));
    receiver.requests(4).await;
    assert!(server.engine.revoke_api_key(&keys[1]).await.unwrap());
    is_removed.store(true, Ordering::Relaxed);
    server.engine.access_changes().announce();
    for (_, _, turn) in tasks {
        turn.end(done());
    }
    server.call(alice, Operation::CancelTask(CancelTask::from(id))).await.unwrap();
    held(&server, 2).await;
    let all = receiver.requests(5).await;
    assert_eq!(all.len(), 5, "only that of bob");
    is_removed.store(false, Ordering::Relaxed);
    server.engine.access_changes().announce();
    receiver.requests(6).await;
    server.engine.create_api_key(&new, 20).await.unwrap();
    receiver.requests(7).await;
}
