//! `a2ad tasks watch`: follows an existing task, reconnecting as often as needed.

use clap::Args;
use client::Follow;

use crate::cli::{
    calls::{
        session::{FolderFlags, Session, SessionFlags},
        stream,
    },
    failure::Failure,
};

#[derive(Debug, Args)]
pub(crate) struct WatchFlags {
    #[command(flatten)]
    session: SessionFlags,
    /// Id of the task.
    #[arg(value_name = "TASK")]
    task: String,
    #[command(flatten)]
    folder: FolderFlags,
}

pub(super) fn run(flags: WatchFlags) -> Result<u8, Failure> {
    let WatchFlags { session, task, folder } = flags;
    Session::run(session.saving(folder), |session| async move {
        let client = session.client().await?;
        let follow = Follow::watch(&client, task).await?;
        session.record_task(follow.task_id());
        stream::print(&session, follow).await
    })
}
