//! What the checks ask: a server, its doors, and servers for what needs one of its own.

use std::{
    collections::{BTreeSet, HashSet},
    hash::{BuildHasher as _, RandomState},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard, OnceCell};

use super::{
    Checked, Trouble,
    crash::Crash,
    http::{Answer, Event, Events, Headers, Server},
    json::{Json, quote},
    program::{ANY_PORT, Plan, Program},
    wrong,
};

const MAIN: &str = include_str!("main.toml");
const NARROW: &str = include_str!("narrow.toml");

/// The agents that checks ask for by name.
const AGENTS: [&str; 6] = ["pinkfish", "agent-native", "agentos", "quiet", "keyed", "brief"];

/// The server that is checked.
pub(super) struct Fixture {
    pub(super) server: Server,
    /// Those it has of [`AGENTS`].
    agents: BTreeSet<&'static str>,
    /// The skills of its default agent.
    skills: HashSet<String>,
    /// Present where the server is one of ours.
    own: Option<Own>,
}

/// Our own servers. Those beside the first start when somebody needs them.
struct Own {
    plan: Plan,
    narrow: OnceCell<Mutex<Program>>,
    crash: OnceCell<Crash>,
    _main: Program,
    folder: TempDir,
}

impl Fixture {
    /// Starts a server with our configuration, in which some texts may be replaced by others.
    pub(super) async fn start(
        program: std::path::PathBuf,
        changes: &[(String, String)],
    ) -> anyhow::Result<Self> {
        let folder = TempDir::with_prefix("a2ad-selftest-")?;
        let config = changes.iter().fold(MAIN.to_owned(), |text, (from, to)| text.replace(from, to));
        let plan = Plan { program, config, folder: folder.path().join("main"), listen: ANY_PORT };
        let main = Program::start(&plan).await?;
        let server = main.server.clone();
        let own = Own { plan, narrow: OnceCell::new(), crash: OnceCell::new(), _main: main, folder };
        Ok(Self { own: Some(own), ..Self::of(server).await? })
    }

    /// Takes a server as it is and looks what it has.
    pub(super) async fn of(server: Server) -> anyhow::Result<Self> {
        let trouble = |trouble| match trouble {
            Trouble::Wrong { expected, got } => anyhow::anyhow!("expected {expected}, got {got}"),
            Trouble::Absent(reason) | Trouble::Impossible(reason) => anyhow::anyhow!(reason),
        };
        let mut agents = BTreeSet::new();
        for name in AGENTS {
            let card = server.get(&format!("/a2a/{name}/.well-known/agent-card.json"), &[]).await;
            if card.map_err(trouble)?.status() == 200 {
                agents.insert(name);
            }
        }
        let card = server.get("/.well-known/agent-card.json", &[]).await.map_err(trouble)?;
        let ids = card.list("skills").unwrap_or_default().iter().filter_map(|skill| skill.text("id").ok());
        let skills = ids.map(str::to_owned).collect();
        Ok(Self { server, agents, skills, own: None })
    }

    /// Whether the server is one of ours.
    pub(super) fn is_ours(&self) -> bool {
        self.own.is_some()
    }

    /// The default agent at a path, by one of its skills.
    fn default(&self, path: &str, skill: &'static str) -> Result<Door, Trouble> {
        if !self.skills.contains(skill) {
            return Err(Trouble::Absent(format!("skill {skill} of the default agent")));
        }
        Ok(Door { server: self.server.clone(), path: path.into(), skill })
    }

    /// The default agent in the protocol's own style.
    pub(super) fn root(&self, skill: &'static str) -> Result<Door, Trouble> {
        self.default("/", skill)
    }

    /// The default agent in the style of fold.run.
    pub(super) fn fold(&self, skill: &'static str) -> Result<Door, Trouble> {
        self.default("/_a2a/", skill)
    }

    /// The default agent in the style of agent-native.
    pub(super) fn native(&self, skill: &'static str) -> Result<Door, Trouble> {
        self.default("/_agent-native/a2a", skill)
    }

    /// The default agent in the style of AgentOS.
    pub(super) fn agentos(&self, skill: &'static str) -> Result<Door, Trouble> {
        self.default("/a2a/rpc", skill)
    }

    /// An agent at its own path.
    pub(super) fn agent(&self, name: &'static str, skill: &'static str) -> Result<Door, Trouble> {
        if !self.agents.contains(name) {
            return Err(Trouble::Absent(format!("agent {name}")));
        }
        Ok(Door { server: self.server.clone(), path: format!("/a2a/{name}"), skill })
    }

    /// The card of the default agent, as the draft has it.
    pub(super) async fn old_card(&self) -> Result<Answer, Trouble> {
        let card = self.server.get("/.well-known/agent.json", &[]).await?;
        card.has_status(200)?;
        Ok(card)
    }

    /// The card of an agent; `file` is one of its two names.
    pub(super) async fn card(&self, name: &'static str, file: &str) -> Result<Answer, Trouble> {
        let door = self.agent(name, "")?;
        let card = self.server.get(&format!("{}/.well-known/{file}", door.path), &[]).await?;
        card.has_status(200)?;
        Ok(card)
    }

    /// The server that runs one task at a time, for one check at a time.
    pub(super) async fn narrow(&self) -> Result<Narrow<'_>, Trouble> {
        let own = self.own()?;
        let start = || async { Ok(Mutex::new(begin(&own.beside("narrow")).await?)) };
        Ok(Narrow { program: own.narrow.get_or_try_init(start).await?.lock().await })
    }

    /// What was left after a server was killed.
    pub(super) async fn crash(&self) -> Result<&Crash, Trouble> {
        let own = self.own()?;
        own.crash.get_or_try_init(|| Crash::happen(own.beside("crash"))).await
    }

    /// A further server, at this address.
    pub(super) async fn another(&self, name: &str, listen: &'static str) -> Result<Program, Trouble> {
        begin(&Plan { listen, ..self.own()?.beside(name) }).await
    }

    fn own(&self) -> Result<&Own, Trouble> {
        self.own.as_ref().ok_or_else(|| Trouble::Absent("server that may be started and stopped".into()))
    }
}

impl Own {
    fn beside(&self, name: &str) -> Plan {
        Plan { config: NARROW.into(), folder: self.folder.path().join(name), ..self.plan.clone() }
    }
}

pub(super) async fn begin(plan: &Plan) -> Result<Program, Trouble> {
    Program::start(plan).await.map_err(|error| wrong("a server that starts", format!("{error:#}")))
}

/// The server that runs one task at a time.
pub(super) struct Narrow<'a> {
    program: MutexGuard<'a, Program>,
}

impl Narrow<'_> {
    pub(super) fn server(&self) -> &Server {
        &self.program.server
    }

    /// A door of the draft, by a skill.
    pub(super) fn fold(&self, skill: &'static str) -> Door {
        Door { server: self.program.server.clone(), path: "/_a2a/".into(), skill }
    }
}

/// Where an agent takes calls, and the skill that is asked for.
#[derive(Clone, Debug)]
pub(super) struct Door {
    pub(super) server: Server,
    pub(super) path: String,
    pub(super) skill: &'static str,
}

impl Door {
    /// The same door and another skill.
    pub(super) fn by(&self, skill: &'static str) -> Self {
        Self { skill, ..self.clone() }
    }

    /// Posts a body.
    pub(super) async fn post(&self, body: &str) -> Result<Answer, Trouble> {
        self.server.post(&self.path, body).await
    }

    /// Calls a method.
    pub(super) async fn call(&self, method: &str, params: &str) -> Result<Answer, Trouble> {
        self.post(&request(method, params)).await
    }

    /// Calls a method that is answered with events.
    pub(super) async fn stream(&self, method: &str, params: &str) -> Result<Events, Trouble> {
        self.server.stream(&self.path, &[], &request(method, params)).await
    }

    /// The same with headers.
    pub(super) async fn stream_with(
        &self,
        headers: Headers<'_>,
        method: &str,
        params: &str,
    ) -> Result<Events, Trouble> {
        self.server.stream(&self.path, headers, &request(method, params)).await
    }

    /// The parameters of a draft's send of a message to a task; `more` are further members.
    pub(super) fn params(&self, task: &str, message: &str, more: &str) -> String {
        let (task, skill) = (quote(task), quote(self.skill));
        format!(r#"{{"id":{task},"skill":{skill},"message":{message}{more}}}"#)
    }

    /// Sends a message to a task in the draft's way.
    pub(super) async fn send(&self, task: &str, message: &str, more: &str) -> Result<Answer, Trouble> {
        self.call("tasks/send", &self.params(task, message, more)).await
    }

    /// Sends a text in a new task; gives the task's id too.
    pub(super) async fn say(&self, said: &str) -> Result<(String, Answer), Trouble> {
        let task = fresh();
        let answer = self.send(&task, &text(said), "").await?;
        Ok((task, answer))
    }

    /// Sends a text in a new task without waiting for what comes of it.
    pub(super) async fn begin(&self, said: &str) -> Result<(String, Answer), Trouble> {
        let task = fresh();
        let answer = self.send(&task, &text(said), r#","async":true"#).await?;
        Ok((task, answer))
    }

    /// Every event of a new task with a text.
    pub(super) async fn events(&self, said: &str) -> Result<(String, Vec<Event>), Trouble> {
        let task = fresh();
        let params = self.params(&task, &text(said), "");
        let events = self.stream("tasks/sendSubscribe", &params).await?.all().await?;
        Ok((task, events))
    }

    pub(super) async fn get(&self, task: &str) -> Result<Answer, Trouble> {
        self.call("tasks/get", &format!(r#"{{"id":{}}}"#, quote(task))).await
    }

    pub(super) async fn cancel(&self, task: &str) -> Result<Answer, Trouble> {
        self.call("tasks/cancel", &format!(r#"{{"id":{}}}"#, quote(task))).await
    }

    /// Sends parts as a message of 0.3; `more` are further parameters.
    pub(super) async fn message(&self, parts: &str, more: &str) -> Result<Answer, Trouble> {
        self.call("message/send", &self.message_params(parts, "", more)).await
    }

    /// The parameters of a send of 0.3; `within` are further members of the message.
    pub(super) fn message_params(&self, parts: &str, within: &str, more: &str) -> String {
        let (id, skill) = (quote(&fresh()), quote(self.skill));
        format!(
            r#"{{"message":{{"kind":"message","messageId":{id},"role":"user","parts":{parts}{within}}},"skill":{skill}{more}}}"#
        )
    }

    /// Asks for a task until it is as expected.
    pub(super) async fn until(
        &self,
        task: &str,
        expected: &str,
        holds: impl Fn(&Answer) -> bool,
    ) -> Result<Answer, Trouble> {
        const PATIENCE: Duration = Duration::from_secs(10);
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let answer = self.get(task).await?;
            if holds(&answer) {
                return Ok(answer);
            }
            if tokio::time::Instant::now() > deadline {
                return Err(wrong(format!("{expected} within {} seconds", PATIENCE.as_secs()), answer));
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }

    /// Asks for a task until it is in this state.
    pub(super) async fn until_state(&self, task: &str, state: &str) -> Result<Answer, Trouble> {
        self.until(task, &format!("state {state}"), |answer| answer.is("result.status.state", state).is_ok())
            .await
    }
}

/// A JSON-RPC request.
pub(super) fn request(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":{},"params":{params}}}"#, quote(method))
}

/// A message of the draft that is one text.
pub(super) fn text(text: &str) -> String {
    format!(r#"{{"role":"user","parts":[{{"type":"text","text":{}}}]}}"#, quote(text))
}

/// Parts of 0.3 that are one text.
pub(super) fn text_part(text: &str) -> String {
    format!(r#"[{{"kind":"text","text":{}}}]"#, quote(text))
}

/// A name nobody has used.
pub(super) fn fresh() -> String {
    static RUN: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one("run"));
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("selftest-{:x}-{}", *RUN, NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The states that events tell, in order, each as often as it is told.
pub(super) fn states(events: &[Event]) -> Vec<&str> {
    events.iter().filter_map(|event| event.data.text("result.status.state").ok()).collect()
}

/// All of it came as events: numbered, in order, the last one final.
pub(super) fn ends_well(events: &[Event]) -> Checked {
    let all = || Json::List(events.iter().map(|event| event.data.clone()).collect());
    let Some((last, before)) = events.split_last() else { return Err(wrong("events", "none")) };
    all().must(last.data.is("result.final", true).is_ok(), "the last event to be final")?;
    let early = before.iter().any(|event| event.data.is("result.final", true).is_ok());
    all().must(!early, "only the last event to be final")
}
