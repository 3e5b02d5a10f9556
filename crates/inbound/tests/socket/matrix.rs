//! Watchers of one task, and tasks of one context, in every version. `a2ad/tests/matrix` has the rest, for all bindings.

use protocol::ErrorKind;

use crate::common::{
    Server, Setup,
    agents::paced,
    generation::{Client, Frame, Generation, TaskSummary, UserMessage},
};

/// Every combination of the generation that creates a task and the one that reads it.
fn pairs<'a>(server: &'a Server, path: &'a str) -> impl Iterator<Item = (Client<'a>, Client<'a>)> {
    let client = move |generation| Client { server, path, generation };
    let pairs =
        Generation::ALL.into_iter().flat_map(|creator| Generation::ALL.map(|reader| (creator, reader)));
    pairs.map(move |(creator, reader)| (client(creator), client(reader)))
}

fn lines(frames: &[Frame]) -> Vec<String> {
    frames.iter().map(Frame::summary).collect()
}

#[tokio::test]
async fn subscribers_of_every_generation_get_the_same_events() {
    let (agent, pace) = paced();
    let server = Setup { agents: vec![agent], ..Setup::default() }.open().await;
    for creator in
        Generation::ALL.map(|generation| Client { server: &server, path: "/a2a/paced", generation })
    {
        let id = TaskSummary::of(&creator.send(UserMessage::new("go").without_waiting()).await).id;
        let mut watched = Vec::new();
        for generation in Generation::ALL {
            let watcher = Client { generation, ..creator };
            let mut wire = watcher.subscribe(&id, None).await;
            assert_eq!(watcher.frame(&mut wire).await.unwrap().summary(), "2 Working");
            watched.push((watcher, wire));
        }
        pace.add_permits(1);
        for (watcher, wire) in &mut watched {
            assert_eq!(watcher.frame(wire).await.unwrap().summary(), "3 = one", "{:?}", watcher.generation);
        }
        // A later subscriber gets the current content; the draft sends it in chunks.
        for generation in Generation::ALL {
            let late = Client { generation, ..creator };
            let mut wire = late.subscribe(&id, None).await;
            assert_eq!(late.frame(&mut wire).await.unwrap().summary(), "3 Working", "{generation:?}");
            if generation == Generation::Draft {
                assert_eq!(late.frame(&mut wire).await.unwrap().summary(), "3 = one");
            }
            watched.push((late, wire));
        }
        pace.add_permits(2);
        for (watcher, mut wire) in watched {
            let rest = watcher.frames(&mut wire).await;
            assert_eq!(lines(&rest), ["4 + two", "5 + three .", "6 Completed"], "{:?}", watcher.generation);
        }
    }
}

#[tokio::test]
async fn context_is_shared_by_every_generation() {
    let server = Server::open().await;
    for (creator, reader) in pairs(&server, "/a2a/echo") {
        let case = format!("made in {:?}, joined in {:?}", creator.generation, reader.generation);
        for name in [Some("talk-1"), None] {
            let message = UserMessage { context: name, ..UserMessage::new("one") };
            let first = TaskSummary::of(&creator.send(message).await);
            let second =
                TaskSummary::of(&reader.send(UserMessage::new("two").in_context(&first.context)).await);
            assert_eq!(first.context, second.context, "{case}");
            assert!(name.is_none_or(|name| first.context == name), "{case}");
            assert_ne!(first.id, second.id, "{case}");
            let elsewhere =
                reader.try_send(UserMessage::new("three").to_task(&first.id).in_context("elsewhere")).await;
            reader.check_error(&elsewhere, ErrorKind::InvalidParams);
        }
    }
}
