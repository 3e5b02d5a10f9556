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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_line_must_be_one_object_without_control_characters() {
        let log = |line: &str| format!("{{\"message\":\"a2ad serves\"}}\n{line}\n");
        for good in [r#"{"level":"INFO","task_id":"a\"\\\n\u001b\u009bé"}"#, "{}"] {
            assert_eq!(faults(&log(good)), Vec::<String>::new(), "{good}");
        }
        #[rustfmt::skip]
        let wrong = [
            "", "plain", "5", r#"{"a":"b"c"}"#, "{\"a\":\"\n\"}", "{\"a\":\"\u{7f}\"}", "{\"a\":\"\u{85}\"}",
            "{}\r", r#"{"level":"ERROR"}"#, "thread 'x' panicked at y",
        ];
        for bad in wrong {
            assert_ne!(faults(&log(bad)), Vec::<String>::new(), "{bad:?}");
        }
    }

    #[test]
    fn incomplete_line_is_ignored_and_empty_log_is_a_fault() {
        assert_eq!(faults("{}\n{\"a\":"), Vec::<String>::new());
        assert_eq!(faults("").len(), 1);
        assert_eq!(faults("{\"a\":").len(), 1);
    }
}
