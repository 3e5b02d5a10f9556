//! Where an agent is asked, and what is said there: calls, messages, and what is read off the answers.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{
    Checked, Trouble,
    http::{Answer, Event, Events, Headers, Server},
    json::{Json, quote},
    wrong,
};

/// Where an agent takes calls, and the skill that is asked for.
#[derive(Clone, Debug)]
pub(super) struct Door {
    pub(super) server: Server,
    pub(super) path: String,
    pub(super) skill: &'static str,
    /// Whether it has streams.
    pub(super) streams: bool,
}

impl Door {
    /// A door that has streams.
    pub(super) fn new(server: &Server, path: impl Into<String>, skill: &'static str) -> Self {
        Self { server: server.clone(), path: path.into(), skill, streams: true }
    }

    /// The server, if streams can be asked for here.
    pub(super) fn streaming(&self) -> Result<&Server, Trouble> {
        if self.streams {
            Ok(&self.server)
        } else {
            Err(Trouble::Absent("streaming of the default agent".into()))
        }
    }

    /// The same door and another skill.
    pub(super) fn by(&self, skill: &'static str) -> Self {
        Self { skill, ..self.clone() }
    }

    /// Posts a body.
    pub(super) async fn post(&self, body: &str) -> Result<Answer, Trouble> {
        self.server.post(&self.path, body).await
    }

    /// Calls a method.
    pub(super) async fn call(&self, method: &str, params: &str) -> Result<Answer, Trouble> {
        self.post(&request(method, params)).await
    }

    /// Calls a method that is answered with events.
    pub(super) async fn stream(&self, method: &str, params: &str) -> Result<Events, Trouble> {
        self.streaming()?.stream(&self.path, &[], &request(method, params)).await
    }

    /// The same with headers.
    pub(super) async fn stream_with(
        &self,
        headers: Headers<'_>,
        method: &str,
        params: &str,
    ) -> Result<Events, Trouble> {
        self.streaming()?.stream(&self.path, headers, &request(method, params)).await
    }

    /// The parameters of a draft's send of a message to a task; `more` are further members.
    pub(super) fn params(&self, task: &str, message: &str, more: &str) -> String {
        let (task, skill) = (quote(task), quote(self.skill));
        format!(r#"{{"id":{task},"skill":{skill},"message":{message}{more}}}"#)
    }

    /// Sends a message to a task in the draft's way.
    pub(super) async fn send(&self, task: &str, message: &str, more: &str) -> Result<Answer, Trouble> {
        self.call("tasks/send", &self.params(task, message, more)).await
    }

    /// Sends a text in a new task; gives the task's id too.
    pub(super) async fn say(&self, said: &str) -> Result<(String, Answer), Trouble> {
        let task = fresh();
        let answer = self.send(&task, &text(said), "").await?;
        Ok((task, answer))
    }

    /// Sends a text in a new task without waiting for what comes of it.
    pub(super) async fn begin(&self, said: &str) -> Result<(String, Answer), Trouble> {
        let task = fresh();
        let answer = self.send(&task, &text(said), r#","async":true"#).await?;
        Ok((task, answer))
    }

    /// Every event of a new task with a text.
    pub(super) async fn events(&self, said: &str) -> Result<(String, Vec<Event>), Trouble> {
        let task = fresh();
        let params = self.params(&task, &text(said), "");
        let events = self.stream("tasks/sendSubscribe", &params).await?.all().await?;
        Ok((task, events))
    }

    pub(super) async fn get(&self, task: &str) -> Result<Answer, Trouble> {
        self.call("tasks/get", &format!(r#"{{"id":{}}}"#, quote(task))).await
    }

    pub(super) async fn cancel(&self, task: &str) -> Result<Answer, Trouble> {
        self.call("tasks/cancel", &format!(r#"{{"id":{}}}"#, quote(task))).await
    }

    /// Sends parts as a message of 0.3; `more` are further parameters.
    pub(super) async fn message(&self, parts: &str, more: &str) -> Result<Answer, Trouble> {
        self.call("message/send", &self.message_params(parts, "", more)).await
    }

    /// The parameters of a send of 0.3; `within` are further members of the message.
    pub(super) fn message_params(&self, parts: &str, within: &str, more: &str) -> String {
        let (id, skill) = (quote(&fresh()), quote(self.skill));
        format!(
            r#"{{"message":{{"kind":"message","messageId":{id},"role":"user","parts":{parts}{within}}},"skill":{skill}{more}}}"#
        )
    }

    /// Asks for a task until it is as expected.
    pub(super) async fn until(
        &self,
        task: &str,
        expected: &str,
        holds: impl Fn(&Answer) -> bool,
    ) -> Result<Answer, Trouble> {
        const PATIENCE: Duration = Duration::from_secs(10);
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let answer = self.get(task).await?;
            if holds(&answer) {
                return Ok(answer);
            }
            if tokio::time::Instant::now() > deadline {
                return Err(wrong(format!("{expected} within {} seconds", PATIENCE.as_secs()), answer));
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }

    /// Asks for a task until it is in this state.
    pub(super) async fn until_state(&self, task: &str, state: &str) -> Result<Answer, Trouble> {
        self.until(task, &format!("state {state}"), |answer| answer.is("result.status.state", state).is_ok())
            .await
    }
}

/// A JSON-RPC request.
pub(super) fn request(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":{},"params":{params}}}"#, quote(method))
}

/// A message of the draft that is one text.
pub(super) fn text(text: &str) -> String {
    format!(r#"{{"role":"user","parts":[{{"type":"text","text":{}}}]}}"#, quote(text))
}

/// Parts of 0.3 that are one text.
pub(super) fn text_part(text: &str) -> String {
    format!(r#"[{{"kind":"text","text":{}}}]"#, quote(text))
}

/// A name nobody has used.
pub(super) fn fresh() -> String {
    static RUN: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one("run"));
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("selftest-{:x}-{}", *RUN, NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The states that events tell, in order, each as often as it is told.
pub(super) fn states(events: &[Event]) -> Vec<&str> {
    events.iter().filter_map(|event| event.data.text("result.status.state").ok()).collect()
}

/// All of it came as events: numbered, in order, the last one final.
pub(super) fn ends_well(events: &[Event]) -> Checked {
    let all = || Json::List(events.iter().map(|event| event.data.clone()).collect());
    let Some((last, before)) = events.split_last() else { return Err(wrong("events", "none")) };
    all().must(last.data.is("result.final", true).is_ok(), "the last event to be final")?;
    let early = before.iter().any(|event| event.data.is("result.final", true).is_ok());
    all().must(!early, "only the last event to be final")
}
