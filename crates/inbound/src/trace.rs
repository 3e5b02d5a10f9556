//! One line for each call: who was asked what in which dialect, what became of it, and how long it took.
//!
//! The lines are `info` of the target `a2ad::call`, so that they can be had and left by themselves. Where they are off,
//! a call pays for one look at a flag. What a caller says, to the agent or about itself, is never in them. The line of a
//! stream is written when the stream is over, by what its first and its last event told.

use std::time::Instant;

use axum::{body::Body, response::Response};
use bytes::Bytes;
use engine::Answer;
use http_body_util::BodyExt as _;
use hyper::body::Frame;
use protocol::{
    Dialect, Error, ErrorKind, Event, Json, Operation, Reply, Task, TaskState,
    dialect::{MethodFamily, of_method, v03},
    json::read::{Node, Path},
};

/// A call that will have its line; where lines are off, nothing.
pub(crate) struct Line(Option<Box<Facts>>);

/// What the line tells.
struct Facts {
    started: Instant,
    request_id: Option<u64>,
    agent: String,
    method: String,
    task: Option<String>,
    state: Option<&'static str>,
    error: Option<&'static str>,
    streams: bool,
}

impl Line {
    /// Begins the line of a call to this agent.
    pub(crate) fn begin(agent: &str, request_id: Option<u64>) -> Self {
        if !tracing::enabled!(target: "a2ad::call", tracing::Level::INFO) {
            return Self(None);
        }
        Self(Some(Box::new(Facts {
            started: Instant::now(),
            request_id,
            agent: agent.to_owned(),
            method: String::new(),
            task: None,
            state: None,
            error: None,
            streams: false,
        })))
    }

    /// What was asked for. A name that nobody serves is the caller's own text and not repeated.
    pub(crate) fn asked(&mut self, method: &str) {
        let Some(facts) = &mut self.0 else { return };
        let known = of_method(method) != MethodFamily::Unknown;
        facts.method = if known { method } else { "unknown" }.to_owned();
    }

    /// What was asked for, by a name that its binding has.
    pub(crate) fn called(&mut self, method: &'static str) {
        let Some(facts) = &mut self.0 else { return };
        facts.method = method.to_owned();
    }

    /// Who was asked, where that is known later than the call.
    pub(crate) fn to(&mut self, agent: &str) {
        let Some(facts) = &mut self.0 else { return };
        facts.agent = agent.to_owned();
    }

    /// Which task it names.
    pub(crate) fn about(&mut self, operation: &Operation) {
        let Some(facts) = &mut self.0 else { return };
        let task = match operation {
            Operation::SendMessage(req) | Operation::SendStreamingMessage(req) => {
                req.message.task_id.as_ref()
            }
            Operation::GetTask(req) => Some(&req.id),
            Operation::CancelTask(req) => Some(&req.id),
            Operation::SubscribeToTask(req) => Some(&req.id),
            Operation::CreatePushConfig(config) => config.task_id.as_ref(),
            Operation::GetPushConfig(req) | Operation::DeletePushConfig(req) => Some(&req.task_id),
            Operation::ListPushConfigs(req) => Some(&req.task_id),
            Operation::ListTasks(_) | Operation::GetExtendedCard(_) => None,
        };
        facts.task = task.map(ToString::to_string);
    }

    /// What it is answered with.
    pub(crate) fn answered(&mut self, result: &Result<Answer, Error>) {
        let Some(facts) = &mut self.0 else { return };
        match result {
            Ok(answer) => facts.answer(answer),
            Err(error) => facts.error = Some(error.kind.row().reason),
        }
    }

    /// Why it is not answered.
    pub(crate) fn refused(&mut self, error: &Error) {
        let Some(facts) = &mut self.0 else { return };
        facts.error = Some(error.kind.row().reason);
    }

    /// The line of a stream whose events are told as they leave.
    pub(crate) fn watch(self, dialect: Dialect) -> Watched {
        Watched { facts: self.0, dialect }
    }

    /// Writes the line, or has it written when the stream in the response is over.
    pub(crate) fn end(self, dialect: Dialect, response: Response) -> Response {
        let Some(facts) = self.0 else { return response };
        if !facts.streams {
            facts.write(dialect.name());
            return response;
        }
        let mut watch = Watch { facts, dialect, first: Bytes::new(), last: Bytes::new() };
        response.map(|body| {
            Body::new(body.map_frame(move |frame| {
                watch.see(&frame);
                frame
            }))
        })
    }

    /// Writes the line of a call whose answer is plain text.
    pub(crate) fn end_text(self, response: Response) -> Response {
        let Some(mut facts) = self.0 else { return response };
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        facts.method = "text".into();
        facts.task = header("a2ad-task").map(str::to_owned);
        let state = header("a2ad-state");
        facts.state = TaskState::ALL.map(v03::task::state_name).into_iter().find(|name| Some(*name) == state);
        if !response.status().is_success() {
            let same = |kind: &ErrorKind| kind.row().http == response.status().as_u16();
            facts.error = ErrorKind::ALL.into_iter().find(same).map(|kind| kind.row().reason);
        }
        facts.write("text");
        response
    }
}

impl Facts {
    fn answer(&mut self, answer: &Answer) {
        match answer {
            Answer::Reply(Reply::SentTask(task) | Reply::Task(task)) => self.task(task),
            Answer::Reply(Reply::SentMessage(_)) => self.state = Some("message"),
            Answer::Reply(_) => {}
            Answer::Stream(_) => self.streams = true,
            Answer::Replayed(answer) => self.answer(answer),
        }
    }

    fn task(&mut self, task: &Task) {
        self.task = Some(task.id.to_string());
        self.state = Some(v03::task::state_name(task.status.state));
    }

    /// What an event of the stream told.
    fn event(&mut self, event: &Event) {
        match event {
            Event::Task(task) => self.task(task),
            Event::Message(_) => self.state = Some("message"),
            Event::Status(update) => {
                self.task = Some(update.task_id.to_string());
                self.state = Some(v03::task::state_name(update.status.state));
            }
            Event::Artifact(update) => self.task = Some(update.task_id.to_string()),
        }
    }

    fn write(&self, dialect: &str) {
        let duration_ms = self.started.elapsed().as_micros() as f64 / 1_000.0;
        tracing::info!(
            target: "a2ad::call",
            method = self.method,
            agent = self.agent,
            dialect,
            state = self.state,
            error = self.error,
            task_id = self.task,
            request_id = self.request_id.map(|id| format!("{id:016x}")),
            duration_ms,
            "call"
        );
    }
}

/// Hears the events of a stream, and writes its line when it is over or left.
pub(crate) struct Watched {
    facts: Option<Box<Facts>>,
    dialect: Dialect,
}

impl Watched {
    /// What leaves.
    pub(crate) fn event(&mut self, event: &Event) {
        if let Some(facts) = &mut self.facts {
            facts.event(event);
        }
    }

    /// What ends the stream before its time.
    pub(crate) fn error(&mut self, error: &Error) {
        if let Some(facts) = &mut self.facts {
            facts.error = Some(error.kind.row().reason);
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(facts) = &self.facts {
            facts.write(self.dialect.name());
        }
    }
}

/// Keeps the first and the last events of a stream, and writes its line when it is over or left.
struct Watch {
    facts: Box<Facts>,
    dialect: Dialect,
    first: Bytes,
    last: Bytes,
}

const DATA: &str = "data: ";

impl Watch {
    /// Every write holds whole events; what is none says only that the stream is alive.
    fn see(&mut self, frame: &Frame<Bytes>) {
        let Some(bytes) = frame.data_ref().filter(|bytes| bytes.starts_with(b"id: ") || is_data(bytes))
        else {
            return;
        };
        if self.first.is_empty() {
            self.first = bytes.clone();
        }
        self.last = bytes.clone();
    }

    fn tell(&mut self, event: &str) -> Option<()> {
        let json = Json::parse(event.strip_prefix(DATA)?).ok()?;
        let node = Node::new(json.as_raw(), &Path::Root);
        let answer = node.object().ok()?;
        let dialect = self.dialect;
        let (event, error) = if answer.present("jsonrpc").is_some() {
            let event = answer.maybe("result", |node| dialect.decode_event(node));
            let error = answer.maybe("error", |node| dialect.decode_error(node));
            (event.ok().flatten(), error.ok().flatten())
        } else {
            (dialect.decode_event(node).ok(), dialect.decode_refusal(node).ok())
        };
        if let Some(event) = event {
            self.facts.event(&event);
        }
        if let Some(error) = error {
            self.facts.error = Some(error.kind.row().reason);
        }
        Some(())
    }
}

fn is_data(bytes: &[u8]) -> bool {
    bytes.starts_with(DATA.as_bytes())
}

impl Drop for Watch {
    fn drop(&mut self) {
        let (first, last) = (std::mem::take(&mut self.first), std::mem::take(&mut self.last));
        let events = |bytes: &'_ Bytes| -> Vec<String> {
            let text = String::from_utf8_lossy(bytes);
            text.lines().filter(|line| is_data(line.as_bytes())).map(str::to_owned).collect()
        };
        for event in [events(&first).first(), events(&last).last()].into_iter().flatten() {
            self.tell(event);
        }
        self.facts.write(self.dialect.name());
    }
}
