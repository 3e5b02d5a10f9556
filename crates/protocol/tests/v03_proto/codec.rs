//! The codec under test as functions between text and values.

use a2ad_protocol::{
    Error, Event, Operation, OperationKind, Reply, Violation,
    dialect::v03_proto::{error, event, operation, operation::Address, reply},
    json::{
        Raw,
        read::{Node, Path},
        write::Writer,
    },
};

/// Decodes a request as the binding passes it.
pub(crate) fn read_operation(
    kind: OperationKind,
    address: &Address,
    body: Option<&str>,
) -> Result<Operation, Error> {
    operation::decode(kind, address, body.map(raw))
}

pub(crate) fn write_operation(operation: &Operation) -> (Address, String) {
    (operation::address(operation), written(|writer| operation::encode(writer, operation)))
}

pub(crate) fn read_event(text: &str) -> Result<Event, Violation> {
    event::decode(Node::new(raw(text), &Path::Root))
}

pub(crate) fn write_event(event: &Event) -> String {
    written(|writer| event::encode(writer, event))
}

pub(crate) fn read_reply(kind: OperationKind, text: &str) -> Result<Reply, Violation> {
    reply::decode(kind, Node::new(raw(text), &Path::Root))
}

pub(crate) fn write_reply(reply: &Reply) -> String {
    written(|writer| reply::encode(writer, reply))
}

pub(crate) fn read_error(text: &str) -> Result<Error, Violation> {
    error::decode(Node::new(raw(text), &Path::Root))
}

pub(crate) fn write_error(error: &Error) -> String {
    written(|writer| error::encode(writer, error))
}

/// The address of a task and one of its webhooks.
pub(crate) fn at(task: &str, config: &str, query: &[(&str, &str)]) -> Address {
    let id = |id: &str| Some(id.to_owned()).filter(|id| !id.is_empty());
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Address { task: id(task), config: id(config), query: query.iter().map(pair).collect(), tenant: None }
}

fn written(write: impl FnOnce(&mut Writer)) -> String {
    let mut writer = Writer::new();
    write(&mut writer);
    String::from_utf8(writer.finish()).unwrap()
}

pub(crate) fn raw(text: &str) -> Raw<'_> {
    Raw::parse_text(text).unwrap_or_else(|fault| panic!("{fault}: {text}"))
}
