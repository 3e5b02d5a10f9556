//! A line of the log as one JSON object: time, level, what is said, its fields, where it comes from.
//!
//! `tracing-subscriber` has one that collects the fields into a map of values first, which costs more than the rest of a
//! line. The program has no spans, so none are written.

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

/// Writes lines with the time of this clock.
pub(super) struct Json(pub(super) Clock);

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let about = event.metadata();
        write!(out, r#"{{"timestamp":"{}","level":"{}""#, self.0.now(), about.level())?;
        let mut members = Members { out: &mut out, wrote: Ok(()) };
        event.record(&mut members);
        members.text("target", about.target());
        members.wrote?;
        out.write_str("}\n")
    }
}

/// Writes fields as members, each with a comma before it.
struct Members<'a, 'w> {
    out: &'a mut Writer<'w>,
    wrote: fmt::Result,
}

impl Members<'_, '_> {
    /// A member whose value is a text.
    fn text(&mut self, name: &str, value: impl fmt::Display) {
        self.member(name, |out| {
            out.write_char('"')?;
            write!(Escaped(out), "{value}")?;
            out.write_char('"')
        });
    }

    /// A member whose value is written as JSON by its own words.
    fn bare(&mut self, name: &str, value: impl fmt::Display) {
        self.member(name, |out| write!(out, "{value}"));
    }

    fn member(&mut self, name: &str, value: impl FnOnce(&mut Writer<'_>) -> fmt::Result) {
        if self.wrote.is_ok() {
            self.wrote = write!(self.out, ",\"{name}\":").and_then(|()| value(self.out));
        }
    }
}

impl Visit for Members<'_, '_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.bare(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.bare(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.bare(field.name(), value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // What JSON has no number for is a text.
        if value.is_finite() { self.bare(field.name(), value) } else { self.text(field.name(), value) }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.text(field.name(), format_args!("{value:?}"));
    }
}

/// What is written here stands in a JSON string. Every control character is escaped, also those that JSON would let
/// stand: somebody reads the log on a terminal, which would act on them.
struct Escaped<'a, 'w>(&'a mut Writer<'w>);

/// Characters from U+0080 to U+00BF begin with this byte; half of them are control characters.
const LATIN: u8 = 0xc2;

impl Write for Escaped<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let special = |byte: &u8| matches!(*byte, b'"' | b'\\' | 0..b' ' | 0x7f | LATIN);
        let mut rest = text;
        while let Some(at) = rest.as_bytes().iter().position(special) {
            let (plain, from) = rest.split_at(at);
            self.0.write_str(plain)?;
            let mut from = from.chars();
            match from.next() {
                Some('"') => self.0.write_str("\\\"")?,
                Some('\\') => self.0.write_str("\\\\")?,
                Some('\n') => self.0.write_str("\\n")?,
                Some(other) if other.is_control() => write!(self.0, "\\u{:04x}", u32::from(other))?,
                Some(other) => self.0.write_char(other)?,
                None => {}
            }
            rest = from.as_str();
        }
        self.0.write_str(rest)
    }
}
