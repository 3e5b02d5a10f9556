//! Finds the client's answers to a server's questions in its message. Pure, except for a check that is large.

use engine::{AgentResult, Arguments, SkillSchema as _, Turn};
use protocol::{
    Content, Json, Message, Part,
    json::read::{Node, Path},
};

use serde_json::value::RawValue;

use super::messages::{Answer, Question, Requests};
use crate::schema::Schema;

/// What a message has for a question.
pub(super) enum Given {
    Answer(Answer),
    /// The content of a form with this schema. It may have to be checked.
    Form(Arguments, Schema),
}

/// What a message has for several questions, by their names.
pub(super) type AllGiven = Vec<(String, Given)>;

impl Given {
    /// The answer. The inner error is for the client, who is asked again.
    pub(super) async fn checked(self, turn: &Turn) -> AgentResult<Result<Answer, String>> {
        Ok(match self {
            Self::Answer(answer) => Ok(answer),
            Self::Form(Arguments::Unchecked(content, check), _) => {
                let check = check.await;
                let checked = turn.guard("schema check", check).await?;
                checked.map(|()| Answer::Accept(Some(content)))
            }
            Self::Form(content, schema) => accepted(content, &schema),
        })
    }
}

/// The answers to several questions, or the first error.
pub(super) async fn checked(
    given: AllGiven,
    turn: &Turn,
) -> AgentResult<Result<Vec<(String, Answer)>, String>> {
    let mut answers = Vec::with_capacity(given.len());
    for (key, given) in given {
        match given.checked(turn).await? {
            Ok(answer) => answers.push((key, answer)),
            Err(problem) => return Ok(Err(problem)),
        }
    }
    Ok(Ok(answers))
}

fn accepted(content: Arguments, schema: &Schema) -> Result<Answer, String> {
    match content {
        Arguments::Valid(content) => Ok(Answer::Accept(Some(content))),
        Arguments::Unchecked(..) => unreachable!("it was checked before"),
        Arguments::Invalid(problem) => Err(problem),
        Arguments::Refused(error) => Err(error.message),
        Arguments::Missing => Err(format!("still missing: {}", schema.required().join(", "))),
    }
}

/// What the message has for each question. The error is for the client, who is asked again.
pub(super) fn answers(message: &Message, requests: &Requests) -> Result<AllGiven, String> {
    if let [(key, question)] = requests.as_slice() {
        return Ok(vec![(key.clone(), answer(message, question)?)]);
    }
    if let Some(rejection) = rejection(message) {
        return Ok(requests.iter().map(|(key, _)| (key.clone(), Given::Answer(rejection.clone()))).collect());
    }
    let given = data(message).map(members).unwrap_or_default();
    let one = |(key, question): &(String, Question)| {
        let value = given.iter().find(|(name, _)| name == key).map(|(_, value)| value);
        let message = match (value, question) {
            (Some(value), _) => with_data(message, value),
            (None, Question::Url { .. }) => {
                return Ok((key.clone(), Given::Answer(Answer::Accept(None))));
            }
            (None, _) => return Err(format!("there is no answer for {key}")),
        };
        Ok((key.clone(), answer(&message, question)?))
    };
    requests.iter().map(one).collect()
}

/// What the message has for one question.
pub(super) fn answer(message: &Message, question: &Question) -> Result<Given, String> {
    if let Some(rejection) = rejection(message) {
        return Ok(Given::Answer(rejection));
    }
    let Question::Form { schema, .. } = question else { return Ok(Given::Answer(Answer::Accept(None))) };
    let schema = compiled(schema)?;
    let accepted = data(message).filter(|data| action(data).is_some());
    let unpacked = accepted.map(|data| with_data(message, &member(data, "content").unwrap_or_else(empty)));
    Ok(Given::Form(Arguments::of(unpacked.as_ref().unwrap_or(message), Some(&schema)), schema))
}

/// Why no answer to one of these questions can be checked, so that it would be asked for ever; `None`: all can be answered.
pub(super) fn unanswerable<'a>(questions: impl IntoIterator<Item = &'a Question>) -> Option<String> {
    questions.into_iter().find_map(|question| match question {
        Question::Form { schema, .. } => compiled(schema).err(),
        Question::Url { .. } | Question::Unsupported => None,
    })
}

fn compiled(schema: &RawValue) -> Result<Schema, String> {
    let text =
        Json::parse(schema.get()).map_err(|problem| format!("the server's schema is not {problem}"))?;
    Schema::new(text).map_err(|error| format!("the server's schema is {error}"))
}

/// Whether the client declines or cancels: by a text that is just this, or by `{"action": …}`.
pub(super) fn rejection(message: &Message) -> Option<Answer> {
    let text = message.text();
    let text = data(message).and_then(action).unwrap_or_else(|| text.trim().to_lowercase());
    match text.as_str() {
        "decline" => Some(Answer::Decline),
        "cancel" => Some(Answer::Cancel),
        _ => None,
    }
}

/// The action in an answer such as `{"action": "accept", "content": {…}}`; a form with a field of this name and others
/// is not one.
fn action(data: &Json) -> Option<String> {
    let members = members(data);
    let known = members.iter().all(|(name, _)| matches!(name.as_str(), "action" | "content"));
    let action = members.into_iter().find(|(name, _)| name == "action").filter(|_| known)?.1;
    Node::new(action.as_raw(), &Path::Root).string().ok().map(|text| text.into_owned())
}

fn member(data: &Json, name: &str) -> Option<Json> {
    members(data).into_iter().find(|(member, _)| member == name).map(|(_, value)| value)
}

fn members(data: &Json) -> Vec<(String, Json)> {
    let read = || {
        let object = Node::new(data.as_raw(), &Path::Root).object().ok()?;
        object.entries(|name, node| Ok((name.to_owned(), node.any()?))).ok()
    };
    read().unwrap_or_default()
}

fn empty() -> Json {
    Json::parse("{}").expect("an empty object is JSON")
}

fn data(message: &Message) -> Option<&Json> {
    message.parts.iter().find_map(|part| match &part.content {
        Content::Data(data) => Some(data),
        _ => None,
    })
}

fn with_data(message: &Message, data: &Json) -> Message {
    Message { parts: vec![Part::data(data.clone())], ..message.clone() }
}

#[cfg(test)]
mod tests {
    use protocol::Role;

    use super::*;

    fn form(schema: &str) -> Question {
        Question::Form { message: "?".into(), schema: RawValue::from_string(schema.into()).unwrap() }
    }

    fn name_form() -> Question {
        form(
            r#"{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name"]}"#,
        )
    }

    fn small(given: Given) -> Result<Answer, String> {
        match given {
            Given::Answer(answer) => Ok(answer),
            Given::Form(content, schema) => accepted(content, &schema),
        }
    }

    fn message(part: Part) -> Message {
        Message::new("m", Role::User, vec![part])
    }

    fn json(text: &str) -> Json {
        Json::parse(text).unwrap()
    }

    #[test]
    fn form_is_answered_by_data_json_text_or_plain_text() {
        let answer = |part| answer(&message(part), &name_form()).and_then(small);
        let ada = || Ok(Answer::Accept(Some(json(r#"{"name":"Ada"}"#))));
        assert_eq!(answer(Part::data(json(r#"{"name":"Ada"}"#))), ada());
        assert_eq!(answer(Part::data(json(r#"{"action":"accept","content":{"name":"Ada"}}"#))), ada());
        assert_eq!(answer(Part::text(r#"{"name":"Ada"}"#)), ada());
        assert_eq!(answer(Part::text("Ada")), ada());
        assert!(answer(Part::data(json(r#"{"name":1}"#))).unwrap_err().contains("arguments.name"));
    }

    #[test]
    fn client_can_decline_and_cancel() {
        let answer = |part| answer(&message(part), &name_form()).and_then(small).unwrap();
        assert_eq!(answer(Part::text(" Decline ")), Answer::Decline);
        assert_eq!(answer(Part::data(json(r#"{"action":"decline"}"#))), Answer::Decline);
        assert_eq!(answer(Part::data(json(r#"{"action":"cancel"}"#))), Answer::Cancel);
        let other = answer(Part::data(json(r#"{"action":"cancel","name":"x"}"#)));
        assert!(matches!(other, Answer::Accept(_)), "it is a form with a field of this name");
    }

    #[test]
    fn each_of_several_questions_has_its_answer() {
        let url = Question::Url { message: "?".into(), url: "x:1".into() };
        let requests =
            vec![("a".to_owned(), name_form()), ("b".to_owned(), name_form()), ("u".to_owned(), url)];
        let given = message(Part::data(json(r#"{"a":{"name":"Ada"},"b":{"action":"decline"}}"#)));
        let expected = vec![
            ("a".to_owned(), Answer::Accept(Some(json(r#"{"name":"Ada"}"#)))),
            ("b".to_owned(), Answer::Decline),
            ("u".to_owned(), Answer::Accept(None)),
        ];
        let answers = |message: &Message| -> Result<Vec<_>, String> {
            answers(message, &requests)?.into_iter().map(|(key, given)| Ok((key, small(given)?))).collect()
        };
        assert_eq!(answers(&given), Ok(expected));
        let error = answers(&message(Part::data(json(r#"{"a":{"name":"x"}}"#)))).unwrap_err();
        assert_eq!(error, "there is no answer for b");
    }
}
