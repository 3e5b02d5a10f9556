//! One verb's conversation with one agent: who it is, how it is reached, and how long it may take.

use std::{
    cell::{Cell, RefCell},
    future::Future,
    time::Duration,
};

use clap::Args;
use client::{Client, Error, FoundCard, Options};
use protocol::{Dialect, TaskId, nearest};
use tokio::time::Instant;

use super::{
    connection,
    credentials::CredentialFlags,
    directory::Directory,
    named::Named,
    screen::Screen,
    span,
    stop::{Given, Stop, code},
    suggest,
    target::{self, Target},
};
use crate::address;

/// What all client verbs take that are about one agent.
#[derive(Debug, Args)]
pub(super) struct SessionFlags {
    /// The agent: a URL, the URL of its card, host:port, or the name of an agent of this machine's server.
    #[arg(value_name = "AGENT")]
    agent: String,
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// What all client verbs take.
#[derive(Debug, Args)]
pub(super) struct ConnectionFlags {
    /// The server whose agents are meant by name [default: http://127.0.0.1:4242, env: A2AD_URL].
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// The version of A2A to use, whatever the card prefers. An endpoint without a card needs it.
    #[arg(long, value_name = "VERSION", value_parser = Named { names: &DIALECTS, parse: dialect })]
    dialect: Option<Dialect>,
    /// How long to wait for an answer, or for the next event of a stream.
    #[arg(long, value_name = "SPAN", default_value = "5m", value_parser = span::parse)]
    timeout: Duration,
    /// Write A2A 1.0 JSON, one document a line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    credentials: CredentialFlags,
}

/// A verb at work.
pub(super) struct Session {
    flags: ConnectionFlags,
    /// The agent as it was typed; empty where a whole server is meant.
    agent: String,
    target: Target,
    pub(super) screen: Screen,
    /// The task at hand, once there is one.
    task: RefCell<Option<TaskId>>,
    /// Whether a message was sent.
    sent: Cell<bool>,
    /// When the agent was last heard.
    heard: Cell<Instant>,
}

impl Session {
    /// Runs a verb about one agent.
    pub(super) fn run<F>(flags: SessionFlags, verb: impl FnOnce(std::rc::Rc<Self>) -> F) -> Result<u8, Stop>
    where
        F: Future<Output = Result<u8, Stop>>,
    {
        let SessionFlags { agent, connection } = flags;
        let target = Target::read(&agent, connection.server()?)?;
        Self::run_at(target, agent, connection, verb)
    }

    /// Runs a verb about a whole server: this one, else that of the flag or the environment.
    pub(super) fn run_for_server<F>(
        server: Option<&str>,
        connection: ConnectionFlags,
        verb: impl FnOnce(std::rc::Rc<Self>) -> F,
    ) -> Result<u8, Stop>
    where
        F: Future<Output = Result<u8, Stop>>,
    {
        let named = server.map(|server| target::server("SERVER", server)).transpose()?;
        let target = Target::Server(match named {
            Some(server) => server,
            None => connection.server()?.unwrap_or_else(|| target::SERVER.to_owned()),
        });
        Self::run_at(target, String::new(), connection, verb)
    }

    /// Runs a verb until it is done, the agent is silent for too long, or somebody presses Ctrl-C.
    fn run_at<F>(
        target: Target,
        agent: String,
        flags: ConnectionFlags,
        verb: impl FnOnce(std::rc::Rc<Self>) -> F,
    ) -> Result<u8, Stop>
    where
        F: Future<Output = Result<u8, Stop>>,
    {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Stop::new(code::COULD_NOT, error.to_string()))?;
        runtime.block_on(async {
            let session = std::rc::Rc::new(Self {
                flags,
                agent,
                target,
                screen: Screen::new(),
                task: RefCell::default(),
                sent: Cell::new(false),
                heard: Cell::new(Instant::now()),
            });
            session.name_scheme();
            let done = tokio::select! {
                biased;
                done = verb(session.clone()) => done,
                _ = tokio::signal::ctrl_c() => Err(session.interrupted()),
                () = session.silence() => Err(session.timed_out().await),
            };
            match done {
                Ok(code) => Ok(code),
                Err(stop) => Err(session.advised(stop).await),
            }
        })
    }

    /// Reports which scheme was chosen for a host and port of another machine.
    fn name_scheme(&self) {
        let url = self.target.url();
        let chosen =
            !self.agent.is_empty() && !self.agent.contains("://") && matches!(self.target, Target::Url(_));
        if chosen && !address::is_loopback(connection::host_of(&url)) {
            self.screen.say(&format!("{} names no scheme; using {url}", self.agent));
        }
    }

    pub(super) fn json(&self) -> bool {
        self.flags.json
    }

    /// A command about a task that reaches the same agent as this one does, for whoever wants to paste it.
    pub(super) fn command(&self, verb: &str, task: &str, words: &[&str]) -> String {
        let mut flags = Vec::new();
        if let (Target::Local { .. }, Some(server)) = (&self.target, &self.flags.server) {
            flags.extend(["--server".to_owned(), server.clone()]);
        }
        if let Some(dialect) = self.flags.dialect {
            flags.extend(["--dialect".to_owned(), word(dialect).to_owned()]);
        }
        flags.extend(self.flags.credentials.repeated());
        suggest::command(verb, &[&[self.agent.as_str(), task], words].concat(), &flags)
    }

    fn given(&self) -> Given {
        let credentials = &self.flags.credentials;
        Given {
            credentials: credentials.given(),
            tells_who_calls: credentials.tell_who_calls(),
            dialect: self.flags.dialect.is_some(),
        }
    }

    /// The card, wherever it is.
    pub(super) async fn card(&self) -> Result<FoundCard, Stop> {
        Ok(client::find_card(&self.target.url(), &self.options(None)?).await?)
    }

    /// The agents of the server.
    pub(super) async fn directory(&self) -> Result<Directory, Stop> {
        Ok(Directory::read(&self.target.url(), &self.options(None)?).await?)
    }

    /// A client of the agent, by its card or without one.
    pub(super) async fn client(&self) -> Result<Client, Stop> {
        let url = self.target.url();
        let found = match client::find_card(&url, &self.options(None)?).await {
            Ok(found) => found,
            // Every agent that can be meant by a name has a card.
            Err(error @ Error::NoCard { .. }) if matches!(self.target, Target::Local { .. }) => {
                return Err(error.into());
            }
            Err(error) if error.is_without_card() && self.flags.dialect.is_some() => {
                return Ok(Client::connect_with(&url, self.options(None)?)?);
            }
            Err(error) => return Err(error.into()),
        };
        let options = self.options(Some(&found))?;
        self.alive();
        if let Target::Local { .. } = self.target {
            // A name means an agent of the server it was asked of, whatever public address its card has for others.
            return Ok(found.client_at(&url, options)?);
        }
        if let Some(endpoint) = found.elsewhere(&options)? {
            let text = format!("the card at {} names an endpoint on another host: {endpoint}", found.url());
            self.screen.say(&text);
        }
        Ok(found.client(options)?)
    }

    /// The agent has been heard: it is given the full time again.
    pub(super) fn alive(&self) {
        self.heard.set(Instant::now());
    }

    /// A message is about to be sent: from now on the agent may be at work.
    pub(super) fn sending(&self) {
        self.sent.set(true);
    }

    /// Notes the task at hand.
    pub(super) fn note(&self, task: Option<&TaskId>) {
        if let Some(task) = task {
            *self.task.borrow_mut() = Some(task.clone());
        }
    }

    fn options(&self, found: Option<&FoundCard>) -> Result<Options, Stop> {
        let headers = self.flags.credentials.headers(found.map(|found| &found.card))?;
        Ok(Options { headers, dialect: self.flags.dialect, ..Options::default() })
    }

    /// The same with what to do about its cause, which may take another look at the server.
    async fn advised(&self, stop: Stop) -> Stop {
        match stop.cause.as_deref() {
            Some(Error::NoCard { .. }) => match self.target.name() {
                Some((server, name)) => self.no_such_agent(stop, server, name).await,
                None => stop.advised(&self.given()),
            },
            Some(error) if connection::is_in_doubt(error) => {
                let next = connection::advice(&self.target, error).await;
                let stop = Stop { next: stop.next.or(next), ..stop };
                stop.advised(&self.given())
            }
            _ => stop.advised(&self.given()),
        }
    }

    /// An agent that a server does not have: the nearest one it has, and all of them.
    async fn no_such_agent(&self, stop: Stop, server: &str, name: &str) -> Stop {
        let options = self.options(None).unwrap_or_default();
        let Ok(Directory { agents, .. }) = Directory::read(server, &options).await else {
            return stop.advised(&self.given());
        };
        let text = format!("there is no agent {name} at {server}");
        let ids: Vec<&str> =
            agents.iter().map(|agent| agent.id.as_str()).filter(|id| !id.is_empty()).collect();
        let nearest = nearest(name, ids.iter().copied()).map(|nearest| format!("did you mean {nearest}? "));
        let stop = Stop { text, code: code::NOT_FOUND, ..stop };
        match ids.as_slice() {
            [] => stop,
            ids => stop.with_next(format!("{}there are {}", nearest.unwrap_or_default(), ids.join(", "))),
        }
    }

    async fn silence(&self) {
        let end = || self.heard.get() + self.flags.timeout;
        while Instant::now() < end() {
            tokio::time::sleep_until(end()).await;
        }
    }

    async fn timed_out(&self) -> Stop {
        let (url, timeout) = (self.target.url(), self.flags.timeout);
        let origin = connection::origin_of(&url).map(|(scheme, authority)| format!("{scheme}://{authority}"));
        let text = format!("no answer from {} within {timeout:?}", origin.unwrap_or(url));
        if !self.sent.get() && self.task.borrow().is_none() {
            let next = connection::advice_for_silence(&self.target).await;
            return Stop { next, ..Stop::new(code::TIMEOUT, text) };
        }
        let stop = self.what_is_left(code::TIMEOUT);
        Stop { text: format!("{text}; {}", stop.text), ..stop }
    }

    fn interrupted(&self) -> Stop {
        self.what_is_left(code::INTERRUPTED)
    }

    fn what_is_left(&self, code: u8) -> Stop {
        match &*self.task.borrow() {
            Some(task) => Stop::new(code, format!("the task {task} goes on"))
                .with_next(format!("follow it with: {}", self.command("tasks watch", task.as_str(), &[]))),
            None if self.sent.get() => Stop::new(code, "the agent may still be at work"),
            None => Stop::new(code, "interrupted before anything was sent"),
        }
    }
}

impl ConnectionFlags {
    /// The server of the flag, else of the environment.
    fn server(&self) -> Result<Option<String>, Stop> {
        let typed = match &self.server {
            Some(server) => Some(("--server", server.clone())),
            None => std::env::var("A2AD_URL").ok().map(|server| ("A2AD_URL", server)),
        };
        let given = typed.filter(|(_, server)| !server.is_empty());
        given.map(|(source, server)| target::server(source, &server)).transpose()
    }
}

/// The versions as they are offered; [`dialect`] accepts more spellings.
const DIALECTS: [&str; 3] = ["draft", "0.3", "1.0"];

/// A dialect as it is typed.
fn word(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Draft => "draft",
        Dialect::V03 | Dialect::V03Proto => "0.3",
        Dialect::V1 => "1.0",
    }
}

fn dialect(typed: &str) -> Result<Dialect, String> {
    match typed.trim().to_ascii_lowercase().trim_start_matches('v') {
        "draft" | "0.1" => Ok(Dialect::Draft),
        "0.2" | "0.3" | "03" | "0.3.0" => Ok(Dialect::V03),
        "1.0" | "1" | "1.0.0" | "1.0.1" => Ok(Dialect::V1),
        _ => Err("expected draft, 0.3 or 1.0".to_owned()),
    }
}
