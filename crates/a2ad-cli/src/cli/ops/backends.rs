//! `a2ad ops backends`: whether the backends of a running server work.

use protocol::json::read::{Object, Read};

use crate::cli::{
    failure::{Failure, code},
    operators::{Access, List, OperatorFlags},
};

pub(super) fn run(flags: &OperatorFlags) -> Result<u8, Failure> {
    let access = Access::open(flags)?;
    if !access.is_of_server() {
        let text = "no server runs with the store, and only a server has backends";
        return Err(Failure::new(code::ERROR, text).with_next("start it, or name its store with --store"));
    }
    List { nouns: ["backend", "backends"], filters: &[], row }.print(&access, flags)
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
