//! The server of the matrix, and what its callers make.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use axum::{body::Body, extract::Request, response::Response};
use bytes::Bytes;
use engine::{
    Agent, AgentInfo, AgentResult, AgentSettings, ApiKey, AuthMethod, AuthMethods, Call, CallResponse,
    Catalog, Clock, DEFAULT_TENANT, DynAgent, EndUser, Engine, Feed, Limits, NewApiKey, Outcome, Profile,
    RegisteredAgent, Scope, ScopeParts, Sealer, SkillSet, Turn,
    push::{PushPolicy, PushSetup},
    store::WebhookNo,
};
use http::{HeaderValue, Version, header};
use http_body_util::BodyExt as _;
use protocol::{
    GetTask, Operation,
    model::{AgentSkill, Secret},
};

use super::{
    principals::{BEARER, Identified, Principal, SECRET, now, token},
    probe::{Field, Probe},
    receiver::Receiver,
    seen::Seen,
};
use crate::{
    access::{auth::NamedSecret, caller::Caller},
    documents::ready::Ready,
    request::connection::Scheme,
    routes::{self, RouteSet},
    server_state::{ServerOptions, ServerState},
    service::{HttpService, ServiceTarget},
    tls::ClientCertificate,
};

/// The agents: the default one, another one, and one whose profile refuses unknown contexts.
pub(super) const AGENTS: [&str; 3] = ["one", "two", "strict"];
/// The only skill of each agent.
pub(super) const SKILL: &str = "say";
/// How long a response may take. A stream that does not end is a leak: it follows a task of somebody else.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A number that is used once, in all processes.
pub(super) fn serial() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Who has made something, at which agent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    pub(super) principal: Principal,
    pub(super) agent: &'static str,
}

/// Whether the tasks were made in the process that is asked, or in an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lifetime {
    Live,
    Stored,
}

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Working,
    InputRequired,
    Completed,
}

/// What a cell is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Need {
    pub(super) field: Field,
    pub(super) state: State,
    /// Who needs another task beside the id, and where. Without it the task of the owner itself is taken.
    pub(super) own_task: Option<Owner>,
}

/// What an owner has made.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) task: String,
    /// A task of the asker.
    pub(super) own_task: String,
    /// The id of a webhook of the task.
    pub(super) config: String,
    context: String,
    key: String,
    message_id: String,
    /// The request with the key or the message id, which the owner can repeat.
    repeatable: Probe,
    page_token: Option<String>,
    session: Option<String>,
    api_key: String,
}

impl Target {
    /// The id that a field holds.
    pub(super) fn id(&self, field: Field) -> String {
        match field {
            Field::Task
            | Field::NamedTask
            | Field::LastEvent
            | Field::PushTask
            | Field::NamedPushTask
            | Field::Reference
            | Field::Signed => self.task.clone(),
            Field::Context | Field::NamedContext => self.context.clone(),
            Field::Key => self.key.clone(),
            Field::MessageId => self.message_id.clone(),
            Field::PageToken | Field::PushPageToken => self.page_token.clone().expect("it was made for this"),
            Field::PushConfig | Field::OwnTaskPushConfig => self.config.clone(),
            Field::Session => self.session.clone().expect("it was made for this"),
            Field::ApiKey => self.api_key.clone(),
        }
    }
}

/// A server.
pub(super) struct World {
    service: HttpService,
    receiver: Receiver,
    identified: Identified,
    /// Bob's API keys, one for each agent.
    api_keys: Vec<(ApiKey, Secret)>,
}

impl World {
    pub(super) async fn open(folder: &Path, identified: Identified) -> Self {
        let (feed, clock) = (Feed::default(), Clock::manual(now()));
        let options =
            store::SqliteOptions { sync: false, ..store::SqliteOptions::at(folder.join("a2ad.db")) };
        let store = Arc::new(store::Sqlite::open(&options, feed.clone(), &clock).unwrap());
        let catalog = Catalog::new(AGENTS[0], AGENTS.map(|id| registered(id, identified)));
        let limits = Limits { concurrent: 100_000, ..Limits::default() };
        let engine = Engine::start(store, feed, catalog, clock, limits);
        let receiver = Receiver::default();
        engine.start_push(PushSetup {
            sender: Arc::new(receiver.clone()),
            sealer: Arc::new(Sealer::new([7; Sealer::KEY_LENGTH])),
            policy: PushPolicy::default(),
        });
        let mut api_keys = Vec::new();
        for agent in AGENTS {
            let new = NewApiKey { tenant: DEFAULT_TENANT, agent, owner: Some("bob"), prefix: "a2ad_" };
            api_keys.push(engine.api_keys().create(&new, 20, now()).await.unwrap());
        }
        let mut options = ServerOptions::default();
        let secret = NamedSecret { name: "TEST_SECRET".into(), secret: Secret::new(SECRET) };
        options.auth.secret = Some(secret);
        options.auth.bearer = Some(Secret::new(BEARER));
        options.auth.admin_token = Some(Secret::new("an admin token of the test"));
        let service = HttpService::new(engine, options, Ready::default());
        Self {
            service: service.bound_to([127, 0, 0, 1].into(), Scheme::Http, RouteSet::All),
            receiver,
            identified,
            api_keys,
        }
    }

    /// The rows of the route table that have had requests.
    pub(super) fn rows_with_requests(&self) -> Vec<usize> {
        (0..routes::ROWS).filter(|number| self.server().counters.of(*number) > 0).collect()
    }

    /// The notifications that have the text of another caller than the one that registered the webhook. Waits until all
    /// have been sent.
    pub(super) async fn misdirected(&self) -> Vec<String> {
        let deliveries = self.server().engine.deliveries();
        let sent = async {
            while !deliveries.pending(WebhookNo(0), 1).await.unwrap().is_empty() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, sent).await.expect("all notifications are accepted");
        let (count, leaks) = self.receiver.received();
        assert!(count > 0, "nobody was notified");
        leaks
    }

    fn server(&self) -> &ServerState {
        let ServiceTarget::Agents(server) = &self.service.served else { panic!("expected agents") };
        server
    }

    /// Sends a request as a caller, and reads the whole response.
    pub(super) async fn send(&self, principal: Principal, probe: Probe) -> Seen {
        let seen = tokio::time::timeout(TIMEOUT, async {
            let (head, body) = self.begin(principal, probe).await.into_parts();
            let collected = body.collect().await.unwrap();
            let trailers = collected.trailers().cloned();
            Seen::new(head.status.as_u16(), &head.headers, &collected.to_bytes(), trailers.as_ref())
        });
        seen.await.unwrap_or_else(|_| Seen::new(0, &http::HeaderMap::new(), &"no end".into(), None))
    }

    /// Whether a caller gets another response than this one. A stream is not read if its head shows that already.
    pub(super) async fn gets_other(&self, principal: Principal, probe: Probe, id: &str, than: &Seen) -> bool {
        let (head, body) = self.begin(principal, probe.clone()).await.into_parts();
        let seen = Seen::new(head.status.as_u16(), &head.headers, &Bytes::new(), None).masked(id);
        if !seen.has_head_of(than) {
            return true;
        }
        let collected = tokio::time::timeout(TIMEOUT, body.collect()).await.unwrap().unwrap();
        let trailers = collected.trailers().cloned();
        let seen = Seen::new(head.status.as_u16(), &head.headers, &collected.to_bytes(), trailers.as_ref());
        seen.masked(id) != *than
    }

    async fn begin(&self, principal: Principal, probe: Probe) -> Response {
        let mut req = Request::new(Body::from(probe.body));
        *req.method_mut() = probe.method;
        *req.uri_mut() = probe.target.parse().unwrap();
        req.headers_mut().insert(header::HOST, HeaderValue::from_static("localhost"));
        for (name, value) in probe.headers {
            req.headers_mut().insert(name, HeaderValue::from_str(&value).unwrap());
        }
        if probe.is_http2 {
            *req.version_mut() = Version::HTTP_2;
        }
        match self.identified {
            Identified::ByApplication => drop(req.extensions_mut().insert(self.caller(principal))),
            Identified::ByCredential => self.present(principal, &mut req),
        }
        let certificate = match (self.identified, principal) {
            (Identified::ByCredential, Principal::Frank) => {
                Some(Arc::new(ClientCertificate::named(principal.names(self.identified).0)))
            }
            _ => None,
        };
        self.service.clone().of_peer([127, 0, 0, 1].into(), certificate).handle_request(req).await
    }

    fn caller(&self, principal: Principal) -> Caller {
        let (name, end_user) = principal.names(self.identified);
        Caller::new(name).with_end_user(end_user)
    }

    /// Adds the credentials of a caller to a request that has none.
    fn present(&self, principal: Principal, req: &mut Request) {
        let (name, end_user) = principal.names(self.identified);
        let subject = |name: &str| name.split_once('#').map_or(name, |(_, subject)| subject).to_owned();
        let credential = match principal {
            // The certificate of Frank belongs to the connection.
            Principal::Anonymous | Principal::Frank => None,
            Principal::Alice => Some(format!("Bearer {}", token(&subject(name)))),
            Principal::Bob => Some(format!("Bearer {}", self.api_key(addressed_agent(req)).1.expose())),
            Principal::CarolForDan | Principal::CarolForEve => Some(format!("Bearer {BEARER}")),
        };
        let headers = req.headers_mut();
        if let Some(credential) = credential {
            headers.entry(header::AUTHORIZATION).or_insert(credential.parse().unwrap());
        }
        headers.insert("x-end-user-token", token(&subject(end_user)).parse().unwrap());
    }

    fn api_key(&self, agent: &str) -> &(ApiKey, Secret) {
        self.api_keys.iter().find(|(key, _)| key.agent == agent).expect("each agent has one")
    }

    /// Makes what a cell needs.
    pub(super) async fn make(&self, owner: &Owner, need: &Need) -> Target {
        let serial = serial();
        let (key, message_id) = (format!("key-{serial:06}"), uuid::Uuid::new_v4().to_string());
        let is_named = matches!(need.field, Field::NamedTask | Field::NamedContext | Field::NamedPushTask);
        let verb = match need.state {
            State::Working => "hold",
            State::InputRequired => "ask",
            State::Completed => "say",
        };
        let text = format!("{verb} {}", owner.principal.marker());
        let repeatable = if is_named {
            Probe::named_send(owner.agent, &text, serial, need.state)
        } else {
            let id = if need.field == Field::Key { "m" } else { message_id.as_str() };
            let probe = Probe::send(owner.agent, &text, id, need.state);
            if need.field == Field::Key { probe.with_header("idempotency-key", &key) } else { probe }
        };
        let made = self.send(owner.principal, repeatable.clone()).await;
        assert!(made.status == 200 && made.body.contains("\"id\":"), "{made:?}");
        let (task, context) =
            (made.member("id"), made.member(if is_named { "sessionId" } else { "contextId" }));
        if need.state == State::Working {
            self.until_working(owner, &task).await;
        }
        let page_token = match need.field {
            Field::PageToken => Some(self.page_token(owner).await),
            Field::PushPageToken => Some(self.webhook_page_token(owner, &task).await),
            _ => None,
        };
        let session = match need.field {
            Field::Session => Some(self.session(owner).await),
            _ => None,
        };
        let config = format!("config-{serial:06}");
        if need.field.is_of_webhook() {
            self.register(owner, &task, &config).await;
        }
        let own_task = match &need.own_task {
            Some(asker) => {
                let text = format!("ask {}", asker.principal.marker());
                let send = Probe::send(asker.agent, &text, "m", State::InputRequired);
                self.send(asker.principal, send).await.member("id")
            }
            None => task.clone(),
        };
        let api_key = self.api_key(owner.agent).0.id.clone();
        Target { task, own_task, config, context, key, message_id, repeatable, page_token, session, api_key }
    }

    /// Registers a webhook for a task of an owner.
    async fn register(&self, owner: &Owner, task: &str, config: &str) {
        let probe = Probe::register(owner.agent, task, config, owner.principal.marker());
        let registered = self.send(owner.principal, probe).await;
        assert!(registered.status == 200 && registered.member("id") == config, "{registered:?}");
    }

    /// A task that is not waited for may begin to work later.
    async fn until_working(&self, owner: &Owner, task: &str) {
        let working = async {
            while !self.send(owner.principal, Probe::get(owner.agent, task)).await.body.contains("WORKING") {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(TIMEOUT, working).await.expect("the task works");
    }

    /// The token of the owner's second page.
    async fn page_token(&self, owner: &Owner) -> String {
        self.send(owner.principal, Probe::send(owner.agent, owner.principal.marker(), "m", State::Completed))
            .await;
        self.send(owner.principal, Probe::first_page(owner.agent)).await.member("nextPageToken")
    }

    /// The token of the second page of a task's webhooks.
    async fn webhook_page_token(&self, owner: &Owner, task: &str) -> String {
        for config in ["first", "second"] {
            self.register(owner, task, config).await;
        }
        let first = Probe::webhooks(owner.agent, task, Some(1));
        self.send(owner.principal, first).await.member("nextPageToken")
    }

    /// A session of MCP.
    async fn session(&self, owner: &Owner) -> String {
        let opened = self.send(owner.principal, Probe::mcp_initialize(owner.agent)).await;
        let session = opened.header("mcp-session-id").unwrap_or_else(|| panic!("{opened:?}")).to_owned();
        let ready = Probe::mcp_initialized(owner.agent).with_header("mcp-session-id", &session);
        assert_eq!(self.send(owner.principal, ready).await.status, 202);
        session
    }

    /// What the owner sees of what it has made.
    pub(super) async fn view(&self, owner: &Owner, field: Field, target: &Target) -> Seen {
        if owner.agent == AGENTS[2] {
            return self.stored(owner, target).await;
        }
        match field {
            Field::Task
            | Field::NamedTask
            | Field::LastEvent
            | Field::Reference
            | Field::Signed
            | Field::Context
            | Field::NamedContext
            | Field::PageToken => self.send(owner.principal, Probe::get(owner.agent, &target.task)).await,
            Field::PushTask
            | Field::NamedPushTask
            | Field::PushConfig
            | Field::OwnTaskPushConfig
            | Field::PushPageToken => {
                let task = self.send(owner.principal, Probe::get(owner.agent, &target.task)).await;
                let webhooks = Probe::webhooks(owner.agent, &target.task, None);
                task.and(self.send(owner.principal, webhooks).await)
            }
            Field::ApiKey => {
                let keys = self.server().engine.api_keys().list().await.unwrap();
                let shown = format!("{keys:?} of {}", owner.principal.marker());
                Seen::new(200, &http::HeaderMap::new(), &shown.into(), None)
            }
            // The same request again is answered with the same task.
            Field::Key | Field::MessageId => {
                let seen = self.send(owner.principal, target.repeatable.clone()).await;
                assert_eq!(seen.header("a2ad-replayed"), Some("true"), "{seen:?}");
                assert!(seen.body.contains(&target.task), "{seen:?}");
                seen
            }
            Field::Session => {
                let session = target.session.as_deref().unwrap_or_default();
                let call = Probe::mcp_call(owner.agent, owner.principal.marker());
                let seen = self.send(owner.principal, call.with_header("mcp-session-id", session)).await;
                // Its task and the ids of its events are new each time.
                let marker = owner.principal.marker();
                let body = if seen.body.contains(marker) { marker } else { "" };
                Seen::new(seen.status, &http::HeaderMap::new(), &body.into(), None)
            }
        }
    }

    /// What a request with the id of a field may have an effect on.
    pub(super) async fn affected(&self, owner: &Owner, field: Field, target: &Target) -> Seen {
        match field {
            // Not the other webhooks of its task: a request that names no webhook adds one.
            Field::PushConfig | Field::OwnTaskPushConfig => {
                let get = Probe::get_webhook(owner.agent, &target.task, &target.config);
                let seen = self.send(owner.principal, get).await;
                // Its headers count notifications.
                Seen::new(seen.status, &http::HeaderMap::new(), &seen.body.into(), None)
            }
            _ => self.view(owner, field, target).await,
        }
    }

    /// The task of an owner at an agent whose profile has no method to read it.
    async fn stored(&self, owner: &Owner, target: &Target) -> Seen {
        let (principal, end_user) = owner.principal.names(self.identified);
        let scope = Scope::new(ScopeParts {
            tenant: DEFAULT_TENANT.into(),
            principal: principal.into(),
            agent: owner.agent.into(),
            end_user: end_user.into(),
        });
        let get = Operation::GetTask(GetTask::from(target.task.clone()));
        match self.server().engine.call(Call::new(scope), get).await.unwrap() {
            CallResponse::Reply(reply) => {
                Seen::new(200, &http::HeaderMap::new(), &format!("{reply:?}").into(), None)
            }
            CallResponse::Stream(_) | CallResponse::Pending(_) | CallResponse::Noted(..) => {
                panic!("expected a task")
            }
        }
    }
}

/// Completes with the text of its message and how many messages preceded it in the conversation, works until it is
/// canceled, or asks.
struct Repeats;

impl Agent for Repeats {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        let text = turn.text();
        if text.starts_with("hold") {
            turn.record().working().await?;
            turn.cancel.cancelled().await;
        }
        if text.starts_with("ask") {
            return Ok(Outcome::ask("which?"));
        }
        let earlier = turn.conversation.messages().await?.len() + turn.history.len();
        Ok(Outcome::artifact("text", format!("{text} after {earlier} messages")))
    }
}

/// The agent that a request addresses: its key is the one that Bob presents.
fn addressed_agent(req: &Request) -> &'static str {
    let in_metadata = req.headers().get("a2a-agent").and_then(|agent| agent.to_str().ok());
    let path = req.uri().path();
    let is_named = |agent: &&str| {
        in_metadata == Some(*agent) || path.split('/').nth(2) == Some(*agent) && path.starts_with("/a2a/")
    };
    AGENTS.into_iter().find(is_named).unwrap_or(AGENTS[0])
}

fn registered(id: &str, identified: Identified) -> RegisteredAgent {
    let skill = AgentSkill {
        id: SKILL.into(),
        name: SKILL.into(),
        description: "for a test".into(),
        tags: vec!["test".into()],
        examples: Vec::new(),
        input_modes: Vec::new(),
        output_modes: Vec::new(),
        security_requirements: Vec::new(),
    };
    let info = AgentInfo {
        id: id.into(),
        name: id.into(),
        description: "for a test".into(),
        version: "1".into(),
        input_modes: vec!["text/plain".into()],
        output_modes: vec!["text/plain".into()],
    };
    let profile = if id == AGENTS[2] { Profile::pinkfish() } else { Profile::neutral() };
    let (auth, end_user) = match identified {
        Identified::ByApplication => (AuthMethods::ANONYMOUS, EndUser::Off),
        Identified::ByCredential => {
            let credentials = [AuthMethod::Jwt, AuthMethod::ApiKey, AuthMethod::Bearer, AuthMethod::Mtls];
            (credentials.into_iter().fold(AuthMethods::ANONYMOUS, AuthMethods::with), EndUser::Required)
        }
    };
    let settings = AgentSettings { profile, auth, end_user, push: true, ..AgentSettings::default() };
    RegisteredAgent::new(info, SkillSet::of_cards(DynAgent::new(Repeats), [skill])).with_settings(settings)
}
