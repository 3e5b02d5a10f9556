//! `a2ad reply`: says more to a task that waits for it.

use clap::Args;

use super::{
    compose::MessageFlags,
    send::{WaitFlags, send},
    session::{Session, SessionFlags},
    stop::Stop,
};

#[derive(Debug, Args)]
pub(super) struct ReplyFlags {
    #[command(flatten)]
    session: SessionFlags,
    /// The task that waits.
    #[arg(value_name = "TASK")]
    task: String,
    #[command(flatten)]
    message: MessageFlags,
    #[command(flatten)]
    waiting: WaitFlags,
}

pub(super) fn run(flags: ReplyFlags) -> Result<u8, Stop> {
    let ReplyFlags { session, task, message, waiting } = flags;
    let req = message.compose(Some(&task))?;
    Session::run(session, |session| async move { send(&session, req, &waiting).await })
}
