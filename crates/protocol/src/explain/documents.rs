//! Splits the input into documents: a single JSON document, server-sent events as copied from a response, or one JSON
//! document per line.

use std::borrow::Cow;

use crate::json::Raw;

/// The documents of an input; the whole input as one document if it is neither a stream nor lines of JSON.
pub(super) fn split(input: &str) -> Vec<Cow<'_, str>> {
    let filled = || input.lines().filter(|line| !line.trim().is_empty());
    let is_event_field =
        |line: &str| ["data:", "id:", "event:", "retry:", ":"].iter().any(|tag| line.starts_with(tag));
    let found: Vec<Cow<'_, str>> = if filled().next().is_some_and(is_event_field) {
        events(input).into_iter().map(Cow::Owned).collect()
    } else if !is_json(input) && filled().count() > 1 && filled().all(is_json) {
        filled().map(Cow::Borrowed).collect()
    } else {
        Vec::new()
    };
    if found.is_empty() { vec![Cow::Borrowed(input)] } else { found }
}

/// The data of each event. An event ends at an empty line or, if the empty lines were lost in copying, where its data
/// is complete JSON.
fn events(input: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for line in input.lines() {
        let data = line.strip_prefix("data:");
        let whole = data.is_some() && found.last().is_some_and(|last| is_json(last));
        if whole || line.trim().is_empty() {
            found.push(String::new());
        }
        if let (Some(data), Some(last)) = (data, found.last_mut()) {
            last.push_str(data.strip_prefix(' ').unwrap_or(data));
            last.push('\n');
        }
    }
    found.retain(|event| !event.trim().is_empty());
    found
}

fn is_json(text: &str) -> bool {
    Raw::parse_text(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_and_json_lines_are_split_and_other_input_is_not() {
        let stream = "retry: 100\n\nid: 1\ndata: {\"a\":\ndata: 1}\n\n: beat\n\ndata:{}\ndata: {\"b\":2}\n";
        assert_eq!(split(stream), ["{\"a\":\n1}\n", "{}\n", "{\"b\":2}\n"]);
        assert_eq!(split("{}\n\n{\"a\":1}\n"), ["{}", "{\"a\":1}"]);
        for one in ["", "{\n}", "{\"a\":\n1,", "{}\nx", ": nothing but a comment\n"] {
            assert_eq!(split(one), [one]);
        }
    }
}
