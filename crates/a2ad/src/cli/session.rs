//! One verb's conversation with one agent: who it is, how it is reached, and how long it may take.

use std::{
    cell::{Cell, RefCell},
    future::Future,
    time::Duration,
};

use clap::Args;
use client::{Client, Error, FoundCard, Options};
use protocol::{Dialect, TaskId};
use tokio::time::Instant;

use super::{
    credentials::CredentialFlags,
    screen::Screen,
    span,
    stop::{Given, Stop, code},
    suggest,
    target::Target,
};

/// What all client verbs take.
#[derive(Debug, Args)]
pub(super) struct SessionFlags {
    /// The agent: a URL, the URL of its card, or the name of an agent of this machine's server.
    #[arg(value_name = "AGENT")]
    agent: String,
    /// The server whose agents are meant by name [default: http://127.0.0.1:4242, env: A2AD_URL].
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// What to speak, whatever the card prefers: draft, 0.3 or 1.0. An endpoint without a card needs it.
    #[arg(long, value_name = "VERSION", value_parser = dialect)]
    dialect: Option<Dialect>,
    /// How long to wait for an answer, or for the next event of a stream.
    #[arg(long, value_name = "SPAN", default_value = "5m", value_parser = span::parse)]
    timeout: Duration,
    /// Write A2A 1.0 JSON, one document a line.
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    credentials: CredentialFlags,
}

/// A verb at work.
pub(super) struct Session {
    flags: SessionFlags,
    target: Target,
    pub(super) screen: Screen,
    /// The task at hand, once there is one.
    task: RefCell<Option<TaskId>>,
    /// When the agent was last heard.
    heard: Cell<Instant>,
}

impl Session {
    /// Runs a verb until it is done, the agent is silent for too long, or somebody presses Ctrl-C.
    pub(super) fn run<F>(flags: SessionFlags, verb: impl FnOnce(std::rc::Rc<Self>) -> F) -> Result<u8, Stop>
    where
        F: Future<Output = Result<u8, Stop>>,
    {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Stop::new(code::COULD_NOT, error.to_string()))?;
        let server = flags.server.clone().or_else(|| std::env::var("A2AD_URL").ok());
        let target = Target::read(&flags.agent, server.as_deref().filter(|server| !server.is_empty()))?;
        runtime.block_on(async {
            let session = std::rc::Rc::new(Self {
                flags,
                target,
                screen: Screen::new(),
                task: RefCell::default(),
                heard: Cell::new(Instant::now()),
            });
            let done = tokio::select! {
                biased;
                done = verb(session.clone()) => done,
                _ = tokio::signal::ctrl_c() => Err(session.interrupted()),
                () = session.silence() => Err(session.timed_out()),
            };
            done.map_err(|stop| stop.advised(&session.given()))
        })
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
        suggest::command(verb, &[&[self.flags.agent.as_str(), task], words].concat(), &flags)
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
        let found = client::find_card(&self.target.url(), &self.options(None)?).await;
        found.map_err(|error| self.explain(error))
    }

    /// A client of the agent, by its card or without one.
    pub(super) async fn client(&self) -> Result<Client, Stop> {
        let url = self.target.url();
        let found = match client::find_card(&url, &self.options(None)?).await {
            Ok(found) => found,
            // Every agent that can be meant by a name has a card.
            Err(error @ Error::NoCard { .. }) if matches!(self.target, Target::Local { .. }) => {
                return Err(self.explain(error));
            }
            Err(error) if error.is_without_card() && self.flags.dialect.is_some() => {
                return Ok(Client::connect_with(&url, self.options(None)?)?);
            }
            Err(error) => return Err(self.explain(error)),
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

    /// What a failure to find the agent means for how it was named.
    fn explain(&self, error: Error) -> Stop {
        match (&self.target, &error) {
            (Target::Local { server, .. }, Error::Transport(_)) => {
                let stop = Stop::new(code::COULD_NOT, format!("{error} at {server}"));
                match self.target.starts_with() {
                    Some(flags) => {
                        let command = suggest::command("serve", &[], &flags);
                        stop.with_next(format!("start a server with: {command}"))
                    }
                    None => stop,
                }
            }
            (Target::Local { server, name }, Error::NoCard { .. }) => {
                Stop::new(code::NOT_FOUND, format!("there is no agent {name} at {server}"))
            }
            _ => error.into(),
        }
    }

    async fn silence(&self) {
        let end = || self.heard.get() + self.flags.timeout;
        while Instant::now() < end() {
            tokio::time::sleep_until(end()).await;
        }
    }

    fn timed_out(&self) -> Stop {
        let mut stop = self.what_is_left(code::TIMEOUT);
        stop.text = format!("no answer within {:?}; {}", self.flags.timeout, stop.text);
        stop
    }

    fn interrupted(&self) -> Stop {
        self.what_is_left(code::INTERRUPTED)
    }

    fn what_is_left(&self, code: u8) -> Stop {
        match &*self.task.borrow() {
            Some(task) => Stop::new(code, format!("the task {task} goes on"))
                .with_next(format!("see it with: {}", self.command("tasks get", task.as_str(), &[]))),
            None => Stop::new(code, "the agent may still be at work"),
        }
    }
}

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
