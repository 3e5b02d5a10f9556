//! What the load says and what it expects to hear: one A2A 1.0 call per mode, over JSON-RPC unless the mode says so.
//!
//! Where it can, a request is written once as bytes and only what changes is changed in place. Every answer is
//! looked at, so that a server cannot be fast by answering wrongly.

use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use anyhow::{Context, Result, bail, ensure};
use memchr::memmem::{self, Finder};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use crate::client::Response;
use crate::grpc;
use crate::request::{Door, excerpt, string_after, task_id};

const TEXT_BYTES: usize = 200;
/// How many tasks a page holds.
const PAGE: usize = 50;

/// What every message says, and the echo with it.
static TEXT: LazyLock<String> = LazyLock::new(|| "lorem ipsum ".chars().cycle().take(TEXT_BYTES).collect());
static ECHO: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(TEXT.as_bytes()));
static ARTIFACTS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"artifacts\":["));
static COMPLETED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"TASK_STATE_COMPLETED\""));
/// Every task of a page has one of these.
static STATUS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"status\":{"));

/// Which call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `SendMessage`, which answers when the task has ended.
    Send,
    /// The same over HTTP+JSON.
    SendRest,
    /// The same over gRPC.
    SendGrpc,
    /// `SendStreamingMessage`, read to the end of the stream.
    Stream,
    /// `GetTask` of a task picked at random among those known.
    Get,
    /// `ListTasks`, always the first page.
    List,
    /// `ListTasks` from page to page, and from the last to the first again.
    Walk,
    /// `ListTasks`, the first page of the completed tasks since one of the times that are known, picked at random.
    ListSince,
}

impl FromStr for Mode {
    type Err = anyhow::Error;

    fn from_str(word: &str) -> Result<Self> {
        match word {
            "send" => Ok(Self::Send),
            "send-rest" => Ok(Self::SendRest),
            "send-grpc" => Ok(Self::SendGrpc),
            "stream" => Ok(Self::Stream),
            "get" => Ok(Self::Get),
            "list" => Ok(Self::List),
            "walk" => Ok(Self::Walk),
            "list-since" => Ok(Self::ListSince),
            _ => bail!(
                "cannot call `{word}`; known are send, send-rest, send-grpc, stream, get, list, walk and list-since"
            ),
        }
    }
}

/// The calls of one connection, one after the other.
pub struct Calls {
    mode: Mode,
    door: Door,
    /// A whole request, or for gRPC its message.
    request: Vec<u8>,
    /// Where in `request` the message's id stands.
    id_at: usize,
    rng: fastrand::Rng,
    /// The tasks, or times, that are known, and which of them was asked for.
    known: Arc<[String]>,
    asked: usize,
    /// The next page; empty for the first.
    page: String,
    /// Each how manieth task's id is kept, and those kept.
    keep_every: Option<usize>,
    answers: usize,
    kept: Vec<String>,
}

impl Calls {
    /// Calls at a door. `known` are the tasks, or times, to ask for; of the tasks it makes it keeps every
    /// `keep_every`-th id.
    pub fn new(mode: Mode, door: Door, known: Arc<[String]>, keep_every: Option<usize>) -> Result<Self> {
        let asks = matches!(mode, Mode::Get | Mode::ListSince);
        ensure!(!asks || !known.is_empty(), "no task is known that could be asked for");
        let id = Uuid::nil().hyphenated();
        let text = TEXT.as_str();
        let message = format!(
            r#"{{"message":{{"messageId":"{id}","role":"ROLE_USER","parts":[{{"text":"{text}"}}]}}}}"#
        );
        let request = match mode {
            Mode::Send => door.request("", "SendMessage", &message),
            Mode::SendRest => door.rest_request("/message:send", &message),
            Mode::SendGrpc => grpc::send_message(&door.path, &id.to_string(), text),
            Mode::Stream => door.request("", "SendStreamingMessage", &message),
            Mode::Get | Mode::List | Mode::Walk | Mode::ListSince => Vec::new(),
        };
        let id_at = memmem::find(&request, id.to_string().as_bytes()).unwrap_or_default();
        Ok(Self {
            mode,
            door,
            request,
            id_at,
            rng: fastrand::Rng::new(),
            known,
            asked: 0,
            page: String::new(),
            keep_every,
            answers: 0,
            kept: Vec::new(),
        })
    }

    /// The next request; a message has an id never used before.
    pub fn fresh(&mut self) -> &[u8] {
        match self.mode {
            Mode::Send | Mode::SendRest | Mode::SendGrpc | Mode::Stream => {
                let id = uuid::Builder::from_random_bytes(self.rng.u128(..).to_ne_bytes()).into_uuid();
                id.hyphenated().encode_lower(&mut self.request[self.id_at..][..Hyphenated::LENGTH]);
            }
            Mode::Get => {
                self.asked = self.rng.usize(..self.known.len());
                let params = format!(r#"{{"id":"{}"}}"#, self.known[self.asked]);
                self.door.write_request(&mut self.request, "", "GetTask", &params);
            }
            Mode::List | Mode::Walk => {
                let params = format!(r#"{{"pageSize":{PAGE},"pageToken":"{}"}}"#, self.page);
                self.door.write_request(&mut self.request, "", "ListTasks", &params);
            }
            Mode::ListSince => {
                self.asked = self.rng.usize(..self.known.len());
                let time = &self.known[self.asked];
                let params = format!(
                    r#"{{"pageSize":{PAGE},"status":"TASK_STATE_COMPLETED","statusTimestampAfter":"{time}"}}"#
                );
                self.door.write_request(&mut self.request, "", "ListTasks", &params);
            }
        }
        &self.request
    }

    /// Takes in the answer to the last request and refuses one that does not show what was asked for.
    pub fn heard(&mut self, response: &Response<'_>) -> Result<()> {
        let body = response.body;
        ensure!(response.status == 200, "status {}: {}", response.status, excerpt(body));
        match self.mode {
            Mode::Send | Mode::SendRest => {
                completed(body, body)?;
                echoed(body)?;
                self.keep(body)
            }
            Mode::SendGrpc => grpc::expect_echo(body, &TEXT),
            Mode::Stream => completed(last_event(body), body),
            Mode::Get => {
                completed(body, body)?;
                let asked = &self.known[self.asked];
                ensure!(memmem::find(body, asked.as_bytes()).is_some(), "not {asked}: {}", excerpt(body));
                Ok(())
            }
            Mode::List | Mode::ListSince => page(body).map(drop),
            Mode::Walk => {
                self.page = page(body)?;
                Ok(())
            }
        }
    }

    /// The ids that were kept.
    pub fn into_kept(self) -> Vec<String> {
        self.kept
    }

    fn keep(&mut self, body: &[u8]) -> Result<()> {
        self.answers += 1;
        if self.keep_every.is_some_and(|every| self.answers.is_multiple_of(every)) {
            self.kept.push(task_id(body).with_context(|| format!("no task: {}", excerpt(body)))?);
        }
        Ok(())
    }
}

fn completed(outcome: &[u8], body: &[u8]) -> Result<()> {
    ensure!(COMPLETED.find(outcome).is_some(), "no completed task: {}", excerpt(body));
    Ok(())
}

fn echoed(body: &[u8]) -> Result<()> {
    let artifacts = ARTIFACTS.find(body).map_or(&[][..], |at| &body[at..]);
    ensure!(ECHO.find(artifacts).is_some(), "the text is not in an artifact: {}", excerpt(body));
    Ok(())
}

/// The token of the page behind this one. Only the last page may be short.
fn page(body: &[u8]) -> Result<String> {
    let next = string_after(body, b"\"nextPageToken\":\"").unwrap_or_default();
    let tasks = STATUS.find_iter(body).count();
    let whole =
        memmem::find(body, b"\"tasks\":[").is_some() && memmem::find(body, b"\"totalSize\":").is_some();
    ensure!(whole, "no page: {}", excerpt(body));
    ensure!(tasks == PAGE || next.is_empty() && tasks < PAGE, "{tasks} tasks on a page of {PAGE}");
    Ok(next)
}

/// The data of the last event of a whole stream; empty if there is none.
fn last_event(body: &[u8]) -> &[u8] {
    memmem::rfind(body, b"data:").map_or(&[], |at| &body[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(mode: Mode) -> Calls {
        let door = Door { address: "127.0.0.1:80".parse().unwrap(), path: "/a2a/echo".into() };
        Calls::new(mode, door, ["task_a".to_owned()].into(), Some(2)).unwrap()
    }

    fn accepts(mode: Mode, status: u16, body: &str) -> bool {
        let mut calls = calls(mode);
        calls.fresh();
        calls.heard(&Response { status, body: body.as_bytes() }).is_ok()
    }

    fn body(request: &[u8]) -> serde_json::Value {
        let request = std::str::from_utf8(request).unwrap();
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())));
        serde_json::from_str(body).unwrap()
    }

    #[test]
    fn every_call_is_a_whole_request_with_a_fresh_id() {
        let mut calls = calls(Mode::Send);
        let ids = [(); 2].map(|()| {
            let body = body(calls.fresh());
            let message = &body["params"]["message"];
            assert_eq!(message["parts"][0]["text"].as_str().unwrap().len(), TEXT_BYTES);
            Uuid::parse_str(message["messageId"].as_str().unwrap()).unwrap()
        });
        assert_ne!(ids[0], ids[1]);
        assert_eq!(ids.map(|id| id.get_version_num()), [4, 4]);
    }

    #[test]
    fn every_binding_says_the_same_message() {
        let (mut rpc, mut rest, mut grpc) = (calls(Mode::Send), calls(Mode::SendRest), calls(Mode::SendGrpc));
        assert!(rest.fresh().starts_with(b"POST /a2a/echo/message:send HTTP/1.1\r\n"));
        let [mut rpc, mut rest] = [body(rpc.fresh())["params"].take(), body(rest.fresh())];
        let [one, other] = [&mut rpc, &mut rest].map(|body| body["message"]["messageId"].take());
        assert_eq!(rpc, rest);
        assert_ne!(one, other);
        let [one, other] = [(); 2].map(|()| grpc.fresh().to_vec());
        assert_ne!(one, other);
        assert_eq!(one.len(), grpc::send_message("/a2a/echo", &Uuid::nil().to_string(), &TEXT).len());
    }

    #[test]
    fn only_a_completed_task_with_the_text_will_do() {
        let task = |state: &str, text: &str| {
            format!(r#"{{"state":"TASK_STATE_{state}","artifacts":[{{"parts":[{{"text":"{text}"}}]}}]}}"#)
        };
        for mode in [Mode::Send, Mode::SendRest] {
            assert!(accepts(mode, 200, &task("COMPLETED", &TEXT)));
            assert!(!accepts(mode, 200, &task("COMPLETED", "lorem")));
            assert!(!accepts(mode, 200, &task("WORKING", &TEXT)));
            assert!(!accepts(mode, 503, &task("COMPLETED", &TEXT)));
        }
        assert!(!accepts(Mode::SendGrpc, 200, &task("COMPLETED", &TEXT)));
    }

    #[test]
    fn a_stream_must_end_with_the_completed_state() {
        let working = "id: 1\ndata: {\"state\":\"TASK_STATE_WORKING\"}\n\n";
        let completed = "id: 2\ndata: {\"state\":\"TASK_STATE_COMPLETED\"}\n\n";
        assert!(accepts(Mode::Stream, 200, &[working, completed].concat()));
        assert!(!accepts(Mode::Stream, 200, &[completed, working].concat()));
        assert!(!accepts(Mode::Stream, 200, ""));
    }

    #[test]
    fn the_task_that_was_asked_for_must_come() {
        assert_eq!(body(calls(Mode::Get).fresh())["params"]["id"], "task_a");
        assert!(accepts(Mode::Get, 200, r#"{"id":"task_a","state":"TASK_STATE_COMPLETED"}"#));
        assert!(!accepts(Mode::Get, 200, r#"{"id":"task_b","state":"TASK_STATE_COMPLETED"}"#));
    }

    #[test]
    fn a_walk_asks_for_page_after_page() {
        let page = |tasks: usize, next: &str| {
            let tasks = vec![r#"{"status":{}}"#; tasks].join(",");
            format!(r#"{{"result":{{"tasks":[{tasks}],"nextPageToken":"{next}","totalSize":51}}}}"#)
        };
        let mut calls = calls(Mode::Walk);
        for (asked, answered) in [("", page(PAGE, "two")), ("two", page(1, "")), ("", page(PAGE, "two"))] {
            assert_eq!(body(calls.fresh())["params"]["pageToken"], asked);
            calls.heard(&Response { status: 200, body: answered.as_bytes() }).unwrap();
        }
        assert!(!accepts(Mode::List, 200, &page(1, "two")));
        assert!(!accepts(Mode::List, 200, r#"{"result":{}}"#));
    }

    #[test]
    fn a_filtered_list_asks_for_what_is_completed_since_a_known_time() {
        let params = body(calls(Mode::ListSince).fresh())["params"].take();
        assert_eq!(params["status"], "TASK_STATE_COMPLETED");
        assert_eq!(params["statusTimestampAfter"], "task_a");
    }

    #[test]
    fn ids_are_kept_now_and_then() {
        let mut calls = calls(Mode::Send);
        for n in 1..=5 {
            let body = format!(
                r#"{{"task":{{"id":"task_{n}","state":"TASK_STATE_COMPLETED","artifacts":["{}"]}}}}"#,
                *TEXT
            );
            calls.heard(&Response { status: 200, body: body.as_bytes() }).unwrap();
        }
        assert_eq!(calls.into_kept(), ["task_2", "task_4"]);
    }
}
