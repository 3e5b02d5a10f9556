//! Checks of the server's log: no panics and no internal errors, and every line is one JSON object without control
//! characters, whatever names callers chose. Lines written at start have the same format, because stderr is not a
//! terminal.

use serde_json::{Map, Value};

/// What is wrong with the lines. The last line may be incomplete and is not checked.
pub(super) fn faults(log: &str) -> Vec<String> {
    let whole = log.rfind('\n').map_or("", |end| &log[..end]);
    if whole.is_empty() {
        return vec!["the log is empty".to_owned()];
    }
    whole.split('\n').filter_map(fault).collect()
}

fn fault(line: &str) -> Option<String> {
    if line.contains("panicked") || line.contains("\"level\":\"ERROR\"") {
        return Some(format!("the log contains {line}"));
    }
    if let Err(error) = serde_json::from_str::<Map<String, Value>>(line) {
        return Some(format!("a line of the log is not a JSON object ({error}): {line:?}"));
    }
    line.contains(char::is_control)
        .then(|| format!("a line of the log contains a control character: {line:?}"))
}
