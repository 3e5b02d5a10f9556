//! `a2ad ops task`: prints a task of any owner. Its content is JSON, also without `--json`.

use clap::Args;

use super::documents;
use crate::cli::{
    failure::{Failure, code},
    operate::{Access, MissingStore, OperateFlags},
    output::Output,
    runtime,
};

#[derive(Debug, Args)]
pub(in crate::cli) struct TaskFlags {
    /// Id of the task: the first column of a2ad ops tasks.
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    operate: OperateFlags,
}

pub(super) fn run(flags: &TaskFlags) -> Result<u8, Failure> {
    let output = Output::new();
    let access = Access::open(&flags.operate, MissingStore::Refuse, &output)?;
    let task = runtime()?.block_on(documents::get(&access, &flags.id)).map_err(with_hint)?;
    output.message(&format!("a2ad: 1 task {}", access.place()));
    output.document(&task)?;
    Ok(code::SUCCESS)
}

/// What to do about an unknown id.
pub(super) fn with_hint(failure: Failure) -> Failure {
    match failure.code {
        code::NOT_FOUND => failure.with_next("a2ad ops tasks lists the ids"),
        _ => failure,
    }
}
