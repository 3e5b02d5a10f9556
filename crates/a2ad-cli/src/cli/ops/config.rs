//! `a2ad ops config`: every key of the configuration with its value and where it comes from. Without a server, it is the
//! one that a server would start with.

use inbound::config_document;
use protocol::json::read::{Object, Read};

use crate::cli::{
    failure::Failure,
    operators::{Access, OperatorFlags, print_table, read_document},
    output::Output,
};

pub(super) fn run(flags: &OperatorFlags) -> Result<u8, Failure> {
    let (document, place) = read(flags)?;
    let rows = read_document(&document, |object| object.list("settings", |node| row(&node.object()?)))?;
    let output = Output::new();
    output.message(&format!("a2ad: the configuration {place}"));
    print_table(&output, flags, &document, &rows)
}

/// The document, and which configuration it is.
fn read(flags: &OperatorFlags) -> Result<(Vec<u8>, String), Failure> {
    if flags.store_path()?.exists() {
        let access = Access::open(flags)?;
        if access.is_of_server() {
            return Ok((access.get("/config")?, format!("in use {}", access.place())));
        }
    }
    let config = flags.config()?.ok_or_else(|| {
        let text = "no server runs with the store, and the configuration is not known";
        Failure::usage(text).with_next("name it with --config")
    })?;
    let file = config.report.file.as_ref().map_or("no file".to_owned(), |file| format!("the file {file}"));
    let place = format!("of {file} and the environment; no server uses the store");
    Ok((config_document::document(&config.report), place))
}

fn row(object: &Object<'_, '_>) -> Read<[String; 3]> {
    let json = |name| object.maybe(name, |node| Ok(node.text().to_owned()));
    let value = match object.text("derivedFrom")? {
        Some(from) => format!("({from})"),
        None => json("value")?.unwrap_or_else(|| "null".to_owned()),
    };
    let source = match (json("line")?, object.text("name")?) {
        (Some(line), _) => format!("line {line}"),
        (None, Some(name)) => name,
        (None, None) => object.need_text("source")?,
    };
    let next = json("nextStart")?.map_or(String::new(), |next| format!(", {next} after the next start"));
    Ok([object.need_text("key")?, value, source + &next])
}
