//! One client command's session with one agent or server: address, credentials, timeout and errors.

use std::{
    cell::{Cell, RefCell},
    future::Future,
    path::PathBuf,
    time::Duration,
};

use clap::Args;
use client::{Client, ClientOptions, Error, FoundCard};
use protocol::{Dialect, TaskId, TraceContext, nearest};
use tokio::time::Instant;

use super::connection;

use super::credentials::{self, CredentialFlags};

use super::directory::Directory;

use crate::cli::duration;

use crate::cli::failure::{Failure, GivenFlags, code};

use crate::cli::named_value::NamedValue;

use crate::cli::output::Output;

use crate::cli::suggest;

use super::target::{self, Target};

use crate::address;
use crate::cli::tls::TlsFlags;

/// The arguments of client commands that address one agent.
#[derive(Debug, Args)]
pub(crate) struct SessionFlags {
    /// Agent: URL, URL of its card, host:port, or the name of an agent on the local server.
    #[arg(value_name = "AGENT")]
    agent: String,
    #[command(flatten)]
    connection: ConnectionFlags,
    /// Where files of the result are written.
    #[arg(skip)]
    folder: Option<PathBuf>,
    /// The server is one of this process.
    #[arg(skip)]
    is_local: bool,
}

/// Where files of a result are written.
#[derive(Debug, Default, Args)]
pub(crate) struct FolderFlags {
    /// Write the files of the result into this folder; created if it does not exist.
    #[arg(short = 'o', long = "output-dir", value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// The arguments of all client commands.
#[derive(Debug, Args)]
pub(crate) struct ConnectionFlags {
    /// Server of agents given by name [default: http://127.0.0.1:4242, env: A2AD_URL].
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Version of A2A to use instead of the card's preferred one; required for an endpoint without a card.
    #[arg(long, value_name = "VERSION", value_parser = NamedValue { names: &DIALECTS, parse: parse_dialect })]
    dialect: Option<Dialect>,
    /// How long to wait for a response, or for the next event of a stream.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration::parse)]
    timeout: Duration,
    /// Print A2A 1.0 JSON, one document per line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    credentials: CredentialFlags,
    #[command(flatten)]
    tls: TlsFlags,
}

impl SessionFlags {
    /// For an agent of this process, without credentials.
    pub(crate) fn local(url: String, json: bool) -> Self {
        let connection = ConnectionFlags {
            server: None,
            dialect: None,
            timeout: Duration::from_secs(300),
            json,
            credentials: CredentialFlags::default(),
            tls: TlsFlags::default(),
        };
        Self { agent: url, connection, folder: None, is_local: true }
    }

    /// Writes files of the result as these flags say.
    pub(crate) fn saving(self, FolderFlags { folder }: FolderFlags) -> Self {
        Self { folder, ..self }
    }
}

/// How long a server is asked again that starts, or that limits the rate of calls.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running client command.
pub(crate) struct Session {
    flags: ConnectionFlags,
    /// The agent as typed; empty if the command addresses a server.
    agent: String,
    target: Target,
    /// The server is one of this process, which ends with the command.
    pub(crate) is_local: bool,
    pub(crate) output: Output,
    /// The current task, once its id is known.
    task: RefCell<Option<TaskId>>,
    /// What the agent's card requires of its callers, once the card is known.
    required: RefCell<Option<String>>,
    /// Whether a message was sent.
    sent: Cell<bool>,
    /// When the agent last sent something; the timeout counts from here.
    last_activity: Cell<Instant>,
}

impl Session {
    /// Runs a command for one agent.
    pub(crate) fn run<F>(
        flags: SessionFlags,
        subcommand: impl FnOnce(std::rc::Rc<Self>) -> F,
    ) -> Result<u8, Failure>
    where
        F: Future<Output = Result<u8, Failure>>,
    {
        let target = Target::read(&flags.agent, flags.connection.server()?)?;
        Self::run_at(target, flags, subcommand)
    }

    /// Runs a command for a server: this one, else that of the flag or the environment.
    pub(crate) fn run_for_server<F>(
        server: Option<&str>,
        connection: ConnectionFlags,
        subcommand: impl FnOnce(std::rc::Rc<Self>) -> F,
    ) -> Result<u8, Failure>
    where
        F: Future<Output = Result<u8, Failure>>,
    {
        let named = server.map(|server| target::server("SERVER", server)).transpose()?;
        let target = Target::Server(match named {
            Some(server) => server,
            None => connection.server()?.unwrap_or_else(|| target::SERVER.to_owned()),
        });
        let flags = SessionFlags { agent: String::new(), connection, folder: None, is_local: false };
        Self::run_at(target, flags, subcommand)
    }

    /// Runs a command until it ends, the agent is silent for the timeout, or Ctrl-C is pressed.
    fn run_at<F>(
        target: Target,
        flags: SessionFlags,
        subcommand: impl FnOnce(std::rc::Rc<Self>) -> F,
    ) -> Result<u8, Failure>
    where
        F: Future<Output = Result<u8, Failure>>,
    {
        let SessionFlags { agent, connection: flags, folder, is_local } = flags;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::new(code::ERROR, error.to_string()))?;
        runtime.block_on(async {
            let session = std::rc::Rc::new(Self {
                flags,
                agent,
                target,
                is_local,
                output: Output::new().with_folder(folder),
                task: RefCell::default(),
                required: RefCell::default(),
                sent: Cell::new(false),
                last_activity: Cell::new(Instant::now()),
            });
            session.report_scheme();
            let done = tokio::select! {
                biased;
                done = subcommand(session.clone()) => done,
                _ = tokio::signal::ctrl_c() => Err(session.interrupted()),
                () = session.idle_timeout() => Err(session.timed_out().await),
            };
            match done {
                Ok(code) => Ok(code),
                Err(failure) => Err(session.advised(failure).await),
            }
        })
    }

    /// Reports the scheme chosen for a host and port on another machine.
    fn report_scheme(&self) {
        let url = self.target.url();
        let chosen =
            !self.agent.is_empty() && !self.agent.contains("://") && matches!(self.target, Target::Url(_));
        if chosen && !address::is_loopback(connection::host_of(&url)) {
            self.output.message(&format!("{} has no scheme; using {url}", self.agent));
        }
    }

    pub(crate) fn json(&self) -> bool {
        self.flags.json
    }

    /// A command for a task that reaches the same agent with the same flags, to be pasted into a shell.
    pub(crate) fn command(&self, subcommand: &str, task: &str, args: &[&str]) -> String {
        let mut flags = Vec::new();
        if let (Target::Local { .. }, Some(server)) = (&self.target, &self.flags.server) {
            flags.extend(["--server".to_owned(), server.clone()]);
        }
        if let Some(dialect) = self.flags.dialect {
            flags.extend(["--dialect".to_owned(), dialect_name(dialect).to_owned()]);
        }
        flags.extend(self.flags.credentials.repeated());
        flags.extend(self.flags.tls.repeated());
        suggest::command(subcommand, &[&[self.agent.as_str(), task], args].concat(), &flags)
    }

    fn given(&self) -> GivenFlags {
        let credentials = &self.flags.credentials;
        GivenFlags {
            credentials: credentials.given(),
            has_credential: credentials.has_credential() || self.flags.tls.has_certificate(),
            dialect: self.flags.dialect.is_some(),
            required: self.required.borrow().clone(),
        }
    }

    /// Finds the agent's card.
    pub(crate) async fn card(&self) -> Result<FoundCard, Failure> {
        Ok(client::find_card(&self.target.url(), &self.options(None)?).await?)
    }

    /// The agents of the server.
    pub(crate) async fn directory(&self) -> Result<Directory, Failure> {
        Ok(Directory::read(&self.target.url(), &self.options(None)?).await?)
    }

    /// A client for the agent, from its card or, with `--dialect`, without one.
    pub(crate) async fn client(&self) -> Result<Client, Failure> {
        let url = self.target.url();
        let found = match client::find_card(&url, &self.options(None)?).await {
            Ok(found) => found,
            // Every agent that can be addressed by name has a card.
            Err(error @ Error::NoCard { .. }) if matches!(self.target, Target::Local { .. }) => {
                return Err(error.into());
            }
            Err(error) if error.means_no_card() && self.flags.dialect.is_some() => {
                return Ok(Client::connect_with(&url, self.options(None)?)?);
            }
            Err(error) => return Err(error.into()),
        };
        *self.required.borrow_mut() = credentials::required(&found.card);
        let options = self.options(Some(&found))?;
        self.record_activity();
        if let Target::Local { .. } = self.target {
            // A name selects an agent of this server; the public address of its card is ignored.
            return Ok(found.client_at(&url, options)?);
        }
        if let Some(endpoint) = found.endpoint_on_other_origin(&options)? {
            let text = format!("the card at {} names an endpoint on another host: {endpoint}", found.url());
            self.output.message(&text);
        }
        Ok(found.client(options)?)
    }

    /// Restarts the timeout: the agent sent something.
    pub(crate) fn record_activity(&self) {
        self.last_activity.set(Instant::now());
    }

    /// Records that a message is about to be sent: from now on the agent may be working.
    pub(crate) fn record_sent(&self) {
        self.sent.set(true);
    }

    /// Records the id of the current task.
    pub(crate) fn record_task(&self, task: Option<&TaskId>) {
        if let Some(task) = task {
            *self.task.borrow_mut() = Some(task.clone());
        }
    }

    fn options(&self, found: Option<&FoundCard>) -> Result<ClientOptions, Failure> {
        let headers = self.flags.credentials.headers(found.map(|found| &found.card))?;
        let options = ClientOptions::default().with_headers(headers).with_dialect(self.flags.dialect);
        let options = options.with_tls(self.flags.tls.load()?).with_patience(PATIENCE);
        Ok(match trace_of_environment() {
            Some(trace) if !options.headers.contains_key("traceparent") => options.with_trace_context(&trace),
            Some(_) | None => options,
        })
    }

    /// Adds what to do about the cause, which may require a probe of the server.
    async fn advised(&self, failure: Failure) -> Failure {
        match failure.cause.as_deref() {
            Some(Error::NoCard { .. }) => match self.target.name() {
                Some((server, name)) => self.no_such_agent(failure, server, name).await,
                None => failure.advised(&self.given()),
            },
            Some(error) if connection::needs_probe(error) => {
                let next = connection::advice(&self.target, error).await;
                let failure = Failure { next: failure.next.or(next), ..failure };
                failure.advised(&self.given())
            }
            _ => failure.advised(&self.given()),
        }
    }

    /// The error for an agent the server does not have, with the nearest name and all names.
    async fn no_such_agent(&self, failure: Failure, server: &str, name: &str) -> Failure {
        let options = self.options(None).unwrap_or_default();
        let Ok(Directory { agents, .. }) = Directory::read(server, &options).await else {
            return failure.advised(&self.given());
        };
        let text = format!("there is no agent {name} at {server}");
        let ids: Vec<&str> =
            agents.iter().map(|agent| agent.id.as_str()).filter(|id| !id.is_empty()).collect();
        let nearest = nearest(name, ids.iter().copied()).map(|nearest| format!("did you mean {nearest}? "));
        let failure = Failure { text, code: code::NOT_FOUND, ..failure };
        match ids.as_slice() {
            [] => failure,
            ids => failure.with_next(format!(
                "{}available agents: {}",
                nearest.unwrap_or_default(),
                ids.join(", ")
            )),
        }
    }

    async fn idle_timeout(&self) {
        let end = || self.last_activity.get() + self.flags.timeout;
        while Instant::now() < end() {
            tokio::time::sleep_until(end()).await;
        }
    }

    async fn timed_out(&self) -> Failure {
        let (url, timeout) = (self.target.url(), self.flags.timeout);
        let origin = connection::origin_of(&url).map(|(scheme, authority)| format!("{scheme}://{authority}"));
        if self.is_local {
            return Failure::new(
                code::TIMEOUT,
                format!("the skill reported nothing for {timeout:?} and was ended"),
            );
        }
        let text = format!("no answer from {} within {timeout:?}", origin.unwrap_or(url));
        if !self.sent.get() && self.task.borrow().is_none() {
            let next = connection::advice_for_timeout(&self.target).await;
            return Failure { next, ..Failure::new(code::TIMEOUT, text) };
        }
        let failure = self.unfinished(code::TIMEOUT);
        Failure { text: format!("{text}; {}", failure.text), ..failure }
    }

    fn interrupted(&self) -> Failure {
        self.unfinished(code::INTERRUPTED)
    }

    fn unfinished(&self, code: u8) -> Failure {
        if self.is_local {
            return Failure::new(code, "the skill was ended before its result");
        }
        match &*self.task.borrow() {
            Some(task) => Failure::new(code, format!("task {task} is still running"))
                .with_next(format!("follow it with: {}", self.command("tasks watch", task.as_str(), &[]))),
            None if self.sent.get() => Failure::new(code, "the agent may still be working"),
            None => Failure::new(code, "interrupted before anything was sent"),
        }
    }
}

impl ConnectionFlags {
    /// The server from the flag, else from the environment.
    fn server(&self) -> Result<Option<String>, Failure> {
        let typed = match &self.server {
            Some(server) => Some(("--server", server.clone())),
            None => std::env::var("A2AD_URL").ok().map(|server| ("A2AD_URL", server)),
        };
        let given = typed.filter(|(_, server)| !server.is_empty());
        given.map(|(source, server)| target::server(source, &server)).transpose()
    }
}

/// The offered versions; [`parse_dialect`] accepts more spellings.
const DIALECTS: [&str; 3] = ["draft", "0.3", "1.0"];

/// The `--dialect` value of a dialect.
fn dialect_name(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Draft => "draft",
        Dialect::V03 | Dialect::V03Proto => "0.3",
        Dialect::V1 => "1.0",
    }
}

fn parse_dialect(typed: &str) -> Result<Dialect, String> {
    match typed.trim().to_ascii_lowercase().trim_start_matches('v') {
        "draft" | "0.1" => Ok(Dialect::Draft),
        "0.2" | "0.3" | "03" | "0.3.0" => Ok(Dialect::V03),
        "1.0" | "1" | "1.0.0" | "1.0.1" => Ok(Dialect::V1),
        _ => Err("expected draft, 0.3 or 1.0".to_owned()),
    }
}

/// The span that has started this program, as OpenTelemetry passes it to processes; `None` if there is no valid one.
fn trace_of_environment() -> Option<TraceContext> {
    let state = std::env::var("TRACESTATE").ok();
    TraceContext::parse(&std::env::var("TRACEPARENT").ok()?, state.as_deref())
}
