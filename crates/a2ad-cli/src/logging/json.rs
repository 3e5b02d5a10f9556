//! Formats an event as one line of JSON: timestamp, level, message, fields, target.
//!
//! The formatter of `tracing-subscriber` collects the fields into a map first, which costs more than the rest of
//! the line. The program uses no spans, so none are written.

use std::fmt::{self, Write};

use engine::Clock;
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    registry::LookupSpan,
};

/// Formats events with the time of this clock.
pub(super) struct JsonFormat(pub(super) Clock);

impl<S, N> FormatEvent<S, N> for JsonFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let metadata = event.metadata();
        write!(out, r#"{{"timestamp":"{}","level":"{}""#, self.0.now(), metadata.level())?;
        let mut members = Members { out: &mut out, result: Ok(()) };
        event.record(&mut members);
        members.text("target", metadata.target());
        members.result?;
        out.write_str("}\n")
    }
}

/// Writes fields as JSON members, each preceded by a comma.
struct Members<'a, 'w> {
    out: &'a mut Writer<'w>,
    result: fmt::Result,
}

impl Members<'_, '_> {
    /// Writes a member with a string value.
    fn text(&mut self, name: &str, value: impl fmt::Display) {
        self.member(name, |out| {
            out.write_char('"')?;
            write!(Escaped(out), "{value}")?;
            out.write_char('"')
        });
    }

    /// Writes a member whose `Display` form is valid JSON.
    fn raw(&mut self, name: &str, value: impl fmt::Display) {
        self.member(name, |out| write!(out, "{value}"));
    }

    fn member(&mut self, name: &str, value: impl FnOnce(&mut Writer<'_>) -> fmt::Result) {
        if self.result.is_ok() {
            self.result = write!(self.out, ",\"{name}\":").and_then(|()| value(self.out));
        }
    }
}

impl Visit for Members<'_, '_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.raw(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.raw(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.raw(field.name(), value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has no NaN and no infinity: written as strings.
        if value.is_finite() { self.raw(field.name(), value) } else { self.text(field.name(), value) }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field.name(), format_args!("{value:?}"));
    }
}

/// Escapes text for a JSON string. All control characters are escaped, also those that JSON allows (such as
/// U+009B), because a terminal that shows the log would interpret them.
struct Escaped<'a, 'w>(&'a mut Writer<'w>);

/// The first UTF-8 byte of U+0080 to U+00BF, of which the first 32 are control characters.
const C1_LEAD_BYTE: u8 = 0xc2;

impl Write for Escaped<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let special = |byte: &u8| matches!(*byte, b'"' | b'\\' | 0..b' ' | 0x7f | C1_LEAD_BYTE);
        let mut rest = text;
        while let Some(at) = rest.as_bytes().iter().position(special) {
            let (plain, special_onwards) = rest.split_at(at);
            self.0.write_str(plain)?;
            let mut special_onwards = special_onwards.chars();
            match special_onwards.next() {
                Some('"') => self.0.write_str("\\\"")?,
                Some('\\') => self.0.write_str("\\\\")?,
                Some('\n') => self.0.write_str("\\n")?,
                Some(other) if other.is_control() => write!(self.0, "\\u{:04x}", u32::from(other))?,
                Some(other) => self.0.write_char(other)?,
                None => {}
            }
            rest = special_onwards.as_str();
        }
        self.0.write_str(rest)
    }
}
