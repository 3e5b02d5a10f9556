//! An agent's artifacts as running text: every piece once, in the order it came.

use std::collections::HashMap;

use client::text;
use protocol::{Artifact, ArtifactId, Content, Event, Part, Task};

use super::screen::Screen;

/// What has been printed of each artifact.
pub(super) struct Printer<'a> {
    screen: &'a Screen,
    artifacts: HashMap<ArtifactId, Printed>,
    last: Option<ArtifactId>,
}

#[derive(Default)]
struct Printed {
    /// The artifact's text as it stands.
    now: String,
    /// What of it is on the screen. An agent that starts over says the beginning again: nothing is printed then
    /// until it gets beyond.
    shown: String,
}

impl<'a> Printer<'a> {
    pub(super) fn new(screen: &'a Screen) -> Self {
        Self { screen, artifacts: HashMap::new(), last: None }
    }

    /// Prints what an event adds.
    pub(super) fn hear(&mut self, event: &Event) -> std::io::Result<()> {
        match event {
            Event::Task(task) => self.task(task),
            Event::Artifact(update) => self.artifact(&update.artifact, update.append),
            Event::Message(message) => self.words(&message.parts),
            Event::Status(_) => Ok(()),
        }
    }

    /// Prints what a task has made.
    pub(super) fn task(&mut self, task: &Task) -> std::io::Result<()> {
        task.artifacts.iter().try_for_each(|artifact| self.artifact(artifact, false))
    }

    /// Prints what an agent says outright.
    pub(super) fn words(&mut self, parts: &[Part]) -> std::io::Result<()> {
        self.mention_files(parts);
        self.screen.end_line()?;
        self.screen.text(&text::of_parts(parts))?;
        self.screen.end_line()
    }

    /// Whether nothing was printed of any artifact.
    pub(super) fn is_silent(&self) -> bool {
        self.artifacts.values().all(|printed| printed.shown.is_empty())
    }

    fn artifact(&mut self, artifact: &Artifact, append: bool) -> std::io::Result<()> {
        self.mention_files(&artifact.parts);
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
            self.screen.end_line()?;
        }
        if !printed.now.starts_with(&printed.shown) {
            self.screen.end_line()?;
            self.screen.say("the agent starts this over:");
            printed.shown.clear();
        }
        self.screen.text(&printed.now[printed.shown.len()..])?;
        printed.shown.clone_from(&printed.now);
        Ok(())
    }

    fn mention_files(&self, parts: &[Part]) {
        for part in parts {
            if let Content::Raw(bytes) = &part.content {
                let name = part.filename.as_deref().unwrap_or("without a name");
                let kind = part.media_type.as_deref().unwrap_or("unknown type");
                self.screen
                    .say(&format!("file {name} ({kind}, {} bytes): --json has its content", bytes.len()));
            }
        }
    }
}

fn is_text(part: &Part) -> bool {
    matches!(part.content, Content::Text(_))
}
