//! `a2ad deliveries resend`: sends notifications again, at once.

use clap::Args;
use http::Method;

use crate::cli::{
    failure::{Failure, code},
    operators::{Access, OperatorFlags, read_document, segment},
};

#[derive(Debug, Args)]
pub(in crate::cli) struct ResendFlags {
    /// Ids of deliveries: the first column of a2ad deliveries ls.
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    #[command(flatten)]
    operator: OperatorFlags,
}

pub(super) fn run(flags: &ResendFlags) -> Result<u8, Failure> {
    let access = Access::open(&flags.operator)?;
    if !access.is_of_server() {
        let failure = Failure::new(code::ERROR, "only a running server sends notifications");
        return Err(failure.with_next("start the server with this store, then try again"));
    }
    let mut exit = code::SUCCESS;
    for id in &flags.ids {
        let path = format!("/deliveries/{}/resend", segment(id));
        let document = access.send(Method::POST, &path, Vec::new())?;
        let (result, error) =
            read_document(&document, |object| Ok((object.need_text("result")?, object.text("error")?)))?;
        let text = match (result.as_str(), error) {
            ("delivered", _) => format!("a2ad: {id} was delivered and is deleted"),
            ("scheduled", _) => format!("a2ad: {id} is attempted now"),
            (_, error) => {
                exit = code::PROTOCOL;
                format!("a2ad: {id} was not delivered: {}", error.unwrap_or_default())
            }
        };
        access.output.message(&text);
        if flags.operator.json {
            access.output.document(&document)?;
        }
    }
    Ok(exit)
}
