//! Every task is usable through every interface (protocol generation and binding), whichever interface created it:
//! clients of all interfaces read it, stream it, answer it and cancel it, and see the same task in their own wire form.
//!
//! [`interface::INTERFACES`] is the table of interfaces. Each scenario below runs for every pair of them, one that
//! creates the task and one that acts on it, while clients of all interfaces observe the task.

#![allow(clippy::unwrap_used, reason = "a test fails on any error")]

mod client;
mod interface;
mod server;
mod snapshot;
mod wire;

use std::{collections::HashMap, sync::Arc};

use protocol::{ErrorKind, Role, TaskState};
use tokio::{sync::Semaphore, task::JoinSet};

use crate::{
    client::{Client, NewMessage},
    interface::INTERFACES,
    server::Server,
    snapshot::TaskSnapshot,
};

/// The number of pairs that run concurrently; each holds one connection for every observer.
const MAX_CONCURRENT_PAIRS: usize = 8;

/// Runs a scenario for each pair of interfaces: one creates a task, the other acts on it.
async fn for_each_pair<F>(agent: &'static str, scenario: impl Fn(Client, Client) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let server = Arc::new(Server::start().await);
    let permits = Arc::new(Semaphore::new(MAX_CONCURRENT_PAIRS));
    let (mut scenarios, mut pairs) = (JoinSet::new(), HashMap::new());
    for creator in &INTERFACES {
        for other in &INTERFACES {
            let client = |interface| Client { server: Arc::clone(&server), agent, interface };
            let (scenario, permits) = (scenario(client(creator), client(other)), Arc::clone(&permits));
            let task = scenarios.spawn(async move {
                let _permit = permits.acquire().await;
                scenario.await;
            });
            pairs.insert(task.id(), format!("created by {creator}, then {other}"));
        }
    }
    assert_eq!(pairs.len(), INTERFACES.len() * INTERFACES.len());
    // The failure names every pair that failed, not only the first.
    let mut failed = Vec::new();
    while let Some(ended) = scenarios.join_next().await {
        failed.extend(ended.err().map(|error| pairs[&error.id()].as_str()));
    }
    failed.sort_unstable();
    assert!(failed.is_empty(), "{} pairs failed:\n{}", failed.len(), failed.join("\n"));
}

#[tokio::test]
async fn a_working_task_can_be_read_streamed_and_canceled_through_every_interface() {
    for_each_pair("echo", |creator, other| async move {
        let created = creator.send(NewMessage::new("hold on").return_immediately()).await;
        assert_eq!((created.state, created.artifacts.len()), (TaskState::Working, 0), "{created:?}");
        assert_eq!(created.history, [(Role::User, "hold on".into())]);
        let mut streams = Vec::new();
        for observer in creator.all_interfaces() {
            observer.check_visible(&created).await;
            let mut stream = observer.subscribe(&created.id, None).await.unwrap();
            stream.check_first_frame(&created, "2 Working").await;
            streams.push(stream);
        }

        let canceled = TaskSnapshot { state: TaskState::Canceled, ..created };
        let returned = other.cancel(&canceled.id).await.unwrap();
        // The draft returns history only on request, and its cancel request has no parameter for it.
        let history =
            if other.interface.omits_history_by_default() { vec![] } else { canceled.history.clone() };
        assert_eq!(returned, TaskSnapshot { history, ..canceled.clone() });
        for stream in &mut streams {
            assert_eq!(stream.remaining_lines().await, ["3 Canceled"], "{}", stream.interface);
        }
        for observer in creator.all_interfaces() {
            observer.check_visible(&canceled).await;
        }

        // The task is terminal, and further requests do not change it.
        assert_eq!(other.cancel(&canceled.id).await, Err(ErrorKind::TaskNotCancelable));
        let more = other.try_send(NewMessage::new("go on").to_task(&canceled)).await;
        assert_eq!(more, Err(ErrorKind::UnsupportedOperation));
        other.check_terminal(&canceled, "3 Canceled").await;
        creator.check_visible(&canceled).await;
    })
    .await;
}

#[tokio::test]
async fn input_can_be_given_through_every_interface() {
    for_each_pair("approver", |creator, other| async move {
        let question = "May I proceed with: jump? Answer approve or deny.";
        let paused = creator.send(NewMessage::new("jump")).await;
        assert_eq!((paused.state, paused.status_text.as_deref()), (TaskState::InputRequired, Some(question)));
        let mut streams = Vec::new();
        for observer in creator.all_interfaces() {
            observer.check_visible(&paused).await;
            // A subscriber of a task that waits for input gets its status first and then the events of the next turn.
            let mut stream = observer.subscribe(&paused.id, None).await.unwrap();
            stream.check_first_frame(&paused, &format!("3 InputRequired: {question}")).await;
            streams.push(stream);
        }

        let done = other.send(NewMessage::new("approve").to_task(&paused)).await;
        let new_messages = [(Role::User, "approve".into()), (Role::Agent, "Done: jump".into())];
        let expected = TaskSnapshot {
            state: TaskState::Completed,
            status_text: Some("Done: jump".into()),
            artifacts: vec![("approval".into(), "Approved: jump".into())],
            history: paused.history.iter().cloned().chain(new_messages).collect(),
            ..paused
        };
        assert_eq!(done, expected);
        for stream in &mut streams {
            let turn = ["4 Working", "5 = Approved: jump .", "6 Completed: Done: jump"];
            assert_eq!(stream.remaining_lines().await, turn, "{}", stream.interface);
        }
        for observer in creator.all_interfaces() {
            observer.check_visible(&expected).await;
        }
        assert_eq!(other.cancel(&done.id).await, Err(ErrorKind::TaskNotCancelable));
        other.check_terminal(&done, "6 Completed: Done: jump").await;

        // Only the draft can reopen a completed task.
        let again = other.try_send(NewMessage::new("run").to_task(&done)).await;
        if other.interface.dialect.rules().reopens_finished_tasks {
            let reopened = again.unwrap();
            assert_eq!((reopened.state, reopened.history.len()), (TaskState::InputRequired, 6));
            for observer in creator.all_interfaces() {
                observer.check_visible(&reopened).await;
            }
        } else {
            assert_eq!(again, Err(ErrorKind::UnsupportedOperation));
            creator.check_visible(&done).await;
        }
    })
    .await;
}

#[tokio::test]
async fn rejected_and_auth_required_are_distinct_in_every_interface() {
    for_each_pair("approver", |creator, other| async move {
        let paused = creator.send(NewMessage::new("jump")).await;
        let denied = other.send(NewMessage::new("deny").to_task(&paused)).await;
        assert_eq!(
            (denied.state, denied.status_text.as_deref()),
            (TaskState::Rejected, Some("Denied: jump"))
        );
        let login = creator.send(NewMessage::new("login to it")).await;
        assert_eq!(login.state, TaskState::AuthRequired);
        for observer in creator.all_interfaces() {
            observer.check_visible(&denied).await;
            observer.check_visible(&login).await;
        }
        let again = other.try_send(NewMessage::new("jump").to_task(&denied)).await;
        assert_eq!(again, Err(ErrorKind::UnsupportedOperation));
        other.check_terminal(&denied, "5 Rejected: Denied: jump").await;
        let canceled = other.cancel(&login.id).await.unwrap();
        assert_eq!(canceled.state, TaskState::Canceled);
    })
    .await;
}

#[tokio::test]
async fn a_stream_can_be_resumed_through_every_interface() {
    for_each_pair("slow-writer", |creator, other| async move {
        let lines = [
            "1 Submitted",
            "2 Working: writing section 1 of 2",
            "3 = Section 1 of 2: more about the sea.",
            "4 Working: writing section 2 of 2",
            "5 + Section 2 of 2: more about the sea. .",
            "6 Completed: 2 sections written",
        ];
        let mut stream = creator.stream(NewMessage::new("the sea sections=2 delay=1ms")).await;
        let (id, first) = stream.first_frame().await;
        assert_eq!(first, lines[0]);
        assert_eq!(stream.remaining_lines().await, lines[1..]);

        let finished = other.get(&id).await;
        let text = "Section 1 of 2: more about the sea.\nSection 2 of 2: more about the sea.\n";
        assert_eq!(finished.artifacts, [("text".into(), text.into())]);
        creator.check_visible(&finished).await;
        // A subscription after any event but the last gets the remaining events.
        for seen in 1..lines.len() {
            let mut stream = other.subscribe(&id, Some(seen)).await.unwrap();
            let status = lines[..seen].iter().rfind(|line| !line.contains(" Section ")).unwrap();
            let then = format!("{seen}{}", &status[1..]);
            assert_eq!(stream.first_frame().await, (id.clone(), then), "{other} after {seen}");
            assert_eq!(stream.remaining_lines().await, lines[seen..], "{other} after {seen}");
        }
        other.check_terminal(&finished, lines[5]).await;
    })
    .await;
}
