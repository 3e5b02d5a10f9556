//! What a server's response means for the client's task. Pure.

use protocol::{Json, Part, json::write::Writer};
use serde::{Deserialize, Serialize};

use super::answer::unanswerable;
use super::messages::{CallError, InputRequired, Progress, Question, Requests, Response};
use crate::backend::{self, Reply};

/// The server wants the client to visit a URL before the call is sent again. The library has no name for it.
const URL_ELICITATION_REQUIRED: i32 = -32042;

/// What is kept while a task waits for the client.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum State {
    /// The call is sent again as it was.
    SendAgain,
    /// The call is open in this process, under this token.
    Open { token: String },
    /// The call is sent again with the answers.
    Input { requests: Requests, state: Option<String> },
    /// The answers go to the server's task.
    Task { id: String, requests: Requests },
}

/// The reply for a response of `server`, or for its absence.
pub(super) fn reply(server: &str, result: Result<Response, CallError>) -> Reply {
    match result {
        Ok(Response::Complete(reply)) => reply,
        Ok(Response::InputRequired(InputRequired { requests, state })) => {
            let kept = State::Input { requests: requests.clone(), state };
            match unanswerable(requests.iter().map(|(_, question)| question)) {
                Some(problem) => not_asked(server, &problem),
                None => ask(server, &requests, None, &kept),
            }
        }
        Ok(Response::Task(_)) => Reply::fail(format!("the task of the MCP server {server} was not followed")),
        Err(error) => failed(server, error),
    }
}

fn failed(server: &str, error: CallError) -> Reply {
    match error {
        CallError::Server { code: URL_ELICITATION_REQUIRED, message, data: Some(data) } => {
            credentials(vec![Part::text(message), Part::data(data)], &State::SendAgain)
        }
        CallError::Server { message, .. } => Reply::fail(message),
        CallError::Auth { challenge } => credentials_for(server, &challenge, &State::SendAgain),
        // The server has not begun the call.
        CallError::Http { status: status @ 429 } => Reply::retry(format!(
            "the MCP server {server} answered with HTTP status {status}; try again later"
        )),
        CallError::Http { status } => {
            Reply::fail(format!("the MCP server {server} answered with HTTP status {status}"))
        }
        CallError::NotSent => Reply::retry(format!("the MCP server {server} cannot be reached")),
        CallError::Closed => Reply::fail(format!("the MCP server {server} ended before it answered")),
        CallError::NotAnObject => Reply::Rejected(vec![Part::text("arguments: expected a JSON object")]),
        CallError::MessageArgument(name) => {
            let text =
                format!("arguments.{name}: the tool gets the whole message in it, so it cannot be sent");
            Reply::Rejected(vec![Part::text(text)])
        }
        CallError::Invalid(problem) => {
            Reply::fail(format!("the answer of the MCP server {server} is not valid: {problem}"))
        }
    }
}

/// The server requires credentials; `kept` is how the call goes on afterwards.
pub(super) fn credentials_for(server: &str, challenge: &str, kept: &State) -> Reply {
    let scheme = challenge.split_ascii_whitespace().next().unwrap_or("Bearer");
    let mut writer = Writer::new();
    writer.object(|out| {
        out.texts("schemes", &[scheme]);
        out.text("challenge", challenge);
    });
    let text = format!("the MCP server {server} requires credentials; send a message when it accepts them");
    credentials(vec![Part::text(text), Part::data(written(writer))], kept)
}

fn credentials(parts: Vec<Part>, kept: &State) -> Reply {
    match state(kept) {
        Some(state) => Reply::AskForCredentials(backend::Question { parts, state }),
        None => Reply::fail("what the call needs later is too large"),
    }
}

/// Fails because the client could not answer the server's question.
pub(super) fn not_asked(server: &str, problem: &str) -> Reply {
    Reply::fail(format!("the MCP server {server} asks for input that cannot be checked: {problem}"))
}

/// Asks the client. `problem` is what was wrong with its last answer.
pub(super) fn ask(server: &str, requests: &Requests, problem: Option<&str>, kept: &State) -> Reply {
    if requests.is_empty() {
        return Reply::fail(format!("the MCP server {server} asks, but not for anything"));
    }
    let mut parts: Vec<Part> = problem.map(Part::text).into_iter().collect();
    let mut forms = 0;
    for (key, question) in requests {
        let message = match question {
            Question::Form { message, .. } => {
                forms += 1;
                message
            }
            Question::Url { message, .. } => message,
            Question::Unsupported => {
                return Reply::fail(format!("the MCP server {server} asks for something other than input"));
            }
        };
        parts.push(Part::text(message));
        parts.push(Part::data(if requests.len() == 1 { single(question) } else { keyed(key, question) }));
    }
    if requests.len() > 1 {
        let keys: Vec<_> = requests.iter().map(|(key, _)| key.as_str()).collect();
        let keys = keys.join(", ");
        parts.push(Part::text(format!("answer with a data part: an object with the members {keys}")));
    }
    let Some(state) = state(kept) else {
        return Reply::fail(format!("the question of the MCP server {server} is too large"));
    };
    let question = backend::Question { parts, state };
    if forms == 0 { Reply::AskForCredentials(question) } else { Reply::Ask(question) }
}

fn single(question: &Question) -> Json {
    match question {
        Question::Form { schema, .. } => Json::parse(schema.get()).unwrap_or_else(|_| empty()),
        Question::Url { url, .. } => {
            let mut writer = Writer::new();
            writer.object(|out| out.text("url", url));
            written(writer)
        }
        Question::Unsupported => empty(),
    }
}

fn keyed(key: &str, question: &Question) -> Json {
    let mut writer = Writer::new();
    writer.object(|out| {
        out.text("key", key);
        match question {
            Question::Form { schema, .. } => out.key("requestedSchema").raw(schema.get()),
            Question::Url { url, .. } => out.text("url", url),
            Question::Unsupported => {}
        }
    });
    written(writer)
}

/// The parts of a progress message, and its metadata: the numbers for programs.
pub(super) fn progress(notice: &Progress) -> (Vec<Part>, Json) {
    let Progress { progress, total, message } = notice;
    let text = match (message, total) {
        (Some(text), _) => text.clone(),
        (None, Some(total)) => format!("{} of {}", number(*progress), number(*total)),
        (None, None) => number(*progress),
    };
    let mut writer = Writer::new();
    writer.object(|out| {
        out.key("a2ad").object(|out| {
            out.key("progress").raw(&number(*progress));
            if let Some(total) = total {
                out.key("total").raw(&number(*total));
            }
        });
    });
    (vec![Part::text(text)], written(writer))
}

/// A number as JSON; whole ones without a fraction.
fn number(value: f64) -> String {
    if !value.is_finite() {
        return "null".into();
    }
    value.to_string()
}

/// `None`: it is too large or too deep to keep.
fn state(kept: &State) -> Option<Json> {
    Json::parse(&serde_json::to_string(kept).ok()?).ok()
}

fn written(writer: Writer) -> Json {
    let text = String::from_utf8(writer.finish()).expect("the writer was given UTF-8 only");
    Json::parse(&text).unwrap_or_else(|_| empty())
}

fn empty() -> Json {
    Json::parse("{}").expect("an empty object is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(reply: &Reply) -> (&'static str, &[Part]) {
        match reply {
            Reply::Done(parts) => ("done", parts),
            Reply::Failed(failure) => ("failed", &failure.parts),
            Reply::Ask(question) => ("ask", &question.parts),
            Reply::AskForCredentials(question) => ("credentials", &question.parts),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn error_that_names_a_url_asks_for_credentials() {
        let data =
            Json::parse(r#"{"elicitations":[{"mode":"url","url":"https://a.example/login"}]}"#).unwrap();
        let error = CallError::Server { code: -32042, message: "log in".into(), data: Some(data.clone()) };
        let reply = reply("s", Err(error));
        assert_eq!(shown(&reply), ("credentials", &[Part::text("log in"), Part::data(data)][..]));
        let error = CallError::Server { code: -32042, message: "log in".into(), data: None };
        assert_eq!(shown(&super::reply("s", Err(error))), ("failed", &[Part::text("log in")][..]));
    }

    #[test]
    fn several_questions_are_asked_with_their_keys() {
        let url = |url: &str| Question::Url { message: format!("open {url}"), url: url.into() };
        let requests = vec![("a".to_owned(), url("x:1")), ("b".to_owned(), url("x:2"))];
        let reply = reply("s", Ok(Response::InputRequired(InputRequired { requests, state: None })));
        let (kind, parts) = shown(&reply);
        assert_eq!((kind, parts.len()), ("credentials", 5));
        assert_eq!(parts[3], Part::data(Json::parse(r#"{"key":"b","url":"x:2"}"#).unwrap()));
    }

    #[test]
    fn progress_has_a_text_and_whole_numbers() {
        let notice = Progress { progress: 2.0, total: Some(2.5), message: None };
        let (parts, metadata) = progress(&notice);
        assert_eq!(parts, [Part::text("2 of 2.5")]);
        assert_eq!(metadata, Json::parse(r#"{"a2ad":{"progress":2,"total":2.5}}"#).unwrap());
        let (parts, _) = progress(&Progress { message: Some("half".into()), ..notice });
        assert_eq!(parts, [Part::text("half")]);
    }
}
