//! The end of a client command: the agent's final message on stdout, the task's state on stderr.

use client::text;
use protocol::{Task, TaskState, dialect::v03};

use crate::cli::failure::{Failure, code_of_state};

use super::printer::Printer;

use super::session::Session;

/// Prints the state of a task whose artifacts are already printed, and returns the exit code for it.
pub(crate) fn print_outcome(
    session: &Session,
    task: &Task,
    printer: &mut Printer<'_>,
) -> Result<u8, Failure> {
    let state = task.status.state;
    session.output.end_line()?;
    // A question, or a final message without an artifact, is the result: stdout. Any other message goes to stderr.
    let is_result = state.is_interrupted() || state == TaskState::Completed && printer.printed_nothing();
    let status_text = match &task.status.message {
        Some(message) if is_result => {
            printer.message_text(&message.parts)?;
            None
        }
        message => message.as_ref().map(text::of_message),
    };
    let line = status_line(task, status_text.as_deref());
    match next_step(session, task) {
        Some(next) => session.output.message_with_hint(&line, &next),
        None => session.output.message(&line),
    }
    Ok(code_of_state(state))
}

/// The name of a state in 0.3, such as `input-required`.
pub(crate) fn state_name(state: TaskState) -> &'static str {
    v03::task::state_name(state)
}

/// The states that tasks can be filtered by.
pub(crate) const STATES: [&str; 8] = [
    "submitted",
    "working",
    "input-required",
    "auth-required",
    "completed",
    "canceled",
    "failed",
    "rejected",
];

/// Parses a state: its name in 0.3, with `_` or `-`, or in 1.0.
pub(crate) fn parse_state(typed: &str) -> Result<TaskState, String> {
    let plain = typed.trim().to_ascii_lowercase().replace('_', "-");
    let plain = plain.strip_prefix("task-state-").unwrap_or(&plain);
    let plain = if plain == "cancelled" { "canceled" } else { plain };
    let states = TaskState::ALL.into_iter().filter(|state| *state != TaskState::Unspecified);
    states.clone().find(|state| state_name(*state) == plain).ok_or_else(|| {
        let names: Vec<&str> = states.map(state_name).collect();
        format!("expected one of {}", names.join(", "))
    })
}

fn status_line(task: &Task, status_text: Option<&str>) -> String {
    let mut line = format!("task {} {}", task.id, state_name(task.status.state));
    if let Some(status_text) = status_text.filter(|status_text| !status_text.is_empty()) {
        line += &format!(": {status_text}");
    }
    line
}

/// The command that continues a task that has not ended.
fn next_step(session: &Session, task: &Task) -> Option<String> {
    if session.is_local {
        let can_answer = task.status.state == TaskState::InputRequired;
        return can_answer.then(|| "answer it with --answer TEXT".to_owned());
    }
    let (text, subcommand, args): (_, _, &[&str]) = match task.status.state {
        TaskState::InputRequired => ("answer with", "reply", &["TEXT"]),
        TaskState::AuthRequired => ("continue with credentials", "reply", &["TEXT"]),
        state if !state.is_terminal() => ("follow it with", "tasks watch", &[]),
        _ => return None,
    };
    Some(format!("{text}: {}", session.command(subcommand, task.id.as_str(), args)))
}
