//! One line for each call: who was asked what in which dialect, what became of it, and how long it took.
//!
//! The lines are `info` of the target `a2ad::call`, so that they can be had and left by themselves. Where they are off,
//! a call pays for one look at a flag. What a caller says, to the agent or about itself, is never in them. The line of a
//! stream is written when the stream is over, by what its events told; that of a call whose caller leaves, when it leaves.

use std::time::Instant;

use engine::{Agents, Answer, log::Kind};
use protocol::{
    Dialect, Error, Event, Operation, Reply, Task,
    dialect::{MethodFamily, of_method, v03},
};

/// What a line says of a call that was not answered, because nobody waited for it any more.
const LEFT: &str = "CALLER_LEFT";

/// A call that will have its line; where lines are off, nothing.
pub(crate) struct Line(Option<Box<Facts>>);

/// What the line tells.
struct Facts {
    started: Instant,
    request_id: u64,
    agent: String,
    method: String,
    dialect: &'static str,
    task: Option<String>,
    state: Option<&'static str>,
    error: Option<&'static str>,
}

impl Line {
    /// Begins the line of a call to this agent, if it is one of these.
    pub(crate) fn begin(agents: &Agents, agent: &str, request_id: u64) -> Self {
        if !tracing::enabled!(target: "a2ad::call", tracing::Level::INFO) {
            return Self(None);
        }
        Self(Some(Box::new(Facts {
            started: Instant::now(),
            request_id,
            agent: known(agents, agent),
            method: String::new(),
            dialect: "unknown",
            task: None,
            state: None,
            error: None,
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
    pub(crate) fn to(&mut self, agents: &Agents, agent: &str) {
        let Some(facts) = &mut self.0 else { return };
        facts.agent = known(agents, agent);
    }

    /// Which task it names, and in which dialect.
    pub(crate) fn about(&mut self, operation: &Operation, dialect: Dialect) {
        let Some(facts) = &mut self.0 else { return };
        facts.dialect = dialect.name();
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
    pub(crate) fn watch(mut self, dialect: Dialect) -> Watched {
        let mut facts = self.0.take();
        if let Some(facts) = &mut facts {
            facts.dialect = dialect.name();
        }
        Watched(facts)
    }

    /// Writes the line.
    pub(crate) fn end(mut self, dialect: Dialect) {
        let Some(mut facts) = self.0.take() else { return };
        facts.dialect = dialect.name();
        facts.write();
    }

    /// Writes the line of a call in plain text, which is of no dialect.
    pub(crate) fn end_text(mut self) {
        let Some(mut facts) = self.0.take() else { return };
        facts.dialect = "text";
        facts.write();
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(facts) = &mut self.0 {
            facts.error.get_or_insert(LEFT);
            facts.write();
        }
    }
}

/// What a caller calls an agent is its own text, unless there is such an agent.
fn known(agents: &Agents, agent: &str) -> String {
    if agents.get(agent).is_some() { agent } else { "unknown" }.to_owned()
}

impl Facts {
    fn answer(&mut self, answer: &Answer) {
        match answer {
            Answer::Reply(Reply::SentTask(task) | Reply::Task(task)) => self.task(task),
            Answer::Reply(Reply::SentMessage(_)) => self.state = Some("message"),
            Answer::Reply(_) | Answer::Stream(_) => {}
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

    fn write(&self) {
        let duration_ms = self.started.elapsed().as_micros() as f64 / 1_000.0;
        tracing::info!(
            target: "a2ad::call",
            method = self.method,
            agent = self.agent,
            dialect = self.dialect,
            state = self.state,
            error = self.error,
            task_id = self.task,
            request_id = format_args!("{:016x}", self.request_id),
            duration_ms,
            "call"
        );
    }
}

/// Hears the events of a stream, and writes its line when it is over or left.
pub(crate) struct Watched(Option<Box<Facts>>);

impl Watched {
    /// What leaves.
    pub(crate) fn event(&mut self, event: &Event) {
        if let Some(facts) = &mut self.0 {
            facts.event(event);
        }
    }

    /// What leaves of a task that is known.
    pub(crate) fn kind(&mut self, kind: Kind) {
        let Some(facts) = &mut self.0 else { return };
        match kind {
            Kind::Status(state) => facts.state = Some(v03::task::state_name(state)),
            Kind::Message => facts.state = Some("message"),
            Kind::Artifact => {}
        }
    }

    /// What ends the stream before its time.
    pub(crate) fn error(&mut self, error: &Error) {
        if let Some(facts) = &mut self.0 {
            facts.error = Some(error.kind.row().reason);
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(facts) = &self.0 {
            facts.write();
        }
    }
}
