//! What the server's log says of bad input: nothing broke, and every line is one JSON object without a control
//! character, whatever names callers chose. What a start tells is such a line too, because nobody watches.

use serde_json::{Map, Value};

/// What is wrong with each line. The last one may be under way.
pub(super) fn faults(log: &str) -> Vec<String> {
    let whole = log.rfind('\n').map_or("", |end| &log[..end]);
    if whole.is_empty() {
        return vec!["the log is empty".to_owned()];
    }
    whole.split('\n').filter_map(fault).collect()
}

fn fault(line: &str) -> Option<String> {
    if line.contains("panicked") || line.contains("\"level\":\"ERROR\"") {
        return Some(format!("the log has {line}"));
    }
    if let Err(error) = serde_json::from_str::<Map<String, Value>>(line) {
        return Some(format!("a line of the log is no JSON object ({error}): {line:?}"));
    }
    line.contains(char::is_control).then(|| format!("a line of the log has a control character: {line:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_object_without_control_characters() {
        let log = |line: &str| format!("{{\"message\":\"a2ad serves\"}}\n{line}\n");
        for good in [r#"{"level":"INFO","task_id":"a\"\\\n\u001b\u009bé"}"#, "{}"] {
            assert_eq!(faults(&log(good)), Vec::<String>::new(), "{good}");
        }
        for bad in [
            "",
            "plain",
            "5",
            r#"{"a":"b"c"}"#,
            "{\"a\":\"\n\"}",
            "{\"a\":\"\u{7f}\"}",
            "{\"a\":\"\u{85}\"}",
            "{}\r",
            r#"{"level":"ERROR"}"#,
            "thread 'x' panicked at y",
        ] {
            assert_ne!(faults(&log(bad)), Vec::<String>::new(), "{bad:?}");
        }
    }

    #[test]
    fn a_line_under_way_is_not_judged_and_an_empty_log_is() {
        assert_eq!(faults("{}\n{\"a\":"), Vec::<String>::new());
        assert_eq!(faults("").len(), 1);
        assert_eq!(faults("{\"a\":").len(), 1);
    }
}
