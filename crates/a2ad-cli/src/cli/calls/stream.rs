//! `a2ad stream`: sends a message to an agent and prints the output as it arrives.

use clap::Args;
use client::{Follow, FollowEvent};
use protocol::{Event, SendMessage, dialect::v1};

use super::compose::MessageFlags;

use crate::cli::failure::{Failure, code, code_of_state};

use super::outcome;

use super::printer::Printer;

use super::send::{check_task_exists, progress};

use super::session::{FolderFlags, Session, SessionFlags};

#[derive(Debug, Args)]
pub(crate) struct StreamFlags {
    #[command(flatten)]
    session: SessionFlags,
    #[command(flatten)]
    message: MessageFlags,
    /// Send to this task instead of a new one.
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    #[command(flatten)]
    folder: FolderFlags,
}

pub(crate) fn run(flags: StreamFlags) -> Result<u8, Failure> {
    let StreamFlags { session, message, task, folder } = flags;
    let req = SendMessage { return_immediately: false, ..message.compose(task.as_deref())? };
    Session::run(session.saving(folder), |session| async move { stream(&session, req).await })
}

async fn stream(session: &Session, req: SendMessage) -> Result<u8, Failure> {
    let client = session.client().await?;
    check_task_exists(&client, req.message.task_id.as_ref()).await?;
    session.record_task(req.message.task_id.as_ref());
    session.record_sent();
    print(session, Follow::stream(&client, req).await?).await
}

/// Prints every event until the task has settled, and returns the exit code for its state.
pub(crate) async fn print(session: &Session, mut follow: Follow<'_>) -> Result<u8, Failure> {
    let mut printer = Printer::new(&session.output);
    let mut lost = false;
    while let Some(follow_event) = follow.next().await? {
        session.record_task(follow.task_id());
        let event = match follow_event {
            FollowEvent::Event(event) => event,
            FollowEvent::Lost => {
                if !std::mem::replace(&mut lost, true) {
                    session.output.message("connection lost; reconnecting");
                }
                continue;
            }
        };
        lost = false;
        session.record_activity();
        if session.json() {
            session.output.document(&v1::event::encode_bytes(&event))?;
        } else {
            printer.print_event(&event)?;
        }
        if let Event::Message(_) = event {
            return Ok(code::SUCCESS);
        }
        progress(session, &event);
    }
    match follow.task() {
        Some(task) if session.json() => Ok(code_of_state(task.status.state)),
        Some(task) => outcome::print_outcome(session, task, &mut printer),
        None => Ok(code::SUCCESS),
    }
}
