//! What the clients of a compatibility profile expect of a task beside what the agent has recorded. Added when a task or an
//! event is encoded, never stored.
//!
//! The answer is the text of the artifacts as the message of a completed status that has none. In a stream it is collected
//! from the artifacts that the stream has shown.

use std::borrow::Cow;

use crate::{
    Artifact, ArtifactId, Content, ContextId, Event, Message, Part, Role, Task, TaskId, TaskState,
    TaskStatus, model::StatusUpdate,
};

use super::{Dialect, Style};

/// How much of the text so far an artifact update has, in bytes; the newest.
const MAX_PROGRESS: usize = 32 << 10;
/// How much text a stream keeps for its last status, in bytes; the newest.
const MAX_STREAMED: usize = 1 << 20;
/// Between the texts of parts.
const SEPARATOR: &str = "\n";

impl Dialect {
    /// Adds to a task what clients of a profile with this style expect.
    pub fn project(self, task: &mut Task, style: Style) {
        if !style.answer_in_status || !self.takes_style() {
            return;
        }
        let is_answered = task.status.state == TaskState::Completed && task.status.message.is_none();
        let Some(text) = is_answered.then(|| text_of(&task.artifacts)).flatten() else { return };
        let answer = self.answer(&task.id, &task.context_id, text);
        // A history that was not asked for stays empty.
        if !task.history.is_empty() {
            task.history.push(answer.clone());
        }
        task.status.message = Some(answer);
    }

    /// Whether the codec encodes replies in the style of a profile. The others follow their protobuf files.
    fn takes_style(self) -> bool {
        match self {
            Self::Draft | Self::V03 => true,
            Self::V03Proto | Self::V1 => false,
        }
    }

    /// A message of the agent with this text. Its id is the same whenever the task is read.
    fn answer(self, task: &TaskId, context: &ContextId, text: String) -> Message {
        let id = if self.rules().has_message_ids { format!("{task}-answer") } else { String::new() };
        Message {
            task_id: Some(task.clone()),
            context_id: Some(context.clone()).filter(|context| !context.as_str().is_empty()),
            ..Message::new(id, Role::Agent, vec![Part::text(text)])
        }
    }
}

/// The text parts of artifacts, else their data as JSON; `None` if there is neither.
fn text_of(artifacts: &[Artifact]) -> Option<String> {
    let parts = || artifacts.iter().flat_map(|artifact| &artifact.parts);
    let pieces: Vec<Piece<'_>> = parts().filter_map(Piece::of).collect();
    let texts: Vec<&str> = shown(pieces.iter()).collect();
    (!texts.is_empty()).then(|| texts.join(SEPARATOR))
}

/// The text of one part.
struct Piece<'a> {
    text: Cow<'a, str>,
    is_data: bool,
}

impl<'a> Piece<'a> {
    fn of(part: &'a Part) -> Option<Self> {
        match &part.content {
            Content::Text(text) => Some(Self { text: Cow::Borrowed(text), is_data: false }),
            Content::Data(data) => Some(Self { text: Cow::Borrowed(data.as_str()), is_data: true }),
            Content::Raw(_) | Content::Url(_) => None,
        }
    }

    fn into_owned(self) -> Piece<'static> {
        Piece { text: Cow::Owned(self.text.into_owned()), is_data: self.is_data }
    }
}

/// The texts among the pieces, else the data.
fn shown<'p, 'a: 'p>(
    pieces: impl DoubleEndedIterator<Item = &'p Piece<'a>> + Clone,
) -> impl DoubleEndedIterator<Item = &'p str> {
    let has_text = pieces.clone().any(|piece| !piece.is_data);
    pieces.filter(move |piece| piece.is_data != has_text).map(|piece| &*piece.text)
}

/// The text that a stream has shown.
#[derive(Debug)]
pub(super) struct StreamedText {
    dialect: Dialect,
    style: Style,
    /// By artifact, in order of first appearance.
    artifacts: Vec<(ArtifactId, Vec<Piece<'static>>)>,
    /// Bytes of all texts.
    size: usize,
    /// The artifacts that the client had before.
    before: Vec<ArtifactId>,
    /// Whether it has the text of all artifacts of the task.
    is_whole: bool,
}

impl std::fmt::Debug for Piece<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} bytes", self.text.len())
    }
}

impl StreamedText {
    /// The text of a stream, if its clients expect any.
    pub(super) fn of_stream(dialect: Dialect, style: Style) -> Option<Self> {
        let is_used = dialect.takes_style() && (style.answer_in_status || style.status_in_artifacts);
        is_used.then(|| Self {
            dialect,
            style,
            artifacts: Vec::new(),
            size: 0,
            before: Vec::new(),
            is_whole: false,
        })
    }

    /// The artifacts that the task had when the stream began.
    pub(super) fn know(&mut self, artifact: &ArtifactId) {
        self.before.push(artifact.clone());
    }

    /// Takes the text of the task that the stream begins with, and adds the answer to it.
    pub(super) fn begin(&mut self, task: &mut Task) {
        let is_shown = |id: &ArtifactId| task.artifacts.iter().any(|artifact| artifact.id == *id);
        self.is_whole = self.before.drain(..).all(|id| is_shown(&id));
        for artifact in &task.artifacts {
            self.add(artifact, false);
        }
        self.dialect.project(task, self.style);
    }

    /// The event as it is encoded, and the status beside an artifact update.
    pub(super) fn project<'e>(&mut self, event: &'e Event) -> (Cow<'e, Event>, Option<TaskStatus>) {
        match event {
            Event::Artifact(update) => {
                self.add(&update.artifact, update.append);
                let status = self.style.status_in_artifacts.then(|| TaskStatus {
                    state: TaskState::Working,
                    message: self
                        .newest(MAX_PROGRESS)
                        .map(|text| self.dialect.answer(&update.task_id, &update.context_id, text)),
                    timestamp: None,
                });
                (Cow::Borrowed(event), status)
            }
            Event::Status(update) => (self.answered(update).map_or(Cow::Borrowed(event), Cow::Owned), None),
            Event::Task(_) | Event::Message(_) => (Cow::Borrowed(event), None),
        }
    }

    /// A completed status without a message, with the answer.
    fn answered(&self, update: &StatusUpdate) -> Option<Event> {
        let StatusUpdate { status, task_id, context_id, .. } = update;
        let is_answered = self.style.answer_in_status
            && self.is_whole
            && status.state == TaskState::Completed
            && status.message.is_none();
        let text = is_answered.then(|| self.newest(MAX_STREAMED)).flatten()?;
        let message = Some(self.dialect.answer(task_id, context_id, text));
        let status = TaskStatus { message, ..status.clone() };
        Some(Event::Status(StatusUpdate { status, ..update.clone() }))
    }

    fn add(&mut self, artifact: &Artifact, append: bool) {
        let new = artifact.parts.iter().filter_map(Piece::of).map(Piece::into_owned);
        let at = self.artifacts.iter().position(|(id, _)| *id == artifact.id).unwrap_or_else(|| {
            self.artifacts.push((artifact.id.clone(), Vec::new()));
            self.artifacts.len() - 1
        });
        let pieces = &mut self.artifacts[at].1;
        if !append {
            self.size -= pieces.drain(..).map(|piece| piece.text.len()).sum::<usize>();
        }
        for piece in new {
            self.size += piece.text.len();
            pieces.push(piece);
        }
        self.drop_oldest();
    }

    /// Keeps the newest text.
    fn drop_oldest(&mut self) {
        for (_, pieces) in &mut self.artifacts {
            let mut dropped = 0;
            while self.size > MAX_STREAMED
                && let Some(piece) = pieces.get(dropped)
                && self.size - piece.text.len() >= MAX_STREAMED
            {
                self.size -= piece.text.len();
                dropped += 1;
            }
            pieces.drain(..dropped);
        }
    }

    fn pieces(&self) -> impl DoubleEndedIterator<Item = &Piece<'static>> + Clone {
        self.artifacts.iter().flat_map(|(_, pieces)| pieces)
    }

    /// The end of the text, at most this many bytes; `None` if there is no text.
    fn newest(&self, max: usize) -> Option<String> {
        let (mut newest, mut size) = (Vec::new(), 0);
        for text in shown(self.pieces()).rev() {
            newest.push(text);
            size += text.len() + SEPARATOR.len();
            if size > max {
                break;
            }
        }
        newest.reverse();
        let mut text = newest.join(SEPARATOR);
        if text.len() > max {
            let start = text.len() - max;
            let start = (start..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(start);
            text.drain(..start);
        }
        (!newest.is_empty()).then_some(text)
    }
}
