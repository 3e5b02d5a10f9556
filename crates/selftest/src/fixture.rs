//! The servers that the checks run against: the server under test with clients for its agents, and, when the selftest
//! starts servers itself, further servers for checks that need a special configuration or a crash.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    sync::{Mutex, MutexGuard, OnceCell},
    task::JoinSet,
};

use super::{
    App, AppServer, CheckError, Program,
    crash::Crash,
    http::{Response, Server},
    json::{self, ValueChecks as _},
    mismatch,
    server_process::{ANY_PORT, Plan, ServerProcess},
    test_client::TestClient,
};

const MAIN: &str = include_str!("main.toml");
const SINGLE_TASK: &str = include_str!("single_task.toml");
const TOOLS: &str = include_str!("tools.toml");
const PRIVATE: &str = include_str!("private.toml");
const FUNCTIONS: &str = include_str!("functions.toml");
const SAMPLE: &str = include_str!("../../../examples/currency.toml");

/// How many skills an agent may have at least.
pub(crate) const MANY_SKILLS: usize = 15_000;

/// Environment variables that hosting providers set in production.
const PRODUCTION: &[(&str, &str)] =
    &[("NODE_ENV", "production"), ("VERCEL", "1"), ("NETLIFY", "true"), ("K_SERVICE", "a2ad")];

/// The agents that checks use by name.
const AGENTS: [&str; 8] = ["pinkfish", "agent-native", "agentos", "fold", "terse", "quiet", "keyed", "brief"];

/// The server under test and what it offers.
pub(crate) struct Fixture {
    pub(crate) program: Arc<dyn Program>,
    pub(crate) server: Server,
    /// Those of [`AGENTS`] that the server has.
    agents: BTreeSet<&'static str>,
    /// The skill ids of the default agent.
    skills: HashSet<String>,
    /// Whether the default agent's card offers streaming.
    streams: bool,
    /// `None` for a server at a URL.
    own: Option<OwnServers>,
}

/// The servers that the selftest starts. All but the main one start on first use.
struct OwnServers {
    plan: Plan,
    /// Text replacements (from, to) in the configurations.
    changes: Vec<(String, String)>,
    single_task_server: OnceCell<Mutex<ServerProcess>>,
    tools_server: OnceCell<ServerProcess>,
    private_server: OnceCell<ServerProcess>,
    crash: OnceCell<Crash>,
    _main: ServerProcess,
    folder: TempDir,
}

impl Fixture {
    /// Starts a server with the embedded configuration, after text replacements (from, to).
    pub(crate) async fn start(
        program: Arc<dyn Program>,
        executable: std::path::PathBuf,
        changes: &[(String, String)],
    ) -> anyhow::Result<Self> {
        let folder = TempDir::with_prefix("a2ad-selftest-")?;
        let plan = Plan {
            program: executable,
            config: changed(MAIN, changes),
            folder: folder.path().join("main"),
            listen: Some(ANY_PORT),
            environment: &[],
        };
        let main = ServerProcess::start(&plan).await?;
        let server = main.server.clone();
        let own = OwnServers {
            plan,
            changes: changes.to_vec(),
            single_task_server: OnceCell::new(),
            tools_server: OnceCell::new(),
            private_server: OnceCell::new(),
            crash: OnceCell::new(),
            _main: main,
            folder,
        };
        Ok(Self { own: Some(own), ..Self::of(program, server).await? })
    }

    /// Reads the cards of a running server to find out which agents and skills it offers.
    pub(crate) async fn of(program: Arc<dyn Program>, server: Server) -> anyhow::Result<Self> {
        let to_anyhow = |error| match error {
            CheckError::Mismatch { expected, got } => anyhow::anyhow!("expected {expected}, got {got}"),
            CheckError::NotOffered(reason) | CheckError::PartlyChecked(reason) => anyhow::anyhow!(reason),
        };
        let mut agents = BTreeSet::new();
        for name in AGENTS {
            let card = server.get(&format!("/a2a/{name}/.well-known/agent-card.json"), &[]).await;
            if card.map_err(to_anyhow)?.status() == 200 {
                agents.insert(name);
            }
        }
        let card = server.get("/.well-known/agent-card.json", &[]).await.map_err(to_anyhow)?;
        let ids = card.list("skills").unwrap_or_default().iter().filter_map(|skill| skill.text("id").ok());
        let skills = ids.map(str::to_owned).collect();
        let streams = card.is("capabilities.streaming", true).is_ok();
        Ok(Self { program, server, agents, skills, streams, own: None })
    }

    /// Whether the selftest started the server; then every agent and skill must be present.
    pub(crate) fn is_self_started(&self) -> bool {
        self.own.is_some()
    }

    /// The default agent at a path, with one of its skills.
    fn default(&self, path: &str, skill: &'static str) -> Result<TestClient, CheckError> {
        if !self.skills.contains(skill) {
            return Err(CheckError::NotOffered(format!("skill {skill} of the default agent")));
        }
        Ok(TestClient { streaming_offered: self.streams, ..TestClient::new(&self.server, path, skill) })
    }

    /// The default agent with the profile `neutral`.
    pub(crate) fn root(&self, skill: &'static str) -> Result<TestClient, CheckError> {
        self.default("/", skill)
    }

    /// The default agent with the profile `fold`.
    pub(crate) fn fold(&self, skill: &'static str) -> Result<TestClient, CheckError> {
        self.default("/_a2a/", skill)
    }

    /// The default agent with the profile `agent-native`.
    pub(crate) fn native(&self, skill: &'static str) -> Result<TestClient, CheckError> {
        self.default("/_agent-native/a2a", skill)
    }

    /// The default agent with the profile `agentos`.
    pub(crate) fn agentos(&self, skill: &'static str) -> Result<TestClient, CheckError> {
        self.default("/a2a/rpc", skill)
    }

    /// An agent at its own path.
    pub(crate) fn agent(&self, name: &'static str, skill: &'static str) -> Result<TestClient, CheckError> {
        if !self.agents.contains(name) {
            return Err(CheckError::NotOffered(format!("agent {name}")));
        }
        Ok(TestClient::new(&self.server, format!("/a2a/{name}"), skill))
    }

    /// Those of these agents that the server has; a server that the selftest started must have all of them.
    pub(crate) fn agents(
        &self,
        names: &'static [&'static str],
        skill: &'static str,
    ) -> Result<Vec<TestClient>, CheckError> {
        let wanted = names.iter().filter(|name| self.is_self_started() || self.agents.contains(**name));
        wanted.map(|name| self.agent(name, skill)).collect()
    }

    /// The card of the default agent at the draft's path, `agent.json`.
    pub(crate) async fn draft_card(&self) -> Result<Response, CheckError> {
        let card = self.server.get("/.well-known/agent.json", &[]).await?;
        card.has_status(200)?;
        Ok(card)
    }

    /// The card of an agent; `file` is `agent-card.json` or `agent.json`.
    pub(crate) async fn card(&self, name: &'static str, file: &str) -> Result<Response, CheckError> {
        let client = self.agent(name, "")?;
        let card = self.server.get(&format!("{}/.well-known/{file}", client.path), &[]).await?;
        card.has_status(200)?;
        Ok(card)
    }

    /// The cards at the draft's path of those of these agents that the server has; a server that the selftest started
    /// must have all of them.
    pub(crate) async fn draft_cards(
        &self,
        names: &'static [&'static str],
    ) -> Result<Vec<Response>, CheckError> {
        let mut cards = Vec::new();
        for name in names.iter().filter(|name| self.is_self_started() || self.agents.contains(**name)) {
            cards.push(self.card(name, "agent.json").await?);
        }
        Ok(cards)
    }

    /// The server that runs one task at a time, locked for one check at a time.
    pub(crate) async fn single_task_server(&self) -> Result<SingleTaskServer<'_>, CheckError> {
        let own = self.own()?;
        let start = || async { Ok(Mutex::new(start_server(&own.plan_for("single-task")).await?)) };
        Ok(SingleTaskServer { program: own.single_task_server.get_or_try_init(start).await?.lock().await })
    }

    /// The server whose configuration has an MCP server and nothing else.
    pub(crate) async fn tools_server(&self) -> Result<&Server, CheckError> {
        let own = self.own()?;
        let start = || async { start_server(&own.plan_with_tools("tools", TOOLS)).await };
        Ok(&own.tools_server.get_or_try_init(start).await?.server)
    }

    /// The server with tools of users and organisations.
    pub(crate) async fn private_server(&self) -> Result<&Server, CheckError> {
        let own = self.own()?;
        let start = || async { start_server(&own.plan_with_tools("private", PRIVATE)).await };
        Ok(&own.private_server.get_or_try_init(start).await?.server)
    }

    /// A server whose agent has [`MANY_SKILLS`], each with an id of its own letters.
    pub(crate) async fn many_skills_server(&self) -> Result<ServerProcess, CheckError> {
        let letters = |number: usize| {
            let letter = |place| char::from(b'a' + (number / place % 26) as u8);
            [17_576, 676, 26, 1].map(letter).iter().collect::<String>()
        };
        let skill = |number| format!("[skills.{}]\nbuiltin = \"echo\"\n", letters(number));
        let config = (0..MANY_SKILLS).map(skill).collect();
        start_server(&Plan { config, ..self.own()?.plan_for("many-skills") }).await
    }

    /// A server with the functions at `host`.
    pub(crate) async fn functions_server(&self, host: &str) -> Result<ServerProcess, CheckError> {
        let own = self.own()?;
        let config = changed(FUNCTIONS, &own.changes).replace("127.0.0.1:1", host);
        start_server(&Plan { config, ..own.plan_for("functions") }).await
    }

    /// The result of the crash scenario, which runs once for all checks that use it.
    pub(crate) async fn crash(&self) -> Result<&Crash, CheckError> {
        let own = self.own()?;
        own.crash.get_or_try_init(|| Crash::run(own.plan_for("crash"))).await
    }

    /// The server of the currency sample, at `listen` or else at the address of its own configuration file.
    pub(crate) async fn sample(&self, listen: Option<&'static str>) -> Result<ServerProcess, CheckError> {
        start_server(&Plan { config: SAMPLE.into(), listen, ..self.own()?.plan_for("sample") }).await
    }

    /// A server with the environment variables of production.
    pub(crate) async fn production(&self) -> Result<ServerProcess, CheckError> {
        start_server(&Plan { environment: PRODUCTION, ..self.own()?.plan_for("production") }).await
    }

    /// A server with a configured URL.
    pub(crate) async fn published(&self) -> Result<ServerProcess, CheckError> {
        let plan = self.own()?.plan_for("published");
        let config = plan.config.replace("[server]", "[server]\npublic_url = \"https://agents.example\"");
        start_server(&Plan { config, ..plan }).await
    }

    /// The output of `a2ad check --json` for the embedded configuration.
    pub(crate) async fn effective_config(&self) -> Result<Value, CheckError> {
        let own = self.own()?;
        let plan = Plan { folder: own.folder.path().join("effective-config"), ..own.plan.clone() };
        let text = plan.effective_config().await;
        json::parse(
            &text
                .map_err(|error| mismatch("a configuration that a2ad check accepts", format!("{error:#}")))?,
        )
    }

    /// Serves an app that embeds the program's library, inside this process.
    pub(crate) async fn serve(&self, app: App) -> Result<ServedApp, CheckError> {
        let served = self.program.serve(app).await;
        let AppServer { address, serving } =
            served.map_err(|error| mismatch("an app that starts", format!("{error:#}")))?;
        Ok(ServedApp { server: Server::at(address.to_string()), _serving: serving })
    }

    fn own(&self) -> Result<&OwnServers, CheckError> {
        self.own
            .as_ref()
            .ok_or_else(|| CheckError::NotOffered("server that the selftest may start and stop".into()))
    }
}

impl OwnServers {
    fn plan_for(&self, name: &str) -> Plan {
        Plan { config: SINGLE_TASK.into(), folder: self.folder.path().join(name), ..self.plan.clone() }
    }

    /// A server with MCP servers that are this program; the configuration calls it `a2ad`.
    fn plan_with_tools(&self, name: &str, config: &str) -> Plan {
        let program = json::quote(&self.plan.program.to_string_lossy());
        let config = changed(config, &self.changes).replace(r#""a2ad""#, &program);
        Plan { config, ..self.plan_for(name) }
    }
}

fn changed(config: &str, changes: &[(String, String)]) -> String {
    changes.iter().fold(config.to_owned(), |text, (from, to)| text.replace(from, to))
}

pub(crate) async fn start_server(plan: &Plan) -> Result<ServerProcess, CheckError> {
    ServerProcess::start(plan).await.map_err(|error| mismatch("a server that starts", format!("{error:#}")))
}

/// An app that embeds the program's library and is served until this value is dropped.
pub(crate) struct ServedApp {
    pub(crate) server: Server,
    _serving: JoinSet<()>,
}

/// The server that runs one task at a time.
pub(crate) struct SingleTaskServer<'a> {
    program: MutexGuard<'a, ServerProcess>,
}

impl SingleTaskServer<'_> {
    pub(crate) fn server(&self) -> &Server {
        &self.program.server
    }

    /// A client of the default agent with the profile `fold`.
    pub(crate) fn fold(&self, skill: &'static str) -> TestClient {
        TestClient::new(&self.program.server, "/_a2a/", skill)
    }
}
