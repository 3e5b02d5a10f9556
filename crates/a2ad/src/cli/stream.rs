//! `a2ad stream`: says something to an agent and prints what it makes as it makes it.

use clap::Args;
use client::{Follow, FollowEvent};
use protocol::{Event, SendMessage, dialect::v1};

use super::{
    compose::MessageFlags,
    outcome,
    printer::Printer,
    send::{look_for, progress},
    session::{Session, SessionFlags},
    stop::{Stop, code, code_of_state},
};

#[derive(Debug, Args)]
pub(super) struct StreamFlags {
    #[command(flatten)]
    session: SessionFlags,
    #[command(flatten)]
    message: MessageFlags,
    /// The task to say it to; a new one otherwise.
    #[arg(long, value_name = "ID")]
    task: Option<String>,
}

pub(super) fn run(flags: StreamFlags) -> Result<u8, Stop> {
    let StreamFlags { session, message, task } = flags;
    let req = SendMessage { return_immediately: false, ..message.compose(task.as_deref())? };
    Session::run(session, |session| async move { stream(&session, req).await })
}

async fn stream(session: &Session, req: SendMessage) -> Result<u8, Stop> {
    let client = session.client().await?;
    look_for(&client, req.message.task_id.as_ref()).await?;
    session.note(req.message.task_id.as_ref());
    session.sending();
    print(session, Follow::stream(&client, req).await?).await
}

/// Prints everything that is followed until the task is settled, and gives the exit code for its state.
pub(super) async fn print(session: &Session, mut follow: Follow<'_>) -> Result<u8, Stop> {
    let mut printer = Printer::new(&session.screen);
    let mut lost = false;
    while let Some(heard) = follow.next().await? {
        session.note(follow.task_id());
        let event = match heard {
            FollowEvent::Event(event) => event,
            FollowEvent::Lost => {
                if !std::mem::replace(&mut lost, true) {
                    session.screen.say("the connection is lost; coming back");
                }
                continue;
            }
        };
        lost = false;
        session.alive();
        if session.json() {
            session.screen.document(&v1::event::encode_bytes(&event))?;
        } else {
            printer.hear(&event)?;
        }
        if let Event::Message(_) = event {
            return Ok(code::DONE);
        }
        progress(session, &event);
    }
    match follow.task() {
        Some(task) if session.json() => Ok(code_of_state(task.status.state)),
        Some(task) => outcome::conclude(session, task, &mut printer),
        None => Ok(code::DONE),
    }
}
