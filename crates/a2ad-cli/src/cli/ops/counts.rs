//! `a2ad ops counts`: how many tasks there are, how much work, and how many open streams.

use clap::Args;

use super::{documents, states};
use crate::cli::{
    failure::{Failure, code},
    operate::{Access, MissingStore, OperateFlags, columns, read_document},
    output::Output,
    runtime,
};

#[derive(Debug, Args)]
pub(in crate::cli) struct CountsFlags {
    #[command(flatten)]
    operate: OperateFlags,
}

pub(super) fn run(flags: &CountsFlags) -> Result<u8, Failure> {
    let output = Output::new();
    let access = Access::open(&flags.operate, MissingStore::Refuse, &output)?;
    let document = runtime()?.block_on(documents::counts(&access))?;
    let (rows, work) = read_document(&document, |object| {
        let rows = object.list("agents", |node| {
            let agent = node.object()?;
            Ok([agent.need_text("id")?, agent.need("tasks", "an object", |node| states(&node.object()?))?])
        })?;
        let number = |name| object.need(name, "a number", |node| Ok(node.text().to_owned()));
        let oldest = object.maybe("oldestQueuedMs", |node| Ok(node.text().to_owned()))?;
        let oldest = oldest.map_or(String::new(), |age| format!(" (the oldest for {age} ms)"));
        let streams = object.maybe("streams", |node| Ok(format!(", {} open streams", node.text())))?;
        let work = format!("{} queued{oldest}, {} running", number("queued")?, number("running")?);
        Ok((rows, work + &streams.unwrap_or_default()))
    })?;
    output.message(&format!("a2ad: {work} {}", access.place()));
    if flags.operate.json {
        output.document(&document)?;
    } else {
        output.text(&columns(&rows))?;
    }
    Ok(code::SUCCESS)
}
