//! `a2ad tasks watch`: follows a task that is there, over as many connections as it takes.

use clap::Args;
use client::Follow;

use crate::cli::{
    session::{Session, SessionFlags},
    stop::Stop,
    stream,
};

#[derive(Debug, Args)]
pub(in crate::cli) struct WatchFlags {
    #[command(flatten)]
    session: SessionFlags,
    /// The task.
    #[arg(value_name = "TASK")]
    task: String,
}

pub(super) fn run(flags: WatchFlags) -> Result<u8, Stop> {
    let WatchFlags { session, task } = flags;
    Session::run(session, |session| async move {
        let client = session.client().await?;
        let follow = Follow::watch(&client, task.into()).await?;
        session.note(follow.task_id());
        stream::print(&session, follow).await
    })
}
