//! `a2ad ops cancel`: cancels a task of any owner.

use clap::Args;

use super::{documents, task::with_hint};
use crate::cli::{
    failure::{Failure, code},
    operate::{Access, MissingStore, OperateFlags},
    output::Output,
    runtime,
};

#[derive(Debug, Args)]
pub(in crate::cli) struct CancelFlags {
    /// Id of the task: the first column of a2ad ops tasks.
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    operate: OperateFlags,
}

pub(super) fn run(flags: &CancelFlags) -> Result<u8, Failure> {
    let output = Output::new();
    let access = Access::open(&flags.operate, MissingStore::Refuse, &output)?;
    let task = runtime()?.block_on(documents::cancel(&access, &flags.id)).map_err(with_hint)?;
    output.message(&format!("a2ad: canceled the task {} {}", flags.id, access.place()));
    if flags.operate.json {
        output.document(&task)?;
    }
    Ok(code::SUCCESS)
}
