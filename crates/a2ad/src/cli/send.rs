//! `a2ad send`: says something to an agent, waits, and prints what becomes of it.

use clap::Args;
use client::{Client, Error, Follow, FollowEvent};
use protocol::{
    ErrorKind, Event, GetTask, Message, Operation, Reply, SendMessage, Task, TaskId, dialect::v1,
    json::write::Writer,
};

use super::{
    compose::MessageFlags,
    outcome,
    printer::Printer,
    session::{Session, SessionFlags},
    stop::{Stop, code},
};

#[derive(Debug, Args)]
pub(super) struct SendFlags {
    #[command(flatten)]
    session: SessionFlags,
    #[command(flatten)]
    message: MessageFlags,
    /// The task to say it to; a new one otherwise.
    #[arg(long, value_name = "ID")]
    task: Option<String>,
    #[command(flatten)]
    waiting: WaitFlags,
}

/// How the outcome is waited for. Usually the task is read now and then, so that its id is known while it runs.
#[derive(Debug, Args)]
pub(super) struct WaitFlags {
    /// Do not wait for the outcome.
    #[arg(long = "async", conflicts_with = "blocking")]
    no_wait: bool,
    /// Have the agent answer when the task is settled, in one call.
    #[arg(long)]
    blocking: bool,
}

pub(super) fn run(flags: SendFlags) -> Result<u8, Stop> {
    let SendFlags { session, message, task, waiting } = flags;
    let req = message.compose(task.as_deref())?;
    Session::run(session, |session| async move { send(&session, req, &waiting).await })
}

/// Sends a message and prints the outcome.
pub(super) async fn send(session: &Session, req: SendMessage, waiting: &WaitFlags) -> Result<u8, Stop> {
    let client = session.client().await?;
    look_for(&client, req.message.task_id.as_ref()).await?;
    session.note(req.message.task_id.as_ref());
    session.sending();
    if waiting.no_wait {
        return match client.call(Operation::SendMessage(req)).await? {
            Reply::SentTask(task) => print_task(session, &task),
            Reply::SentMessage(message) => print_message(session, &message),
            _ => Ok(code::DONE),
        };
    }
    wait(session, &client, SendMessage { return_immediately: !waiting.blocking, ..req }).await
}

/// Looks for the task a message is for where clients name tasks: there, a message to one that is not there would begin
/// it. Whatever else is wrong is told when the message is sent.
pub(super) async fn look_for(client: &Client, task: Option<&TaskId>) -> Result<(), Stop> {
    let Some(id) = task.filter(|_| client.dialect().clients_name_tasks()) else { return Ok(()) };
    let get = GetTask { id: id.clone(), history_length: Some(0), tenant: None };
    match client.call(Operation::GetTask(get)).await {
        Err(Error::Protocol(error)) if error.kind == ErrorKind::TaskNotFound => {
            Err(Error::Protocol(error).into())
        }
        _ => Ok(()),
    }
}

async fn wait(session: &Session, client: &Client, req: SendMessage) -> Result<u8, Stop> {
    let mut follow = Follow::send(client, req).await?;
    session.note(follow.task_id());
    let mut lost = false;
    while let Some(heard) = follow.next().await? {
        match heard {
            FollowEvent::Lost if lost => {}
            FollowEvent::Lost => {
                lost = true;
                session.screen.say("the agent cannot be reached; trying again");
            }
            FollowEvent::Event(Event::Message(message)) => return print_message(session, &message),
            FollowEvent::Event(event) => {
                lost = false;
                progress(session, &event);
            }
        }
    }
    match follow.task() {
        Some(task) => print_task(session, task),
        None => Ok(code::DONE),
    }
}

/// Says how a task goes, where somebody watches.
pub(super) fn progress(session: &Session, event: &Event) {
    let status = match event {
        Event::Task(task) => &task.status,
        Event::Status(update) => &update.status,
        Event::Message(_) | Event::Artifact(_) => return,
    };
    if !status.state.is_settled() {
        let said = status.message.as_ref().map(client::text::of_message).unwrap_or_default();
        session.screen.progress(&format!("{} {said}", outcome::word(status.state)));
    }
}

fn print_task(session: &Session, task: &Task) -> Result<u8, Stop> {
    if session.json() {
        print_reply(session, &Reply::SentTask(task.clone()))?;
        return Ok(super::stop::code_of_state(task.status.state));
    }
    let mut printer = Printer::new(&session.screen);
    printer.task(task)?;
    outcome::conclude(session, task, &mut printer)
}

fn print_message(session: &Session, message: &Message) -> Result<u8, Stop> {
    if session.json() {
        print_reply(session, &Reply::SentMessage(message.clone()))?;
    } else {
        Printer::new(&session.screen).words(&message.parts)?;
    }
    Ok(code::DONE)
}

/// Prints an answer as A2A 1.0 has it.
pub(super) fn print_reply(session: &Session, reply: &Reply) -> Result<(), Stop> {
    let mut writer = Writer::new();
    v1::reply::encode(&mut writer, reply);
    Ok(session.screen.document(&writer.finish())?)
}
