//! `a2ad ops cancel`: cancels a task of any owner.

use http::Method;

use super::task::{HINT, TaskFlags};
use crate::cli::{
    failure::{Failure, code},
    operators::{Access, segment},
};

pub(super) fn run(flags: &TaskFlags) -> Result<u8, Failure> {
    let access = Access::open(&flags.operator)?;
    let task = access.send(Method::POST, &format!("/tasks/{}/cancel", segment(&flags.id)), Vec::new());
    let task = task.map_err(|failure| failure.with_hint_if_not_found(HINT))?;
    access.output.message(&format!("a2ad: canceled the task {} {}", flags.id, access.place()));
    if flags.operator.json {
        access.output.document(&task)?;
    }
    Ok(code::SUCCESS)
}
