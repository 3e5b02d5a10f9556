//! The agent that the official A2A conformance kits (TCK) expect of a server under test. The prefix of the
//! message id, or of the text, selects the behaviour.

use std::time::Duration;

use engine::{Agent, AgentResult, ExecutionPolicy, Outcome, Turn};
use protocol::{Artifact, Content, Json, Message, Part, model::AgentSkill};

/// The agent for the conformance kits. It accepts the same message id any number of times.
pub struct Tck {
    /// How long it works on an unknown message before it asks for input.
    think: Duration,
    /// How long it works while a kit subscribes for the second time.
    hold: Duration,
}

pub(super) const ABOUT: &str = "Does what the A2A conformance kits ask of a server";

/// Accepts everything. The 0.3 kit looks for the draft's mode names (`text`, `data`) and skips tests if it
/// does not find them; `file` is missing on purpose, because the files that kit sends are not valid 0.3: they
/// have a `url` and no `uri`.
pub(super) const MODES: &[&str] = &["text/plain", "application/json", "*/*", "text", "data"];

pub(super) fn skills() -> Vec<AgentSkill> {
    vec![super::skill(
        "tck",
        "TCK",
        ABOUT,
        &["tck", "conformance"],
        &["tck-complete-task", "tck-artifact-text"],
    )]
}

impl Tck {
    /// Delays for the kits: `TCK_STREAMING_TIMEOUT` is their timeout in seconds.
    pub fn from_environment() -> Self {
        let timeout = std::env::var("TCK_STREAMING_TIMEOUT").ok().and_then(|text| text.trim().parse().ok());
        let timeout = timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let timeout = timeout.unwrap_or(Duration::from_secs(2)).min(Duration::from_secs(60));
        Self::paced(Duration::from_secs(1), timeout * 2 + Duration::from_secs(1))
    }

    /// With these delays.
    pub fn paced(think: Duration, hold: Duration) -> Self {
        Self { think, hold }
    }
}

impl Agent for Tck {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        Ok(match Behaviour::of(&turn.message) {
            Behaviour::Complete => completed(),
            Behaviour::Artifact(what) => {
                turn.artifact(what.artifact(&turn)).await?;
                completed()
            }
            Behaviour::Stream(what) => {
                turn.record().working().await?;
                turn.artifact(what.artifact(&turn)).await?;
                completed()
            }
            Behaviour::Chunks => {
                turn.record().working().await?;
                turn.chunk("chunked", "chunk-1 ").await?;
                turn.record().last_chunk("chunked", "chunk-2").await?;
                completed()
            }
            Behaviour::Message => Outcome::message("Direct message response"),
            Behaviour::Ask => Outcome::ask("Please say more"),
            Behaviour::Reject => Outcome::reject("rejected"),
            Behaviour::Resubscribe => {
                turn.record().working().await?;
                tokio::time::sleep(self.hold).await;
                completed()
            }
            Behaviour::Hold => {
                turn.record().working().await?;
                turn.cancel.cancelled().await;
                Outcome::done()
            }
            Behaviour::Fail => Outcome::fail("failed as asked"),
            Behaviour::Panic => panic!("the agent panics as asked"),
            Behaviour::Think => {
                turn.record().working().await?;
                tokio::time::sleep(self.think).await;
                Outcome::ask("Please say more")
            }
        })
    }

    fn policy(&self) -> ExecutionPolicy {
        ExecutionPolicy::default().with_overlap(true)
    }
}

fn completed() -> Outcome {
    Outcome::done_with("Hello from TCK")
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Behaviour {
    Complete,
    Artifact(Sample),
    Message,
    Ask,
    Reject,
    Stream(Sample),
    Chunks,
    Resubscribe,
    Hold,
    Fail,
    Panic,
    Think,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Sample {
    Text,
    File,
    FileUrl,
    Data,
}

/// Behaviour by message prefix; the longest matching prefix wins.
const BEHAVIOURS: [(&str, Behaviour); 19] = [
    ("tck-complete-task", Behaviour::Complete),
    ("tck-artifact-text", Behaviour::Artifact(Sample::Text)),
    ("tck-artifact-file", Behaviour::Artifact(Sample::File)),
    ("tck-artifact-file-url", Behaviour::Artifact(Sample::FileUrl)),
    ("tck-artifact-data", Behaviour::Artifact(Sample::Data)),
    ("tck-message-response", Behaviour::Message),
    ("tck-input-required", Behaviour::Ask),
    ("tck-reject-task", Behaviour::Reject),
    ("tck-stream-001", Behaviour::Stream(Sample::Text)),
    ("tck-stream-002", Behaviour::Complete),
    ("tck-stream-003", Behaviour::Stream(Sample::Text)),
    ("tck-stream-ordering-001", Behaviour::Stream(Sample::Text)),
    ("tck-stream-artifact-text", Behaviour::Stream(Sample::Text)),
    ("tck-stream-artifact-file", Behaviour::Stream(Sample::File)),
    ("tck-stream-artifact-chunked", Behaviour::Chunks),
    ("test-resubscribe-message-id", Behaviour::Resubscribe),
    ("tck-hold", Behaviour::Hold),
    ("a2ad-fail", Behaviour::Fail),
    ("a2ad-panic", Behaviour::Panic),
];

impl Behaviour {
    fn of(message: &Message) -> Self {
        let text = message.parts.iter().find_map(|part| match &part.content {
            Content::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let by_id = Self::by_prefix(message.id.as_str());
        by_id.or_else(|| Self::by_prefix(text?)).unwrap_or(Self::Think)
    }

    fn by_prefix(name: &str) -> Option<Self> {
        let fits = BEHAVIOURS.iter().filter(|row| name.starts_with(row.0));
        let longest = fits.max_by_key(|row| row.0.len()).map(|row| row.1);
        longest.or_else(|| name.starts_with("tck-").then_some(Self::Complete))
    }
}

impl Sample {
    fn artifact(self, turn: &Turn) -> Artifact {
        let file = |content| Part {
            media_type: Some("text/plain".into()),
            filename: Some("output.txt".into()),
            ..Part::new(content)
        };
        let part = match self {
            Self::Text => Part::text("Generated text content"),
            Self::File => file(Content::Raw(b"Generated file content".to_vec())),
            Self::FileUrl => file(Content::Url("https://example.com/output.txt".into())),
            Self::Data => {
                Part::data(Json::parse(r#"{"key":"value","count":42}"#).expect("this is a JSON object"))
            }
        };
        turn.new_artifact("tck-result", part)
    }
}
