//! A client that uses one interface (protocol generation and binding).

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
    interface::{INTERFACES, Interface},
    server::Server,
    snapshot::{Frame, TaskSnapshot},
    wire::StreamingResponse,
};

/// Numbers the message ids and, in the draft, the task ids that clients choose.
static NEXT_NUMBER: AtomicU32 = AtomicU32::new(1);

#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) server: Arc<Server>,
    pub(crate) agent: &'static str,
    pub(crate) interface: &'static Interface,
}

/// A message to be sent.
#[derive(Clone, Copy)]
pub(crate) struct NewMessage<'a> {
    text: &'a str,
    /// The task to continue; `None` starts a new one.
    task: Option<&'a TaskSnapshot>,
    return_immediately: bool,
}

impl<'a> NewMessage<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, task: None, return_immediately: false }
    }

    /// Addresses a task and its context.
    pub(crate) fn to_task(self, task: &'a TaskSnapshot) -> Self {
        Self { task: Some(task), ..self }
    }

    /// Requests a response without waiting for the task to finish.
    pub(crate) fn return_immediately(self) -> Self {
        Self { return_immediately: true, ..self }
    }
}

impl fmt::Display for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.interface.fmt(out)
    }
}

impl Client {
    /// Clients of the same agent, one for each interface, including this one.
    pub(crate) fn all_interfaces(&self) -> impl Iterator<Item = Self> {
        INTERFACES.iter().map(|interface| Self { interface, ..self.clone() })
    }

    /// Sends a message and returns the resulting task.
    pub(crate) async fn send(&self, message: NewMessage<'_>) -> TaskSnapshot {
        self.try_send(message).await.unwrap_or_else(|kind| panic!("{self}: rejected: {kind:?}"))
    }

    pub(crate) async fn try_send(&self, message: NewMessage<'_>) -> Result<TaskSnapshot, ErrorKind> {
        self.task(Operation::SendMessage(self.send_params(message))).await
    }

    /// Sends a message and streams the task's events.
    pub(crate) async fn stream(&self, message: NewMessage<'_>) -> Stream {
        let stream = self.open_stream(Operation::SendStreamingMessage(self.send_params(message)), &[]).await;
        stream.unwrap_or_else(|kind| panic!("{self}: rejected: {kind:?}"))
    }

    pub(crate) async fn get(&self, id: &str) -> TaskSnapshot {
        let req = GetTask { id: id.into(), history_length: None, tenant: self.tenant() };
        let task = self.task(Operation::GetTask(req)).await;
        task.unwrap_or_else(|kind| panic!("{self}: {id}: {kind:?}"))
    }

    pub(crate) async fn cancel(&self, id: &str) -> Result<TaskSnapshot, ErrorKind> {
        let req = CancelTask { id: id.into(), metadata: None, tenant: self.tenant() };
        self.task(Operation::CancelTask(req)).await
    }

    /// Subscribes to a task; `after` is sent as `Last-Event-ID`.
    pub(crate) async fn subscribe(&self, id: &str, after: Option<usize>) -> Result<Stream, ErrorKind> {
        let req = SubscribeToTask { id: id.into(), tenant: self.tenant() };
        let after = after.map(|after| after.to_string());
        let after: Vec<_> = after.iter().map(|after| ("last-event-id", after.as_str())).collect();
        self.open_stream(Operation::SubscribeToTask(req), &after).await
    }

    /// Checks that the task can be read by its id and, if the interface has `ListTasks`, in the list of its context.
    pub(crate) async fn check_visible(&self, task: &TaskSnapshot) {
        assert_eq!(self.get(&task.id).await, *task, "read by {self}");
        if !self.interface.has(OperationKind::ListTasks) {
            return;
        }
        let req = ListTasks {
            context_id: Some(task.context.as_str().into()),
            include_artifacts: true,
            tenant: self.tenant(),
            ..ListTasks::default()
        };
        let page = match self.send_request(Operation::ListTasks(req)).await {
            Ok(Reply::Tasks(page)) => page,
            other => panic!("{self}: expected a page, got {other:?}"),
        };
        let listed: Vec<TaskSnapshot> = page.tasks.iter().map(TaskSnapshot::of).collect();
        assert_eq!(listed, std::slice::from_ref(task), "listed by {self}");
    }

    /// Checks a subscription to a terminal task: the last status again, or an error in 1.0.
    pub(crate) async fn check_terminal(&self, task: &TaskSnapshot, last: &str) {
        match self.subscribe(&task.id, None).await {
            Ok(mut stream) if self.interface.dialect.rules().replays_final_status => {
                assert_eq!(stream.remaining_lines().await, [last], "{self}");
            }
            Err(kind) if !self.interface.dialect.rules().replays_final_status => {
                assert_eq!(kind, ErrorKind::UnsupportedOperation, "{self}");
            }
            other => panic!("{self}: {:?}", other.map(|_| "a stream")),
        }
    }

    fn tenant(&self) -> Option<String> {
        self.interface.tenant(self.agent)
    }

    fn send_params(&self, new: NewMessage<'_>) -> SendMessage {
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        // A task id with characters that have a meaning in a URL path.
        let client_task_id = || format!("job/{number}:cancel?%2F=ü&#").as_str().into();
        let names_tasks = self.interface.dialect.rules().clients_choose_task_ids;
        let task_id = new.task.map(|task| task.id.as_str().into());
        let message = Message {
            task_id: task_id.or_else(|| names_tasks.then(client_task_id)),
            context_id: new.task.map(|task| task.context.as_str().into()),
            ..Message::new(format!("m-{number}"), Role::User, vec![Part::text(new.text)])
        };
        SendMessage {
            return_immediately: new.return_immediately,
            tenant: self.tenant(),
            ..SendMessage::new(message)
        }
    }

    /// The task in the reply to an operation.
    async fn task(&self, operation: Operation) -> Result<TaskSnapshot, ErrorKind> {
        match self.send_request(operation).await? {
            Reply::Task(task) | Reply::SentTask(task) => Ok(TaskSnapshot::of(&task)),
            other => panic!("{self}: expected a task, got {other:?}"),
        }
    }

    async fn send_request(&self, operation: Operation) -> Result<Reply, ErrorKind> {
        let response = self.interface.send_request(&self.server, self.agent, &operation, &[]).await;
        self.interface.reply(operation.kind(), response).await
    }

    async fn open_stream(&self, operation: Operation, more: &[(&str, &str)]) -> Result<Stream, ErrorKind> {
        let response = self.interface.send_request(&self.server, self.agent, &operation, more).await;
        if self.interface.is_stream(&response) {
            return Ok(Stream { interface: self.interface, response, previous: None });
        }
        let reply = self.interface.reply(operation.kind(), response).await;
        Err(reply.expect_err("a response that is not a stream is an error"))
    }
}

/// An event stream that is read frame by frame.
pub(crate) struct Stream {
    pub(crate) interface: &'static Interface,
    response: StreamingResponse,
    /// The number of the previous frame.
    previous: Option<u64>,
}

impl Stream {
    async fn next(&mut self) -> Option<Frame> {
        let frame = self.interface.frame(&mut self.response, self.previous).await?;
        self.previous = Some(frame.number);
        Some(frame)
    }

    /// The task's id and the line of the first frame, which must not be the last one.
    pub(crate) async fn first_frame(&mut self) -> (String, String) {
        let frame = self.next().await.expect("a stream has a first frame");
        assert!(!frame.last, "{}: {}", self.interface, frame.line());
        (frame.task().to_owned(), frame.line())
    }

    /// Checks that the first frame is the task; in the draft, which has no task frame, it is the task's status.
    pub(crate) async fn check_first_frame(&mut self, task: &TaskSnapshot, line: &str) {
        let frame = self.next().await.expect("a stream has a first frame");
        assert_eq!(
            (frame.line().as_str(), frame.task(), frame.last),
            (line, &*task.id, false),
            "{}",
            self.interface
        );
        match &frame.event {
            Event::Task(shown) => assert_eq!(TaskSnapshot::of(shown), *task, "{}", self.interface),
            _ => assert_eq!(
                self.interface.dialect,
                Dialect::Draft,
                "{}: the first frame is not a task",
                self.interface
            ),
        }
    }

    /// The lines of the remaining frames. Before 1.0, the last frame and no other must be marked as the last.
    pub(crate) async fn remaining_lines(&mut self) -> Vec<String> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        let lines: Vec<String> = frames.iter().map(Frame::line).collect();
        let marked = frames.iter().position(|frame| frame.last);
        let expected = self.interface.marks_last_frame().then(|| frames.len().saturating_sub(1));
        assert_eq!(marked, expected, "{}: {lines:?}", self.interface);
        lines
    }
}
