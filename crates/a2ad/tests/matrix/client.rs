//! Someone who speaks to an agent in one of the ways there are.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use protocol::{
    CancelTask, Dialect, ErrorKind, Event, GetTask, ListTasks, Message, Operation, OperationKind, Part,
    Reply, Role, SendMessage, SubscribeToTask,
};

use crate::{
    facts::{Facts, Frame},
    server::Server,
    speaker::{SPEAKERS, Speaker},
    wire::Answer,
};

/// Makes the names that clients give to their messages and, in the draft, to their tasks.
static NAMES: AtomicU32 = AtomicU32::new(1);

#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) server: Arc<Server>,
    pub(crate) agent: &'static str,
    pub(crate) speaker: &'static Speaker,
}

/// What a client says.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a> {
    text: &'a str,
    /// The task it is said to; else a new one is meant.
    task: Option<&'a Facts>,
    at_once: bool,
}

impl<'a> Words<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, task: None, at_once: false }
    }

    /// Said to a task, in its conversation.
    pub(crate) fn to(self, task: &'a Facts) -> Self {
        Self { task: Some(task), ..self }
    }

    /// Said without waiting for what comes of it.
    pub(crate) fn at_once(self) -> Self {
        Self { at_once: true, ..self }
    }
}

impl fmt::Display for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.speaker.fmt(out)
    }
}

impl Client {
    /// All the others with it, before the same agent.
    pub(crate) fn everyone(&self) -> impl Iterator<Item = Self> {
        SPEAKERS.iter().map(|speaker| Self { speaker, ..self.clone() })
    }

    /// Says something and gets the task that comes of it.
    pub(crate) async fn send(&self, words: Words<'_>) -> Facts {
        self.try_send(words).await.unwrap_or_else(|kind| panic!("{self}: refused: {kind:?}"))
    }

    pub(crate) async fn try_send(&self, words: Words<'_>) -> Result<Facts, ErrorKind> {
        self.task(Operation::SendMessage(self.said(words))).await
    }

    /// Says something and watches what comes of it.
    pub(crate) async fn stream(&self, words: Words<'_>) -> Stream {
        let begun = self.watch(Operation::SendStreamingMessage(self.said(words)), &[]).await;
        begun.unwrap_or_else(|kind| panic!("{self}: refused: {kind:?}"))
    }

    pub(crate) async fn get(&self, id: &str) -> Facts {
        let req = GetTask { id: id.into(), history_length: None, tenant: self.tenant() };
        let task = self.task(Operation::GetTask(req)).await;
        task.unwrap_or_else(|kind| panic!("{self}: {id}: {kind:?}"))
    }

    pub(crate) async fn cancel(&self, id: &str) -> Result<Facts, ErrorKind> {
        let req = CancelTask { id: id.into(), metadata: None, tenant: self.tenant() };
        self.task(Operation::CancelTask(req)).await
    }

    /// Watches a task, from behind the event of a number where one is given.
    pub(crate) async fn subscribe(&self, id: &str, after: Option<usize>) -> Result<Stream, ErrorKind> {
        let req = SubscribeToTask { id: id.into(), tenant: self.tenant() };
        let after = after.map(|after| after.to_string());
        let after: Vec<_> = after.iter().map(|after| ("last-event-id", after.as_str())).collect();
        self.watch(Operation::SubscribeToTask(req), &after).await
    }

    /// Checks that it is shown a task as it is, by its name and, where there is a list, in its conversation.
    pub(crate) async fn check_shown(&self, task: &Facts) {
        assert_eq!(self.get(&task.id).await, *task, "got by {self}");
        if !self.speaker.has(OperationKind::ListTasks) {
            return;
        }
        let req = ListTasks {
            context_id: Some(task.context.as_str().into()),
            include_artifacts: true,
            tenant: self.tenant(),
            ..ListTasks::default()
        };
        let page = match self.ask(Operation::ListTasks(req)).await {
            Ok(Reply::Tasks(page)) => page,
            other => panic!("{self}: no page but {other:?}"),
        };
        let listed: Vec<Facts> = page.tasks.iter().map(Facts::of).collect();
        assert_eq!(listed, std::slice::from_ref(task), "listed by {self}");
    }

    /// Checks that a task is over for who comes to watch it: its last status again, or a refusal in 1.0.
    pub(crate) async fn check_over(&self, task: &Facts, last: &str) {
        match self.subscribe(&task.id, None).await {
            Ok(mut stream) if self.speaker.dialect.shows_the_end_again() => {
                assert_eq!(stream.rest().await, [last], "{self}");
            }
            Err(kind) if !self.speaker.dialect.shows_the_end_again() => {
                assert_eq!(kind, ErrorKind::UnsupportedOperation, "{self}");
            }
            other => panic!("{self}: {:?}", other.map(|_| "a stream")),
        }
    }

    fn tenant(&self) -> Option<String> {
        self.speaker.tenant(self.agent)
    }

    fn said(&self, words: Words<'_>) -> SendMessage {
        let number = NAMES.fetch_add(1, Ordering::Relaxed);
        // Names with everything that means something in a path.
        let own = || format!("job/{number}:cancel?%2F=ü&#").as_str().into();
        let names_tasks = self.speaker.dialect.clients_name_tasks();
        let task_id = words.task.map(|task| task.id.as_str().into());
        let message = Message {
            task_id: task_id.or_else(|| names_tasks.then(own)),
            context_id: words.task.map(|task| task.context.as_str().into()),
            ..Message::new(format!("m-{number}"), Role::User, vec![Part::text(words.text)])
        };
        SendMessage { return_immediately: words.at_once, tenant: self.tenant(), ..SendMessage::new(message) }
    }

    /// The task that an operation gives.
    async fn task(&self, operation: Operation) -> Result<Facts, ErrorKind> {
        match self.ask(operation).await? {
            Reply::Task(task) | Reply::SentTask(task) => Ok(Facts::of(&task)),
            other => panic!("{self}: no task but {other:?}"),
        }
    }

    async fn ask(&self, operation: Operation) -> Result<Reply, ErrorKind> {
        let answer = self.speaker.ask(&self.server, self.agent, &operation, &[]).await;
        self.speaker.reply(operation.kind(), answer).await
    }

    async fn watch(&self, operation: Operation, more: &[(&str, &str)]) -> Result<Stream, ErrorKind> {
        let answer = self.speaker.ask(&self.server, self.agent, &operation, more).await;
        if self.speaker.is_stream(&answer) {
            return Ok(Stream { speaker: self.speaker, answer, before: None });
        }
        let refused = self.speaker.reply(operation.kind(), answer).await;
        Err(refused.expect_err("what is no stream is a refusal"))
    }
}

/// A stream as its reader takes it in.
pub(crate) struct Stream {
    pub(crate) speaker: &'static Speaker,
    answer: Answer,
    /// The number of the frame before.
    before: Option<u64>,
}

impl Stream {
    async fn next(&mut self) -> Option<Frame> {
        let frame = self.speaker.frame(&mut self.answer, self.before).await?;
        self.before = Some(frame.number);
        Some(frame)
    }

    /// The task that a stream is about, and what it tells first; more is to come.
    pub(crate) async fn begun(&mut self) -> (String, String) {
        let frame = self.next().await.expect("a stream begins");
        assert!(!frame.last, "{}: {}", self.speaker, frame.line());
        (frame.task().to_owned(), frame.line())
    }

    /// Checks that a stream begins with a task as it is; the draft, which cannot say it, tells its status.
    pub(crate) async fn check_first(&mut self, task: &Facts, line: &str) {
        let frame = self.next().await.expect("a stream begins");
        assert_eq!(
            (frame.line().as_str(), frame.task(), frame.last),
            (line, &*task.id, false),
            "{}",
            self.speaker
        );
        match &frame.event {
            Event::Task(shown) => assert_eq!(Facts::of(shown), *task, "{}", self.speaker),
            _ => assert_eq!(self.speaker.dialect, Dialect::Draft, "{}: no task first", self.speaker),
        }
    }

    /// What else it tells. In the older generations the last frame says that it is, and no other does.
    pub(crate) async fn rest(&mut self) -> Vec<String> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        let lines: Vec<String> = frames.iter().map(Frame::line).collect();
        let marked = frames.iter().position(|frame| frame.last);
        let expected = self.speaker.marks_the_last().then(|| frames.len().saturating_sub(1));
        assert_eq!(marked, expected, "{}: {lines:?}", self.speaker);
        lines
    }
}
