//! Asks before it proceeds: two turns of one task, joined by what the first one saved.

use bytes::Bytes;
use engine::{Agent, Outcome, Traits, Turn, Update, Updates};
use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::{Artifact, Part};

/// The approver agent.
pub struct Approver;

impl Agent for Approver {
    fn run(&self, turn: Turn, out: Updates) -> BoxFuture<'static, Outcome> {
        async move {
            let said = turn.message.text();
            let Some(request) = turn.saved.clone() else {
                out.say([Update::Working(None), Update::Save(Bytes::from(said.clone()))]).await;
                let question = format!("May I proceed with: {said}? Answer approve or deny.");
                return Outcome::NeedInput { message: turn.reply_text(question) };
            };
            let request = String::from_utf8_lossy(&request);
            match said.trim().to_lowercase().as_str() {
                "approve" | "approved" | "yes" | "ok" => {
                    out.artifact(Artifact::new("approval", vec![Part::text(format!("Approved: {request}"))]))
                        .await;
                    Outcome::Done { message: Some(turn.reply_text(format!("Done: {request}"))) }
                }
                "deny" | "denied" | "no" => {
                    Outcome::Rejected { message: Some(turn.reply_text(format!("Denied: {request}"))) }
                }
                _ => Outcome::NeedInput { message: turn.reply_text("Please answer approve or deny.") },
            }
        }
        .boxed()
    }

    fn traits(&self) -> Traits {
        Traits { overlap: true, ..Traits::default() }
    }
}
