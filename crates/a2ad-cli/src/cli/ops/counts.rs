//! `a2ad ops counts`: how many tasks there are, how much work, and how many open streams.

use super::states;
use crate::cli::{
    failure::Failure,
    operators::{Access, OperatorFlags, print_table, read_document},
};

pub(super) fn run(flags: &OperatorFlags) -> Result<u8, Failure> {
    let access = Access::open(flags)?;
    let document = access.get("/counts")?;
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
    access.output.message(&format!("a2ad: {work} {}", access.place()));
    print_table(&access.output, flags, &document, &rows)
}
