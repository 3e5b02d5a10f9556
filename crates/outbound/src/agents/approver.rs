//! Example of asking: two turns of one task, connected by the first one's checkpoint.
//!
//! A request that starts with `login`, or uses the skill `approver-auth`, asks for credentials instead of an
//! approval. Credentials are sent in headers, so any next message continues the task.

use bytes::Bytes;
use engine::{Agent, ExecutionPolicy, Outcome, Turn, Update, Updates};
use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::{
    Content, Json, Message, Part,
    json::read::{Node, Path},
    model::AgentSkill,
};

/// Asks for approval before it proceeds.
pub struct Approver;

pub(super) const ABOUT: &str = "Asks before it proceeds: say what to do, then approve or deny";

/// The skill that asks for credentials.
const AUTH: &str = "approver-auth";

pub(super) fn skills() -> Vec<AgentSkill> {
    let asks = ["approve", "approval", "permission", "ask", "delete"];
    let about_auth = "Asks for credentials before it proceeds";
    vec![
        super::skill("approver", "Approver", ABOUT, &asks, &["delete the old backups"]),
        super::skill(AUTH, "Approver, with a login", about_auth, &["login"], &["login to the archive"]),
    ]
}

impl Agent for Approver {
    fn run(&self, turn: Turn, out: Updates) -> BoxFuture<'static, Outcome> {
        async move {
            match turn.saved.as_deref().and_then(PendingRequest::from_saved) {
                None => ask(&turn, &out).await,
                Some(PendingRequest::Login(request)) => proceed(&turn, &out, &request).await,
                Some(PendingRequest::Approval(request)) => match decision(&turn.message) {
                    Some(Decision::Approve) => proceed(&turn, &out, &request).await,
                    Some(Decision::Deny) => {
                        Outcome::Rejected { message: Some(turn.reply_text(format!("Denied: {request}"))) }
                    }
                    None => Outcome::NeedInput { message: turn.reply_text("Please answer approve or deny.") },
                },
            }
        }
        .boxed()
    }

    fn policy(&self) -> ExecutionPolicy {
        ExecutionPolicy { overlap: true, ..ExecutionPolicy::default() }
    }
}

async fn ask(turn: &Turn, out: &Updates) -> Outcome {
    let request = request(&turn.message);
    if turn.skill.as_deref() == Some(AUTH) || request.to_lowercase().starts_with("login") {
        let question = format!("Please authenticate, then reply. Pending request: {request}");
        let schemes = Json::parse(r#"{"schemes":["bearer"]}"#).expect("this is a JSON object");
        out.say([Update::Working(None), PendingRequest::Login(request).save()]).await;
        return Outcome::NeedAuth { message: turn.reply(vec![Part::text(question), Part::data(schemes)]) };
    }
    let question = format!("May I proceed with: {request}? Answer approve or deny.");
    out.say([Update::Working(None), PendingRequest::Approval(request).save()]).await;
    Outcome::NeedInput { message: turn.reply_text(question) }
}

async fn proceed(turn: &Turn, out: &Updates, request: &str) -> Outcome {
    let artifact = super::result(turn, "approval", vec![Part::text(format!("Approved: {request}"))]);
    // Clear the checkpoint: the task's next turn, if any, is a new request.
    out.say([Update::Artifact { artifact, append: false, last: true }, Update::Save(Bytes::new())]).await;
    Outcome::Done { message: Some(turn.reply_text(format!("Done: {request}"))) }
}

/// A request and what it waits for, saved between two turns.
enum PendingRequest {
    Approval(String),
    Login(String),
}

impl PendingRequest {
    fn save(&self) -> Update {
        let (kind, request) = match self {
            Self::Approval(request) => ('?', request),
            Self::Login(request) => ('@', request),
        };
        Update::Save(format!("{kind}{request}").into())
    }

    fn from_saved(saved: &[u8]) -> Option<Self> {
        let (kind, request) = saved.split_first()?;
        let request = String::from_utf8_lossy(request).into_owned();
        Some(if *kind == b'@' { Self::Login(request) } else { Self::Approval(request) })
    }
}

/// The requested action: the text, or the raw data if there is no text.
fn request(message: &Message) -> String {
    let text = message.text();
    if text.is_empty() { data(message).map_or(text, |json| json.as_str().into()) } else { text }
}

#[derive(Clone, Copy)]
enum Decision {
    Approve,
    Deny,
}

/// Accepts a text such as `approve`, `{"approved": true}` or `{"decision": "approve"}`.
fn decision(message: &Message) -> Option<Decision> {
    let from_data = || {
        let object = Node::new(data(message)?.as_raw(), &Path::Root).object().ok()?;
        match object.flag("approved") {
            Ok(Some(true)) => Some(Decision::Approve),
            Ok(Some(false)) => Some(Decision::Deny),
            _ => parse_decision(&object.text("decision").ok()??),
        }
    };
    parse_decision(&message.text()).or_else(from_data)
}

fn parse_decision(text: &str) -> Option<Decision> {
    match text.trim().to_lowercase().as_str() {
        "approve" | "approved" | "yes" | "ok" => Some(Decision::Approve),
        "deny" | "denied" | "no" => Some(Decision::Deny),
        _ => None,
    }
}

fn data(message: &Message) -> Option<&Json> {
    message.parts.iter().find_map(|part| match &part.content {
        Content::Data(json) => Some(json),
        _ => None,
    })
}
