//! Prints an agent's artifacts as text: every chunk once, in order of arrival.

use std::{borrow::Cow, collections::HashMap};

use client::text;
use protocol::{Artifact, ArtifactId, Content, Event, Json, Part, Task, json::write::Writer};

use crate::cli::output::Output;

use super::compose::extension;

/// The printed text of each artifact.
pub(crate) struct Printer<'a> {
    output: &'a Output,
    artifacts: HashMap<ArtifactId, PrintedText>,
    last: Option<ArtifactId>,
}

#[derive(Default)]
struct PrintedText {
    /// The artifact's current text.
    now: String,
    /// The text already printed. A retried agent sends the beginning again: nothing is printed until its output
    /// exceeds this.
    shown: String,
}

impl<'a> Printer<'a> {
    pub(crate) fn new(output: &'a Output) -> Self {
        Self { output, artifacts: HashMap::new(), last: None }
    }

    /// Prints what an event adds.
    pub(crate) fn print_event(&mut self, event: &Event) -> std::io::Result<()> {
        match event {
            Event::Task(task) => self.task(task),
            Event::Artifact(update) => self.artifact(&update.artifact, update.append),
            Event::Message(message) => self.message_text(&message.parts),
            Event::Status(_) => Ok(()),
        }
    }

    /// Prints a task's artifacts.
    pub(crate) fn task(&mut self, task: &Task) -> std::io::Result<()> {
        task.artifacts.iter().try_for_each(|artifact| self.artifact(artifact, false))
    }

    /// Prints the text of a message.
    pub(crate) fn message_text(&mut self, parts: &[Part]) -> std::io::Result<()> {
        self.files(parts)?;
        self.output.end_line()?;
        self.output.text(&text::of_parts(&without_repetition(parts)))?;
        self.output.end_line()
    }

    /// Whether no text of any artifact was printed.
    pub(crate) fn printed_nothing(&self) -> bool {
        self.artifacts.values().all(|printed| printed.shown.is_empty())
    }

    fn artifact(&mut self, artifact: &Artifact, append: bool) -> std::io::Result<()> {
        self.files(&artifact.parts)?;
        let printed = self.artifacts.entry(artifact.id.clone()).or_default();
        if !append {
            printed.now.clear();
        }
        let parts = without_repetition(&artifact.parts);
        let chunk = text::of_parts(&parts);
        let own_line = matches!(parts.first(), Some(part) if !is_text(part));
        if own_line && !printed.now.is_empty() && !printed.now.ends_with('\n') {
            printed.now.push('\n');
        }
        printed.now += &chunk;
        if printed.shown.starts_with(&printed.now) {
            return Ok(());
        }
        let switched = self.last.as_ref() != Some(&artifact.id);
        if switched {
            self.last = Some(artifact.id.clone());
            self.output.end_line()?;
        }
        if !printed.now.starts_with(&printed.shown) {
            self.output.end_line()?;
            self.output.message("the agent restarted this output:");
            printed.shown.clear();
        }
        self.output.text(&printed.now[printed.shown.len()..])?;
        printed.shown.clone_from(&printed.now);
        Ok(())
    }

    /// Writes files into the folder of `-o`; without one, says that there are some.
    fn files(&self, parts: &[Part]) -> std::io::Result<()> {
        for part in parts {
            let Content::Raw(bytes) = &part.content else { continue };
            let name = part.filename.as_deref().unwrap_or("(unnamed)");
            let kind = part.media_type.as_deref().unwrap_or("unknown type");
            let size = bytes.len();
            let named = part.filename.clone().unwrap_or_else(|| unnamed_file(part.media_type.as_deref()));
            match self.output.save_file(&named, bytes)? {
                Some(path) => self.output.message(&format!("{} ({kind}, {size} bytes)", path.display())),
                None => self.output.message(&format!(
                    "file {name} ({kind}, {size} bytes): use --json to get its content, or -o DIR to save it"
                )),
            }
        }
        Ok(())
    }
}

/// A name for a file of this type.
fn unnamed_file(media_type: Option<&str>) -> String {
    let known = media_type.and_then(extension).map(|extension| format!("file.{extension}"));
    known.unwrap_or_else(|| "file".to_owned())
}

/// The parts without text that only repeats the data beside it, as tools of MCP servers return it.
fn without_repetition(parts: &[Part]) -> Cow<'_, [Part]> {
    let data: Vec<&Json> = parts
        .iter()
        .filter_map(|part| match &part.content {
            Content::Data(json) => Some(json),
            _ => None,
        })
        .collect();
    let is_repetition = |part: &Part| match &part.content {
        Content::Text(text) => data.iter().any(|data| repeats(text, data)),
        _ => false,
    };
    if parts.iter().any(is_repetition) {
        parts.iter().filter(|part| !is_repetition(part)).cloned().collect::<Vec<_>>().into()
    } else {
        parts.into()
    }
}

/// Whether a text is the same as data: as JSON, or as the only member `result`, in which MCP servers wrap what is no object.
fn repeats(text: &str, data: &Json) -> bool {
    let wrapped = |value: &str| format!(r#"{{"result":{value}}}"#) == data.as_str();
    let as_json =
        Json::parse(text).is_ok_and(|json| json.as_str() == data.as_str() || wrapped(json.as_str()));
    as_json || wrapped(&quoted(text))
}

fn quoted(text: &str) -> String {
    let mut writer = Writer::new();
    writer.string(text);
    String::from_utf8_lossy(&writer.finish()).into_owned()
}

fn is_text(part: &Part) -> bool {
    matches!(part.content, Content::Text(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_repeats_the_data_is_left_out() {
        let shown = |text: &str, data: &str| {
            let parts = [Part::text(text), Part::data(Json::parse(data).unwrap())];
            text::of_parts(&without_repetition(&parts))
        };
        assert_eq!(shown("{\n  \"a\": 1\n}", r#"{"a":1}"#), "{\"a\":1}\n");
        assert_eq!(shown("12", r#"{"result":12}"#), "{\"result\":12}\n");
        assert_eq!(shown("say \"hi\"", r#"{"result":"say \"hi\""}"#), "{\"result\":\"say \\\"hi\\\"\"}\n");
        assert_eq!(shown("another", r#"{"a":1}"#), "another\n{\"a\":1}\n");
    }
}
