//! `a2ad tasks get`: reads one task. The exit code is that of the task's state, as for `send`.

use clap::Args;
use protocol::{GetTask, Operation, Reply};

use crate::cli::{
    outcome,
    printer::Printer,
    send::print_reply,
    session::{Session, SessionFlags},
    stop::{Stop, code, code_of_state},
};

#[derive(Debug, Args)]
pub(in crate::cli) struct GetFlags {
    #[command(flatten)]
    session: SessionFlags,
    /// The task.
    #[arg(value_name = "TASK")]
    task: String,
    /// How many messages of its history to show with --json.
    #[arg(long, value_name = "N")]
    history: Option<u32>,
}

pub(super) fn run(flags: GetFlags) -> Result<u8, Stop> {
    let GetFlags { session, task, history } = flags;
    Session::run(session, |session| async move {
        let get = GetTask { id: task.into(), history_length: history, tenant: None };
        let reply = session.client().await?.call(Operation::GetTask(get)).await?;
        if session.json() {
            print_reply(&session, &reply)?;
        }
        let Reply::Task(task) = reply else { return Ok(code::DONE) };
        if session.json() {
            return Ok(code_of_state(task.status.state));
        }
        let mut printer = Printer::new(&session.screen);
        printer.task(&task)?;
        outcome::conclude(&session, &task, &mut printer)
    })
}
