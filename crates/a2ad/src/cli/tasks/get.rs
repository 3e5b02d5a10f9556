//! `a2ad tasks get`: prints one task. The exit code depends on its state, as for `send`.

use clap::Args;
use protocol::{GetTask, Operation, Reply};

use crate::cli::{
    failure::{Failure, code, code_of_state},
    outcome,
    printer::Printer,
    send::print_reply,
    session::{Session, SessionFlags},
};

#[derive(Debug, Args)]
pub(in crate::cli) struct GetFlags {
    #[command(flatten)]
    session: SessionFlags,
    /// Id of the task.
    #[arg(value_name = "TASK")]
    task: String,
    /// Number of latest history messages to include with --json.
    #[arg(long, value_name = "N")]
    history: Option<u32>,
}

pub(super) fn run(flags: GetFlags) -> Result<u8, Failure> {
    let GetFlags { session, task, history } = flags;
    Session::run(session, |session| async move {
        let get = GetTask { id: task.into(), history_length: history, tenant: None };
        let reply = session.client().await?.call(Operation::GetTask(get)).await?;
        if session.json() {
            print_reply(&session, &reply)?;
        }
        let Reply::Task(task) = reply else { return Ok(code::SUCCESS) };
        if session.json() {
            return Ok(code_of_state(task.status.state));
        }
        let mut printer = Printer::new(&session.output);
        printer.task(&task)?;
        outcome::print_outcome(&session, &task, &mut printer)
    })
}
