//! What users' own tools do in the checks: the same work as a tool of an MCP server, an HTTP function and a command.
//!
//! [`steps`] decides what a tool does; the files of this folder do it over MCP, over HTTP, and as lines of a command. The
//! tools have the ids of built-in agents, and take the same texts as far as checks use them.

pub(crate) mod command;
pub(crate) mod http_functions;
pub(crate) mod mcp_server;

use std::time::Duration;

use crate::json::{ValueChecks as _, parse};

/// Something that a tool does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A piece of the result.
    Text(String),
    /// A JSON text as the whole result.
    Data(String),
    Wait(Duration),
    /// Asks the client, and ends.
    Ask(String),
    Fail(String),
    /// The process or the connection breaks off.
    Crash,
    /// Goes on until it is cancelled.
    Hold,
}

/// The ids of the tools.
pub(crate) const TOOLS: [&str; 6] = ["echo", "args", "slow-writer", "approver", "currency", "tck"];

/// Whether a tool takes any arguments; the others take a text.
pub(crate) fn takes_anything(tool: &str) -> bool {
    tool == "args"
}

/// What a tool does with its arguments, a JSON object; `answer` is what the client has answered to its question.
pub(crate) fn steps(tool: &str, arguments: &str, answer: Option<&str>) -> Vec<Step> {
    let given = parse(arguments).unwrap_or_default();
    let Ok(text) = given.text("text").map(str::to_owned) else {
        return vec![Step::Data(arguments.to_owned())];
    };
    match (tool, answer) {
        ("slow-writer", _) => sections(&text),
        ("tck", _) if text == "a2ad-fail" => vec![Step::Fail("failed as asked".into())],
        ("tck", _) if text == "a2ad-panic" => vec![Step::Crash],
        ("tck", None) => vec![Step::Ask("What next?".into())],
        ("approver", None) => vec![Step::Ask(format!("{text}: approve or deny?"))],
        ("currency", None) if currencies(&text) < 2 => vec![Step::Ask("To which currency?".into())],
        (_, Some(answer)) => vec![Step::Text(format!("{text} {answer}"))],
        ("echo", None) if text.starts_with("hold") => vec![Step::Hold],
        _ => vec![Step::Text(text)],
    }
}

/// Waits in a process or thread that does nothing else.
#[expect(clippy::disallowed_methods, reason = "a call has a thread of its own")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Writes `SUBJECT sections=N delay=Dms`.
fn sections(text: &str) -> Vec<Step> {
    let setting = |name: &str| text.split(' ').find_map(|word| word.strip_prefix(name));
    let count: usize = setting("sections=").and_then(|value| value.parse().ok()).unwrap_or(3);
    let delay = setting("delay=").and_then(|value| value.trim_end_matches("ms").parse().ok()).unwrap_or(0);
    let subject: Vec<&str> = text.split(' ').filter(|word| !word.contains('=')).collect();
    let subject = subject.join(" ");
    let section = |number| Step::Text(format!("Section {number} of {count}: more about {subject}.\n"));
    (1..=count).flat_map(|number| [Step::Wait(Duration::from_millis(delay)), section(number)]).collect()
}

/// How many words of a text are codes such as `USD`.
fn currencies(text: &str) -> usize {
    let words = text.split(|letter: char| !letter.is_ascii_alphabetic());
    words.filter(|word| word.len() == 3 && word.bytes().all(|letter| letter.is_ascii_uppercase())).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_do_what_they_are_told() {
        let steps = |tool, text: &str, answer| steps(tool, &format!(r#"{{"text":"{text}"}}"#), answer);
        assert_eq!(steps("echo", "hello", None), [Step::Text("hello".into())]);
        let wait = Step::Wait(Duration::from_millis(5));
        let section = |number| Step::Text(format!("Section {number} of 2: more about the sea.\n"));
        assert_eq!(
            steps("slow-writer", "the sea sections=2 delay=5ms", None),
            [wait.clone(), section(1), wait, section(2)]
        );
        assert_eq!(steps("currency", "how much is 1 USD?", None), [Step::Ask("To which currency?".into())]);
        assert_eq!(steps("currency", "1 USD", Some("in INR")), [Step::Text("1 USD in INR".into())]);
        assert_eq!(super::steps("args", r#"{"n":1.50}"#, None), [Step::Data(r#"{"n":1.50}"#.into())]);
    }
}
