//! What the load says and what it expects to hear: one A2A 1.0 JSON-RPC call per mode.
//!
//! The request is written once as bytes; only the message's id changes from call to call, in place. Every
//! answer is looked at, so that a server cannot be fast by answering wrongly.

use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::LazyLock;

use anyhow::{Result, bail, ensure};
use memchr::memmem::{self, Finder};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use crate::client::Response;

const TEXT_BYTES: usize = 200;

static COMPLETED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"TASK_STATE_COMPLETED\""));

/// Which call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `SendMessage`, which answers when the task has ended.
    Send,
    /// `SendStreamingMessage`, read to the end of the stream.
    Stream,
}

impl FromStr for Mode {
    type Err = anyhow::Error;

    fn from_str(word: &str) -> Result<Self> {
        match word {
            "send" => Ok(Self::Send),
            "stream" => Ok(Self::Stream),
            _ => bail!("cannot call `{word}`; known are send and stream"),
        }
    }
}

/// The calls of one connection, one after the other.
pub struct Calls {
    mode: Mode,
    request: Vec<u8>,
    /// Where in `request` the message's id stands.
    id_at: usize,
    rng: fastrand::Rng,
}

impl Calls {
    /// Calls of the agent at `path` of `address`.
    pub fn new(mode: Mode, address: SocketAddr, path: &str) -> Self {
        let method = match mode {
            Mode::Send => "SendMessage",
            Mode::Stream => "SendStreamingMessage",
        };
        let id = Uuid::nil().hyphenated();
        let text = "lorem ipsum ".chars().cycle().take(TEXT_BYTES).collect::<String>();
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"message":{{"messageId":"{id}","role":"ROLE_USER","parts":[{{"text":"{text}"}}]}}}}}}"#
        );
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nA2A-Version: 1.0\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let id_at = request.find(&id.to_string()).expect("the id has just been written");
        Self { mode, request: request.into_bytes(), id_at, rng: fastrand::Rng::new() }
    }

    /// The next request, with an id never used before.
    pub fn fresh(&mut self) -> &[u8] {
        let id = uuid::Builder::from_random_bytes(self.rng.u128(..).to_ne_bytes()).into_uuid();
        id.hyphenated().encode_lower(&mut self.request[self.id_at..][..Hyphenated::LENGTH]);
        &self.request
    }

    /// Refuses an answer that does not show a completed task.
    pub fn check(&self, response: &Response<'_>) -> Result<()> {
        ensure!(response.status == 200, "status {}: {}", response.status, excerpt(response.body));
        let outcome = match self.mode {
            Mode::Send => response.body,
            Mode::Stream => last_event(response.body),
        };
        ensure!(COMPLETED.find(outcome).is_some(), "no completed task: {}", excerpt(response.body));
        Ok(())
    }
}

/// The data of the last event of a whole stream; empty if there is none.
fn last_event(body: &[u8]) -> &[u8] {
    memmem::rfind(body, b"data:").map_or(&[], |at| &body[at..])
}

fn excerpt(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(300)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(mode: Mode) -> Calls {
        Calls::new(mode, "127.0.0.1:80".parse().unwrap(), "/a2a/echo")
    }

    fn accepts(mode: Mode, status: u16, body: &str) -> bool {
        calls(mode).check(&Response { status, body: body.as_bytes() }).is_ok()
    }

    #[test]
    fn every_call_is_a_whole_request_with_a_fresh_id() {
        let mut calls = calls(Mode::Send);
        let ids = [(); 2].map(|()| {
            let request = std::str::from_utf8(calls.fresh()).unwrap();
            let (head, body) = request.split_once("\r\n\r\n").unwrap();
            assert!(head.contains(&format!("Content-Length: {}", body.len())));
            let body: serde_json::Value = serde_json::from_str(body).unwrap();
            let message = &body["params"]["message"];
            assert_eq!(message["parts"][0]["text"].as_str().unwrap().len(), TEXT_BYTES);
            Uuid::parse_str(message["messageId"].as_str().unwrap()).unwrap()
        });
        assert_ne!(ids[0], ids[1]);
        assert_eq!(ids.map(|id| id.get_version_num()), [4, 4]);
    }

    #[test]
    fn only_a_completed_task_will_do() {
        assert!(accepts(Mode::Send, 200, r#"{"state":"TASK_STATE_COMPLETED"}"#));
        assert!(!accepts(Mode::Send, 200, r#"{"state":"TASK_STATE_WORKING"}"#));
        assert!(!accepts(Mode::Send, 503, r#"{"state":"TASK_STATE_COMPLETED"}"#));
    }

    #[test]
    fn a_stream_must_end_with_the_completed_state() {
        let working = "id: 1\ndata: {\"state\":\"TASK_STATE_WORKING\"}\n\n";
        let completed = "id: 2\ndata: {\"state\":\"TASK_STATE_COMPLETED\"}\n\n";
        assert!(accepts(Mode::Stream, 200, &[working, completed].concat()));
        assert!(!accepts(Mode::Stream, 200, &[completed, working].concat()));
        assert!(!accepts(Mode::Stream, 200, ""));
    }
}
