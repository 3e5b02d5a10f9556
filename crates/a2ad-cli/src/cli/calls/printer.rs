//! Prints an agent's artifacts as text: every chunk once, in order of arrival.

use std::collections::HashMap;

use client::text;
use protocol::{Artifact, ArtifactId, Content, Event, Part, Task};

use crate::cli::output::Output;

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
        self.report_files(parts);
        self.output.end_line()?;
        self.output.text(&text::of_parts(parts))?;
        self.output.end_line()
    }

    /// Whether no text of any artifact was printed.
    pub(crate) fn printed_nothing(&self) -> bool {
        self.artifacts.values().all(|printed| printed.shown.is_empty())
    }

    fn artifact(&mut self, artifact: &Artifact, append: bool) -> std::io::Result<()> {
        self.report_files(&artifact.parts);
        let printed = self.artifacts.entry(artifact.id.clone()).or_default();
        if !append {
            printed.now.clear();
        }
        let chunk = text::of_parts(&artifact.parts);
        let own_line = matches!(artifact.parts.first(), Some(part) if !is_text(part));
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

    fn report_files(&self, parts: &[Part]) {
        for part in parts {
            if let Content::Raw(bytes) = &part.content {
                let name = part.filename.as_deref().unwrap_or("(unnamed)");
                let kind = part.media_type.as_deref().unwrap_or("unknown type");
                self.output.message(&format!(
                    "file {name} ({kind}, {} bytes): use --json to get its content",
                    bytes.len()
                ));
            }
        }
    }
}

fn is_text(part: &Part) -> bool {
    matches!(part.content, Content::Text(_))
}
