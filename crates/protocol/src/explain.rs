//! Shows a protocol document in every dialect.
//!
//! The document is recognised by its members, decoded into the model and encoded in each dialect. Each encoded document
//! is decoded again, and the two models are compared, so the notes describe the actual behaviour of the codecs.
//! The module does no I/O: it takes text and returns text.

mod documents;
mod forms;
mod leaves;
mod notes;
mod recognise;
mod unmodelled;

use std::fmt::Write as _;

use crate::{
    Dialect, Timestamp,
    json::{Raw, syntax_error},
};

use self::recognise::{Recognition, recognise};

/// Why an input cannot be explained, in one line that names the invalid field.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// Shows a message, task, event, request, response, error or card in every dialect, with the members that are
/// translated, carried in metadata, defaulted or lost. For an event stream or lines of JSON, every document is shown. `now` is
/// the time in the forms of errors that have one.
///
/// ```
/// # use a2ad_protocol::{Timestamp, explain::explain};
/// # let now = Timestamp::from_millis(0);
/// let shown = explain(r#"{"role":"user","parts":[{"type":"text","text":"hello"}]}"#, now)?;
/// assert!(shown.starts_with("a message of draft"));
/// assert!(explain("{}", now).is_err());
/// # Ok::<(), a2ad_protocol::explain::Error>(())
/// ```
pub fn explain(input: &str, now: Timestamp) -> Result<String, Error> {
    let documents = documents::split(input);
    if let [one] = documents.as_slice() {
        return explain_document(one, now);
    }
    let (mut out, count) = (String::new(), documents.len());
    for (document, number) in documents.iter().zip(1..) {
        let shown = explain_document(document, now)
            .map_err(|Error(text)| Error(format!("{number} of {count}: {text}")))?;
        let _ = writeln!(out, "{}══ {number} of {count}: {shown}", if number > 1 { "\n" } else { "" });
    }
    Ok(out)
}

fn explain_document(text: &str, now: Timestamp) -> Result<String, Error> {
    let raw = Raw::parse_text(text).map_err(|fault| {
        let why = syntax_error(text).unwrap_or_else(|| fault.to_string());
        Error(format!("the input is not JSON: {why}"))
    })?;
    let recognised = recognise(raw)?;
    let Recognition { dialect: source, what, input, .. } = &recognised;
    let mut out = format!("{what} of {} ({})\n", source.label(), description(*source));
    for dialect in Dialect::ALL {
        let _ = write!(out, "\n── {} ({})", dialect.label(), description(dialect));
        let written = match forms::encode(dialect, &recognised.value, now) {
            Ok(written) => written,
            Err(reason) => {
                let _ = writeln!(out, "\n  lost        all of it: {reason}");
                continue;
            }
        };
        if let Some(title) = forms::title(dialect, &recognised.value) {
            let _ = write!(out, ": {title}");
        }
        out.push('\n');
        for document in &written {
            out.push_str(&leaves::pretty(document));
            out.push('\n');
        }
        for note in notes::of(&recognised, *input, dialect, &written) {
            let _ = writeln!(out, "  {note}");
        }
    }
    Ok(out)
}

/// The A2A versions and bindings that use a dialect.
fn description(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Draft => "JSON-RPC, A2A 0.1",
        Dialect::V03 => "JSON-RPC, A2A 0.2 and 0.3",
        Dialect::V03Proto => "HTTP+JSON and gRPC, A2A 0.2.5 to 0.3",
        Dialect::V1 => "all bindings",
    }
}
