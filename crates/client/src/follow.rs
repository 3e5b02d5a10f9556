//! Follows one message to its outcome, over as many connections as needed.
//!
//! Agents that number their events are asked for the events after the last one received (`Last-Event-ID`).
//! From other agents the whole task is requested, and the difference to what was already delivered becomes
//! events. The task is polled in the same way if an agent cannot stream, cannot subscribe, or starts a
//! resumed stream without a task snapshot, because then it is unknown what was missed. After a reconnect the
//! final state is compared with the task as stored by the agent.
//!
//! The first frame of a stream is a snapshot and never ends it: only a later event does. There is no timeout
//! here; the caller decides how long to wait.

mod on_event;
mod reconnect;

use std::{collections::VecDeque, time::Duration};

use protocol::{Event, Message, Role, SendMessage, Task, TaskId, TaskStatus, model::StatusUpdate};
use tokio::time::{Instant, sleep_until};

use crate::{Client, Error, EventStream, SendReply, delivered_task::DeliveredTask};

const FIRST_POLL: Duration = Duration::from_millis(20);
const LAST_POLL: Duration = Duration::from_secs(1);

/// Follows the task that a message starts or continues.
///
/// ```no_run
/// # use a2ad_client::{Client, Error, Follow, FollowEvent, text};
/// # async fn example() -> Result<(), Error> {
/// let client = Client::discover("https://agent.example").await?;
/// let mut follow = Follow::stream(&client, "write a report about the sea").await?;
/// while let Some(event) = follow.next().await? {
///     match event {
///         FollowEvent::Event(event) => println!("{event:?}"),
///         FollowEvent::Lost => println!("reconnecting"),
///     }
/// }
/// println!("{}", follow.task().map(text::of_task).unwrap_or_default());
/// # Ok(())
/// # }
/// ```
pub struct Follow<'a> {
    client: &'a Client,
    state: State,
    /// The message, kept for sending it again.
    req: SendMessage,
    task_id: Option<TaskId>,
    delivered: DeliveredTask,
    pending: VecDeque<Event>,
    /// Sequence number of the last event received.
    cursor: Option<u64>,
    opening: Opening,
    /// Sequence number of the snapshot frames at the start of this connection; `None` before the first frame.
    snapshot_seq: Option<Option<u64>>,
    /// The status in the snapshot of a resumed stream.
    snapshot_status: Option<TaskStatus>,
    /// An event after the snapshot was received on this connection.
    past_snapshot: bool,
    /// The message may be sent again: the agent deduplicates it.
    deduplicates: bool,
    /// At least one reconnect was attempted.
    reconnected: bool,
    attempt: u32,
    /// When the current pause ends, once it has begun.
    wake_at: Option<Instant>,
}

/// What [`Follow::next`] returns.
#[derive(Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "it is consumed at once, never stored in bulk")]
pub enum FollowEvent {
    /// An event that was not delivered before.
    Event(Event),
    /// The connection is lost; the next call waits for the backoff and retries.
    Lost,
}

enum State {
    Open(EventStream),
    /// Not connected; the next attempt is after this backoff.
    Disconnected(Duration),
    /// Polling the task at this interval.
    Polling(Duration),
    /// This status is the last event; before it, the task is read once more for missing artifacts.
    Ending(StatusUpdate),
    Done,
}

/// How the stream was opened.
#[derive(Clone, Copy)]
enum Opening {
    /// By sending the message.
    Send,
    /// By subscribing for the events after this one.
    After(u64),
    /// By subscribing; which events were missed is unknown.
    Subscribe,
}

impl<'a> Follow<'a> {
    /// Sends the message and follows the resulting stream. If the agent does not stream, its task is polled
    /// instead.
    pub async fn stream(client: &'a Client, request: impl Into<SendMessage>) -> Result<Self, Error> {
        let mut req = request.into();
        client.assign_ids(&mut req);
        match client.stream(req.clone()).await {
            Err(error) if error.is_unsupported() => {
                // The same error may mean that the task accepts no more messages; the plain send then returns
                // it too.
                Self::send(client, SendMessage { return_immediately: true, ..req }).await
            }
            opened => {
                let stream = opened?;
                let deduplicates = stream.deduplicates();
                let state = State::Open(stream);
                Ok(Self { deduplicates, ..Self::new(client, req, state) })
            }
        }
    }

    /// Sends the message and polls its task until it is settled.
    ///
    /// Only a message that starts a task is sent with `returnImmediately`: for a message to an existing task
    /// many agents return the task as it was before the message, still waiting for input.
    pub async fn send(client: &'a Client, request: impl Into<SendMessage>) -> Result<Self, Error> {
        let mut req = request.into();
        req.return_immediately &= req.message.task_id.is_none();
        client.assign_ids(&mut req);
        let reply = client.send(req.clone()).await?;
        let mut follow = Self::new(client, req, State::Done);
        match reply {
            SendReply::Task(task) => {
                let settled = task.status.state.is_settled();
                follow.deliver(Event::Task(task));
                if !settled {
                    follow.state = State::Polling(FIRST_POLL);
                }
            }
            SendReply::Message(message) => follow.deliver(Event::Message(message)),
        }
        Ok(follow)
    }

    /// Follows an existing task from its current state.
    pub async fn watch(client: &'a Client, id: impl Into<TaskId>) -> Result<Self, Error> {
        // The message is never sent: the task id is known, so a reconnect subscribes to the task.
        let mut message = Message::new("", Role::User, Vec::new());
        message.task_id = Some(id.into());
        let req = SendMessage { history_length: Some(0), ..SendMessage::new(message) };
        let mut follow = Self::new(client, req, State::Disconnected(Duration::ZERO));
        if let Some(task) = follow.read_task().await? {
            if task.status.state.is_settled() {
                follow.state = State::Done;
            }
            follow.deliver(Event::Task(task));
        }
        Ok(follow)
    }

    fn new(client: &'a Client, req: SendMessage, state: State) -> Self {
        let task_id = req.message.task_id.clone();
        Self {
            client,
            state,
            req,
            task_id,
            delivered: DeliveredTask::default(),
            pending: VecDeque::new(),
            cursor: None,
            opening: Opening::Send,
            snapshot_seq: None,
            snapshot_status: None,
            past_snapshot: false,
            deduplicates: false,
            reconnected: false,
            attempt: 0,
            wake_at: None,
        }
    }

    /// The task as built from the events delivered so far; `None` if there is no task.
    pub fn task(&self) -> Option<&Task> {
        self.delivered.task()
    }

    /// The task id, as soon as it is known.
    pub fn task_id(&self) -> Option<&TaskId> {
        self.task_id.as_ref()
    }

    /// The next event; `None` when the task is settled and everything was delivered.
    ///
    /// Cancel safe: no event is lost when the future is dropped; a reconnect that it interrupts starts again.
    pub async fn next(&mut self) -> Result<Option<FollowEvent>, Error> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Ok(Some(FollowEvent::Event(event)));
            }
            match &mut self.state {
                State::Done => return Ok(None),
                State::Open(stream) => match stream.next().await {
                    Some(Ok(event)) => {
                        let seq = stream.last_event_id();
                        self.on_event(seq, event);
                    }
                    None => {
                        let retry = stream.retry();
                        if self.ended(retry)? {
                            return Ok(Some(FollowEvent::Lost));
                        }
                    }
                    Some(Err(error)) if error.is_retryable() => {
                        self.lost(None, error)?;
                        return Ok(Some(FollowEvent::Lost));
                    }
                    Some(Err(error)) => return Err(error),
                },
                State::Disconnected(pause) => {
                    let pause = *pause;
                    self.wait(pause).await;
                    if !self.reconnect().await? {
                        return Ok(Some(FollowEvent::Lost));
                    }
                }
                State::Polling(pause) => {
                    let pause = *pause;
                    self.wait(pause).await;
                    let longer = (pause * 2).min(LAST_POLL);
                    if !self.poll(longer).await? {
                        return Ok(Some(FollowEvent::Lost));
                    }
                }
                State::Ending(update) => {
                    let update = update.clone();
                    self.deliver_missing_artifacts().await;
                    self.deliver(Event::Status(update));
                    self.state = State::Done;
                }
            }
        }
    }

    /// Waits for the pause. A dropped future does not start it again: the next call waits for the rest.
    async fn wait(&mut self, pause: Duration) {
        let until = *self.wake_at.get_or_insert_with(|| Instant::now() + pause);
        sleep_until(until).await;
        self.wake_at = None;
    }

    fn deliver(&mut self, event: Event) {
        self.delivered.apply(&event);
        if let Some(task) = self.delivered.task() {
            self.task_id = Some(task.id.clone());
        }
        self.pending.push_back(event);
    }

    fn deliver_missing(&mut self, now: &Task) {
        for update in self.delivered.difference(now) {
            self.deliver(Event::Artifact(update));
        }
    }
}
