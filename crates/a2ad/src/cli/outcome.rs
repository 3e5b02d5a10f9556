//! What is said at the end: the agent's last words on stdout, how the task stands on stderr.

use client::text;
use protocol::{Task, TaskState, dialect::v03};

use super::{
    printer::Printer,
    session::Session,
    stop::{Stop, code_of_state},
};

/// Says how a task stands once all it made was printed, and gives the exit code for it.
pub(super) fn conclude(session: &Session, task: &Task, printer: &mut Printer<'_>) -> Result<u8, Stop> {
    let state = task.status.state;
    session.screen.end_line()?;
    // A question is for whoever reads the answer, and so are last words without a result. The rest is talk.
    let spoken = state.is_interrupted() || state == TaskState::Completed && printer.is_silent();
    let unsaid = match &task.status.message {
        Some(message) if spoken => {
            printer.words(&message.parts)?;
            None
        }
        said => said.as_ref().map(text::of_message),
    };
    let line = status_line(task, unsaid.as_deref());
    match next(session, task) {
        Some(next) => session.screen.say_with(&line, &next),
        None => session.screen.say(&line),
    }
    Ok(code_of_state(state))
}

/// The word for a state.
pub(super) fn word(state: TaskState) -> &'static str {
    v03::task::state_name(state)
}

/// The names of the states a task can be filtered by.
pub(super) const STATES: [&str; 8] = [
    "submitted",
    "working",
    "input-required",
    "auth-required",
    "completed",
    "canceled",
    "failed",
    "rejected",
];

/// A state as it is typed: its word, with `_` or `-`, or its name in 1.0.
pub(super) fn parse_state(typed: &str) -> Result<TaskState, String> {
    let plain = typed.trim().to_ascii_lowercase().replace('_', "-");
    let plain = plain.strip_prefix("task-state-").unwrap_or(&plain);
    let plain = if plain == "cancelled" { "canceled" } else { plain };
    let states = TaskState::ALL.into_iter().filter(|state| *state != TaskState::Unspecified);
    states.clone().find(|state| word(*state) == plain).ok_or_else(|| {
        let words: Vec<&str> = states.map(word).collect();
        format!("expected one of {}", words.join(", "))
    })
}

fn status_line(task: &Task, unsaid: Option<&str>) -> String {
    let mut line = format!("task {} {}", task.id, word(task.status.state));
    if let Some(unsaid) = unsaid.filter(|unsaid| !unsaid.is_empty()) {
        line += &format!(": {unsaid}");
    }
    line
}

/// What can be done about a task that is not over.
fn next(session: &Session, task: &Task) -> Option<String> {
    let (text, verb, words): (_, _, &[&str]) = match task.status.state {
        TaskState::InputRequired => ("answer with", "reply", &["TEXT"]),
        TaskState::AuthRequired => ("go on with credentials", "reply", &["TEXT"]),
        state if !state.is_terminal() => ("follow it with", "tasks watch", &[]),
        _ => return None,
    };
    Some(format!("{text}: {}", session.command(verb, task.id.as_str(), words)))
}
