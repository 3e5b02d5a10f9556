//! Example of media type negotiation: draws numbers as text or as SVG, and asks which when another format is
//! requested.

use engine::{Agent, AgentResult, ExecutionPolicy, Outcome, Turn};
use protocol::{Artifact, Content, Json, Part, model::AgentSkill};

/// Draws the numbers in the text as bars. `as FORMAT` in the text selects the format; the artifact's metadata
/// has the numbers.
pub struct Plotter;

/// Limits: number of bars and length of a bar.
const MAX_BARS: usize = 100;
const MAX_LENGTH: u32 = 1_000;

pub(super) const ABOUT: &str =
    "Draws numbers as bars, in text or as SVG, and asks when another format is requested";

/// Supported output media types.
pub(super) const FORMATS: &[&str] = &["text/plain", "image/svg+xml"];

pub(super) fn skills() -> Vec<AgentSkill> {
    let examples = ["3 1 2", "3 1 2 as svg"];
    vec![super::skill("plotter", "Plotter", ABOUT, &["plot", "chart", "draw"], &examples)]
}

impl Agent for Plotter {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        let text = turn.text();
        // The numbers saved when the agent asked for the format.
        let saved: Option<Vec<u32>> = turn.saved().unwrap_or_default();
        let is_answer = saved.is_some();
        let bars = saved.unwrap_or_else(|| numbers(&text));
        if bars.is_empty() {
            return Ok(Outcome::ask("Which numbers? Such as: 3 1 2"));
        }
        let Some(format) = Format::requested(&text, is_answer) else {
            turn.record().working().save(&bars).await?;
            let question = format!("I cannot draw that; I give {}. Which one?", FORMATS.join(" or "));
            let offered = Json::parse(r#"{"offeredModes":["text/plain","image/svg+xml"]}"#);
            let parts = [Part::text(question)].into_iter().chain(offered.ok().map(Part::data));
            return Ok(Outcome::ask(parts.collect::<Vec<_>>()));
        };
        let artifact = Artifact {
            metadata: Json::parse(&format!(r#"{{"bars":{bars:?}}}"#)).ok(),
            ..turn.new_artifact("plot", format.draw(&bars))
        };
        turn.record().artifact(artifact).clear_saved().await?;
        Ok(Outcome::done())
    }

    fn policy(&self) -> ExecutionPolicy {
        ExecutionPolicy::default().with_overlap(true)
    }
}

fn numbers(text: &str) -> Vec<u32> {
    let numbers =
        text.split(|character: char| !character.is_ascii_digit()).filter_map(|word| word.parse().ok());
    numbers.map(|number: u32| number.min(MAX_LENGTH)).take(MAX_BARS).collect()
}

#[derive(Clone, Copy)]
enum Format {
    Text,
    Svg,
}

impl Format {
    /// The format after `as`, or the whole text when it is the reply to the question; text by default. `None`
    /// for an unsupported format.
    fn requested(text: &str, is_answer: bool) -> Option<Self> {
        let text = text.to_lowercase();
        let explicit = text.rsplit_once("as ").map(|(_, format)| format);
        let format = explicit.or(is_answer.then_some(text.as_str())).map(str::trim);
        match format {
            None | Some("text" | "text/plain") => Some(Self::Text),
            Some("svg" | "image/svg+xml") => Some(Self::Svg),
            Some(_) => None,
        }
    }

    fn draw(self, bars: &[u32]) -> Part {
        match self {
            Self::Text => {
                let bar = |length: &u32| format!("{} {length}\n", "#".repeat(*length as usize));
                Part::text(bars.iter().map(bar).collect::<String>())
            }
            Self::Svg => Part {
                media_type: Some("image/svg+xml".into()),
                filename: Some("plot.svg".into()),
                ..Part::new(Content::Raw(svg(bars).into_bytes()))
            },
        }
    }
}

fn svg(bars: &[u32]) -> String {
    let bar = |(at, length): (usize, &u32)| {
        format!(r#"<rect y="{}" width="{}" height="8"/>"#, at * 10, length * 10)
    };
    let bars: String = bars.iter().enumerate().map(bar).collect();
    format!(r#"<svg xmlns="http://www.w3.org/2000/svg">{bars}</svg>"#)
}
