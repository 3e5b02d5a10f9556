//! `a2ad tasks cancel`: cancels a task.

use clap::Args;
use protocol::{CancelTask, Operation, Reply};

use crate::cli::{
    failure::{Failure, code},
    outcome,
    send::print_reply,
    session::{Session, SessionFlags},
};

#[derive(Debug, Args)]
pub(in crate::cli) struct CancelFlags {
    #[command(flatten)]
    session: SessionFlags,
    /// Id of the task.
    #[arg(value_name = "TASK")]
    task: String,
}

pub(super) fn run(flags: CancelFlags) -> Result<u8, Failure> {
    let CancelFlags { session, task } = flags;
    Session::run(session, |session| async move {
        let cancel = CancelTask { id: task.into(), metadata: None, tenant: None };
        let reply = session.client().await?.call(Operation::CancelTask(cancel)).await?;
        if session.json() {
            print_reply(&session, &reply)?;
        } else if let Reply::Task(task) = reply {
            session.output.message(&format!("task {} {}", task.id, outcome::state_name(task.status.state)));
        }
        Ok(code::SUCCESS)
    })
}
