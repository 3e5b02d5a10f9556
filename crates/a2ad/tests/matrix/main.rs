//! One task, every way in: whoever made it, in whichever generation and binding, everybody reads it, watches it, answers
//! it and cancels it, and is told the same in words of its own.
//!
//! [`speaker::SPEAKERS`] is the table of the ways in. Each story below is told for every pair of them, and all of them
//! look on, so that nobody is left out: who made a task, who acts on it and who watches are free of each other.

#![allow(clippy::unwrap_used, reason = "a test that meets an error is to fail")]

mod client;
mod facts;
mod server;
mod speaker;
mod wire;

use std::{collections::HashMap, sync::Arc};

use protocol::{ErrorKind, Role, TaskState};
use tokio::{sync::Semaphore, task::JoinSet};

use crate::{
    client::{Client, Words},
    facts::Facts,
    server::Server,
    speaker::SPEAKERS,
};

/// How many pairs are at it at a time: each holds a connection for every onlooker.
const AT_A_TIME: usize = 8;

/// Tells a story for each pair of speakers: who makes a task, and who acts on it.
async fn for_each_pair<F>(agent: &'static str, story: impl Fn(Client, Client) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let server = Arc::new(Server::open().await);
    let room = Arc::new(Semaphore::new(AT_A_TIME));
    let (mut told, mut pairs) = (JoinSet::new(), HashMap::new());
    for maker in &SPEAKERS {
        for other in &SPEAKERS {
            let client = |speaker| Client { server: Arc::clone(&server), agent, speaker };
            let (story, room) = (story(client(maker), client(other)), Arc::clone(&room));
            let task = told.spawn(async move {
                let _place = room.acquire().await;
                story.await;
            });
            pairs.insert(task.id(), format!("made by {maker}, then {other}"));
        }
    }
    assert_eq!(pairs.len(), SPEAKERS.len() * SPEAKERS.len());
    // Every pair that fails is named, not only the first.
    let mut failed = Vec::new();
    while let Some(ended) = told.join_next().await {
        failed.extend(ended.err().map(|error| pairs[&error.id()].as_str()));
    }
    failed.sort_unstable();
    assert!(failed.is_empty(), "{} pairs failed:\n{}", failed.len(), failed.join("\n"));
}

#[tokio::test]
async fn a_task_at_work_is_read_watched_and_cancelled_from_everywhere() {
    for_each_pair("echo", |maker, other| async move {
        let made = maker.send(Words::new("hold on").at_once()).await;
        assert_eq!((made.state, made.artifacts.len()), (TaskState::Working, 0), "{made:?}");
        assert_eq!(made.history, [(Role::User, "hold on".into())]);
        let mut watched = Vec::new();
        for onlooker in maker.everyone() {
            onlooker.check_shown(&made).await;
            let mut stream = onlooker.subscribe(&made.id, None).await.unwrap();
            stream.check_first(&made, "2 Working").await;
            watched.push(stream);
        }

        let canceled = Facts { state: TaskState::Canceled, ..made };
        let told = other.cancel(&canceled.id).await.unwrap();
        // The draft shows a history to those who ask for one, and here it has no words to ask with.
        let history = if other.speaker.asks_for_history() { vec![] } else { canceled.history.clone() };
        assert_eq!(told, Facts { history, ..canceled.clone() });
        for stream in &mut watched {
            assert_eq!(stream.rest().await, ["3 Canceled"], "{}", stream.speaker);
        }
        for onlooker in maker.everyone() {
            onlooker.check_shown(&canceled).await;
        }

        // It is over, and whoever comes now changes nothing.
        assert_eq!(other.cancel(&canceled.id).await, Err(ErrorKind::TaskNotCancelable));
        let more = other.try_send(Words::new("go on").to(&canceled)).await;
        assert_eq!(more, Err(ErrorKind::UnsupportedOperation));
        other.check_over(&canceled, "3 Canceled").await;
        maker.check_shown(&canceled).await;
    })
    .await;
}

#[tokio::test]
async fn a_question_is_answered_from_everywhere() {
    for_each_pair("approver", |maker, other| async move {
        let question = "May I proceed with: jump? Answer approve or deny.";
        let asked = maker.send(Words::new("jump")).await;
        assert_eq!((asked.state, asked.said.as_deref()), (TaskState::InputRequired, Some(question)));
        let mut watched = Vec::new();
        for onlooker in maker.everyone() {
            onlooker.check_shown(&asked).await;
            // Who watches a task that waits sees it wait, and then its next turn.
            let mut stream = onlooker.subscribe(&asked.id, None).await.unwrap();
            stream.check_first(&asked, &format!("3 InputRequired: {question}")).await;
            watched.push(stream);
        }

        let done = other.send(Words::new("approve").to(&asked)).await;
        let said = [(Role::User, "approve".into()), (Role::Agent, "Done: jump".into())];
        let expected = Facts {
            state: TaskState::Completed,
            said: Some("Done: jump".into()),
            artifacts: vec![("approval".into(), "Approved: jump".into())],
            history: asked.history.iter().cloned().chain(said).collect(),
            ..asked
        };
        assert_eq!(done, expected);
        for stream in &mut watched {
            let turn = ["4 Working", "5 = Approved: jump .", "6 Completed: Done: jump"];
            assert_eq!(stream.rest().await, turn, "{}", stream.speaker);
        }
        for onlooker in maker.everyone() {
            onlooker.check_shown(&expected).await;
        }
        assert_eq!(other.cancel(&done.id).await, Err(ErrorKind::TaskNotCancelable));
        other.check_over(&done, "6 Completed: Done: jump").await;

        // A task that went well is opened again by the draft alone.
        let again = other.try_send(Words::new("run").to(&done)).await;
        if other.speaker.dialect.reopens() {
            let reopened = again.unwrap();
            assert_eq!((reopened.state, reopened.history.len()), (TaskState::InputRequired, 6));
            for onlooker in maker.everyone() {
                onlooker.check_shown(&reopened).await;
            }
        } else {
            assert_eq!(again, Err(ErrorKind::UnsupportedOperation));
            maker.check_shown(&done).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_refusal_and_a_login_are_told_apart_everywhere() {
    for_each_pair("approver", |maker, other| async move {
        let asked = maker.send(Words::new("jump")).await;
        let denied = other.send(Words::new("deny").to(&asked)).await;
        assert_eq!((denied.state, denied.said.as_deref()), (TaskState::Rejected, Some("Denied: jump")));
        let login = maker.send(Words::new("login to it")).await;
        assert_eq!(login.state, TaskState::AuthRequired);
        for onlooker in maker.everyone() {
            onlooker.check_shown(&denied).await;
            onlooker.check_shown(&login).await;
        }
        let again = other.try_send(Words::new("jump").to(&denied)).await;
        assert_eq!(again, Err(ErrorKind::UnsupportedOperation));
        other.check_over(&denied, "5 Rejected: Denied: jump").await;
        let canceled = other.cancel(&login.id).await.unwrap();
        assert_eq!(canceled.state, TaskState::Canceled);
    })
    .await;
}

#[tokio::test]
async fn a_stream_is_taken_up_from_everywhere() {
    for_each_pair("slow-writer", |maker, other| async move {
        let told = [
            "1 Submitted",
            "2 Working: writing section 1 of 2",
            "3 = Section 1 of 2: more about the sea.",
            "4 Working: writing section 2 of 2",
            "5 + Section 2 of 2: more about the sea. .",
            "6 Completed: 2 sections written",
        ];
        let mut stream = maker.stream(Words::new("the sea sections=2 delay=1ms")).await;
        let (id, first) = stream.begun().await;
        assert_eq!(first, told[0]);
        assert_eq!(stream.rest().await, told[1..]);

        let written = other.get(&id).await;
        let text = "Section 1 of 2: more about the sea.\nSection 2 of 2: more about the sea.\n";
        assert_eq!(written.artifacts, [("text".into(), text.into())]);
        maker.check_shown(&written).await;
        // Behind each event but the last there is something to be told.
        for seen in 1..told.len() {
            let mut stream = other.subscribe(&id, Some(seen)).await.unwrap();
            let status = told[..seen].iter().rfind(|line| !line.contains(" Section ")).unwrap();
            let then = format!("{seen}{}", &status[1..]);
            assert_eq!(stream.begun().await, (id.clone(), then), "{other} behind {seen}");
            assert_eq!(stream.rest().await, told[seen..], "{other} behind {seen}");
        }
        other.check_over(&written, told[5]).await;
    })
    .await;
}
