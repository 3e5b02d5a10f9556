//! Example of asking: two turns of one task, connected by the first one's checkpoint.
//!
//! A request that starts with `login`, or uses the skill `approver-auth`, asks for credentials instead of an
//! approval. Credentials are sent in headers, so any next message continues the task.

use engine::{Agent, AgentResult, ExecutionPolicy, Outcome, Turn};
use protocol::{
    Content, Json, Message,
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
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        // A checkpoint in the form of an older version is ignored.
        match turn.saved::<PendingRequest>().unwrap_or_default() {
            None => ask(&turn).await,
            Some((LOGIN, request)) => proceed(&turn, &request).await,
            Some((_, request)) => match decision(&turn.message) {
                Some(Decision::Approve) => proceed(&turn, &request).await,
                Some(Decision::Deny) => Ok(Outcome::reject(format!("Denied: {request}"))),
                None => Ok(Outcome::ask("Please answer approve or deny.")),
            },
        }
    }

    fn policy(&self) -> ExecutionPolicy {
        ExecutionPolicy::default().with_overlap(true)
    }
}

async fn ask(turn: &Turn) -> AgentResult<Outcome> {
    let request = request(&turn.message);
    if turn.skill.as_deref() == Some(AUTH) || request.to_lowercase().starts_with("login") {
        let question = format!("Please authenticate, then reply. Pending request: {request}");
        turn.record().working().save(&(LOGIN, request)).await?;
        return Ok(Outcome::ask_for_credentials(question));
    }
    let question = format!("May I proceed with: {request}? Answer approve or deny.");
    turn.record().working().save(&(APPROVAL, request)).await?;
    Ok(Outcome::ask(question))
}

async fn proceed(turn: &Turn, request: &str) -> AgentResult<Outcome> {
    let artifact = turn.new_artifact("approval", format!("Approved: {request}"));
    // The task's next turn, if any, is a new request.
    turn.record().artifact(artifact).clear_saved().await?;
    Ok(Outcome::done_with(format!("Done: {request}")))
}

/// What a request waits for, and the request; saved between two turns.
type PendingRequest = (char, String);

const APPROVAL: char = '?';
const LOGIN: char = '@';

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
