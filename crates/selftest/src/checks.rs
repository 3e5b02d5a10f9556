//! The checks, each made in every version that the agent's card offers.

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::{
    report::{CheckResult, Report, Verdict},
    server::{Answer, Call, Event, Events, Server},
    version::{SendMode, Task, Version},
};

/// An agent of the demo, which can show everything.
const WRITER: &str = "slow-writer";
/// Texts for it: a task that takes a moment, and one that takes long.
const SHORT: &str = "a selftest sections=3 delay=30ms";
const LONG: &str = "a selftest sections=200 delay=50ms";
/// The error for a task that has ended and is cancelled.
const NOT_CANCELABLE: i64 = -32002;

/// What must be checked for a run to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// All checks: the server was started for them.
    Everything,
    /// What the server's agent can show.
    WhatIsOffered,
}

/// The agent that is used.
struct Agent<'a> {
    server: &'a Server,
    /// The path of its cards, without `/.well-known`.
    base: String,
    short: String,
    long: String,
}

/// An agent in one version.
struct Client<'a> {
    agent: &'a Agent<'a>,
    version: Version,
    /// The path of the endpoint that the card names.
    endpoint: String,
    streams: bool,
    /// Ids of tasks that may be open.
    open: Vec<String>,
}

/// Makes all checks. An error means that there is nothing to check.
pub(crate) async fn all(server: &Server, strictness: Strictness) -> Result<Report> {
    let agent = Agent::find(server).await?;
    let mut report = Report::default();
    for version in agent.versions().await? {
        check_version(&agent, version, &mut report).await;
    }
    if strictness == Strictness::Everything {
        for result in &mut report.checks {
            if let Verdict::NotChecked(reason) = &result.verdict {
                result.verdict = failed(result.check, reason);
            }
        }
    }
    Ok(report)
}

async fn check_version(agent: &Agent<'_>, version: Version, report: &mut Report) {
    let mut add = |check, result: Result<Verdict>| {
        let verdict = result.unwrap_or_else(|error| failed(check, &format!("{error:#}")));
        report.checks.push(CheckResult { version: version.name(), check, verdict });
    };
    let mut client = match agent.client(version).await {
        Ok((client, verdict)) => {
            add("card", Ok(verdict));
            client
        }
        Err(error) => return add("card", Err(error)),
    };
    add("send", client.check_send().await);
    add("stream", client.check_stream().await);
    add("cancel", client.check_cancel().await);
    add("resume", client.check_resume().await);
    let left_open = client.cancel_open().await;
    report.left_open.extend(left_open);
}

/// A failed check; `got` is what came instead of what each check expects.
fn failed(check: &str, got: &str) -> Verdict {
    let expected = match check {
        "card" => "a card with a name, a version, skills and an endpoint",
        "send" => "a task in a known state, or a message",
        "stream" => "events up to the end of the task, or until it waits for its client",
        "cancel" => "a canceled task, or error -32002 for a task that has ended",
        _ => "exactly the events after the last one that was read",
    };
    Verdict::Failed { expected: expected.into(), got: got.into() }
}

/// Why a call that was refused shows nothing, if that is not the server's fault.
fn refusal(answer: &Answer) -> Option<Verdict> {
    match answer {
        Answer::Error { status: 401 | 403, .. } => {
            Some(Verdict::NotChecked("calls of this agent need a credential".into()))
        }
        Answer::Error { status: 503, text, .. } => {
            Some(Verdict::NotChecked(format!("the agent takes no calls: {text}")))
        }
        _ => None,
    }
}

impl<'a> Agent<'a> {
    /// The agent of the demo if the server has it, else its default agent.
    async fn find(server: &'a Server) -> Result<Self> {
        let list = server.document("/.well-known/agents.json", None).await?.unwrap_or_default();
        let ids = list["agents"].as_array().into_iter().flatten().filter_map(|agent| agent["id"].as_str());
        if ids.into_iter().any(|id| id == WRITER) {
            let base = format!("/a2a/{WRITER}");
            return Ok(Self { server, base, short: SHORT.into(), long: LONG.into() });
        }
        let agent = Self { server, base: String::new(), short: String::new(), long: String::new() };
        let card = agent.any_card().await?;
        let text = card["skills"][0]["examples"][0].as_str().unwrap_or("hello").to_owned();
        Ok(Self { short: text.clone(), long: text, ..agent })
    }

    async fn versions(&self) -> Result<Vec<Version>> {
        let versions = Version::offered_by(&self.any_card().await?);
        if versions.is_empty() {
            bail!("the card offers no version of the protocol over JSON-RPC that the selftest knows");
        }
        Ok(versions)
    }

    /// The card in the newest form that the server has.
    async fn any_card(&self) -> Result<Value> {
        for version in [Version::V1, Version::Draft] {
            if let Some(card) = self.server.document(&self.card_path(version), None).await? {
                return Ok(card);
            }
        }
        bail!("there is no card at {}", self.card_path(Version::V1))
    }

    fn card_path(&self, version: Version) -> String {
        format!("{}/.well-known/{}", self.base, version.card_file())
    }

    /// Checks the card of a version.
    async fn client(&'a self, version: Version) -> Result<(Client<'a>, Verdict)> {
        let path = self.card_path(version);
        let card = self.server.document(&path, version.header()).await?;
        let card = card.with_context(|| format!("no card at {path}"))?;
        let name = card["name"].as_str().with_context(|| format!("a card without a name: {card}"))?;
        let skills = card["skills"].as_array().with_context(|| format!("a card without skills: {card}"))?;
        card["version"].as_str().with_context(|| format!("a card without a version: {card}"))?;
        let url = match version {
            Version::V1 => {
                card["supportedInterfaces"].as_array().into_iter().flatten().find_map(|interface| {
                    let fits =
                        interface["protocolBinding"] == "JSONRPC" && interface["protocolVersion"] == "1.0";
                    interface["url"].as_str().filter(|_| fits)
                })
            }
            Version::Draft | Version::V03 => card["url"].as_str(),
        };
        let url = url.with_context(|| format!("a card without an endpoint: {card}"))?;
        let streams = card["capabilities"]["streaming"] == true;
        let verdict = Verdict::Passed(format!("the agent {name} with {} skill(s) at {url}", skills.len()));
        Ok((Client { agent: self, version, endpoint: path_of(url), streams, open: Vec::new() }, verdict))
    }
}

/// The path of a URL: the endpoint is called at the server that is checked, also if it is published elsewhere.
fn path_of(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').map_or("/".to_owned(), |start| rest[start..].to_owned())
}

impl Client<'_> {
    async fn call(&mut self, method: &'static str, params: Value) -> Result<Answer> {
        let call = Call { method, params };
        let answer = self.agent.server.call(&self.endpoint, self.version.header(), call).await?;
        if let Answer::Result(result) = &answer {
            self.note(result);
        }
        Ok(answer)
    }

    async fn open_stream(
        &mut self,
        method: &'static str,
        params: Value,
        after: Option<u64>,
    ) -> Result<std::result::Result<Events, Answer>> {
        let call = Call { method, params };
        self.agent.server.stream(&self.endpoint, self.version.header(), call, after).await
    }

    /// Remembers whether a task is open.
    fn note(&mut self, result: &Value) -> Option<Task> {
        let task = self.version.task(result)?;
        self.open.retain(|id| *id != task.id);
        if !task.is_over() {
            self.open.push(task.id.clone());
        }
        Some(task)
    }

    async fn next(&mut self, events: &mut Events) -> Result<Option<(Event, Option<Task>)>> {
        let Some(event) = events.next().await? else { return Ok(None) };
        let task = self.note(&event.result);
        Ok(Some((event, task)))
    }

    async fn check_send(&mut self) -> Result<Verdict> {
        let (method, params) = self.version.send(&self.agent.short, SendMode::Wait);
        let answer = self.call(method, params).await?;
        if let Some(verdict) = refusal(&answer) {
            return Ok(verdict);
        }
        match answer {
            Answer::Error { text, .. } => Ok(failed("send", &text)),
            Answer::Result(result) => Ok(match self.version.task(&result) {
                Some(task) if task.is_settled() => Verdict::Passed(format!("the task is {}", task.state)),
                _ if self.version.is_message(&result) => Verdict::Passed("a message".into()),
                _ => failed("send", &result.to_string()),
            }),
        }
    }

    async fn check_stream(&mut self) -> Result<Verdict> {
        if !self.streams {
            return Ok(Verdict::NotChecked("the card offers no streaming".into()));
        }
        let (method, params) = self.version.send(&self.agent.short, SendMode::Stream);
        let mut events = match self.open_stream(method, params, None).await? {
            Ok(events) => events,
            Err(answer) => {
                return Ok(refusal(&answer).unwrap_or_else(|| failed("stream", &answer.text())));
            }
        };
        let (mut count, mut last, mut is_message) = (0, None, false);
        while let Some((event, task)) = self.next(&mut events).await? {
            count += 1;
            is_message = self.version.is_message(&event.result);
            last = task.or(last);
        }
        Ok(match last {
            Some(task) if task.is_settled() => {
                Verdict::Passed(format!("{count} event(s), the last state is {}", task.state))
            }
            None if is_message => Verdict::Passed("a message".into()),
            last => failed("stream", &format!("{count} event(s), the last state is {last:?}")),
        })
    }

    async fn check_cancel(&mut self) -> Result<Verdict> {
        let (method, params) = self.version.send(&self.agent.long, SendMode::Return);
        let answer = self.call(method, params).await?;
        if let Some(verdict) = refusal(&answer) {
            return Ok(verdict);
        }
        let task = match answer {
            Answer::Result(result) => match self.version.task(&result) {
                Some(task) => task,
                None => {
                    return Ok(Verdict::NotChecked("the agent answers with messages, not with tasks".into()));
                }
            },
            Answer::Error { text, .. } => return Ok(failed("cancel", &text)),
        };
        match self.call(self.version.cancel(), json!({"id": task.id})).await? {
            Answer::Error { code: NOT_CANCELABLE, .. } => match self.get(&task.id).await? {
                task if task.is_over() => {
                    Ok(Verdict::Passed(format!("refused, because the task is {} already", task.state)))
                }
                task => Ok(failed("cancel", &format!("error -32002 for a task that is {}", task.state))),
            },
            Answer::Error { text, .. } => Ok(failed("cancel", &text)),
            Answer::Result(_) => match self.get(&task.id).await? {
                task if task.state.starts_with("cancel") => {
                    Ok(Verdict::Passed(format!("the task is {}", task.state)))
                }
                task => {
                    Ok(failed("cancel", &format!("a task that is {} after its cancellation", task.state)))
                }
            },
        }
    }

    async fn get(&mut self, id: &str) -> Result<Task> {
        match self.call(self.version.get(), json!({"id": id})).await? {
            Answer::Result(result) => {
                self.version.task(&result).with_context(|| format!("no task: {result}"))
            }
            Answer::Error { text, .. } => bail!("{text} for a task that exists"),
        }
    }

    /// Reads a part of a stream, breaks the connection, and asks for the rest.
    async fn check_resume(&mut self) -> Result<Verdict> {
        if !self.streams {
            return Ok(Verdict::NotChecked("the card offers no streaming".into()));
        }
        let (method, params) = self.version.send(&self.agent.short, SendMode::Stream);
        let mut events = match self.open_stream(method, params, None).await? {
            Ok(events) => events,
            Err(answer) => {
                return Ok(refusal(&answer).unwrap_or_else(|| failed("resume", &answer.text())));
            }
        };
        let (mut read, mut id) = (None, None);
        // The first event names the task; a second one is enough for a position in the middle.
        for _ in 0..2 {
            let Some((event, task)) = self.next(&mut events).await? else { break };
            read = event.id.or(read);
            id = task.map(|task| task.id).or(id);
        }
        drop(events);
        let (Some(read), Some(id)) = (read, id) else {
            let reason = "the events have no ids, or the agent answers with messages";
            return Ok(Verdict::NotChecked(reason.into()));
        };
        let params = json!({"id": id});
        let mut events = match self.open_stream(self.version.resume(), params, Some(read)).await? {
            Ok(events) => events,
            Err(answer) => {
                let has_ended = self.get(&id).await?.is_over();
                let reason =
                    || Verdict::NotChecked("the task had ended before its stream was resumed".into());
                return Ok(if has_ended { reason() } else { failed("resume", &answer.text()) });
            }
        };
        let (mut ids, mut last) = (Vec::new(), None);
        while let Some((event, task)) = self.next(&mut events).await? {
            // The first event of 1.0 is the task as it was.
            ids.extend(event.id.filter(|id| *id > read));
            last = task.or(last);
        }
        let is_complete = ids.iter().copied().eq((read + 1..).take(ids.len()));
        Ok(match last {
            Some(task) if is_complete && task.is_settled() => {
                let state = task.state;
                Verdict::Passed(format!(
                    "{} event(s) after event {read}, the last state is {state}",
                    ids.len()
                ))
            }
            last => failed(
                "resume",
                &format!("the events {ids:?} after event {read}, the last state is {last:?}"),
            ),
        })
    }

    /// Cancels what is still open, and returns the ids of tasks that stay open.
    async fn cancel_open(&mut self) -> Vec<String> {
        for id in self.open.clone() {
            // The task may have ended meanwhile; both answers update the list.
            let _ = self.call(self.version.cancel(), json!({"id": id})).await;
            let _ = self.call(self.version.get(), json!({"id": id})).await;
        }
        self.open.clone()
    }
}
