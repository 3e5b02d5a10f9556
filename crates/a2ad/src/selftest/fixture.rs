//! What the checks ask: a server, its doors, and servers for what needs one of its own.

use std::collections::{BTreeSet, HashSet};

use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard, OnceCell};

use super::{
    Trouble,
    crash::Crash,
    door::Door,
    http::{Answer, Server},
    json::Json,
    program::{ANY_PORT, Plan, Program},
    wrong,
};

const MAIN: &str = include_str!("main.toml");
const NARROW: &str = include_str!("narrow.toml");
const SAMPLE: &str = include_str!("../../../../examples/currency.toml");

/// What providers set where a program is in production.
const PRODUCTION: &[(&str, &str)] =
    &[("NODE_ENV", "production"), ("VERCEL", "1"), ("NETLIFY", "true"), ("K_SERVICE", "a2ad")];

/// The agents that checks ask for by name.
const AGENTS: [&str; 8] = ["pinkfish", "agent-native", "agentos", "fold", "terse", "quiet", "keyed", "brief"];

/// The server that is checked.
pub(super) struct Fixture {
    pub(super) server: Server,
    /// Those it has of [`AGENTS`].
    agents: BTreeSet<&'static str>,
    /// The skills of its default agent.
    skills: HashSet<String>,
    /// Whether its default agent streams, by its card.
    streams: bool,
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
        let plan = Plan {
            program,
            config,
            folder: folder.path().join("main"),
            listen: Some(ANY_PORT),
            environment: &[],
        };
        let main = Program::start(&plan).await?;
        let server = main.server.clone();
        let own = Own { plan, narrow: OnceCell::new(), crash: OnceCell::new(), _main: main, folder };
        Ok(Self { own: Some(own), ..Self::of(server).await? })
    }

    /// Takes a server as it is and looks what it has.
    pub(super) async fn of(server: Server) -> anyhow::Result<Self> {
        let trouble = |trouble| match trouble {
            Trouble::Wrong { expected, got } => anyhow::anyhow!("expected {expected}, got {got}"),
            Trouble::Absent(reason) | Trouble::ButFor(reason) => anyhow::anyhow!(reason),
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
        let streams = card.is("capabilities.streaming", true).is_ok();
        Ok(Self { server, agents, skills, streams, own: None })
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
        Ok(Door { streams: self.streams, ..Door::new(&self.server, path, skill) })
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
        Ok(Door::new(&self.server, format!("/a2a/{name}"), skill))
    }

    /// Those of these agents that the server has; one of ours has all of them.
    pub(super) fn agents(
        &self,
        names: &'static [&'static str],
        skill: &'static str,
    ) -> Result<Vec<Door>, Trouble> {
        let wanted = names.iter().filter(|name| self.is_ours() || self.agents.contains(**name));
        wanted.map(|name| self.agent(name, skill)).collect()
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

    /// The draft's cards of those of these agents that the server has; one of ours has all of them.
    pub(super) async fn old_cards(&self, names: &'static [&'static str]) -> Result<Vec<Answer>, Trouble> {
        let mut cards = Vec::new();
        for name in names.iter().filter(|name| self.is_ours() || self.agents.contains(**name)) {
            cards.push(self.card(name, "agent.json").await?);
        }
        Ok(cards)
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

    /// The server of the sample, where its own file says or at a port that is free.
    pub(super) async fn sample(&self, listen: Option<&'static str>) -> Result<Program, Trouble> {
        begin(&Plan { config: SAMPLE.into(), listen, ..self.own()?.beside("sample") }).await
    }

    /// A server that is told that it is in production.
    pub(super) async fn production(&self) -> Result<Program, Trouble> {
        begin(&Plan { environment: PRODUCTION, ..self.own()?.beside("production") }).await
    }

    /// What the program says that our configuration runs.
    pub(super) async fn described(&self) -> Result<Json, Trouble> {
        let own = self.own()?;
        let plan = Plan { folder: own.folder.path().join("described"), ..own.plan.clone() };
        let text = plan.described().await;
        Json::parse(&text.map_err(|error| wrong("a configuration that is described", format!("{error:#}")))?)
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
        Door::new(&self.program.server, "/_a2a/", skill)
    }
}
