//! Test clients for the three protocol generations, with a generation-independent view of their results.

use std::sync::atomic::{AtomicU32, Ordering};

use protocol::{
    Artifact, Content, Dialect, ErrorKind, Event, Json, Message, OperationKind, Part, Reply, Role, Task,
    TaskState,
    json::read::{Node, Path},
};

use super::{Answer, Server, Wire, request};

/// A protocol generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    Draft,
    V03,
    V1,
}

/// A message that a client sends.
#[derive(Clone, Copy)]
pub(crate) struct UserMessage<'a> {
    pub(crate) text: &'a str,
    /// The task it continues; `None` for a new task.
    pub(crate) task: Option<&'a str>,
    pub(crate) context: Option<&'a str>,
    /// Whether to wait for the outcome.
    pub(crate) wait: bool,
}

impl<'a> UserMessage<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, task: None, context: None, wait: true }
    }

    pub(crate) fn to_task(self, task: &'a str) -> Self {
        Self { task: Some(task), ..self }
    }

    pub(crate) fn in_context(self, context: &'a str) -> Self {
        Self { context: Some(context), ..self }
    }

    /// Do not wait for the outcome.
    pub(crate) fn without_waiting(self) -> Self {
        Self { wait: false, ..self }
    }
}

impl Generation {
    pub(crate) const ALL: [Self; 3] = [Self::Draft, Self::V03, Self::V1];

    /// The value of `A2A-Version`.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::Draft => "0.1",
            Self::V03 => "0.3",
            Self::V1 => "1.0",
        }
    }

    /// Its name in `A2AD-Dialect`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::V03 => "0.3",
            Self::V1 => "1.0",
        }
    }

    pub(crate) fn dialect(self) -> Dialect {
        match self {
            Self::Draft => Dialect::Draft,
            Self::V03 => Dialect::V03,
            Self::V1 => Dialect::V1,
        }
    }

    /// Its method name for an operation.
    pub(crate) fn method(self, kind: OperationKind) -> &'static str {
        let [send, stream, get, cancel, subscribe] = match self {
            Self::Draft => {
                ["tasks/send", "tasks/sendSubscribe", "tasks/get", "tasks/cancel", "tasks/resubscribe"]
            }
            Self::V03 => ["message/send", "message/stream", "tasks/get", "tasks/cancel", "tasks/resubscribe"],
            Self::V1 => ["SendMessage", "SendStreamingMessage", "GetTask", "CancelTask", "SubscribeToTask"],
        };
        match kind {
            OperationKind::SendMessage => send,
            OperationKind::SendStreamingMessage => stream,
            OperationKind::GetTask => get,
            OperationKind::CancelTask => cancel,
            OperationKind::SubscribeToTask => subscribe,
            other => panic!("{other:?} is not available in every generation"),
        }
    }

    /// The parameters of a send. Clients of the draft choose the task ids, and get a history only if they request one.
    pub(crate) fn send_params(self, message: UserMessage<'_>) -> String {
        static JOBS: AtomicU32 = AtomicU32::new(1);
        let UserMessage { text, task, context, wait } = message;
        let member = |name: &str, value: Option<&str>| {
            value.map_or(String::new(), |value| format!(r#","{name}":"{value}""#))
        };
        match self {
            Self::Draft => {
                let new = format!("job-{}", JOBS.fetch_add(1, Ordering::Relaxed));
                let (id, session) = (task.unwrap_or(&new), member("sessionId", context));
                format!(
                    r#"{{"id":"{id}"{session},"message":{{"role":"user","parts":[{{"type":"text","text":"{text}"}}]}},"historyLength":100,"async":{}}}"#,
                    !wait
                )
            }
            Self::V03 => {
                let more = member("taskId", task) + &member("contextId", context);
                format!(
                    r#"{{"message":{{"kind":"message","messageId":"m","role":"user","parts":[{{"kind":"text","text":"{text}"}}]{more}}},"configuration":{{"blocking":{wait}}}}}"#
                )
            }
            Self::V1 => {
                let more = member("taskId", task) + &member("contextId", context);
                format!(
                    r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"text":"{text}"}}]{more}}},"configuration":{{"returnImmediately":{}}}}}"#,
                    !wait
                )
            }
        }
    }

    /// The parameters of an operation on a task.
    fn task_params(self, id: &str) -> String {
        let history = if self == Self::Draft { r#","historyLength":100"# } else { "" };
        format!(r#"{{"id":"{id}"{history}}}"#)
    }

    /// Checks that a text has this generation's field names and values and no other's.
    fn check_spelling(self, text: &str) {
        let (own, foreign): (&[&str], &[&str]) = match self {
            Self::Draft => (&[], &["\"kind\":", "TASK_STATE_", "ROLE_", "\"contextId\":", "\"taskId\":"]),
            Self::V03 => (&["\"kind\":\""], &["\"type\":\"text\"", "TASK_STATE_", "ROLE_", "\"sessionId\":"]),
            Self::V1 => (&["TASK_STATE_"], &["\"kind\":", "\"type\":", "\"sessionId\":", "\"final\":"]),
        };
        let artifact = text.contains("rtifactUpdate\":");
        assert!(artifact || own.iter().all(|mark| text.contains(mark)), "{self:?}: {text}");
        assert!(foreign.iter().all(|mark| !text.contains(mark)), "{self:?}: {text}");
    }
}

/// A client of one generation and one path, which names its version.
#[derive(Clone, Copy)]
pub(crate) struct Client<'a> {
    pub(crate) server: &'a Server,
    pub(crate) path: &'a str,
    pub(crate) generation: Generation,
}

impl Client<'_> {
    /// The head of a request.
    fn head(&self, more: &str) -> String {
        format!("POST {} HTTP/1.1\r\na2a-version: {}{more}", self.path, self.generation.version())
    }

    async fn ask(&self, kind: OperationKind, params: &str) -> Answer {
        let body = request(self.generation.method(kind), params);
        let answer = self.server.exchange(&self.head(""), &body).await;
        self.check_label(answer.header("a2ad-dialect"));
        answer
    }

    fn check_label(&self, label: Option<&str>) {
        let own = format!("{};profile=", self.generation.name());
        assert!(label.is_some_and(|label| label.starts_with(&own)), "{:?}: {label:?}", self.generation);
    }

    /// The task in a response, which must have this generation's form.
    fn read(&self, kind: OperationKind, answer: &Answer) -> Task {
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        // One profile adds the tags of two generations to parts.
        if !answer.header("a2ad-dialect").is_some_and(|label| label.ends_with("agent-native")) {
            self.generation.check_spelling(&answer.body);
        }
        let reply = read(&answer.body, |node| self.generation.dialect().decode_reply(kind, node));
        match reply {
            Reply::Task(task) | Reply::SentTask(task) => task,
            other => panic!("expected a task, got {other:?}"),
        }
    }

    /// Sends a message and returns the raw response.
    pub(crate) async fn try_send(&self, message: UserMessage<'_>) -> Answer {
        self.ask(OperationKind::SendMessage, &self.generation.send_params(message)).await
    }

    /// Sends a message and returns its task.
    pub(crate) async fn send(&self, message: UserMessage<'_>) -> Task {
        let answer = self.try_send(message).await;
        self.read(OperationKind::SendMessage, &answer)
    }

    pub(crate) async fn get(&self, id: &str) -> Task {
        let answer = self.ask(OperationKind::GetTask, &self.generation.task_params(id)).await;
        self.read(OperationKind::GetTask, &answer)
    }

    /// Cancels and returns the raw response.
    pub(crate) async fn try_cancel(&self, id: &str) -> Answer {
        self.ask(OperationKind::CancelTask, &format!(r#"{{"id":"{id}"}}"#)).await
    }

    pub(crate) async fn cancel(&self, id: &str) -> Task {
        let answer = self.try_cancel(id).await;
        self.read(OperationKind::CancelTask, &answer)
    }

    /// Sends a message and opens its stream.
    pub(crate) async fn stream(&self, message: UserMessage<'_>) -> Wire {
        self.open(OperationKind::SendStreamingMessage, &self.generation.send_params(message), "").await
    }

    /// Subscribes to a task, after a given event id if there is one.
    pub(crate) async fn subscribe(&self, id: &str, after: Option<u64>) -> Wire {
        let after = after.map_or(String::new(), |after| format!("\r\nlast-event-id: {after}"));
        self.open(OperationKind::SubscribeToTask, &self.generation.task_params(id), &after).await
    }

    /// Subscribes and returns the raw response, which is an error.
    pub(crate) async fn try_subscribe(&self, id: &str) -> Answer {
        self.ask(OperationKind::SubscribeToTask, &self.generation.task_params(id)).await
    }

    async fn open(&self, kind: OperationKind, params: &str, more: &str) -> Wire {
        let body = request(self.generation.method(kind), params);
        let (wire, head) = self.server.open_stream(&self.head(more), &body).await;
        self.check_label(head.header("a2ad-dialect"));
        wire
    }

    /// The next frame of a stream with its event id; `None` at the end of the stream.
    pub(crate) async fn frame(&self, wire: &mut Wire) -> Option<Frame> {
        let event = wire.event().await?;
        let (number, data) = event
            .strip_prefix("id: ")
            .and_then(|event| event.strip_suffix("\n\n")?.split_once("\ndata: "))
            .unwrap_or_else(|| panic!("event without id: {event:?}"));
        assert!(data.starts_with(r#"{"jsonrpc":"2.0","id":1,"result":"#), "{data}");
        self.generation.check_spelling(data);
        let event = read(data, |node| self.generation.dialect().decode_event(node));
        let last = data.contains(r#""final":true"#);
        assert_eq!(
            self.generation != Generation::V1 && matches!(event, Event::Status(_)),
            last || data.contains(r#""final":false"#),
            "{data}"
        );
        Some(Frame { number: number.parse().unwrap(), event, last })
    }

    /// Every frame up to the end of a stream. Before 1.0 exactly the last one must be marked as final.
    pub(crate) async fn frames(&self, wire: &mut Wire) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.frame(wire).await {
            frames.push(frame);
        }
        let marked = frames.iter().position(|frame| frame.last);
        let expected = (self.generation != Generation::V1).then(|| frames.len() - 1);
        assert_eq!(marked, expected, "{:?}", frames.iter().map(Frame::summary).collect::<Vec<_>>());
        frames
    }

    /// Checks that a response is this error: the code, and its text or reason.
    pub(crate) fn check_error(&self, answer: &Answer, kind: ErrorKind) {
        let row = kind.row();
        assert_eq!(answer.status, row.rpc_http, "{}", answer.body);
        let (code, text) = (row.legacy_code, row.legacy_message);
        let expected = match self.generation {
            Generation::Draft => format!(r#""error":{{"code":{code},"message":"{text}","data":"#),
            Generation::V03 => format!(r#""error":{{"code":{code},"message":"{text}""#),
            Generation::V1 => format!(r#""reason":"{}","domain":"a2a-protocol.org""#, row.reason),
        };
        assert!(answer.body.contains(&expected), "{:?}: {}", self.generation, answer.body);
        assert!(answer.body.contains(&format!(
            r#""code":{}"#,
            if self.generation == Generation::V1 { row.code } else { code }
        )));
        if self.generation != Generation::V1 {
            assert!(!answer.body.contains("@type"), "{}", answer.body);
        }
    }
}

/// One frame of a stream.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) number: u64,
    pub(crate) event: Event,
    /// Marked as final.
    pub(crate) last: bool,
}

impl Frame {
    /// Its content in a form common to all generations: `2 working: text`, `3 + text` for a chunk appended to an
    /// artifact, `3 = text .` for a new one that is also the last. Tasks, which the draft does not send in streams, are
    /// shown as their status.
    pub(crate) fn summary(&self) -> String {
        let number = self.number;
        let status = |state: TaskState, message: Option<&Message>| {
            let text = message.map_or(String::new(), |message| format!(": {}", message.text()));
            format!("{number} {state:?}{text}")
        };
        match &self.event {
            Event::Task(task) => status(task.status.state, task.status.message.as_ref()),
            Event::Status(update) => status(update.status.state, update.status.message.as_ref()),
            Event::Artifact(update) => {
                let sign = if update.append { '+' } else { '=' };
                let end = if update.last_chunk { " ." } else { "" };
                format!("{number} {sign} {}{end}", text_of(&update.artifact).trim_end())
            }
            Event::Message(message) => format!("{number} message: {}", message.text()),
        }
    }
}

/// The content of a task that all generations show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskSummary {
    pub(crate) id: String,
    pub(crate) context: String,
    pub(crate) state: TaskState,
    /// Text of the status message.
    pub(crate) status_text: Option<String>,
    /// Names and texts.
    pub(crate) artifacts: Vec<(Option<String>, String)>,
    pub(crate) history: Vec<(Role, String)>,
}

impl TaskSummary {
    pub(crate) fn of(task: &Task) -> Self {
        assert!(task.status.timestamp.is_some());
        Self {
            id: task.id.to_string(),
            context: task.context_id.to_string(),
            state: task.status.state,
            status_text: task.status.message.as_ref().map(Message::text),
            artifacts: task
                .artifacts
                .iter()
                .map(|artifact| (artifact.name.clone(), text_of(artifact)))
                .collect(),
            history: task.history.iter().map(|message| (message.role, message.text())).collect(),
        }
    }
}

/// The concatenated texts of its parts.
fn text_of(artifact: &Artifact) -> String {
    let text = |part: &Part| match &part.content {
        Content::Text(text) => text.clone(),
        other => format!("{other:?}"),
    };
    artifact.parts.iter().map(text).collect()
}

/// Decodes the result of a response.
fn read<T>(body: &str, decode: impl FnOnce(Node<'_, '_>) -> Result<T, protocol::Violation>) -> T {
    let json = Json::parse(body).unwrap();
    let object = Node::new(json.as_raw(), &Path::Root).object().unwrap();
    let result = object.need("result", "a result", decode);
    result.unwrap_or_else(|violation| panic!("{violation:?} in {body}"))
}
