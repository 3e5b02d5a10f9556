//! The calls of the load generator and the checks of their responses: one A2A 1.0 call per mode, over JSON-RPC unless
//! the mode names another binding.
//!
//! Where possible, a request is encoded once and only the changing bytes are replaced in place. Every response is
//! checked, so that a server cannot be fast by responding wrongly.

use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use anyhow::{Context, Result, bail, ensure};
use memchr::memmem::{self, Finder};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use crate::client::Response;
use crate::grpc;
use crate::receiver;
use crate::request::{AgentEndpoint, excerpt, string_after, task_id};

const TEXT_BYTES: usize = 200;
/// Tasks per page.
const PAGE: usize = 50;

/// The text of every message, and of the echo.
static TEXT: LazyLock<String> = LazyLock::new(|| "lorem ipsum ".chars().cycle().take(TEXT_BYTES).collect());
static ECHO: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(TEXT.as_bytes()));
static ARTIFACTS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"artifacts\":["));
static COMPLETED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"TASK_STATE_COMPLETED\""));
/// Occurs once per task of a page.
static STATUS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"status\":{"));

/// The call to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `SendMessage`, whose response comes when the task has finished.
    Send,
    /// The same to an agent with several skills, with the id of the skill that echoes.
    SendSkill,
    /// The same as `Send` with a webhook, chosen at random among the known ones.
    SendPush,
    /// The same as `Send` over HTTP+JSON.
    SendRest,
    /// The same as `Send` over gRPC.
    SendGrpc,
    /// The same over gRPC, with several calls at once on each connection, as the clients of gRPC do.
    SendGrpcMultiplexed,
    /// `SendStreamingMessage`, read to the end of the stream.
    Stream,
    /// `GetTask` of a task chosen at random among the known ones.
    Get,
    /// `ListTasks`, always the first page.
    List,
    /// `ListTasks` page by page, from the last to the first again.
    Walk,
    /// `ListTasks`, the first page of the completed tasks since one of the known times, chosen at random.
    ListSince,
}

impl FromStr for Mode {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "send" => Ok(Self::Send),
            "send-skill" => Ok(Self::SendSkill),
            "send-push" => Ok(Self::SendPush),
            "send-rest" => Ok(Self::SendRest),
            "send-grpc" => Ok(Self::SendGrpc),
            "send-grpc-multiplexed" => Ok(Self::SendGrpcMultiplexed),
            "stream" => Ok(Self::Stream),
            "get" => Ok(Self::Get),
            "list" => Ok(Self::List),
            "walk" => Ok(Self::Walk),
            "list-since" => Ok(Self::ListSince),
            _ => bail!(
                "unknown mode `{name}`; expected send, send-skill, send-push, send-rest, send-grpc, send-grpc-multiplexed, stream, get, list, walk or list-since"
            ),
        }
    }
}

/// The calls of one connection, one after the other.
pub struct Calls {
    mode: Mode,
    endpoint: AgentEndpoint,
    /// A whole request, or for gRPC its message.
    request: Vec<u8>,
    /// Offset of the message id in `request`.
    id_at: usize,
    rng: fastrand::Rng,
    /// The known tasks, times or webhooks, and the index of the one last requested.
    known: Arc<[String]>,
    requested: usize,
    /// The token of the next page; empty for the first.
    page_token: String,
    /// Every how many tasks an id is kept, and the kept ids.
    keep_every: Option<usize>,
    responses: usize,
    kept: Vec<String>,
}

impl Calls {
    /// Calls to an endpoint. `known` are the tasks or times to request, or the URLs of webhooks; every `keep_every`-th
    /// id of a created task is kept.
    pub fn new(
        mode: Mode,
        endpoint: AgentEndpoint,
        known: Arc<[String]>,
        keep_every: Option<usize>,
    ) -> Result<Self> {
        let needs_known = matches!(mode, Mode::Get | Mode::ListSince | Mode::SendPush);
        ensure!(
            !needs_known || !known.is_empty(),
            "no known task, time or webhook; check the file given with --ids, or --webhooks"
        );
        let id = Uuid::nil().hyphenated();
        let text = TEXT.as_str();
        let skill = if mode == Mode::SendSkill { r#","metadata":{"skillId":"echo"}"# } else { "" };
        let message = format!(
            r#"{{"message":{{"messageId":"{id}","role":"ROLE_USER","parts":[{{"text":"{text}"}}]}}{skill}}}"#
        );
        let request = match mode {
            Mode::Send | Mode::SendSkill => endpoint.request("", "SendMessage", &message),
            Mode::SendRest => endpoint.rest_request("/message:send", &message),
            Mode::SendGrpc | Mode::SendGrpcMultiplexed => {
                grpc::send_message(&endpoint.path, &id.to_string(), text)
            }
            Mode::Stream => endpoint.request("", "SendStreamingMessage", &message),
            Mode::SendPush | Mode::Get | Mode::List | Mode::Walk | Mode::ListSince => Vec::new(),
        };
        let id_at = memmem::find(&request, id.to_string().as_bytes()).unwrap_or_default();
        Ok(Self {
            mode,
            endpoint,
            request,
            id_at,
            rng: fastrand::Rng::new(),
            known,
            requested: 0,
            page_token: String::new(),
            keep_every,
            responses: 0,
            kept: Vec::new(),
        })
    }

    /// The next request; a message has a new unique id.
    pub fn next_request(&mut self) -> &[u8] {
        match self.mode {
            Mode::Send
            | Mode::SendSkill
            | Mode::SendRest
            | Mode::SendGrpc
            | Mode::SendGrpcMultiplexed
            | Mode::Stream => {
                let id = uuid::Builder::from_random_bytes(self.rng.u128(..).to_ne_bytes()).into_uuid();
                id.hyphenated().encode_lower(&mut self.request[self.id_at..][..Hyphenated::LENGTH]);
            }
            Mode::SendPush => {
                let id = uuid::Builder::from_random_bytes(self.rng.u128(..).to_ne_bytes()).into_uuid();
                let (text, token) = (TEXT.as_str(), receiver::TOKEN);
                let url = &self.known[self.rng.usize(..self.known.len())];
                let params = format!(
                    r#"{{"message":{{"messageId":"{id}","role":"ROLE_USER","parts":[{{"text":"{text}"}}]}},"configuration":{{"taskPushNotificationConfig":{{"url":"{url}","token":"{token}"}}}}}}"#
                );
                self.endpoint.write_request(&mut self.request, "", "SendMessage", &params);
            }
            Mode::Get => {
                self.requested = self.rng.usize(..self.known.len());
                let params = format!(r#"{{"id":"{}"}}"#, self.known[self.requested]);
                self.endpoint.write_request(&mut self.request, "", "GetTask", &params);
            }
            Mode::List | Mode::Walk => {
                let params = format!(r#"{{"pageSize":{PAGE},"pageToken":"{}"}}"#, self.page_token);
                self.endpoint.write_request(&mut self.request, "", "ListTasks", &params);
            }
            Mode::ListSince => {
                self.requested = self.rng.usize(..self.known.len());
                let time = &self.known[self.requested];
                let params = format!(
                    r#"{{"pageSize":{PAGE},"status":"TASK_STATE_COMPLETED","statusTimestampAfter":"{time}"}}"#
                );
                self.endpoint.write_request(&mut self.request, "", "ListTasks", &params);
            }
        }
        &self.request
    }

    /// Checks the response to the last request; an error if it does not contain what was requested.
    pub fn check_response(&mut self, response: &Response<'_>) -> Result<()> {
        let body = response.body;
        ensure!(response.status == 200, "status {}: {}", response.status, excerpt(body));
        match self.mode {
            Mode::Send | Mode::SendSkill | Mode::SendPush | Mode::SendRest => {
                check_completed(body, body)?;
                check_echo(body)?;
                self.keep(body)
            }
            Mode::SendGrpc | Mode::SendGrpcMultiplexed => grpc::expect_echo(body, &TEXT),
            Mode::Stream => check_completed(last_event(body), body),
            Mode::Get => {
                check_completed(body, body)?;
                let requested = &self.known[self.requested];
                ensure!(
                    memmem::find(body, requested.as_bytes()).is_some(),
                    "not {requested}: {}",
                    excerpt(body)
                );
                Ok(())
            }
            Mode::List | Mode::ListSince => check_page(body).map(drop),
            Mode::Walk => {
                self.page_token = check_page(body)?;
                Ok(())
            }
        }
    }

    /// The ids that were kept.
    pub fn into_kept(self) -> Vec<String> {
        self.kept
    }

    fn keep(&mut self, body: &[u8]) -> Result<()> {
        self.responses += 1;
        if self.keep_every.is_some_and(|every| self.responses.is_multiple_of(every)) {
            self.kept.push(task_id(body).with_context(|| format!("no task: {}", excerpt(body)))?);
        }
        Ok(())
    }
}

fn check_completed(outcome: &[u8], body: &[u8]) -> Result<()> {
    ensure!(COMPLETED.find(outcome).is_some(), "no completed task: {}", excerpt(body));
    Ok(())
}

fn check_echo(body: &[u8]) -> Result<()> {
    let artifacts = ARTIFACTS.find(body).map_or(&[][..], |at| &body[at..]);
    ensure!(ECHO.find(artifacts).is_some(), "the text is not in an artifact: {}", excerpt(body));
    Ok(())
}

/// The token of the next page. Only the last page may be short.
fn check_page(body: &[u8]) -> Result<String> {
    let next = string_after(body, b"\"nextPageToken\":\"").unwrap_or_default();
    let tasks = STATUS.find_iter(body).count();
    let whole =
        memmem::find(body, b"\"tasks\":[").is_some() && memmem::find(body, b"\"totalSize\":").is_some();
    ensure!(whole, "no page: {}", excerpt(body));
    ensure!(tasks == PAGE || next.is_empty() && tasks < PAGE, "{tasks} tasks on a page of {PAGE}");
    Ok(next)
}

/// The data of the last event of a complete stream; empty if there is none.
fn last_event(body: &[u8]) -> &[u8] {
    memmem::rfind(body, b"data:").map_or(&[], |at| &body[at..])
}
