//! `a2ad tasks get`: prints one task. The exit code depends on its state, as for `send`.

use clap::Args;
use protocol::{GetTask, Reply};

use crate::cli::{
    calls::{
        outcome,
        printer::Printer,
        send::print_reply,
        session::{FolderFlags, Session, SessionFlags},
    },
    failure::{Failure, code_of_state},
};

#[derive(Debug, Args)]
pub(crate) struct GetFlags {
    #[command(flatten)]
    session: SessionFlags,
    /// Id of the task.
    #[arg(value_name = "TASK")]
    task: String,
    /// Number of latest history messages to include with --json.
    #[arg(long, value_name = "N")]
    history: Option<u32>,
    #[command(flatten)]
    folder: FolderFlags,
}

pub(super) fn run(flags: GetFlags) -> Result<u8, Failure> {
    let GetFlags { session, task, history, folder } = flags;
    Session::run(session.saving(folder), |session| async move {
        let get = GetTask { history_length: history, ..GetTask::from(task) };
        let task = session.client().await?.get_task(get).await?;
        if session.json() {
            let state = task.status.state;
            print_reply(&session, &Reply::Task(task))?;
            return Ok(code_of_state(state));
        }
        let mut printer = Printer::new(&session.output);
        printer.task(&task)?;
        outcome::print_outcome(&session, &task, &mut printer)
    })
}
