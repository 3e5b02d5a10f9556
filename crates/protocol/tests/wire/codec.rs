//! The codec under test as functions between text and values.

use a2ad_protocol::{
    Error, Event, Operation, OperationKind, Reply, Timestamp, Violation,
    dialect::v1,
    json::{
        Raw,
        read::{Node, Path},
        write::Writer,
    },
};

/// The timestamp of every error object in these tests.
pub(crate) const NOW: &str = "2026-01-02T03:04:05.678Z";

pub(crate) fn now() -> Timestamp {
    Timestamp::parse(NOW).unwrap()
}

pub(crate) fn read_operation(method: &str, params: &str) -> Result<Operation, Error> {
    v1::operation::decode(method, Some(raw(params)))
}

pub(crate) fn write_operation(operation: &Operation) -> String {
    written(|writer| v1::operation::encode(writer, operation))
}

pub(crate) fn read_event(text: &str) -> Result<Event, Violation> {
    v1::event::decode(Node::new(raw(text), &Path::Root))
}

pub(crate) fn write_event(event: &Event) -> String {
    written(|writer| v1::event::encode(writer, event))
}

pub(crate) fn read_reply(kind: OperationKind, text: &str) -> Result<Reply, Violation> {
    v1::reply::decode(kind, Node::new(raw(text), &Path::Root))
}

pub(crate) fn write_reply(reply: &Reply) -> String {
    written(|writer| v1::reply::encode(writer, reply))
}

pub(crate) fn read_error(text: &str) -> Result<Error, Violation> {
    v1::error::decode(Node::new(raw(text), &Path::Root))
}

pub(crate) fn write_error(error: &Error) -> String {
    written(|writer| v1::error::encode(writer, error, now()))
}

pub(crate) fn written(write: impl FnOnce(&mut Writer)) -> String {
    let mut writer = Writer::new();
    write(&mut writer);
    String::from_utf8(writer.finish()).unwrap()
}

fn raw(text: &str) -> Raw<'_> {
    Raw::parse_text(text).unwrap_or_else(|fault| panic!("{fault}: {text}"))
}
