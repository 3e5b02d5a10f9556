//! The gRPC binding: both A2A services, health and reflection.

mod addresses;
mod embedded;
mod errors;
mod frames;
mod health;
mod memory;
mod methods;
mod reflection;
mod streams;

use protocol::{
    GetTask, Message, Operation, Part, Reply, Role, SendMessage, SubscribeToTask, Task, grpc::Service,
};

use crate::common::channel::Channel;

const BOTH: [Service; 2] = Service::ALL;

fn user_message(text: &str) -> SendMessage {
    let id = uuid::Uuid::new_v4().to_string();
    SendMessage::new(Message::new(id, Role::User, vec![Part::text(text)]))
}

fn send(text: &str) -> Operation {
    Operation::SendMessage(user_message(text))
}

/// A send that returns as soon as the task is recorded.
fn send_without_waiting(text: &str) -> Operation {
    Operation::SendMessage(SendMessage { return_immediately: true, ..user_message(text) })
}

fn send_streaming(text: &str) -> Operation {
    Operation::SendStreamingMessage(user_message(text))
}

fn get(task: &Task) -> Operation {
    Operation::GetTask(GetTask { id: task.id.clone(), history_length: None, tenant: None })
}

fn subscribe(task: &Task) -> Operation {
    Operation::SubscribeToTask(SubscribeToTask { id: task.id.clone(), tenant: None })
}

/// The task in a reply.
fn task(reply: Reply) -> Task {
    match reply {
        Reply::SentTask(task) | Reply::Task(task) => task,
        other => panic!("{other:?} is no task"),
    }
}

/// A task that stays open until it is cancelled.
async fn held(channel: &Channel, service: Service) -> Task {
    task(channel.ask(service, &send_without_waiting("hold")).await)
}
