//! Tools of MCP servers as backends of skills.
//!
//! [`McpServer`] keeps the processes or the connection of one configured server, restarts them, and lists the tools;
//! [`McpServer::backend`] is the backend of one tool. `sdk` is the only module that uses the MCP library.

mod answer;
mod call;
mod messages;
mod parked;
mod reply;
mod sdk;
mod server;
mod slots;
mod stderr;

use std::{fmt, sync::Arc, time::Duration};

use engine::OnCrash;
use http::HeaderName;
use protocol::{Json, model::Secret};
use tokio::{sync::watch, time::Instant};

use crate::{
    backend::{Backend, Reply},
    dial::Dialer,
    masked::{masked, masked_command},
    process::{Launch, Launcher},
    skill::Interface,
};
use call::McpTool;
use server::Server;

/// One configured MCP server.
#[derive(Clone, Debug, PartialEq)]
pub struct McpConfig {
    /// Name in the configuration; it appears in errors and logs.
    pub name: String,
    /// How to reach it.
    pub transport: Transport,
    /// How many processes it has.
    pub pool: Pool,
    /// Which calls share a process.
    pub isolation: Isolation,
    /// A call fails when the server neither answers nor reports progress for this long. A client that was asked has so
    /// much time to answer until its call may lose its process to a call of the same principal; a call of another
    /// principal gets the process at once.
    pub timeout: Duration,
    /// How tools take messages.
    pub interface: Interface,
    /// The tools that are skills: names, in which `*` stands for any text.
    pub tools: Vec<String>,
    /// Whether tools may ask the client. A process or session of an older protocol revision then runs one call at a time.
    pub elicitation: bool,
}

impl McpConfig {
    /// A server with the defaults: one to four processes, shared, 60 s of silence, tools may ask.
    pub fn new(name: impl Into<String>, transport: Transport) -> Self {
        Self {
            name: name.into(),
            transport,
            pool: Pool::default(),
            isolation: Isolation::default(),
            timeout: Duration::from_secs(60),
            interface: Interface::default(),
            tools: vec!["*".into()],
            elicitation: true,
        }
    }
}

/// How an MCP server is reached.
#[derive(Clone, PartialEq)]
pub enum Transport {
    /// A process that speaks MCP on standard input and output.
    Stdio(Launch),
    /// Streamable HTTP.
    Http {
        /// The endpoint.
        url: String,
        /// Sent with every request.
        headers: Vec<(HeaderName, Secret)>,
    },
}

impl Transport {
    /// A URL without its query, or a program with its arguments; without secrets, for the log.
    pub fn target(&self) -> String {
        match self {
            Self::Stdio(launch) => masked_command(&launch.argv),
            Self::Http { url, .. } => {
                let url = url.split(['?', '#']).next().unwrap_or_default();
                masked(url).unwrap_or_else(|| url.to_owned())
            }
        }
    }
}

impl From<Transport> for McpConfig {
    /// With the defaults, and without a name.
    fn from(transport: Transport) -> Self {
        Self::new("", transport)
    }
}

impl From<Launch> for McpConfig {
    fn from(launch: Launch) -> Self {
        Transport::Stdio(launch).into()
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio(launch) => write!(out, "Stdio({:?})", launch.argv),
            Self::Http { url, .. } => write!(out, "Http({url})"),
        }
    }
}

/// How many processes a server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Started at once and kept. Processes that an open question holds do not count.
    pub min: usize,
    /// Calls wait, in turns between principals, when so many processes are busy. Open questions of one principal hold at
    /// most half of them, but one at least.
    pub max: usize,
    /// A process above `min` stops after so much time without a call.
    pub idle_stop: Duration,
}

impl Default for Pool {
    fn default() -> Self {
        Self { min: 1, max: 4, idle_stop: Duration::from_secs(600) }
    }
}

/// Which calls share a process, and with it whatever state the server keeps in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// All calls.
    #[default]
    Shared,
    /// The calls of one conversation (A2A context).
    Context,
    /// None: each call has a process of its own.
    Call,
}

/// An MCP server with its processes or connection. Cheap to clone; it stops when the last clone and the last of its
/// backends are dropped.
#[derive(Clone)]
pub struct McpServer(Arc<Owner>);

struct Owner(Arc<Server>);

impl McpServer {
    /// Starts in the background and returns at once. Must be called within a Tokio runtime.
    pub fn start(config: McpConfig, launcher: Launcher, dialer: Dialer) -> Self {
        Self(Arc::new(Owner(Server::start(config, launcher, dialer))))
    }

    /// The tools: `None` until they are known. They change when the server reports it, and after a restart.
    pub fn tools(&self) -> watch::Receiver<Option<Arc<[Tool]>>> {
        self.inner().tools()
    }

    /// Resolves when the tools are known, or the first start has failed.
    pub async fn first_start(&self) {
        let mut tools = self.tools();
        tokio::select! {
            _ = tools.wait_for(Option::is_some) => {}
            () = self.inner().start_failed() => {}
        }
    }

    /// The backend of one tool. It may be made before the tool is known.
    pub fn backend(&self, tool: &str) -> Arc<dyn Backend> {
        Arc::new(McpTool { server: self.clone(), tool: tool.to_owned(), message_argument: None })
    }

    /// The same of a tool that gets the message of a call in one of its arguments.
    pub fn backend_with_message(&self, tool: &str, argument: &str) -> Arc<dyn Backend> {
        let message_argument = Some(argument.to_owned());
        Arc::new(McpTool { server: self.clone(), tool: tool.to_owned(), message_argument })
    }

    /// The state at this moment.
    pub fn health(&self) -> Health {
        self.inner().health()
    }

    /// Ends all processes within a bounded time; later calls fail.
    pub async fn stop(&self) {
        self.inner().stop().await;
    }

    fn inner(&self) -> &Arc<Server> {
        let Owner(server) = &*self.0;
        server
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.begin_stop();
    }
}

/// The state of a server.
#[derive(Clone, Debug)]
pub struct Health {
    /// Whether it can be called.
    pub status: Status,
    /// Processes or connections that are ready.
    pub ready: usize,
    /// How often a process or connection has ended and was not stopped by us.
    pub restarts: u64,
    /// Why the last start failed, and when. It may have been repeated with success since.
    pub last_start_failure: Option<(String, Instant)>,
    /// The last 8 KiB of what its processes wrote to standard error.
    pub stderr_tail: String,
}

/// Whether a server can be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// No process is ready yet.
    Starting,
    /// At least one process is ready.
    Ready,
    /// Starting failed; calls wait for the next attempt.
    BackingOff {
        /// When the next start is tried.
        until: Instant,
        /// Why the last start failed.
        error: String,
    },
    /// Starting failed repeatedly, or the server was stopped; calls fail at once.
    Failed {
        /// Why.
        error: String,
    },
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => out.write_str("starting"),
            Self::Ready => out.write_str("ready"),
            Self::BackingOff { error, .. } => write!(out, "it is started again soon: {error}"),
            Self::Failed { error } => write!(out, "it does not start: {error}"),
        }
    }
}

/// A tool of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Unique within its server.
    pub name: String,
    /// For people.
    pub title: Option<String>,
    /// What it does; empty if the server gives none.
    pub description: String,
    /// What its arguments must be.
    pub input_schema: Json,
    /// What its structured result is.
    pub output_schema: Option<Json>,
    /// What the server states about its effects.
    pub annotations: Annotations,
}

/// What a server states about the effects of a tool; `None`: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may delete or overwrite.
    pub destructive: Option<bool>,
    /// Repeating a call with the same arguments has no further effect.
    pub idempotent: Option<bool>,
    /// It reaches systems outside the server.
    pub open_world: Option<bool>,
}

impl Tool {
    /// What to do with a call that was interrupted: it is repeated only if the server states that the tool is read-only,
    /// or idempotent and not destructive.
    pub fn on_crash(&self) -> OnCrash {
        let Annotations { read_only, idempotent, destructive, .. } = self.annotations;
        let repeatable = idempotent == Some(true) && destructive != Some(true);
        if read_only == Some(true) || repeatable { OnCrash::Retry } else { OnCrash::Fail }
    }
}

/// What clients would get for the output of a process, for tests with damaged bytes.
#[doc(hidden)]
pub async fn replies_to_lines(output: &[u8]) -> Vec<Reply> {
    sdk::replies_to_lines(output).await
}

/// What clients would get for a stream of an HTTP server that consists of these chunks, for tests with damaged bytes.
#[doc(hidden)]
pub fn replies_to_events(chunks: &[&[u8]]) -> Vec<Reply> {
    sdk::replies_to_events(chunks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_is_repeated_only_if_the_server_states_that_this_is_safe() {
        let on_crash = |read_only, idempotent, destructive| {
            let tool = Tool {
                name: "t".into(),
                title: None,
                description: String::new(),
                input_schema: Json::parse("{}").unwrap(),
                output_schema: None,
                annotations: Annotations { read_only, idempotent, destructive, open_world: None },
            };
            tool.on_crash()
        };
        assert_eq!(on_crash(None, None, None), OnCrash::Fail);
        assert_eq!(on_crash(Some(true), None, None), OnCrash::Retry);
        assert_eq!(on_crash(Some(false), Some(true), None), OnCrash::Retry);
        assert_eq!(on_crash(None, Some(true), Some(true)), OnCrash::Fail);
        assert_eq!(on_crash(None, Some(false), Some(false)), OnCrash::Fail);
    }
}
