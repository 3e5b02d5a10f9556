//! The JSON lines protocol: each line of a command's output is a JSON object with a `type`.
//!
//! | type | fields | effect |
//! |---|---|---|
//! | `progress` | `text` and/or `data` | a working update |
//! | `artifact` | `text` and/or `data`; `last`, `checkpoint` | appended to the result; `checkpoint` is saved with it |
//! | `checkpoint` | `data` | saved before the next line is read |
//! | `ask` | `text`; `schema` | the task waits; the next turn starts the command again |
//! | `result` | `text` and/or `data` | completed; replaces what `artifact` has appended |
//! | `failed` | `text` and/or `data` | failed |
//!
//! The last three end the call; the command ends itself after them. One that ends without them has completed.

use bytes::BytesMut;
use protocol::{Json, Part};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{
    failure,
    output::{Interrupted, Output},
};
use crate::backend::{Call, Failure, Question, Reply};

const TYPES: &str = "progress, artifact, checkpoint, ask, result or failed";

/// Reads the whole output.
pub(super) async fn read(call: &Call<'_>, mut output: Output) -> Result<Reply, Interrupted> {
    let mut lines = Lines { call, saved: call.state.cloned(), reply: None, number: 0 };
    let mut buffer = BytesMut::new();
    let mut searched = 0;
    loop {
        while let Some(end) = buffer[searched..].iter().position(|byte| *byte == b'\n') {
            let line = buffer.split_to(searched + end + 1);
            searched = 0;
            lines.handle(&line).await?;
        }
        searched = buffer.len();
        if !output.read(&mut buffer).await? {
            lines.handle(&buffer).await?;
            return Ok(lines.reply.unwrap_or(Reply::Streamed));
        }
    }
}

/// The lines of one call.
struct Lines<'a, 'c> {
    call: &'a Call<'c>,
    /// The last checkpoint.
    saved: Option<Json>,
    /// The end of the call, after which no line may follow.
    reply: Option<Reply>,
    /// Of the line that was read last, from 1.
    number: u64,
}

impl Lines<'_, '_> {
    async fn handle(&mut self, line: &[u8]) -> Result<(), Interrupted> {
        self.number += 1;
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let invalid = |problem: &str| Interrupted::Failed(failure::invalid_line(self.number, line, problem));
        if self.reply.is_some() {
            return Err(invalid("no line may follow ask, result or failed"));
        }
        match Line::parse(line).map_err(|problem| invalid(&problem))? {
            Line::Progress(parts) => self.call.progress(parts).await?,
            Line::Artifact { parts, last: true } => self.call.last_chunk(parts).await?,
            Line::Artifact { parts, last: false } => self.call.chunk(parts).await?,
            Line::ArtifactWithCheckpoint { parts, state } => {
                self.call.chunk_and_checkpoint(parts, &state).await?;
                self.saved = Some(state);
            }
            Line::Checkpoint(state) => {
                self.call.checkpoint(&state).await?;
                self.saved = Some(state);
            }
            Line::Ask(parts) => {
                let state = self.saved.clone().unwrap_or_else(null);
                self.reply = Some(Reply::Ask(Question { parts, state }));
            }
            Line::Result(parts) => self.reply = Some(Reply::Done(parts)),
            Line::Failed(parts) => {
                self.reply =
                    Some(Reply::Failed(Failure { parts, reason: None, retryable: false, cause: None }));
            }
        }
        Ok(())
    }
}

fn null() -> Json {
    Json::parse("null").expect("null is JSON")
}

/// What a line means.
#[derive(Debug)]
enum Line {
    Progress(Vec<Part>),
    Artifact { parts: Vec<Part>, last: bool },
    ArtifactWithCheckpoint { parts: Vec<Part>, state: Json },
    Checkpoint(Json),
    Ask(Vec<Part>),
    Result(Vec<Part>),
    Failed(Vec<Part>),
}

/// A line as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    r#type: String,
    text: Option<String>,
    #[serde(default, deserialize_with = "present")]
    data: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "present")]
    schema: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "present")]
    checkpoint: Option<Box<RawValue>>,
    #[serde(default)]
    last: bool,
}

/// A field that is there, also if it is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

impl Line {
    /// Reads a line; the error names what was expected.
    fn parse(line: &[u8]) -> Result<Self, String> {
        let expected = || format!("expected one JSON object with \"type\": {TYPES}");
        if !line.trim_ascii_start().starts_with(b"{") {
            return Err(expected());
        }
        let written: Written = serde_json::from_slice(line)
            .map_err(|error| format!("{}; {}", expected(), without_position(&error)))?;
        let Written { r#type, text, data, schema, checkpoint, last } = written;
        let (text, data) = (text.map(Part::text), json("data", data)?);
        let (schema, checkpoint) = (json("schema", schema)?, json("checkpoint", checkpoint)?);
        let for_type = |field: &str| format!("type {:?}: {field}", r#type);
        let only = |name: &str, is_set: bool, allowed: &str| match is_set && r#type != allowed {
            true => Err(for_type(&format!("{name} is for type {allowed:?} only"))),
            false => Ok(()),
        };
        only("schema", schema.is_some(), "ask")?;
        only("checkpoint", checkpoint.is_some(), "artifact")?;
        only("last", last, "artifact")?;
        let content = || match (text.clone(), data.clone().map(Part::data)) {
            (None, None) => Err(for_type("expected text or data")),
            (text, data) => Ok(text.into_iter().chain(data).collect::<Vec<_>>()),
        };
        Ok(match r#type.as_str() {
            "progress" => Self::Progress(content()?),
            "artifact" => match checkpoint {
                Some(_) if last => return Err(for_type("expected either last or checkpoint, not both")),
                Some(state) => Self::ArtifactWithCheckpoint { parts: content()?, state },
                None => Self::Artifact { parts: content()?, last },
            },
            "checkpoint" => Self::Checkpoint(data.ok_or_else(|| for_type("expected data"))?),
            "ask" => {
                let question = text.ok_or_else(|| for_type("expected text"))?;
                Self::Ask([question].into_iter().chain(schema.map(Part::data)).collect())
            }
            "result" => Self::Result(content()?),
            "failed" => Self::Failed(content()?),
            unknown => return Err(format!("the type {unknown:?} is unknown; expected {TYPES}")),
        })
    }
}

fn json(field: &str, raw: Option<Box<RawValue>>) -> Result<Option<Json>, String> {
    let parse = |raw: Box<RawValue>| Json::parse(raw.get());
    raw.map(parse).transpose().map_err(|expected| format!("{field}: expected {expected}"))
}

/// The message of a parser without its line number, which is always 1.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((message, _)) => format!("{message} (column {})", error.column()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(line: &str) -> String {
        Line::parse(line.as_bytes()).unwrap_err()
    }

    #[test]
    fn invalid_lines_name_what_was_expected() {
        let types = "progress, artifact, checkpoint, ask, result or failed";
        for other in ["hello", r#"["progress", "x"]"#, "1"] {
            assert_eq!(problem(other), format!("expected one JSON object with \"type\": {types}"));
        }
        assert!(problem(r#"{"type": }"#).ends_with("; expected value (column 10)"));
        assert!(problem("{}").ends_with("missing field `type` (column 2)"));
        assert_eq!(
            problem(r#"{"type":"speak","text":"x"}"#),
            format!("the type \"speak\" is unknown; expected {types}")
        );
        assert!(problem(r#"{"type":"ask","txt":"x"}"#).contains("unknown field `txt`"));
        assert_eq!(problem(r#"{"type":"ask"}"#), "type \"ask\": expected text");
        assert_eq!(problem(r#"{"type":"result"}"#), "type \"result\": expected text or data");
        assert_eq!(problem(r#"{"type":"checkpoint"}"#), "type \"checkpoint\": expected data");
        assert_eq!(
            problem(r#"{"type":"result","text":"x","schema":{}}"#),
            "type \"result\": schema is for type \"ask\" only"
        );
    }

    #[test]
    fn numbers_stay_exact_and_null_is_data() {
        let line = br#"{"type": "result", "data": {"n": 9007199254740993.10}}"#;
        let Ok(Line::Result(parts)) = Line::parse(line) else { panic!("no result") };
        assert_eq!(parts, [Part::data(Json::parse(r#"{"n":9007199254740993.10}"#).unwrap())]);
        assert!(matches!(Line::parse(br#"{"type":"checkpoint","data":null}"#), Ok(Line::Checkpoint(_))));
    }
}
