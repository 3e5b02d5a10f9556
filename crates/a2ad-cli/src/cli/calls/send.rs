//! `a2ad send`: sends a message to an agent, waits for the task and prints the result.

use clap::Args;
use client::{Client, Error, Follow, FollowEvent, SendReply};
use protocol::{
    ErrorKind, Event, GetTask, Message, Part, Reply, Role, SendMessage, Task, TaskId, TaskState, dialect::v1,
    json::write::Writer,
};

use super::compose::MessageFlags;

use crate::cli::failure::{Failure, code};

use super::outcome;

use super::printer::Printer;

use super::session::{FolderFlags, Session, SessionFlags};

#[derive(Debug, Args)]
pub(crate) struct SendFlags {
    #[command(flatten)]
    session: SessionFlags,
    #[command(flatten)]
    message: MessageFlags,
    /// Send to this task instead of a new one.
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    #[command(flatten)]
    waiting: WaitFlags,
    #[command(flatten)]
    folder: FolderFlags,
}

/// How to wait for the result. By default the task is polled, so that its id is known while it runs.
#[derive(Debug, Default, Args)]
pub(crate) struct WaitFlags {
    /// Do not wait for the result.
    #[arg(long = "async", conflicts_with = "blocking")]
    no_wait: bool,
    /// Wait in a single request that returns when the task has settled, instead of polling.
    #[arg(long)]
    blocking: bool,
}

pub(crate) fn run(flags: SendFlags) -> Result<u8, Failure> {
    let SendFlags { session, message, task, waiting, folder } = flags;
    let req = message.compose(task.as_deref())?;
    Session::run(session.saving(folder), |session| async move { send(&session, req, &waiting).await })
}

/// Sends a message and prints the result.
pub(crate) async fn send(session: &Session, req: SendMessage, waiting: &WaitFlags) -> Result<u8, Failure> {
    let client = session.client().await?;
    check_task_exists(&client, req.message.task_id.as_ref()).await?;
    session.record_task(req.message.task_id.as_ref());
    session.record_sent();
    if waiting.no_wait {
        return match client.send(req).await? {
            SendReply::Task(task) => print_task(session, &task),
            SendReply::Message(message) => print_message(session, &message),
        };
    }
    wait(session, &client, SendMessage { return_immediately: !waiting.blocking, ..req }).await
}

/// Checks that the task exists where clients choose task ids: there, a message to an unknown task would create it.
/// Any other error is reported when the message is sent.
pub(crate) async fn check_task_exists(client: &Client, task: Option<&TaskId>) -> Result<(), Failure> {
    let Some(id) = task.filter(|_| client.dialect().rules().clients_choose_task_ids) else { return Ok(()) };
    match client.get_task(GetTask { history_length: Some(0), ..GetTask::from(id) }).await {
        Err(Error::Protocol(error)) if error.kind == ErrorKind::TaskNotFound => {
            Err(Error::Protocol(error).into())
        }
        _ => Ok(()),
    }
}

async fn wait(session: &Session, client: &Client, req: SendMessage) -> Result<u8, Failure> {
    match settle(session, client, req).await? {
        Settled::Task(task) => print_task(session, &task),
        Settled::Message(message) => print_message(session, &message),
        Settled::Nothing => Ok(code::SUCCESS),
    }
}

/// How a sent message has been answered.
enum Settled {
    Task(Box<Task>),
    Message(Message),
    Nothing,
}

/// Sends a message and waits until its task has settled.
async fn settle(session: &Session, client: &Client, req: SendMessage) -> Result<Settled, Failure> {
    let mut follow = Follow::send(client, req).await?;
    session.record_task(follow.task_id());
    let mut lost = false;
    while let Some(follow_event) = follow.next().await? {
        match follow_event {
            FollowEvent::Lost if lost => {}
            FollowEvent::Lost => {
                lost = true;
                session.output.message("the agent cannot be reached; retrying");
            }
            FollowEvent::Event(Event::Message(message)) => return Ok(Settled::Message(message)),
            FollowEvent::Event(event) => {
                lost = false;
                progress(session, &event);
            }
        }
    }
    Ok(follow.task().map_or(Settled::Nothing, |task| Settled::Task(Box::new(task.clone()))))
}

/// Sends a message, answers the questions of its task as long as there are answers, and prints the result.
pub(crate) async fn converse(
    session: &Session,
    mut req: SendMessage,
    answers: &mut impl AnswerSource,
) -> Result<u8, Failure> {
    let client = session.client().await?;
    session.record_sent();
    loop {
        let task = match settle(session, &client, req).await? {
            Settled::Task(task) => task,
            Settled::Message(message) => return print_message(session, &message),
            Settled::Nothing => return Ok(code::SUCCESS),
        };
        if task.status.state != TaskState::InputRequired {
            return print_task(session, &task);
        }
        let Some(answer) = answers.next(session, &task).await? else { return print_task(session, &task) };
        session.record_activity();
        let mut message = Message::new(uuid::Uuid::new_v4().to_string(), Role::User, vec![answer]);
        message.task_id = Some(task.id.clone());
        req = SendMessage { history_length: Some(0), ..SendMessage::new(message) };
    }
}

/// Where the answers to questions come from.
pub(crate) trait AnswerSource {
    /// The answer to the question of a task; `None` if there is none.
    async fn next(&mut self, session: &Session, task: &Task) -> Result<Option<Part>, Failure>;
}

/// Reports the progress of a task if stderr is a terminal.
pub(crate) fn progress(session: &Session, event: &Event) {
    let status = match event {
        Event::Task(task) => &task.status,
        Event::Status(update) => &update.status,
        Event::Message(_) | Event::Artifact(_) => return,
    };
    if !status.state.is_settled() {
        let status_text = status.message.as_ref().map(client::text::of_message).unwrap_or_default();
        session.output.progress(&format!("{} {status_text}", outcome::state_name(status.state)));
    }
}

fn print_task(session: &Session, task: &Task) -> Result<u8, Failure> {
    if session.json() {
        print_reply(session, &Reply::SentTask(task.clone()))?;
        return Ok(crate::cli::failure::code_of_state(task.status.state));
    }
    let mut printer = Printer::new(&session.output);
    printer.task(task)?;
    outcome::print_outcome(session, task, &mut printer)
}

fn print_message(session: &Session, message: &Message) -> Result<u8, Failure> {
    if session.json() {
        print_reply(session, &Reply::SentMessage(message.clone()))?;
    } else {
        Printer::new(&session.output).message_text(&message.parts)?;
    }
    Ok(code::SUCCESS)
}

/// Prints a reply as A2A 1.0 JSON.
pub(crate) fn print_reply(session: &Session, reply: &Reply) -> Result<(), Failure> {
    let mut writer = Writer::new();
    v1::reply::encode(&mut writer, reply);
    Ok(session.output.document(&writer.finish())?)
}
