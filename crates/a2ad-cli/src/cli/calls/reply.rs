//! `a2ad reply`: sends a message to a task that waits for input.

use clap::Args;

use super::compose::MessageFlags;

use crate::cli::failure::Failure;

use super::send::{WaitFlags, send};

use super::session::{FolderFlags, Session, SessionFlags};

#[derive(Debug, Args)]
pub(crate) struct ReplyFlags {
    #[command(flatten)]
    session: SessionFlags,
    /// Id of the task.
    #[arg(value_name = "TASK")]
    task: String,
    #[command(flatten)]
    message: MessageFlags,
    #[command(flatten)]
    waiting: WaitFlags,
    #[command(flatten)]
    folder: FolderFlags,
}

pub(crate) fn run(flags: ReplyFlags) -> Result<u8, Failure> {
    let ReplyFlags { session, task, message, waiting, folder } = flags;
    let req = message.compose(Some(&task))?;
    Session::run(session.saving(folder), |session| async move { send(&session, req, &waiting).await })
}
