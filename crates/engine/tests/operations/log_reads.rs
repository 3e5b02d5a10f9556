//! Logs are read at most once for a call, in slices, and only if the call needs them.

use a2ad_engine::{Call, CallResponse, Frame, Resume, StreamItem, TaskStream, store::MAX_SLICE_BYTES};
use futures_util::future::join_all;
use protocol::{ListTasks, Message, Operation, SubscribeToTask, TaskId, TaskState};

use crate::common::{
    Setup, TestServer, artifact, chunk, done, done_with, history, join, msg, need_input, scope, with_timeout,
};

#[tokio::test]
async fn cancel_reads_the_task_once_for_its_reply() {
    let mut server = Setup::plain().open();
    let (id, _turn) = server.start_task("hello").await;
    server.store.take_log_reads();
    server.cancel(&id).await.unwrap();
    assert_eq!(server.store.take_log_reads(), ["read"]);
    server.cancel(&id).await.unwrap_err();
    assert!(server.store.take_log_reads().is_empty(), "a rejected cancel needs only the row");
}

#[tokio::test]
async fn follow_up_reads_the_log_once() {
    let large = "x".repeat(700 << 10);
    for (text, reads) in [("small", &["work"][..]), (&large, &["work", "entries", "entries"])] {
        let mut server = Setup::plain().open();
        server.agent.prepare_turn([artifact("a", text), chunk("b", text), chunk("b", text)], need_input("?"));
        let asked = server.send_for_task(msg("one")).await;
        server.agent.turn().await;
        server.agent.prepare_turn([chunk("b", "end"), artifact("a", "again")], done());
        server.store.take_log_reads();
        let updated = server.send_for_task(msg("two").to(&asked.id)).await;
        assert_eq!(server.store.take_log_reads(), reads);
        assert_eq!(
            (updated.status.state, history(&updated)),
            (TaskState::Completed, vec!["one".into(), "?".into(), "two".into()])
        );
        let parts: Vec<_> = updated.artifacts.iter().map(|artifact| artifact.parts.len()).collect();
        assert_eq!(parts, [1, 3], "the open artifact is continued");
    }
}

#[tokio::test]
async fn message_to_a_working_task_reads_the_log_once() {
    let mut server = Setup::plain().open();
    let (id, turn) = server.start_task("hello").await;
    turn.send([artifact("a", "b")]);
    server.store.until("report", 1).await;
    server.store.take_log_reads();
    let task = server.send_for_task(msg("more").to(&id).return_immediately()).await;
    assert_eq!((history(&task).len(), task.artifacts.len()), (2, 1));
    assert_eq!(server.store.take_log_reads(), ["entries"]);
}

#[tokio::test]
async fn replay_reads_the_log_once() {
    let server = Setup::plain().open();
    let message = || msg("hello").id("3f2b8c1e-7d4a-4b6f-9c0d-5e8a1b2c3d4e");
    server.agent.prepare_turn([artifact("a", "b")], done());
    let first = server.send_for_task(message()).await;
    server.store.take_log_reads();
    for again in [message(), message().return_immediately()] {
        assert_eq!(server.send_for_task(again).await, first);
        assert_eq!(server.store.take_log_reads(), ["entries"]);
    }
}

#[tokio::test]
async fn claimed_task_is_read_once() {
    let mut server = Setup::plain().slots(1).open();
    let (_, running) = server.start_task("one").await;
    let queued = server.spawn_send(msg("two"));
    server.store.until("accept", 2).await;
    server.store.take_log_reads();
    running.end(done());
    server.agent.turn().await.end(done());
    join(queued).await.unwrap();
    assert_eq!(server.store.take_log_reads(), ["work"]);
}

/// Starts a task and gives it an artifact of many chunks.
async fn large_task(server: &mut TestServer, chunks: usize, chunk_bytes: usize) -> TaskId {
    let text = "x".repeat(chunk_bytes);
    let (id, turn) = server.start_task("hello").await;
    for _ in 0..chunks {
        turn.send([chunk("a", &text)]);
    }
    turn.end(done());
    server.store.until("finish", 1).await;
    id
}

async fn resumed(server: &TestServer, id: &TaskId) -> TaskStream {
    let call = Call { resume: Some(Resume::After(1)), ..Call::new(scope()) };
    let operation = Operation::SubscribeToTask(SubscribeToTask { id: id.clone(), tenant: None });
    match server.call_as(call, operation).await.unwrap() {
        CallResponse::Stream(stream) => stream,
        _ => panic!("a reply where a stream was expected"),
    }
}

/// Reads a stream to its end; returns how many entries it had, and the bytes of the largest item.
async fn read_all(mut stream: TaskStream) -> (usize, usize) {
    let (mut entries, mut largest) = (0, 0);
    while let StreamItem::Frames(frames) = with_timeout(stream.next()).await.unwrap() {
        let sizes = frames.iter().filter_map(|frame| match frame {
            Frame::Entry { entry, .. } => Some(entry.size()),
            Frame::Snapshot { .. } => None,
        });
        entries += sizes.clone().count();
        largest = largest.max(sizes.sum());
    }
    (entries, largest)
}

#[tokio::test]
async fn resumed_streams_hold_one_slice_of_the_log_each() {
    let mut server = Setup::plain().open();
    let id = large_task(&mut server, 60, 200 << 10).await;
    server.store.take_log_reads();
    let streams = join_all((0..20).map(|_| resumed(&server, &id))).await;
    assert!(server.store.take_log_reads().is_empty(), "a resumed stream does not begin with the whole task");
    for (entries, largest) in join_all(streams.into_iter().map(read_all)).await {
        assert_eq!(entries, 62);
        assert!(largest > 900 << 10 && largest <= MAX_SLICE_BYTES, "{largest} bytes at once");
    }
    let reads = server.store.take_log_reads();
    assert_eq!((reads.len(), reads.iter().all(|read| *read == "entries")), (20 * 12, true));
}

#[tokio::test]
async fn list_without_artifacts_and_history_pages_by_what_it_shows() {
    let mut server = Setup::plain().open();
    for _ in 0..2 {
        server.agent.prepare_turn([artifact("a", &"x".repeat(9 << 20))], done());
        server.send_for_task(msg("hello")).await;
        server.agent.turn().await;
    }
    let list = |include_artifacts| ListTasks { include_artifacts, ..ListTasks::default() };
    assert_eq!(server.list(list(true)).await.unwrap().tasks.len(), 1, "two are more than a page may have");
    let page = server.list(list(false)).await.unwrap();
    assert_eq!(page.tasks.iter().map(|task| task.history.len()).collect::<Vec<_>>(), [1, 1]);
}

#[tokio::test]
async fn conversation_is_read_within_a_budget_of_bytes() {
    let mut server = Setup::plain().open();
    let large = "x".repeat(400 << 10);
    for number in 0..4 {
        server.agent.prepare_turn([artifact("a", &large)], done_with(&format!("{number}{large}")));
        server.send_for_task(msg("small").context("chat")).await;
        server.agent.turn().await;
    }
    server.agent.prepare_turn([], done());
    server.send_for_task(msg("last").context("chat")).await;
    let messages = server.agent.turn().await.conversation.messages().await.unwrap();
    let shown: Vec<_> =
        messages.iter().map(Message::text).map(|text| text[..text.len().min(5)].to_owned()).collect();
    assert_eq!(shown, ["small", "2xxxx", "small", "3xxxx"]);
}
