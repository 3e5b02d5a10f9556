//! The codecs under test as functions between text and values.

use a2ad_protocol::{
    Dialect, Error, Event, Operation, OperationKind, Reply, Timestamp, Violation,
    dialect::{Frames, Leniency, Style, draft, v1, v03},
    json::{
        Raw,
        read::{Node, Path},
        write::Writer,
    },
};

/// The dialects under test.
pub(crate) const DIALECTS: [Dialect; 2] = [Dialect::Draft, Dialect::V03];

pub(crate) fn now() -> Timestamp {
    Timestamp::parse("2026-01-02T03:04:05.678Z").unwrap()
}

/// Every method a dialect has.
pub(crate) fn methods(dialect: Dialect) -> Vec<(&'static str, OperationKind)> {
    match dialect {
        Dialect::Draft => draft::operation::METHODS.to_vec(),
        Dialect::V03 => [&v03::operation::METHODS[..], &v03::operation::EXTRA_METHODS[..]].concat(),
        Dialect::V1 => v1::operation::METHODS.to_vec(),
        Dialect::V03Proto => panic!("{dialect:?} has no methods"),
    }
}

/// The send method of each dialect.
pub(crate) fn sends() -> [(Dialect, &'static str); 2] {
    [(Dialect::Draft, "tasks/send"), (Dialect::V03, "message/send")]
}

pub(crate) fn kind(dialect: Dialect, method: &str) -> OperationKind {
    methods(dialect).iter().find(|row| row.0 == method).unwrap_or_else(|| panic!("no method {method}")).1
}

pub(crate) fn read_operation(dialect: Dialect, method: &str, params: &str) -> Result<Operation, Error> {
    // With the relaxed rules of the profiles whose samples are used here.
    let leniency = Leniency { message_id_optional: true, ..Leniency::default() };
    dialect.decode_operation_with(method, Some(raw(params)), leniency)
}

pub(crate) fn write_operation(dialect: Dialect, operation: &Operation) -> String {
    written(|writer| dialect.encode_operation(writer, operation))
}

pub(crate) fn read_event(dialect: Dialect, text: &str) -> Result<Event, Violation> {
    dialect.decode_event(Node::new(raw(text), &Path::Root))
}

/// The frames of an event at the start of its stream.
pub(crate) fn write_event(dialect: Dialect, event: &Event) -> Vec<String> {
    next_frames(&mut Frames::new(dialect, Style::default()), event)
}

/// The frames of the next event of a stream.
pub(crate) fn next_frames(frames: &mut Frames, event: &Event) -> Vec<String> {
    let mut texts = Vec::new();
    frames.encode(event, &mut |bytes| texts.push(String::from_utf8(bytes.to_vec()).unwrap()));
    texts
}

pub(crate) fn read_reply(dialect: Dialect, kind: OperationKind, text: &str) -> Result<Reply, Violation> {
    dialect.decode_reply(kind, Node::new(raw(text), &Path::Root))
}

pub(crate) fn write_reply(dialect: Dialect, reply: &Reply) -> String {
    written(|writer| dialect.encode_reply(writer, reply, Style::default()))
}

pub(crate) fn read_error(dialect: Dialect, text: &str) -> Result<Error, Violation> {
    dialect.decode_error(Node::new(raw(text), &Path::Root))
}

pub(crate) fn write_error(dialect: Dialect, error: &Error) -> String {
    written(|writer| dialect.encode_error(writer, error, now()))
}

pub(crate) fn written(write: impl FnOnce(&mut Writer)) -> String {
    let mut writer = Writer::new();
    write(&mut writer);
    String::from_utf8(writer.finish()).unwrap()
}

pub(crate) fn raw(text: &str) -> Raw<'_> {
    Raw::parse_text(text).unwrap_or_else(|fault| panic!("{fault}: {text}"))
}

/// The folder with the samples of a dialect.
pub(crate) fn sample_folder(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Draft => "draft",
        Dialect::V03 => "v03",
        Dialect::V03Proto => "v03-proto",
        Dialect::V1 => "v1",
    }
}
