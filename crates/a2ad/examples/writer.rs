//! An agent that streams its result, asks back once, and continues where it was after `kill -9`:
//!
//! ```text
//! cargo run -p a2ad --example writer
//! a2ad stream http://127.0.0.1:4245 'the sea'
//! a2ad stream http://127.0.0.1:4245 --task TASK 20
//! ```
//!
//! Kill it while it writes and start it again: the task goes on with the next chapter, and the stream resumes.

use std::time::Duration;

use a2ad::{
    Agent, Card, Outcome, Result, Server, Turn,
    agent::{ExecutionPolicy, OnCrash},
};
use serde::{Deserialize, Serialize};

/// How long it takes to write one chapter.
const CHAPTER_TIME: Duration = Duration::from_millis(200);

const MAX_CHAPTERS: u32 = 100;

struct Writer;

/// The progress of one task; saved with every chapter.
#[derive(Serialize, Deserialize)]
struct Story {
    topic: String,
    /// Unknown until the client has answered.
    chapters: Option<u32>,
    written: u32,
}

impl Agent for Writer {
    async fn run(&self, turn: Turn) -> Result<Outcome> {
        let Some(mut story) = turn.saved::<Story>()? else {
            let story = Story { topic: turn.text(), chapters: None, written: 0 };
            return turn.record().save(&story).then(Outcome::ask("How many chapters?"));
        };
        let answer =
            || turn.text().trim().parse().ok().filter(|chapters| (1..=MAX_CHAPTERS).contains(chapters));
        let Some(chapters) = story.chapters.or_else(answer) else {
            return Ok(Outcome::ask(format!(
                "How many chapters? Please answer with a number up to {MAX_CHAPTERS}."
            )));
        };
        story.chapters = Some(chapters);
        while story.written < chapters {
            tokio::time::sleep(CHAPTER_TIME).await;
            story.written += 1;
            let chapter = format!("Chapter {} of {}.\n", story.written, story.topic);
            // The chapter and the checkpoint are one commit: after a crash none is missing or written twice.
            if story.written < chapters {
                turn.record().chunk("story", chapter).save(&story).commit().await?;
            } else {
                // The task's next turn, if any, is about another story.
                turn.record().last_chunk("story", chapter).clear_saved().await?;
            }
        }
        Ok(Outcome::done_with(format!("{chapters} chapters written")))
    }

    fn policy(&self) -> ExecutionPolicy {
        ExecutionPolicy::default().with_on_crash(OnCrash::Resume)
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:4245".into());
    let store = arguments.next().unwrap_or_else(|| "writer.db".into());
    let card =
        Card::new("writer").name("Writer").description("Writes stories").skill("write", "Writes a story");
    Server::builder().agent(card, Writer).store(store).serve(address).await
}
