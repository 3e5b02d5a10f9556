//! A tool as a command with `protocol = "jsonl"`: another mode of this program.

use std::{
    ffi::OsString,
    fs,
    io::{self, Read as _, Write as _},
    process::ExitCode,
    time::Duration,
};

use super::{Step, steps};
use crate::json::{ValueChecks as _, parse, quote};

/// The first argument of this program in that mode; the second one is the tool.
pub(crate) const COMMAND: &str = "tool-command";

/// Runs one call.
pub(crate) fn run(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let tool = arguments.next().unwrap_or_default();
    work(&tool.to_string_lossy()).unwrap_or(ExitCode::FAILURE)
}

fn work(tool: &str) -> io::Result<ExitCode> {
    let mut given = String::new();
    io::stdin().read_to_string(&mut given)?;
    let file = |name| std::env::var_os(name).map(fs::read_to_string).transpose();
    let answer = file("A2AD_CALL_ANSWER")?.and_then(|answer| parse(&answer).ok());
    let answer = answer.as_ref().and_then(|answer| answer.text("text").ok());
    let done: usize = file("A2AD_CALL_SAVED")?.and_then(|saved| saved.trim().parse().ok()).unwrap_or(0);
    let all = steps(tool, given.trim(), answer);
    let count = all.len();
    for (number, step) in all.into_iter().enumerate().skip(done) {
        let line = match step {
            Step::Wait(time) => {
                super::pause(time);
                continue;
            }
            Step::Text(text) if count == 1 => format!(r#"{{"type":"result","text":{}}}"#, quote(&text)),
            Step::Text(text) if number + 1 == count => {
                format!(r#"{{"type":"artifact","text":{},"last":true}}"#, quote(&text))
            }
            Step::Text(text) => {
                let next = number + 1;
                format!(r#"{{"type":"artifact","text":{},"checkpoint":{next}}}"#, quote(&text))
            }
            Step::Data(data) => format!(r#"{{"type":"result","data":{data}}}"#),
            Step::Ask(question) => {
                let schema = r#"{"type":"object","properties":{"answer":{"type":"string"}}}"#;
                format!(r#"{{"type":"ask","text":{},"schema":{schema}}}"#, quote(&question))
            }
            Step::Fail(why) => format!(r#"{{"type":"failed","text":{}}}"#, quote(&why)),
            Step::Crash => return Ok(ExitCode::FAILURE),
            Step::Hold => loop {
                super::pause(Duration::from_secs(60));
            },
        };
        let mut output = io::stdout().lock();
        writeln!(output, "{line}")?;
        output.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}
