//! `a2ad tasks cancel`: cancels a task.

use clap::Args;
use protocol::Reply;

use crate::cli::{
    calls::{
        outcome,
        send::print_reply,
        session::{Session, SessionFlags},
    },
    failure::{Failure, code},
};

#[derive(Debug, Args)]
pub(crate) struct CancelFlags {
    #[command(flatten)]
    session: SessionFlags,
    /// Id of the task.
    #[arg(value_name = "TASK")]
    task: String,
}

pub(super) fn run(flags: CancelFlags) -> Result<u8, Failure> {
    let CancelFlags { session, task } = flags;
    Session::run(session, |session| async move {
        let task = session.client().await?.cancel(task).await?;
        if session.json() {
            print_reply(&session, &Reply::Task(task))?;
        } else {
            session.output.message(&format!("task {} {}", task.id, outcome::state_name(task.status.state)));
        }
        Ok(code::SUCCESS)
    })
}
