//! The generations of the protocol as their clients speak them, and what is the same in all of them.

use std::sync::atomic::{AtomicU32, Ordering};

use protocol::{
    Artifact, Content, Dialect, ErrorKind, Event, Json, Message, OperationKind, Part, Reply, Role, Task,
    TaskState,
    json::read::{Node, Path},
};

use super::{Answer, Server, Wire, request};

/// A generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tongue {
    Draft,
    V03,
    V1,
}

/// What a client says.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a> {
    pub(crate) text: &'a str,
    /// The task it is said to; else a new one is meant.
    pub(crate) task: Option<&'a str>,
    pub(crate) context: Option<&'a str>,
    /// Whether to wait for the outcome.
    pub(crate) wait: bool,
}

impl<'a> Words<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, task: None, context: None, wait: true }
    }

    /// Said to a task.
    pub(crate) fn to(self, task: &'a str) -> Self {
        Self { task: Some(task), ..self }
    }

    /// Said in a conversation.
    pub(crate) fn within(self, context: &'a str) -> Self {
        Self { context: Some(context), ..self }
    }

    /// Said without waiting for what comes of it.
    pub(crate) fn at_once(self) -> Self {
        Self { wait: false, ..self }
    }
}

impl Tongue {
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
            Self::V03 => "v03",
            Self::V1 => "v1",
        }
    }

    pub(crate) fn dialect(self) -> Dialect {
        match self {
            Self::Draft => Dialect::Draft,
            Self::V03 => Dialect::V03,
            Self::V1 => Dialect::V1,
        }
    }

    /// What it calls sending, streaming, getting, cancelling and subscribing.
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
            other => panic!("no test asks for {other:?} in every generation"),
        }
    }

    /// The parameters of a send. Clients of the draft name their tasks, and get a history only if they ask for one.
    pub(crate) fn said(self, words: Words<'_>) -> String {
        static JOBS: AtomicU32 = AtomicU32::new(1);
        let Words { text, task, context, wait } = words;
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

    /// The parameters of what is asked about a task.
    fn about(self, id: &str) -> String {
        let history = if self == Self::Draft { r#","historyLength":100"# } else { "" };
        format!(r#"{{"id":"{id}"{history}}}"#)
    }

    /// Checks that a text is in this generation's spelling and in no other's.
    fn check(self, text: &str) {
        let (own, foreign): (&[&str], &[&str]) = match self {
            Self::Draft => (&[], &["\"kind\":", "TASK_STATE_", "ROLE_", "\"contextId\":", "\"taskId\":"]),
            Self::V03 => (&["\"kind\":\""], &["\"type\":\"text\"", "TASK_STATE_", "ROLE_", "\"sessionId\":"]),
            Self::V1 => (&["TASK_STATE_"], &["\"kind\":", "\"type\":", "\"sessionId\":", "\"final\":"]),
        };
        let artifact = text.contains("rtifactUpdate\":");
        assert!(artifact || own.iter().all(|word| text.contains(word)), "{self:?}: {text}");
        assert!(foreign.iter().all(|word| !text.contains(word)), "{self:?}: {text}");
    }
}

/// Someone who speaks one generation with one agent and names its version.
#[derive(Clone, Copy)]
pub(crate) struct Client<'a> {
    pub(crate) server: &'a Server,
    pub(crate) path: &'a str,
    pub(crate) tongue: Tongue,
}

impl Client<'_> {
    /// The head of a request.
    fn head(&self, more: &str) -> String {
        format!("POST {} HTTP/1.1\r\na2a-version: {}{more}", self.path, self.tongue.version())
    }

    async fn ask(&self, kind: OperationKind, params: &str) -> Answer {
        let body = request(self.tongue.method(kind), params);
        let answer = self.server.exchange(&self.head(""), &body).await;
        self.check_label(answer.header("a2ad-dialect"));
        answer
    }

    fn check_label(&self, label: Option<&str>) {
        let own = format!("{};profile=", self.tongue.name());
        assert!(label.is_some_and(|label| label.starts_with(&own)), "{:?}: {label:?}", self.tongue);
    }

    /// The task in an answer, which must be in this generation's spelling.
    fn read(&self, kind: OperationKind, answer: &Answer) -> Task {
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        // One house tags parts in two generations' ways.
        if !answer.header("a2ad-dialect").is_some_and(|label| label.ends_with("agent-native")) {
            self.tongue.check(&answer.body);
        }
        let reply = read(&answer.body, |node| self.tongue.dialect().decode_reply(kind, node));
        match reply {
            Reply::Task(task) | Reply::SentTask(task) => task,
            other => panic!("no task but {other:?}"),
        }
    }

    /// Says something and reads the whole answer.
    pub(crate) async fn say(&self, words: Words<'_>) -> Answer {
        self.ask(OperationKind::SendMessage, &self.tongue.said(words)).await
    }

    /// Says something and gets the task that comes of it.
    pub(crate) async fn send(&self, words: Words<'_>) -> Task {
        let answer = self.say(words).await;
        self.read(OperationKind::SendMessage, &answer)
    }

    pub(crate) async fn get(&self, id: &str) -> Task {
        let answer = self.ask(OperationKind::GetTask, &self.tongue.about(id)).await;
        self.read(OperationKind::GetTask, &answer)
    }

    /// Cancels and reads the whole answer.
    pub(crate) async fn try_cancel(&self, id: &str) -> Answer {
        self.ask(OperationKind::CancelTask, &format!(r#"{{"id":"{id}"}}"#)).await
    }

    pub(crate) async fn cancel(&self, id: &str) -> Task {
        let answer = self.try_cancel(id).await;
        self.read(OperationKind::CancelTask, &answer)
    }

    /// Says something and watches what comes of it.
    pub(crate) async fn stream(&self, words: Words<'_>) -> Wire {
        self.open(OperationKind::SendStreamingMessage, &self.tongue.said(words), "").await
    }

    /// Watches a task, from behind the event of a number where one is given.
    pub(crate) async fn subscribe(&self, id: &str, after: Option<u64>) -> Wire {
        let after = after.map_or(String::new(), |after| format!("\r\nlast-event-id: {after}"));
        self.open(OperationKind::SubscribeToTask, &self.tongue.about(id), &after).await
    }

    /// Watches a task, and is told that it cannot.
    pub(crate) async fn try_subscribe(&self, id: &str) -> Answer {
        self.ask(OperationKind::SubscribeToTask, &self.tongue.about(id)).await
    }

    async fn open(&self, kind: OperationKind, params: &str, more: &str) -> Wire {
        let mut wire = self.server.connect().await;
        wire.send(&self.head(more), &request(self.tongue.method(kind), params)).await;
        let head = wire.head().await;
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
        self.check_label(head.header("a2ad-dialect"));
        wire
    }

    /// The next frame of a stream with its number; `None` when the stream is over.
    pub(crate) async fn frame(&self, wire: &mut Wire) -> Option<Frame> {
        let event = wire.event().await?;
        let (number, data) = event
            .strip_prefix("id: ")
            .and_then(|event| event.strip_suffix("\n\n")?.split_once("\ndata: "))
            .unwrap_or_else(|| panic!("no numbered event: {event:?}"));
        assert!(data.starts_with(r#"{"jsonrpc":"2.0","id":1,"result":"#), "{data}");
        self.tongue.check(data);
        let event = read(data, |node| self.tongue.dialect().decode_event(node));
        let last = data.contains(r#""final":true"#);
        assert_eq!(
            self.tongue != Tongue::V1 && matches!(event, Event::Status(_)),
            last || data.contains(r#""final":false"#),
            "{data}"
        );
        Some(Frame { number: number.parse().unwrap(), event, last })
    }

    /// Every frame up to the end of a stream. In the older generations the last one says so, and no other does.
    pub(crate) async fn frames(&self, wire: &mut Wire) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.frame(wire).await {
            frames.push(frame);
        }
        let marked = frames.iter().position(|frame| frame.last);
        let expected = (self.tongue != Tongue::V1).then(|| frames.len() - 1);
        assert_eq!(marked, expected, "{:?}", frames.iter().map(Frame::line).collect::<Vec<_>>());
        frames
    }

    /// Checks that an answer is this refusal: the code, and the text or reason that belongs to it.
    pub(crate) fn check_refused(&self, answer: &Answer, kind: ErrorKind) {
        let row = kind.row();
        assert_eq!(answer.status, row.rpc_http, "{}", answer.body);
        let (code, text) = (row.legacy_code, row.legacy_message);
        let expected = match self.tongue {
            Tongue::Draft => format!(r#""error":{{"code":{code},"message":"{text}","data":"#),
            Tongue::V03 => format!(r#""error":{{"code":{code},"message":"{text}""#),
            Tongue::V1 => format!(r#""reason":"{}","domain":"a2a-protocol.org""#, row.reason),
        };
        assert!(answer.body.contains(&expected), "{:?}: {}", self.tongue, answer.body);
        assert!(
            answer
                .body
                .contains(&format!(r#""code":{}"#, if self.tongue == Tongue::V1 { row.code } else { code }))
        );
        if self.tongue != Tongue::V1 {
            assert!(!answer.body.contains("@type"), "{}", answer.body);
        }
    }
}

/// One frame of a stream.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) number: u64,
    pub(crate) event: Event,
    /// It says that it is the last.
    pub(crate) last: bool,
}

impl Frame {
    /// What it tells, the same in every generation: `2 working: text`, `3 + text` for a piece that is added to an
    /// artifact, `3 = text .` for one that is whole and the last. Tasks, which the draft cannot say, are their status.
    pub(crate) fn line(&self) -> String {
        let number = self.number;
        let status = |state: TaskState, message: Option<&Message>| {
            let said = message.map_or(String::new(), |message| format!(": {}", message.text()));
            format!("{number} {state:?}{said}")
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

/// What a task is, whoever tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) id: String,
    pub(crate) context: String,
    pub(crate) state: TaskState,
    /// What its status says.
    pub(crate) said: Option<String>,
    /// Names and texts.
    pub(crate) artifacts: Vec<(Option<String>, String)>,
    pub(crate) history: Vec<(Role, String)>,
}

impl Facts {
    pub(crate) fn of(task: &Task) -> Self {
        assert!(task.status.timestamp.is_some());
        Self {
            id: task.id.to_string(),
            context: task.context_id.to_string(),
            state: task.status.state,
            said: task.status.message.as_ref().map(Message::text),
            artifacts: task
                .artifacts
                .iter()
                .map(|artifact| (artifact.name.clone(), text_of(artifact)))
                .collect(),
            history: task.history.iter().map(|message| (message.role, message.text())).collect(),
        }
    }
}

/// The texts of its parts, one behind the other.
fn text_of(artifact: &Artifact) -> String {
    let text = |part: &Part| match &part.content {
        Content::Text(text) => text.clone(),
        other => format!("{other:?}"),
    };
    artifact.parts.iter().map(text).collect()
}

/// Reads the result of an answer.
fn read<T>(body: &str, decode: impl FnOnce(Node<'_, '_>) -> Result<T, protocol::Violation>) -> T {
    let json = Json::parse(body).unwrap();
    let object = Node::new(json.as_raw(), &Path::Root).object().unwrap();
    let result = object.need("result", "a result", decode);
    result.unwrap_or_else(|violation| panic!("{violation:?} in {body}"))
}
