//! Sees one message through to its outcome, over as many connections as it takes.
//!
//! Agents that number their events are asked for what came after the last one that was heard (`Last-Event-ID`).
//! Of others the whole task is asked for, and what it has beyond what was told is told. The same is done by reading
//! the task now and then where an agent cannot stream, cannot subscribe, or begins a resumed stream without
//! showing the task first, because then nobody knows what was missed. After a break the end is checked against the
//! task as the agent keeps it.
//!
//! The first frame of a stream shows where the task stands and never ends it: what ends a stream is an event.
//! Nothing here has a deadline; whoever follows decides how long.

mod come_back;
mod hear;

use std::{collections::VecDeque, time::Duration};

use protocol::{
    Event, Message, Operation, Reply, Role, SendMessage, Task, TaskId, TaskStatus, model::StatusUpdate,
};
use tokio::time::sleep;

use crate::{Client, Error, EventStream, seen::Seen};

const FIRST_POLL: Duration = Duration::from_millis(20);
const LAST_POLL: Duration = Duration::from_secs(1);

/// What becomes of a message.
pub struct Follow<'a> {
    client: &'a Client,
    state: State,
    /// The message, as it is sent again if need be.
    req: SendMessage,
    task_id: Option<TaskId>,
    seen: Seen,
    told: VecDeque<Event>,
    /// The number of the last event heard.
    cursor: Option<u64>,
    opening: Opening,
    /// The number of the frames that show the task at the start of this connection; `None` before the first.
    shown_at: Option<Option<u64>>,
    /// Where the task stands, as the first frame of a resumed stream shows it.
    shown: Option<TaskStatus>,
    /// An event beyond the opening has been heard on this connection.
    moved_on: bool,
    /// The message may be sent again: the agent takes it for the same.
    replays: bool,
    came_back: bool,
    attempt: u32,
}

/// One thing heard.
#[derive(Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "it is looked at and let go; nothing keeps many of them")]
pub enum FollowEvent {
    /// Something that was not told before.
    Event(Event),
    /// The connection is lost; the next call waits a little and tries again.
    Lost,
}

enum State {
    Open(EventStream),
    /// Not connected, and not trying before this has passed.
    Away(Duration),
    /// Reading the task now and then.
    Polling(Duration),
    /// This status is the last event; what the agent keeps is looked at before.
    Ending(StatusUpdate),
    Done,
}

/// How the stream was asked for.
#[derive(Clone, Copy)]
enum Opening {
    /// By sending the message.
    Send,
    /// By subscribing for what came after this event.
    After(u64),
    /// By subscribing, with nothing known about what was missed.
    Subscribe,
}

impl<'a> Follow<'a> {
    /// Sends the message and follows the stream that answers it. Where the agent does not stream, its task is read
    /// now and then instead.
    pub async fn stream(client: &'a Client, mut req: SendMessage) -> Result<Self, Error> {
        client.name_task(&mut req);
        match client.stream(Operation::SendStreamingMessage(req.clone())).await {
            Err(error) if error.is_unsupported() => {
                // The same refusal may mean that the task takes no more messages; then this call is told so too.
                Self::send(client, SendMessage { return_immediately: true, ..req }).await
            }
            opened => {
                let stream = opened?;
                let replays = stream.replays();
                let state = State::Open(stream);
                Ok(Self { replays, ..Self::new(client, req, state) })
            }
        }
    }

    /// Sends the message and reads its task now and then until it is settled.
    ///
    /// Only a message that begins a task may be answered before the agent is done: asked to answer at once, many
    /// agents answer with the task as it stood before the message, which waits for just that message.
    pub async fn send(client: &'a Client, mut req: SendMessage) -> Result<Self, Error> {
        req.return_immediately &= req.message.task_id.is_none();
        client.name_task(&mut req);
        let reply = client.call(Operation::SendMessage(req.clone())).await?;
        let mut follow = Self::new(client, req, State::Done);
        match reply {
            Reply::SentTask(task) => {
                let settled = task.status.state.is_settled();
                follow.tell(Event::Task(task));
                if !settled {
                    follow.state = State::Polling(FIRST_POLL);
                }
            }
            Reply::SentMessage(message) => follow.tell(Event::Message(message)),
            _ => {}
        }
        Ok(follow)
    }

    /// Follows a task that is there, from where it stands now.
    pub async fn watch(client: &'a Client, id: TaskId) -> Result<Self, Error> {
        // The message is never sent: the task's id is known, and after a break it is the task that is asked for.
        let mut message = Message::new("", Role::User, Vec::new());
        message.task_id = Some(id);
        let req = SendMessage { history_length: Some(0), ..SendMessage::new(message) };
        let mut follow = Self::new(client, req, State::Away(Duration::ZERO));
        if let Some(task) = follow.read_task().await? {
            if task.status.state.is_settled() {
                follow.state = State::Done;
            }
            follow.tell(Event::Task(task));
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
            seen: Seen::default(),
            told: VecDeque::new(),
            cursor: None,
            opening: Opening::Send,
            shown_at: None,
            shown: None,
            moved_on: false,
            replays: false,
            came_back: false,
            attempt: 0,
        }
    }

    /// The task as far as it was told; `None` when there is none.
    pub fn task(&self) -> Option<&Task> {
        self.seen.task()
    }

    /// The task's id, as soon as it is known.
    pub fn task_id(&self) -> Option<&TaskId> {
        self.task_id.as_ref()
    }

    /// What is heard next; `None` when the task is settled and everything was told.
    pub async fn next(&mut self) -> Result<Option<FollowEvent>, Error> {
        loop {
            if let Some(event) = self.told.pop_front() {
                return Ok(Some(FollowEvent::Event(event)));
            }
            match &mut self.state {
                State::Done => return Ok(None),
                State::Open(stream) => match stream.next().await {
                    Ok(Some((seq, event))) => self.hear(seq, event),
                    Ok(None) => {
                        let retry = stream.retry();
                        if self.ended(retry)? {
                            return Ok(Some(FollowEvent::Lost));
                        }
                    }
                    Err(error) if error.is_passing() => {
                        self.lost(None, error)?;
                        return Ok(Some(FollowEvent::Lost));
                    }
                    Err(error) => return Err(error),
                },
                State::Away(pause) => {
                    sleep(*pause).await;
                    if !self.come_back().await? {
                        return Ok(Some(FollowEvent::Lost));
                    }
                }
                State::Polling(pause) => {
                    sleep(*pause).await;
                    let longer = (*pause * 2).min(LAST_POLL);
                    if !self.poll(longer).await? {
                        return Ok(Some(FollowEvent::Lost));
                    }
                }
                State::Ending(update) => {
                    let update = update.clone();
                    self.check_the_end().await;
                    self.tell(Event::Status(update));
                    self.state = State::Done;
                }
            }
        }
    }

    fn tell(&mut self, event: Event) {
        self.seen.take(&event);
        if let Some(task) = self.seen.task() {
            self.task_id = Some(task.id.clone());
        }
        self.told.push_back(event);
    }

    fn tell_missing(&mut self, now: &Task) {
        for update in self.seen.missing(now) {
            self.tell(Event::Artifact(update));
        }
    }
}
