//! Calls an agent in whichever generation of the protocol its card offers, and answers its questions:
//! `cargo run -p a2ad --example client -- http://127.0.0.1:4245 'the sea' 3`
//!
//! The first argument is the URL, the second one the message, and every further one the answer to a question. The events
//! are followed over lost connections, and also if the agent does not stream.

use a2ad::{
    Client, Result,
    client::{Follow, FollowEvent, SendMessage, text},
    model::{Event, TaskState},
};

#[tokio::main]
#[allow(clippy::print_stdout, reason = "the program prints the results")]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().unwrap_or_else(|| "http://127.0.0.1:4242".into());
    let input = arguments.next().unwrap_or_else(|| "how much is 10 USD in INR?".into());
    let client = Client::discover(&url).await?;
    let mut request = SendMessage::from(input);
    loop {
        let mut follow = Follow::stream(&client, request).await?;
        while let Some(event) = follow.next().await? {
            print(&event);
        }
        let Some(task) = follow.task() else { return Ok(()) };
        match (task.status.state, arguments.next()) {
            (TaskState::InputRequired, Some(answer)) => {
                request = SendMessage::from(answer).to_task(&task.id);
            }
            (state, _) => {
                println!("{} is {state:?} with {} artifacts", task.id, task.artifacts.len());
                return Ok(());
            }
        }
    }
}

#[allow(clippy::print_stdout, reason = "the program prints the results")]
fn print(event: &FollowEvent) {
    match event {
        FollowEvent::Event(Event::Artifact(update)) => {
            println!("{}", text::of_parts(&update.artifact.parts).trim_end());
        }
        FollowEvent::Event(Event::Message(message)) => println!("{}", message.text()),
        FollowEvent::Event(Event::Status(update)) => {
            if let Some(message) = &update.status.message {
                println!("{}", message.text());
            }
        }
        FollowEvent::Event(Event::Task(_)) | FollowEvent::Lost => {}
    }
}
