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
    stop::{Stop, code},
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
            tokio::select! {
                biased;
                done = verb(session.clone()) => done,
                _ = tokio::signal::ctrl_c() => Err(session.interrupted()),
                () = session.silence() => Err(session.timed_out()),
            }
        })
    }

    pub(super) fn json(&self) -> bool {
        self.flags.json
    }

    /// The agent as it was typed, for commands that are suggested.
    pub(super) fn agent(&self) -> &str {
        &self.flags.agent
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
            Err(error) if error.is_without_card() && self.flags.dialect.is_some() => {
                return Ok(Client::connect_with(&url, self.options(None)?)?);
            }
            Err(error) => return Err(self.explain(error)),
        };
        let options = self.options(Some(&found))?;
        if let Some(endpoint) = found.elsewhere(&options)? {
            self.screen
                .say(&format!("the card at {} names an endpoint on another host: {endpoint}", found.url()));
        }
        self.alive();
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
                let text = format!("{error} at {server}; start a server with: a2ad serve");
                Stop::new(code::COULD_NOT, text)
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
        let text = format!("no answer within {:?}; {}", self.flags.timeout, self.what_is_left());
        Stop::new(code::TIMEOUT, text)
    }

    fn interrupted(&self) -> Stop {
        Stop::new(code::INTERRUPTED, self.what_is_left())
    }

    fn what_is_left(&self) -> String {
        match &*self.task.borrow() {
            Some(task) => {
                format!("the task {task} goes on; see it with: a2ad tasks get {} {task}", self.agent())
            }
            None => "the agent may still be at work".to_owned(),
        }
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
