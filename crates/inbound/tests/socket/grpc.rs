//! gRPC on the same port: both services of the protocol, health and reflection.

mod addresses;
mod errors;
mod frames;
mod health;
mod methods;
mod mounted;
mod reflection;
mod streams;

use protocol::{
    GetTask, Message, Operation, Part, Reply, Role, SendMessage, SubscribeToTask, Task, grpc::Service,
};

use crate::common::channel::Channel;

/// Both services.
const BOTH: [Service; 2] = Service::ALL;

/// A message of this text.
fn said(text: &str) -> SendMessage {
    let id = uuid::Uuid::new_v4().to_string();
    SendMessage::new(Message::new(id, Role::User, vec![Part::text(text)]))
}

fn send(text: &str) -> Operation {
    Operation::SendMessage(said(text))
}

/// A message that is answered as soon as it is recorded.
fn send_at_once(text: &str) -> Operation {
    Operation::SendMessage(SendMessage { return_immediately: true, ..said(text) })
}

fn send_streaming(text: &str) -> Operation {
    Operation::SendStreamingMessage(said(text))
}

fn get(task: &Task) -> Operation {
    Operation::GetTask(GetTask { id: task.id.clone(), history_length: None, tenant: None })
}

fn subscribe(task: &Task) -> Operation {
    Operation::SubscribeToTask(SubscribeToTask { id: task.id.clone(), tenant: None })
}

/// The task in an answer.
fn task(reply: Reply) -> Task {
    match reply {
        Reply::SentTask(task) | Reply::Task(task) => task,
        other => panic!("{other:?} is no task"),
    }
}

/// A task that stays open until it is cancelled.
async fn held(channel: &Channel, service: Service) -> Task {
    task(channel.ask(service, &send_at_once("hold")).await)
}
