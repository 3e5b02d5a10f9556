//! `a2ad ops task`: prints a task of any owner. Its content is JSON, also without `--json`.

use clap::{Args, builder::NonEmptyStringValueParser};

use crate::cli::{
    failure::{Failure, code},
    operators::{Access, OperatorFlags, segment},
};

/// What to do about an unknown id.
pub(super) const HINT: &str = "a2ad ops tasks lists the ids";

#[derive(Debug, Args)]
pub(in crate::cli) struct TaskFlags {
    /// Id of the task: the first column of a2ad ops tasks.
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(super) id: String,
    #[command(flatten)]
    pub(super) operator: OperatorFlags,
}

pub(super) fn run(flags: &TaskFlags) -> Result<u8, Failure> {
    let access = Access::open(&flags.operator)?;
    let task = access.get(&format!("/tasks/{}", segment(&flags.id)));
    let task = task.map_err(|failure| failure.with_hint_if_not_found(HINT))?;
    access.output.message(&format!("a2ad: 1 task {}", access.place()));
    access.output.document(&task)?;
    Ok(code::SUCCESS)
}
