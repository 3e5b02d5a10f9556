//! One sequential client of one agent: makes a call, gets the expected result from the model, compares.
//!
//! It is sequential because then every call has exactly one correct result; a task that returned immediately is
//! followed to its end before the next call. It stops at the first divergence, because the model cannot predict
//! anything after one. `choices.rs` decides which calls are made.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::sleep;

use super::reference::{Event, Filter, ListPosition, OutgoingMessage, Reference, Verdict};
use super::wire;
use crate::random::Random;
use crate::rpc::{Caller, Failure, Frame, Frames, Reply};

/// Number of calls shown with a divergence.
const CALLS_SHOWN: usize = 20;
/// Time limit for a task that was not waited for to settle.
const SETTLE_LIMIT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(1);

pub(crate) struct Driver {
    pub(crate) agent: &'static str,
    pub(crate) random: Random,
    pub(crate) reference: Reference,
    pub(crate) caller: Caller,
    /// The last calls, as text.
    pub(crate) calls: VecDeque<String>,
    /// Number of calls made.
    pub(crate) done: u64,
    /// Messages that may be sent again.
    pub(crate) sent: Vec<OutgoingMessage>,
    /// A list that is read page by page between other calls.
    pub(crate) walk: Option<Walk>,
    /// Tasks that stay open until a client acts.
    pub(crate) open: Vec<usize>,
    pub(crate) words: u64,
}

/// A partly read list.
#[derive(Clone)]
pub(crate) struct Walk {
    pub(crate) filter: Filter,
    pub(crate) size: usize,
    pub(crate) token: String,
    pub(crate) after: ListPosition,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Wait,
    Immediate,
    Stream,
}

/// A difference between the server and the model.
pub(crate) struct Divergence(pub(crate) String);

pub(crate) type Outcome = Result<(), Divergence>;

impl From<Failure> for Divergence {
    fn from(failure: Failure) -> Self {
        Self(format!("expected a result, got {failure}"))
    }
}

impl Driver {
    pub(crate) fn new(agent: &'static str, random: Random, address: SocketAddr) -> Self {
        Self {
            agent,
            random,
            reference: Reference::new(agent),
            caller: Caller::new(address),
            calls: VecDeque::new(),
            done: 0,
            sent: Vec::new(),
            walk: None,
            open: Vec::new(),
            words: 0,
        }
    }

    /// Sends a message and compares the response and the task.
    pub(crate) async fn send(
        &mut self,
        outgoing: OutgoingMessage,
        mode: Mode,
        history: Option<usize>,
    ) -> Outcome {
        let verdict = self.reference.verdict_for(&outgoing);
        let header = outgoing.key.clone().filter(|key| *key != outgoing.id);
        let headers: Vec<_> = header.iter().map(|key| ("Idempotency-Key", key.as_str())).collect();
        let mut params = json!({"message": outgoing.message});
        params["configuration"] = json!({"returnImmediately": mode == Mode::Immediate});
        if let Some(history) = history {
            params["configuration"]["historyLength"] = history.into();
        }
        self.note(format!("{mode:?} {} key {header:?}, {verdict:?} expected", params));
        let method = if mode == Mode::Stream { "SendStreamingMessage" } else { "SendMessage" };
        if mode == Mode::Stream && matches!(verdict, Verdict::Accepted | Verdict::Replay(..)) {
            let frames = self.caller.stream_with(&headers, self.agent, method, params).await;
            return self.read_stream(&outgoing, verdict, frames?, history).await;
        }
        let reply = self.caller.call_with(&headers, self.agent, method, params).await;
        match verdict {
            Verdict::Reused => expect_error(reply, -32602, "MESSAGE_ID_REUSED"),
            Verdict::TooLate => expect_error(reply, -32004, "UNSUPPORTED_OPERATION"),
            Verdict::Accepted => {
                let reply = reply?;
                expect(!reply.replayed, || "a new message is flagged as a replay".to_owned())?;
                let (task, number) = self.apply_message(&outgoing, mode, &reply.result["task"])?;
                if mode == Mode::Wait {
                    let events = self.reference.tasks[task].log.len();
                    return self.compare(task, events, history, true, &reply.result["task"]);
                }
                self.compare_early(task, number, history, &reply.result["task"])?;
                self.settle(task).await
            }
            Verdict::Replay(task, number) => {
                let reply = reply?;
                expect(reply.replayed, || "a replay is not flagged".to_owned())?;
                let shown = &reply.result["task"];
                let known = &self.reference.tasks[task];
                expect(shown["id"] == known.id.as_str(), || format!("task {} expected: {shown}", known.id))?;
                // A turn that was followed by another may be shown as of its own end or as of now.
                let is_last = known.log[number..].iter().filter(|event| event.settles()).count() <= 1;
                if mode == Mode::Wait && is_last {
                    return self.compare(task, known.log.len(), history, true, shown);
                }
                Ok(())
            }
        }
    }

    pub(crate) async fn get(&mut self, task: usize, history: Option<usize>) -> Outcome {
        let mut params = json!({"id": self.reference.tasks[task].id});
        if let Some(history) = history {
            params["historyLength"] = history.into();
        }
        self.note(format!("GetTask {params}"));
        let shown = self.caller.call(self.agent, "GetTask", params).await?;
        self.compare(task, self.reference.tasks[task].log.len(), history, true, &shown)
    }

    pub(crate) async fn cancel(&mut self, task: usize) -> Outcome {
        let params = json!({"id": self.reference.tasks[task].id});
        self.note(format!("CancelTask {params}"));
        let reply = self.caller.call_with(&[], self.agent, "CancelTask", params).await;
        if self.reference.tasks[task].state().is_terminal() {
            return expect_error(reply, -32002, "TASK_NOT_CANCELABLE");
        }
        self.reference.cancel(task);
        let shown = reply?.result;
        self.compare(task, self.reference.tasks[task].log.len(), None, true, &shown)
    }

    /// Subscribes to a task, from the event number in `last` or from now on, and reads the events that are
    /// available.
    pub(crate) async fn subscribe(&mut self, task: usize, last: Option<&str>) -> Outcome {
        let known = &self.reference.tasks[task];
        let (newest, over) = (known.log.len(), known.state().is_terminal());
        let params = json!({"id": known.id});
        self.note(format!("SubscribeToTask {params} Last-Event-ID {last:?}, at {newest}, over: {over}"));
        let headers: Vec<_> = last.iter().map(|last| ("Last-Event-ID", *last)).collect();
        let frames = self.caller.stream_with(&headers, self.agent, "SubscribeToTask", params).await;
        let from = last.map(|last| last.parse::<usize>().ok().filter(|last| *last <= newest));
        let missed = from.flatten().is_some_and(|from| from < newest);
        if over && !missed {
            let reply = frames.map(|_| Reply { result: json!("a stream"), replayed: false });
            return expect_error(reply, -32004, "UNSUPPORTED_OPERATION");
        }
        let mut frames = frames?;
        let first = next(&mut frames).await?;
        let shown = &first.result["task"];
        match from {
            Some(Some(from)) => {
                expect(first.seq == Some(from as u64), || {
                    format!("expected the first number {from}: {:?}", first.seq)
                })?;
                let bare = wire::task(shown);
                let known = &self.reference.tasks[task];
                let empty = bare["history"] == json!([]) && bare["artifacts"] == json!([]);
                let same = bare["id"] == known.id.as_str() && bare["context"] == known.context.as_str();
                expect(empty && same, || format!("expected a task with its status only: {shown}"))?;
                let then = &known.shown(from.max(1), Some(0), false)["status"];
                let as_of =
                    ["state", "text", "reason"].iter().all(|member| bare["status"][member] == then[member]);
                expect(as_of, || format!("expected the status as of {from}, {then}: {shown}"))?;
                self.follow(task, from, newest, &mut frames).await?;
            }
            gap => {
                expect(first.seq == Some(newest as u64), || format!("number {newest}: {:?}", first.seq))?;
                self.compare(task, newest, None, true, shown)?;
                let flagged = shown["metadata"]["gap"] == true;
                expect(flagged == gap.is_some(), || format!("the gap flag is {flagged}"))?;
            }
        }
        if over { end(&mut frames).await } else { Ok(()) }
    }

    /// Reads a page of a list, the first or the next one, and keeps the position when there are more.
    pub(crate) async fn page(&mut self, filter: Filter, size: usize, walk: Option<Walk>) -> Outcome {
        let (history, artifacts) = (self.random.within(0..=3), self.random.within(0..=1) == 0);
        let mut params = filter_params(&filter);
        params["pageSize"] = size.into();
        params["includeArtifacts"] = artifacts.into();
        if history < 3 {
            params["historyLength"] = history.into();
        }
        if let Some(walk) = &walk {
            params["pageToken"] = walk.token.as_str().into();
        }
        self.note(format!("ListTasks {params}"));
        let page = self.caller.call(self.agent, "ListTasks", params).await?;
        let after = walk.as_ref().map(|walk| &walk.after);
        let (total, mut rest) = self.reference.list(&filter, after, size + 1);
        let more = rest.len() > size;
        rest.truncate(size);
        let history = (history < 3).then(|| usize::try_from(history).unwrap_or_default());
        let shown: Vec<Value> = page["tasks"].as_array().into_iter().flatten().map(wire::task).collect();
        let expected: Vec<Value> = rest
            .iter()
            .map(|position| &self.reference.tasks[position.1.0])
            .map(|task| task.shown(task.log.len(), history, artifacts))
            .collect();
        for (expected, shown) in expected.iter().zip(&shown) {
            expect_equal(expected, shown)?;
        }
        expect_equal(&json!(expected.len()), &json!(shown.len()))?;
        let sizes = json!([page["totalSize"], page["pageSize"]]);
        expect_equal(&json!([total, size]), &sizes)?;
        let token = page["nextPageToken"].as_str().unwrap_or_default().to_owned();
        expect(token.is_empty() != more, || format!("{} after a page, more: {more}", page["nextPageToken"]))?;
        self.walk = rest.pop().filter(|_| more).map(|after| Walk { filter, size, token, after });
        Ok(())
    }

    /// Makes a call that must be refused.
    pub(crate) async fn refused(
        &mut self,
        agent: &str,
        method: &str,
        params: Value,
        error: (i64, &str),
    ) -> Outcome {
        self.refused_with(&[], agent, method, params, error).await
    }

    /// Makes a call with additional headers that must be refused.
    pub(crate) async fn refused_with(
        &mut self,
        headers: &[(&str, &str)],
        agent: &str,
        method: &str,
        params: Value,
        (code, reason): (i64, &str),
    ) -> Outcome {
        self.note(format!("{agent} {method} {params} {headers:?}, {reason} expected"));
        let reply = self.caller.call_with(headers, agent, method, params).await;
        expect_error(reply, code, reason)
    }

    fn note(&mut self, call: String) {
        self.done += 1;
        if self.calls.len() == CALLS_SHOWN {
            self.calls.pop_front();
        }
        self.calls.push_back(call);
    }

    /// Applies a message to the model with the ids the server has assigned.
    fn apply_message(
        &mut self,
        outgoing: &OutgoingMessage,
        mode: Mode,
        shown: &Value,
    ) -> Result<(usize, usize), Divergence> {
        let name = |name: &str| shown[name].as_str().unwrap_or_default();
        let (id, context) = (name("id"), name("contextId"));
        if outgoing.task.is_none() {
            let known = self.reference.tasks.iter().rev().take(1_000).any(|task| task.id == id);
            expect(!known && !id.is_empty(), || format!("expected a new task: {shown}"))?;
            let wanted = outgoing.message["contextId"].as_str();
            expect(wanted.is_none_or(|wanted| wanted == context), || {
                format!("expected the requested context: {shown}")
            })?;
        }
        let (task, number) = self.reference.apply_message(outgoing, mode == Mode::Immediate, id, context);
        self.sent.push(outgoing.clone());
        let open = !self.reference.tasks[task].state().is_terminal();
        self.open.retain(|known| *known != task);
        self.open.extend(open.then_some(task));
        Ok((task, number))
    }

    /// Reads the stream of a message to its end.
    async fn read_stream(
        &mut self,
        outgoing: &OutgoingMessage,
        verdict: Verdict,
        mut frames: Frames,
        history: Option<usize>,
    ) -> Outcome {
        let replayed = matches!(verdict, Verdict::Replay(..));
        expect(frames.replayed == replayed, || format!("flagged as a replay: {}", frames.replayed))?;
        let first = next(&mut frames).await?;
        let (task, number) = match verdict {
            Verdict::Replay(task, number) => (task, number),
            _ => self.apply_message(outgoing, Mode::Stream, &first.result["task"])?,
        };
        expect(first.seq == Some(number as u64), || format!("number {number} first: {:?}", first.seq))?;
        self.compare(task, number, history, true, &first.result["task"])?;
        let log = &self.reference.tasks[task].log;
        let Some(turn) = log[number..].iter().position(Event::settles) else {
            // A held task does not end by itself.
            return self.settle(task).await;
        };
        let turn = number + turn + 1;
        self.follow(task, number, turn, &mut frames).await?;
        // A turn that was followed by another may be shown to its own end or to the task's.
        if turn == self.reference.tasks[task].log.len() { end(&mut frames).await } else { Ok(()) }
    }

    /// Reads the events after one number up to another.
    async fn follow(&mut self, task: usize, from: usize, to: usize, frames: &mut Frames) -> Outcome {
        for number in from + 1..=to {
            let frame = next(frames).await?;
            expect(frame.seq == Some(number as u64), || format!("number {number}: {:?}", frame.seq))?;
            let shown = wire::event(&frame.result);
            self.learn_timestamp(task, number, &shown["at"])?;
            expect_equal(&self.reference.tasks[task].log[number - 1].shown(), &shown)?;
        }
        Ok(())
    }

    fn compare(
        &mut self,
        task: usize,
        events: usize,
        history: Option<usize>,
        artifacts: bool,
        shown: &Value,
    ) -> Outcome {
        let shown = wire::task(shown);
        let status = self.reference.tasks[task].status_among(events);
        self.learn_timestamp(task, status, &shown["status"]["at"])?;
        expect_equal(&self.reference.tasks[task].shown(events, history, artifacts), &shown)
    }

    /// A task that was returned immediately is shown after its own message or any later event.
    fn compare_early(&self, task: usize, number: usize, history: Option<usize>, shown: &Value) -> Outcome {
        let events = self.reference.tasks[task].log.len();
        let fits = |events: usize| self.compare_without_time(task, events, history, shown).is_ok();
        if (number..events).any(fits) {
            Ok(())
        } else {
            self.compare_without_time(task, events, history, shown)
        }
    }

    /// Reads a task until it has settled as expected; its timestamp is compared only then.
    async fn settle(&mut self, task: usize) -> Outcome {
        let events = self.reference.tasks[task].log.len();
        let started = Instant::now();
        loop {
            let params = json!({"id": self.reference.tasks[task].id});
            let shown = self.caller.call(self.agent, "GetTask", params).await?;
            let rests = self.compare_without_time(task, events, None, &shown).is_ok();
            if rests || started.elapsed() > SETTLE_LIMIT {
                return self.compare(task, events, None, true, &shown);
            }
            sleep(POLL).await;
        }
    }

    fn compare_without_time(
        &self,
        task: usize,
        events: usize,
        history: Option<usize>,
        shown: &Value,
    ) -> Outcome {
        let mut shown = wire::task(shown);
        let mut expected = self.reference.tasks[task].shown(events, history, true);
        (shown["status"]["at"], expected["status"]["at"]) = (Value::Null, Value::Null);
        expect_equal(&expected, &shown)
    }

    fn learn_timestamp(&mut self, task: usize, number: usize, shown: &Value) -> Outcome {
        let Some(shown) = shown.as_str() else { return Ok(()) };
        let known = self.reference.learn_timestamp(task, number, shown);
        known.map_err(|what| Divergence(format!("task {task} has the timestamp {shown}: {what}")))
    }
}

pub(crate) fn filter_params(filter: &Filter) -> Value {
    let mut params = json!({});
    if let Some(context) = &filter.context {
        params["contextId"] = context.as_str().into();
    }
    if let Some(state) = filter.state {
        params["status"] = state.name().into();
    }
    if let Some(since) = &filter.since {
        params["statusTimestampAfter"] = since.as_str().into();
    }
    params
}

async fn next(frames: &mut Frames) -> Result<Frame, Divergence> {
    let frame = frames.next().await?;
    frame.ok_or_else(|| Divergence("the stream ended before the expected event".to_owned()))
}

async fn end(frames: &mut Frames) -> Outcome {
    match frames.next().await? {
        None => Ok(()),
        Some(frame) => {
            Err(Divergence(format!("the stream continued after its expected end: {}", frame.result)))
        }
    }
}

fn expect(holds: bool, what: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(Divergence(what())) }
}

fn expect_error(reply: Result<Reply, Failure>, code: i64, reason: &str) -> Outcome {
    match reply {
        Err(Failure::Error { code: given, reason: why, .. }) if given == code && why == reason => Ok(()),
        Err(failure) => Err(Divergence(format!("expected {code} {reason}, got {failure}"))),
        Ok(reply) => Err(Divergence(format!("expected {code} {reason}, got {}", reply.result))),
    }
}

fn expect_equal(expected: &Value, shown: &Value) -> Outcome {
    if expected == shown { Ok(()) } else { Err(Divergence(format!("expected {expected}\n     got {shown}"))) }
}
