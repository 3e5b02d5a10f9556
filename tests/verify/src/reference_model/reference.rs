//! The reference model: what the tasks of one agent must be, as simple as possible.
//!
//! A task is the list of its events, and everything a client can read is derived from that list. The four agents
//! are modelled in a few lines each. Only ids and timestamps are chosen by the server: they are learned when first
//! shown and must not change. Pure; deliberately not here: calls, randomness, and wire formats.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use serde_json::{Value, json};

/// The tasks of one agent, in the order of creation.
pub(crate) struct Reference {
    agent: &'static str,
    pub(crate) tasks: Vec<Task>,
    /// By key and, for a follow-up message, its task: the message, its task and the number of its event.
    keys: HashMap<(String, Option<usize>), (Value, usize, usize)>,
    /// Newest status first; for equal times, newest task first.
    order: BTreeSet<ListPosition>,
    /// Number of journaled steps.
    pub(crate) steps: u64,
}

/// Position of a task in the list: the time of its status, and its index.
pub(crate) type ListPosition = (Reverse<String>, Reverse<usize>);

pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) context: String,
    pub(crate) log: Vec<Event>,
    position: Option<ListPosition>,
}

#[derive(Clone, Debug)]
pub(crate) enum Event {
    Status {
        state: State,
        /// Text of the agent's message in the status.
        agent_text: Option<String>,
        /// The code with which the server explains it.
        reason: Option<&'static str>,
        /// The user's message that caused it: its id and text.
        user_message: Option<(String, String)>,
        /// Timestamp; `None` until the server has shown it.
        at: Option<String>,
    },
    Artifact {
        id: &'static str,
        text: String,
        append: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Submitted,
    Working,
    InputRequired,
    Completed,
    Rejected,
    Canceled,
    Failed,
}

pub(crate) const STATES: [State; 7] = [
    State::Submitted,
    State::Working,
    State::InputRequired,
    State::Completed,
    State::Rejected,
    State::Canceled,
    State::Failed,
];

/// A message to be sent.
#[derive(Clone)]
pub(crate) struct OutgoingMessage {
    pub(crate) key: Option<String>,
    /// The task it is for, if it is a follow-up message.
    pub(crate) task: Option<usize>,
    /// The whole message, which is compared when the key is used again.
    pub(crate) message: Value,
    pub(crate) id: String,
    pub(crate) text: String,
}

/// The expected result of sending a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Accepted: a new task, or a turn of the task it is for.
    Accepted,
    /// A replay: the task, and the number of the event it caused.
    Replay(usize, usize),
    /// The key was used before with a different body.
    Reused,
    /// The task it is for has ended.
    TooLate,
}

/// The filters of a list; an absent filter matches everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    pub(crate) context: Option<String>,
    pub(crate) state: Option<State>,
    pub(crate) since: Option<String>,
}

/// The size limit of a task, in bytes; `stepper` can exceed it.
pub(crate) const MAX_TASK: u64 = 512 << 10;
/// The total of a longer list with a start time or a context.
const MAX_COUNTED: usize = 5_000;

impl Reference {
    pub(crate) fn new(agent: &'static str) -> Self {
        Self { agent, tasks: Vec::new(), keys: HashMap::new(), order: BTreeSet::new(), steps: 0 }
    }

    pub(crate) fn verdict_for(&self, outgoing: &OutgoingMessage) -> Verdict {
        let known = outgoing.key.as_ref().and_then(|key| self.keys.get(&(key.clone(), outgoing.task)));
        match (known, outgoing.task) {
            (Some((message, task, number)), _) if *message == outgoing.message => {
                Verdict::Replay(*task, *number)
            }
            (Some(_), _) => Verdict::Reused,
            (None, Some(task)) if self.tasks[task].state().is_terminal() => Verdict::TooLate,
            (None, _) => Verdict::Accepted,
        }
    }

    /// Applies a message; a new task gets the id and context chosen by the server. Returns the task and the event
    /// number.
    pub(crate) fn apply_message(
        &mut self,
        outgoing: &OutgoingMessage,
        immediate: bool,
        id: &str,
        context: &str,
    ) -> (usize, usize) {
        let number = outgoing.task.unwrap_or_else(|| {
            let (id, context) = (id.to_owned(), context.to_owned());
            self.tasks.push(Task { id, context, log: Vec::new(), position: None });
            self.tasks.len() - 1
        });
        let task = &mut self.tasks[number];
        let holds = !task.log.is_empty() && task.state() == State::Working;
        let state = if task.log.is_empty() { State::Submitted } else { State::Working };
        let user_message = Some((outgoing.id.clone(), outgoing.text.clone()));
        task.log.push(Event::Status { state, agent_text: None, reason: None, user_message, at: None });
        let event = task.log.len();
        if !holds {
            let response = match self.agent {
                "echo" => echo(&outgoing.text),
                "approver" => approve(task, &outgoing.text),
                "stepper" => {
                    self.steps += 1;
                    step(task, &outgoing.text, immediate)
                }
                _ => write(&outgoing.text, immediate),
            };
            task.log.extend(response);
        }
        if let Some(key) = &outgoing.key {
            self.keys.insert((key.clone(), outgoing.task), (outgoing.message.clone(), number, event));
        }
        (number, event)
    }

    pub(crate) fn cancel(&mut self, task: usize) {
        self.tasks[task].log.push(status(State::Canceled, None));
    }

    /// Stores the timestamp of a status when first shown; an error if a different one was shown before.
    pub(crate) fn learn_timestamp(&mut self, task: usize, number: usize, shown: &str) -> Result<(), String> {
        let Event::Status { at, .. } = &mut self.tasks[task].log[number - 1] else { return Ok(()) };
        if at.get_or_insert_with(|| shown.to_owned()) != shown {
            return Err(format!("event {number} had the timestamp {}", at.as_deref().unwrap_or_default()));
        }
        let earlier = self.tasks[task].log[..number - 1].iter().filter_map(Event::at).max();
        if earlier.is_some_and(|earlier| earlier > shown) {
            return Err(format!("event {number} is older than one before it"));
        }
        if self.tasks[task].last_status() == number {
            let position = (Reverse(shown.to_owned()), Reverse(task));
            let before = self.tasks[task].position.replace(position.clone());
            if let Some(before) = before {
                self.order.remove(&before);
            }
            self.order.insert(position);
        }
        Ok(())
    }

    /// The total that is shown for the matching tasks, and the positions of the first `most` after a position, in order.
    pub(crate) fn list(
        &self,
        filter: &Filter,
        after: Option<&ListPosition>,
        most: usize,
    ) -> (usize, Vec<ListPosition>) {
        let (mut total, mut positions) = (0, Vec::new());
        for position in &self.order {
            let task = &self.tasks[position.1.0];
            let matches = filter.state.is_none_or(|state| state == task.state())
                && filter.context.as_ref().is_none_or(|context| *context == task.context);
            if filter.since.as_ref().is_some_and(|since| position.0.0 < *since) {
                break;
            }
            total += usize::from(matches);
            if matches && positions.len() < most && after.is_none_or(|after| position > after) {
                positions.push(position.clone());
            }
        }
        let limit = if filter.context.is_some() || filter.since.is_some() { MAX_COUNTED } else { usize::MAX };
        (total.min(limit), positions)
    }
}

impl Task {
    /// The timestamp of its status, once shown.
    pub(crate) fn status_at(&self) -> Option<&str> {
        self.log[self.last_status() - 1].at()
    }

    /// The number of user messages.
    pub(crate) fn turns(&self) -> usize {
        self.log.iter().filter(|event| matches!(event, Event::Status { user_message: Some(_), .. })).count()
    }

    pub(crate) fn state(&self) -> State {
        match self.log[self.last_status() - 1] {
            Event::Status { state, .. } => state,
            Event::Artifact { .. } => unreachable!("last_status returns the index of a status"),
        }
    }

    /// The number of the newest status.
    pub(crate) fn last_status(&self) -> usize {
        self.status_among(self.log.len())
    }

    /// The number of the newest status among the first `events` events.
    pub(crate) fn status_among(&self, events: usize) -> usize {
        1 + self.log[..events].iter().rposition(Event::is_status).expect("a task begins with a status")
    }

    /// The task after its first `events` events, as a client is shown it.
    pub(crate) fn shown(&self, events: usize, history: Option<usize>, artifacts: bool) -> Value {
        let (mut status, mut history_so_far, mut made) =
            (Value::Null, Vec::new(), Vec::<(&str, Vec<&str>)>::new());
        for event in &self.log[..events] {
            match event {
                Event::Status { state, agent_text, reason, user_message, at } => {
                    status = json!({"state": state.name(), "text": agent_text, "reason": reason, "at": at});
                    history_so_far
                        .extend(user_message.as_ref().map(|(id, text)| json!(["ROLE_USER", text, id])));
                    let settles = agent_text.as_ref().filter(|_| state.is_settled());
                    history_so_far.extend(settles.map(|text| json!(["ROLE_AGENT", text])));
                }
                Event::Artifact { id, text, append: true } => {
                    let artifact = made.iter_mut().find(|(known, _)| known == id);
                    artifact.expect("an append follows the first chunk").1.push(text);
                }
                Event::Artifact { id, text, append: false } => made.push((id, vec![text])),
            }
        }
        let surplus = history.map_or(0, |length| history_so_far.len().saturating_sub(length));
        json!({
            "id": self.id,
            "context": self.context,
            "status": status,
            "history": history_so_far[surplus..],
            "artifacts": if artifacts { made } else { Vec::new() },
        })
    }
}

impl Event {
    /// The event as a subscriber is shown it.
    pub(crate) fn shown(&self) -> Value {
        match self {
            Self::Status { state, agent_text, reason, at, .. } => {
                json!({"state": state.name(), "text": agent_text, "reason": reason, "at": at})
            }
            Self::Artifact { id, text, append } => json!({"artifact": id, "texts": [text], "append": append}),
        }
    }

    pub(crate) fn is_status(&self) -> bool {
        matches!(self, Self::Status { .. })
    }

    pub(crate) fn settles(&self) -> bool {
        matches!(self, Self::Status { state, .. } if state.is_settled())
    }

    fn at(&self) -> Option<&str> {
        match self {
            Self::Status { at, .. } => at.as_deref(),
            Self::Artifact { .. } => None,
        }
    }
}

impl State {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Submitted => "TASK_STATE_SUBMITTED",
            Self::Working => "TASK_STATE_WORKING",
            Self::InputRequired => "TASK_STATE_INPUT_REQUIRED",
            Self::Completed => "TASK_STATE_COMPLETED",
            Self::Rejected => "TASK_STATE_REJECTED",
            Self::Canceled => "TASK_STATE_CANCELED",
            Self::Failed => "TASK_STATE_FAILED",
        }
    }

    pub(crate) fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Rejected | Self::Canceled | Self::Failed)
    }

    pub(crate) fn is_settled(self) -> bool {
        self.is_terminal() || self == Self::InputRequired
    }
}

fn status(state: State, agent_text: Option<String>) -> Event {
    Event::Status { state, agent_text, reason: None, user_message: None, at: None }
}

/// A status that the server explains with a code.
fn explained(state: State, text: &str, reason: &'static str) -> Event {
    let agent_text = Some(text.to_owned());
    Event::Status { state, agent_text, reason: Some(reason), user_message: None, at: None }
}

/// The agent `echo`: returns the text; holds a task whose text begins with `hold`.
fn echo(text: &str) -> Vec<Event> {
    let mut events = vec![status(State::Working, None)];
    if !text.starts_with("hold") {
        events.push(Event::Artifact { id: "echo-result", text: text.to_owned(), append: false });
        events.push(status(State::Completed, None));
    }
    events
}

/// The agent `approver`: asks for approval of the first message.
fn approve(task: &Task, text: &str) -> Vec<Event> {
    let Event::Status { user_message: Some((_, request)), .. } = &task.log[0] else { return Vec::new() };
    let status_with = |state, text: String| status(state, Some(text));
    if task.log.len() == 1 {
        let question = format!("May I proceed with: {request}? Answer approve or deny.");
        return vec![status(State::Working, None), status_with(State::InputRequired, question)];
    }
    match text {
        "approve" => vec![
            Event::Artifact { id: "approval", text: format!("Approved: {request}"), append: false },
            status_with(State::Completed, format!("Done: {request}")),
        ],
        "deny" => vec![status_with(State::Rejected, format!("Denied: {request}"))],
        _ => vec![status_with(State::InputRequired, "Please answer approve or deny.".to_owned())],
    }
}

/// The agent `slow-writer`: writes `sections=N` sections about the first word and reports each one.
fn write(text: &str, immediate: bool) -> Vec<Event> {
    let topic = text.split(' ').next().unwrap_or_default();
    let sections = text.split("sections=").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
    let sections: u64 = sections.unwrap_or(1);
    let mut events: Vec<Event> = immediate.then(|| status(State::Working, None)).into_iter().collect();
    for section in 1..=sections {
        events.push(status(State::Working, Some(format!("writing section {section} of {sections}"))));
        let text = format!("Section {section} of {sections}: more about {topic}.\n");
        events.push(Event::Artifact { id: "text", text, append: section > 1 });
    }
    events.push(status(State::Completed, Some(format!("{sections} sections written"))));
    events
}

/// The agent `stepper`: one step in each turn, whose output is that of the first attempt, and a checkpoint with the
/// steps of all turns. A later turn has its own journal, so it does not get the output of an earlier one.
fn step(task: &Task, text: &str, immediate: bool) -> Vec<Event> {
    let texts = task.log.iter().filter_map(|event| match event {
        Event::Status { user_message: Some((_, text)), .. } => Some(format!("{text} in attempt 1")),
        _ => None,
    });
    let steps: Vec<String> = texts.collect();
    let begins = status(State::Working, Some(format!("turn {}", steps.len())));
    let is_new = task.log.len() == 1;
    let mut events: Vec<Event> =
        (immediate && is_new).then(|| status(State::Working, None)).into_iter().collect();
    events.push(begins.clone());
    if text.starts_with("retry") {
        events.push(explained(State::Working, "attempt 1 of 6 failed, trying again", "retry"));
        events.push(begins);
    }
    if text.starts_with("large") {
        events.push(explained(
            State::Failed,
            &format!("the task is larger than {MAX_TASK} bytes"),
            "too_large",
        ));
    } else if text.starts_with("end") {
        events.push(Event::Artifact { id: "steps", text: steps.join(", "), append: false });
        events.push(status(State::Completed, None));
    } else {
        events.push(status(State::InputRequired, Some(steps.join(", "))));
    }
    events
}
