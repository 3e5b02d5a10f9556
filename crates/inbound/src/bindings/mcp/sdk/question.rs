//! A question of an agent as an elicitation, and its answer. Pure.
//!
//! The agent's own schema is used where a form can have it: an object of plain values. Otherwise the form has one text
//! field. Clients of 2026-07-28 send the call again with their answer and a state, which names the task; nothing in it
//! is trusted: a task is looked up among those of the caller.

use protocol::{Content, Json, Message, Part, Role, SendMessage, TaskId};
use rmcp::{
    ErrorData,
    model::{
        ClientCapabilities, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
        ElicitationSchema, InputRequest, InputRequiredResult, InputResponses,
    },
};

use super::convert::{Tree, invalid_params};

/// The text field of a form, and the key of the only question of a call.
const ANSWER: &str = "answer";

/// How the answer goes to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerForm {
    /// As a text.
    Text,
    /// As a data part that has the fields of the agent's schema.
    Data,
}

/// What the client has answered.
pub(super) enum Answer {
    Accepted(Box<SendMessage>),
    /// Declined or cancelled.
    Rejected,
}

/// A question with its form.
pub(super) struct Question {
    task: TaskId,
    form: AnswerForm,
    request: ElicitRequestParams,
    size: u64,
}

/// Whether a client can show a form. An empty capability means forms.
pub(super) fn can_answer(capabilities: Option<&ClientCapabilities>) -> bool {
    let elicitation = capabilities.and_then(|capabilities| capabilities.elicitation.as_ref());
    elicitation.is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none())
}

impl Question {
    pub(super) fn new(task: TaskId, parts: &[Part]) -> Self {
        let own = parts.iter().find_map(|part| match &part.content {
            Content::Data(schema) => serde_json::from_str::<ElicitationSchema>(schema.as_str()).ok(),
            _ => None,
        });
        let (form, message, requested_schema) = match own.filter(|schema| !schema.properties.is_empty()) {
            Some(schema) => (AnswerForm::Data, shown(parts, text), schema),
            // The person who answers needs the data too.
            None => (AnswerForm::Text, shown(parts, text_or_data), text_form()),
        };
        let request = ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema };
        let size = parts.iter().filter_map(text_or_data).map(|text| text.len() as u64).sum();
        Self { task, form, request, size }
    }

    /// The bytes of its texts and its schema, as the agent sent them.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn task(&self) -> &TaskId {
        &self.task
    }

    /// For a client that answers while the call is open.
    pub(super) fn request(&self) -> ElicitRequest {
        ElicitRequest::new(self.request.clone())
    }

    /// For a client that sends the call again with its answer.
    pub(super) fn input_required(&self) -> InputRequiredResult {
        let requests = [(ANSWER.to_owned(), InputRequest::Elicitation(self.request()))];
        let form = match self.form {
            AnswerForm::Text => "text",
            AnswerForm::Data => "data",
        };
        InputRequiredResult::new(Some(requests.into()), Some(format!("{form}:{}", self.task)))
    }

    pub(super) fn answer(&self, result: ElicitResult) -> Result<Answer, ErrorData> {
        answer(&self.task, self.form, result)
    }
}

/// The question's text, and how to answer it elsewhere: for a client that has no forms.
pub(super) fn without_form(task: Option<&TaskId>, parts: &[Part]) -> Vec<Part> {
    let mut shown = vec![Part::text("The agent asks before it can go on:")];
    shown.extend_from_slice(parts);
    if let Some(task) = task {
        let text = format!(
            "This client cannot answer questions of tools. Task {task} waits: answer it over A2A, or call the tool \
             again with what is asked for."
        );
        shown.push(Part::text(text));
    }
    shown
}

/// What the agent asks credentials for. They must not become arguments of a tool, which models and logs see.
pub(super) fn for_credentials(task: Option<&TaskId>, parts: &[Part]) -> Vec<Part> {
    let mut shown = vec![Part::text("The agent needs credentials before it can go on:")];
    shown.extend_from_slice(parts);
    if let Some(task) = task {
        let text = format!(
            "Task {task} waits for them. They are given to the agent over A2A by the user, never in the arguments of \
             a tool."
        );
        shown.push(Part::text(text));
    }
    shown
}

/// The task and the answer of a call that is sent again.
pub(super) fn repeated(
    state: &str,
    responses: Option<InputResponses>,
) -> Result<(TaskId, Answer), ErrorData> {
    let (form, task) = match state.split_once(':') {
        Some(("text", task)) => (AnswerForm::Text, task),
        Some(("data", task)) => (AnswerForm::Data, task),
        _ => return Err(invalid_params("requestState: it is not from this server")),
    };
    let task = TaskId::from(task.to_owned());
    let response = responses.and_then(|mut responses| responses.remove(ANSWER));
    let response = response.ok_or_else(|| invalid_params("inputResponses.answer: it is missing"))?;
    let result = serde_json::from_value(response)
        .map_err(|error| invalid_params(format!("inputResponses.answer: {error}")))?;
    let answer = answer(&task, form, result)?;
    Ok((task, answer))
}

fn answer(task: &TaskId, form: AnswerForm, result: ElicitResult) -> Result<Answer, ErrorData> {
    if !matches!(result.action, ElicitationAction::Accept) {
        return Ok(Answer::Rejected);
    }
    let content = result.content.ok_or_else(|| invalid_params("content: it is missing"))?;
    let part = match (form, content.get(ANSWER)) {
        (AnswerForm::Text, Some(Tree::String(text))) => Part::text(text),
        (AnswerForm::Text, _) => return Err(invalid_params("content.answer: expected a text")),
        (AnswerForm::Data, _) => {
            let data = Json::parse(&content.to_string());
            Part::data(data.map_err(|problem| invalid_params(format!("content: expected {problem}")))?)
        }
    };
    let message = Message::new("", Role::User, vec![part]);
    Ok(Answer::Accepted(Box::new(SendMessage::new(message).to_task(task.clone()))))
}

fn text_form() -> ElicitationSchema {
    ElicitationSchema::builder().required_string_with(ANSWER, |field| field.title("Answer")).build_unchecked()
}

fn shown(parts: &[Part], show: fn(&Part) -> Option<&str>) -> String {
    let texts: Vec<&str> = parts.iter().filter_map(show).collect();
    if texts.is_empty() { "The agent asks for input".to_owned() } else { texts.join("\n") }
}

fn text(part: &Part) -> Option<&str> {
    match &part.content {
        Content::Text(text) => Some(text),
        Content::Data(_) | Content::Raw(_) | Content::Url(_) => None,
    }
}

fn text_or_data(part: &Part) -> Option<&str> {
    match &part.content {
        Content::Text(text) | Content::Url(text) => Some(text),
        Content::Data(data) => Some(data.as_str()),
        Content::Raw(_) => None,
    }
}
