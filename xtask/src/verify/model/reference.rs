//! The reference: what the tasks of one agent must be, told as simply as possible.
//!
//! A task is the list of its events, and everything a client can ask for is read off that list. The three agents
//! are told again in a few lines each. Only names and times are the server's to choose: they are learned when
//! they are first shown and must stay. Pure; deliberately not here: calls, chance, and wire forms.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use serde_json::{Value, json};

/// The tasks of one agent, by the order in which they were made.
pub(crate) struct Reference {
    agent: &'static str,
    pub(crate) tasks: Vec<Task>,
    /// By key and, for a follow-up message, its task: the message, its task and the number of its event.
    keys: HashMap<(String, Option<usize>), (Value, usize, usize)>,
    /// The newest status first, and of those of one time the newest task.
    order: BTreeSet<Place>,
}

/// Where a task is in the list: the time of its status, and its own number.
pub(crate) type Place = (Reverse<String>, Reverse<usize>);

pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) context: String,
    pub(crate) log: Vec<Event>,
    place: Option<Place>,
}

#[derive(Clone, Debug)]
pub(crate) enum Event {
    Status {
        state: State,
        /// What the agent says with it.
        said: Option<String>,
        /// The user's message that caused it: its id and text.
        asked: Option<(String, String)>,
        /// Unknown until the server has shown it.
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
}

pub(crate) const STATES: [State; 6] = [
    State::Submitted,
    State::Working,
    State::InputRequired,
    State::Completed,
    State::Rejected,
    State::Canceled,
];

/// A message about to be sent.
#[derive(Clone)]
pub(crate) struct Said {
    pub(crate) key: Option<String>,
    /// The task it is for, if it is a follow-up message.
    pub(crate) task: Option<usize>,
    /// The whole message; what is compared when the key comes again.
    pub(crate) message: Value,
    pub(crate) id: String,
    pub(crate) text: String,
}

/// What must come of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is taken: a new task, or a turn of the one it is for.
    Taken,
    /// It is known: the task, and the number of the event it caused.
    Known(usize, usize),
    /// Its key is known with another body.
    Reused,
    /// The task it is for has ended.
    TooLate,
}

/// What a list is asked for; absent filters match everything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    pub(crate) context: Option<String>,
    pub(crate) state: Option<State>,
    pub(crate) since: Option<String>,
}

impl Reference {
    pub(crate) fn new(agent: &'static str) -> Self {
        Self { agent, tasks: Vec::new(), keys: HashMap::new(), order: BTreeSet::new() }
    }

    pub(crate) fn judge(&self, said: &Said) -> Verdict {
        let known = said.key.as_ref().and_then(|key| self.keys.get(&(key.clone(), said.task)));
        match (known, said.task) {
            (Some((message, task, number)), _) if *message == said.message => Verdict::Known(*task, *number),
            (Some(_), _) => Verdict::Reused,
            (None, Some(task)) if self.tasks[task].state().is_terminal() => Verdict::TooLate,
            (None, _) => Verdict::Taken,
        }
    }

    /// Takes a message; a new task is called as the server has called it. Says which task and which event.
    pub(crate) fn take(&mut self, said: &Said, at_once: bool, id: &str, context: &str) -> (usize, usize) {
        let number = said.task.unwrap_or_else(|| {
            let (id, context) = (id.to_owned(), context.to_owned());
            self.tasks.push(Task { id, context, log: Vec::new(), place: None });
            self.tasks.len() - 1
        });
        let task = &mut self.tasks[number];
        let holds = !task.log.is_empty() && task.state() == State::Working;
        let state = if task.log.is_empty() { State::Submitted } else { State::Working };
        let asked = Some((said.id.clone(), said.text.clone()));
        task.log.push(Event::Status { state, said: None, asked, at: None });
        let event = task.log.len();
        if !holds {
            let answer = match self.agent {
                "echo" => echo(&said.text),
                "approver" => approve(task, &said.text),
                _ => write(&said.text, at_once),
            };
            task.log.extend(answer);
        }
        if let Some(key) = &said.key {
            self.keys.insert((key.clone(), said.task), (said.message.clone(), number, event));
        }
        (number, event)
    }

    pub(crate) fn cancel(&mut self, task: usize) {
        self.tasks[task].log.push(status(State::Canceled, None));
    }

    /// Learns the time of a status, or says that another one was shown before.
    pub(crate) fn learn(&mut self, task: usize, number: usize, shown: &str) -> Result<(), String> {
        let Event::Status { at, .. } = &mut self.tasks[task].log[number - 1] else { return Ok(()) };
        if at.get_or_insert_with(|| shown.to_owned()) != shown {
            return Err(format!("event {number} was of {}", at.as_deref().unwrap_or_default()));
        }
        let earlier = self.tasks[task].log[..number - 1].iter().filter_map(Event::at).max();
        if earlier.is_some_and(|earlier| earlier > shown) {
            return Err(format!("event {number} is older than one before it"));
        }
        if self.tasks[task].last_status() == number {
            let place = (Reverse(shown.to_owned()), Reverse(task));
            let before = self.tasks[task].place.replace(place.clone());
            if let Some(before) = before {
                self.order.remove(&before);
            }
            self.order.insert(place);
        }
        Ok(())
    }

    /// How many tasks match, and the places of the first `most` behind a place, in order.
    pub(crate) fn list(&self, filter: &Filter, behind: Option<&Place>, most: usize) -> (usize, Vec<Place>) {
        let (mut total, mut places) = (0, Vec::new());
        for place in &self.order {
            let task = &self.tasks[place.1.0];
            let matches = filter.state.is_none_or(|state| state == task.state())
                && filter.context.as_ref().is_none_or(|context| *context == task.context);
            if filter.since.as_ref().is_some_and(|since| place.0.0 < *since) {
                break;
            }
            total += usize::from(matches);
            if matches && places.len() < most && behind.is_none_or(|behind| place > behind) {
                places.push(place.clone());
            }
        }
        (total, places)
    }
}

impl Task {
    /// The time of its status, once shown.
    pub(crate) fn status_at(&self) -> Option<&str> {
        self.log[self.last_status() - 1].at()
    }

    /// How many messages of the user it holds.
    pub(crate) fn turns(&self) -> usize {
        self.log.iter().filter(|event| matches!(event, Event::Status { asked: Some(_), .. })).count()
    }

    pub(crate) fn state(&self) -> State {
        match self.log[self.last_status() - 1] {
            Event::Status { state, .. } => state,
            Event::Artifact { .. } => unreachable!("a status was looked for"),
        }
    }

    /// The number of the newest status.
    pub(crate) fn last_status(&self) -> usize {
        self.status_among(self.log.len())
    }

    /// The number of the newest status among the first events.
    pub(crate) fn status_among(&self, events: usize) -> usize {
        1 + self.log[..events].iter().rposition(Event::is_status).expect("a task begins with a status")
    }

    /// The task after its first events, as a client is shown it.
    pub(crate) fn shown(&self, events: usize, history: Option<usize>, artifacts: bool) -> Value {
        let (mut status, mut said_so_far, mut made) =
            (Value::Null, Vec::new(), Vec::<(&str, Vec<&str>)>::new());
        for event in &self.log[..events] {
            match event {
                Event::Status { state, said, asked, at } => {
                    status = json!({"state": state.name(), "said": said, "at": at});
                    said_so_far.extend(asked.as_ref().map(|(id, text)| json!(["ROLE_USER", text, id])));
                    let settles = said.as_ref().filter(|_| state.is_settled());
                    said_so_far.extend(settles.map(|text| json!(["ROLE_AGENT", text])));
                }
                Event::Artifact { id, text, append: true } => {
                    let artifact = made.iter_mut().find(|(known, _)| known == id);
                    artifact.expect("appended to one there is").1.push(text);
                }
                Event::Artifact { id, text, append: false } => made.push((id, vec![text])),
            }
        }
        let surplus = history.map_or(0, |length| said_so_far.len().saturating_sub(length));
        json!({
            "id": self.id,
            "context": self.context,
            "status": status,
            "history": said_so_far[surplus..],
            "artifacts": if artifacts { made } else { Vec::new() },
        })
    }
}

impl Event {
    /// The event as a client of a stream is shown it.
    pub(crate) fn shown(&self) -> Value {
        match self {
            Self::Status { state, said, at, .. } => json!({"state": state.name(), "said": said, "at": at}),
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
        }
    }

    pub(crate) fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Rejected | Self::Canceled)
    }

    pub(crate) fn is_settled(self) -> bool {
        self.is_terminal() || self == Self::InputRequired
    }
}

fn status(state: State, said: Option<String>) -> Event {
    Event::Status { state, said, asked: None, at: None }
}

/// Gives back what it is given; holds what begins with `hold`.
fn echo(text: &str) -> Vec<Event> {
    let mut events = vec![status(State::Working, None)];
    if !text.starts_with("hold") {
        events.push(Event::Artifact { id: "echo-result", text: text.to_owned(), append: false });
        events.push(status(State::Completed, None));
    }
    events
}

/// Asks before it proceeds with the first thing it was told.
fn approve(task: &Task, text: &str) -> Vec<Event> {
    let Event::Status { asked: Some((_, request)), .. } = &task.log[0] else { return Vec::new() };
    let said = |state, text: String| status(state, Some(text));
    if task.log.len() == 1 {
        let question = format!("May I proceed with: {request}? Answer approve or deny.");
        return vec![status(State::Working, None), said(State::InputRequired, question)];
    }
    match text {
        "approve" => vec![
            Event::Artifact { id: "approval", text: format!("Approved: {request}"), append: false },
            said(State::Completed, format!("Done: {request}")),
        ],
        "deny" => vec![said(State::Rejected, format!("Denied: {request}"))],
        _ => vec![said(State::InputRequired, "Please answer approve or deny.".to_owned())],
    }
}

/// Writes `sections=N` sections about the first word, saying which one it is at.
fn write(text: &str, at_once: bool) -> Vec<Event> {
    let topic = text.split(' ').next().unwrap_or_default();
    let sections: u64 = text.split("sections=").nth(1).and_then(|rest| rest[..1].parse().ok()).unwrap_or(1);
    let mut events: Vec<Event> = at_once.then(|| status(State::Working, None)).into_iter().collect();
    for section in 1..=sections {
        events.push(status(State::Working, Some(format!("writing section {section} of {sections}"))));
        let text = format!("Section {section} of {sections}: more about {topic}.\n");
        events.push(Event::Artifact { id: "text", text, append: section > 1 });
    }
    events.push(status(State::Completed, Some(format!("{sections} sections written"))));
    events
}

#[cfg(test)]
mod tests;
