//! Calls an agent in whichever generation of the protocol its card offers, and answers its questions:
//! `cargo run -p a2ad --example client -- http://127.0.0.1:4245 'the sea' 3`
//!
//! The first argument is the URL, the second one the message, and every further one the answer to a question.

use a2ad::{
    Client, Message, Part, Result,
    client::text,
    model::{Event, Role, TaskId, TaskState},
};

#[tokio::main]
#[allow(clippy::print_stdout, reason = "the program prints the results")]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().unwrap_or_else(|| "http://127.0.0.1:4242".into());
    let mut input = arguments.next().unwrap_or_else(|| "how much is 10 USD in INR?".into());
    let client = Client::discover(&url).await?;
    let mut task = None;
    loop {
        let state = send(&client, input, &mut task).await?;
        if state != Some(TaskState::InputRequired) {
            break;
        }
        let Some(answer) = arguments.next() else { break };
        input = answer;
    }
    if let Some(id) = task {
        let task = client.get_task(id).await?;
        println!("{} is {:?} with {} artifacts", task.id, task.status.state, task.artifacts.len());
    }
    Ok(())
}

/// Sends a text, to a task if there is one, prints the events, and returns the state in which the stream ended.
#[allow(clippy::print_stdout, reason = "the program prints the results")]
async fn send(client: &Client, input: String, task: &mut Option<TaskId>) -> Result<Option<TaskState>> {
    let message = Message { task_id: task.clone(), ..Message::new("", Role::User, vec![Part::text(input)]) };
    let mut events = client.stream(message).await?;
    let mut state = None;
    while let Some(event) = events.next().await {
        match event? {
            Event::Task(started) => *task = Some(started.id),
            Event::Artifact(update) => println!("{}", text::of_parts(&update.artifact.parts).trim_end()),
            Event::Message(message) => println!("{}", message.text()),
            Event::Status(update) => {
                if let Some(message) = &update.status.message {
                    println!("{}", message.text());
                }
                state = Some(update.status.state);
            }
        }
    }
    Ok(state)
}
