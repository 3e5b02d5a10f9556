//! `a2ad explain`: one thing of the protocol, shown in the words of every dialect.
//!
//! What is given is recognised by its members, read into the model and written in each dialect. What was written is
//! read again, and the two models are compared: so the notes tell what the codecs do, not what they are thought to do.
//! Pure: text in, text out.

mod forms;
mod gone;
mod leaves;
mod notes;
mod pasted;
mod recognise;

use std::fmt::Write as _;

use protocol::{Dialect, json::Raw};
use serde_json::value::RawValue;

use self::recognise::{Recognised, recognise};

/// Why something cannot be explained, in one sentence that names the field at fault.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// Shows a message, task, event, request, answer, error or card in every dialect, with what is translated, carried,
/// defaulted or lost on the way. Of a stream, or of lines of JSON, each is shown.
///
/// ```
/// let shown = a2ad::explain(r#"{"role":"user","parts":[{"type":"text","text":"hello"}]}"#)?;
/// assert!(shown.starts_with("a message of draft"));
/// assert!(a2ad::explain("{}").is_err());
/// # Ok::<(), a2ad::explain::Error>(())
/// ```
pub fn run(input: &str) -> Result<String, Error> {
    let documents = pasted::documents(input);
    if let [one] = documents.as_slice() {
        return explain(one);
    }
    let (mut out, count) = (String::new(), documents.len());
    for (document, number) in documents.iter().zip(1..) {
        let shown = explain(document).map_err(|Error(text)| Error(format!("{number} of {count}: {text}")))?;
        let _ = writeln!(out, "{}══ {number} of {count}: {shown}", if number > 1 { "\n" } else { "" });
    }
    Ok(out)
}

/// Shows one document.
fn explain(text: &str) -> Result<String, Error> {
    let raw = Raw::parse_text(text).map_err(|fault| {
        let why = why_not_json(text).unwrap_or_else(|| fault.to_string());
        Error(format!("the input is not JSON: {why}"))
    })?;
    let recognised = recognise(raw)?;
    let Recognised { dialect: source, what, given, .. } = &recognised;
    let mut out = format!("{what} of {} ({})\n", source.name(), about(*source));
    for dialect in Dialect::ALL {
        let _ = write!(out, "\n── {} ({})", dialect.name(), about(dialect));
        let written = match forms::write(dialect, &recognised.thing) {
            Ok(written) => written,
            Err(reason) => {
                let _ = writeln!(out, "\n  lost        all of it: {reason}");
                continue;
            }
        };
        if let Some(title) = forms::title(dialect, &recognised.thing) {
            let _ = write!(out, ": {title}");
        }
        out.push('\n');
        for document in &written {
            out.push_str(&leaves::pretty(document));
            out.push('\n');
        }
        for note in notes::of(&recognised, *given, dialect, &written) {
            let _ = writeln!(out, "  {note}");
        }
    }
    Ok(out)
}

/// Why a text is not JSON. Our own reader knows the place only; who has written it by hand is told what is missing.
pub(crate) fn why_not_json(text: &str) -> Option<String> {
    serde_json::from_str::<&RawValue>(text).err().map(|error| error.to_string())
}

/// What a dialect is called elsewhere.
fn about(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Draft => "A2A 0.1 over JSON-RPC",
        Dialect::V03 => "A2A 0.2 and 0.3 over JSON-RPC",
        Dialect::V03Proto => "A2A 0.2.5 to 0.3 over HTTP+JSON and gRPC",
        Dialect::V1 => "A2A 1.0",
    }
}
