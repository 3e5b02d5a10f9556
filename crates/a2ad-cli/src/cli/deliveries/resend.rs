//! `a2ad deliveries resend`: sends notifications again, at once.

use clap::Args;
use http::Method;

use crate::cli::{
    failure::{Failure, code},
    operate::{Access, MissingStore, OperateFlags, read_document, segment},
    output::Output,
    runtime,
};

#[derive(Debug, Args)]
pub(in crate::cli) struct ResendFlags {
    /// Ids of deliveries: the first column of a2ad deliveries ls.
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
    #[command(flatten)]
    operate: OperateFlags,
}

pub(super) fn run(flags: &ResendFlags) -> Result<u8, Failure> {
    let output = Output::new();
    let Access::Server(server) = Access::open(&flags.operate, MissingStore::Refuse, &output)? else {
        let failure = Failure::new(code::ERROR, "only a running server sends notifications");
        return Err(failure.with_next("start the server with this store, then try again"));
    };
    let runtime = runtime()?;
    let mut exit = code::SUCCESS;
    for id in &flags.ids {
        let path = format!("/deliveries/{}/resend", segment(id));
        let document = runtime.block_on(server.send(Method::POST, &path, Vec::new()))?;
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
        output.message(&text);
        if flags.operate.json {
            output.document(&document)?;
        }
    }
    Ok(exit)
}
