//! `a2ad ops backends`: whether the backends of a running server work.

use clap::Args;
use protocol::json::read::{Object, Read};

use crate::cli::{
    failure::{Failure, code},
    operate::{Access, MissingStore, OperateFlags, columns, counted, read_document},
    output::Output,
    runtime,
};

#[derive(Debug, Args)]
pub(in crate::cli) struct BackendsFlags {
    #[command(flatten)]
    operate: OperateFlags,
}

pub(super) fn run(flags: &BackendsFlags) -> Result<u8, Failure> {
    let output = Output::new();
    let access = Access::open(&flags.operate, MissingStore::Refuse, &output)?;
    let Access::Server(server) = &access else {
        let text = "no server runs with the store, and only a server has backends";
        return Err(Failure::new(code::ERROR, text).with_next("start it, or name its store with --store"));
    };
    let document = runtime()?.block_on(server.get("/backends"))?;
    let rows = read_document(&document, |object| object.list("backends", |node| row(&node.object()?)))?;
    output.message(&format!("a2ad: {} {}", counted(rows.len(), "backend", "backends"), access.place()));
    if flags.operate.json {
        output.document(&document)?;
    } else {
        output.text(&columns(&rows))?;
    }
    Ok(code::SUCCESS)
}

fn row(object: &Object<'_, '_>) -> Read<[String; 6]> {
    let number = |name| object.maybe(name, |node| Ok(node.text().to_owned()));
    let needed = |name| object.need(name, "a number", |node| Ok(node.text().to_owned()));
    let processes = match (number("processes")?, number("restarts")?) {
        (Some(processes), Some(restarts)) => format!("{processes} ready, {restarts} restarts"),
        _ => String::new(),
    };
    let tools = number("tools")?.map_or(String::new(), |tools| format!("{tools} tools"));
    let error = match (object.text("lastError")?, object.text("lastErrorAt")?) {
        (Some(error), Some(at)) => format!(", last error at {at}: {error}"),
        _ => String::new(),
    };
    Ok([
        object.need_text("name")?,
        object.need_text("kind")?,
        object.need_text("state")?,
        tools,
        processes,
        format!("{} calls, {} failed{error}", needed("calls")?, needed("failures")?),
    ])
}
