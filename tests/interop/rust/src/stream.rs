//! Streaming sends: the task first, then every event, then the end.

use a2a::TaskState;

use crate::helpers::{
    assert_ends_once, chunks, collect, first, fold, for_each_binding, get, states, texts, user_message,
};

#[tokio::test]
async fn stream_starts_with_the_task_and_ends_with_its_final_status() {
    for_each_binding(async |binding| {
        let client = binding.client("echo").await;
        let req = user_message("stream this", None);
        let events = collect(client.send_streaming_message(&req).await.unwrap()).await;
        let shown = first(&events);
        assert!(matches!(shown.status.state, TaskState::Submitted | TaskState::Working), "{shown:?}");
        assert_eq!(shown.history.as_ref().unwrap()[0].message_id, req.message.message_id);
        assert!(shown.artifacts.as_ref().is_none_or(Vec::is_empty));
        assert_eq!(chunks(&events).len(), 1);
        assert_ends_once(&events, &TaskState::Completed);

        let stored = get(&client, shown).await.unwrap();
        let folded = fold(&events);
        assert_eq!((&folded.status, &folded.artifacts), (&stored.status, &stored.artifacts));
        assert_eq!(texts(&stored), ["stream this"]);
    })
    .await;
}

#[tokio::test]
async fn chunks_of_an_artifact_merge_to_the_stored_artifact() {
    for_each_binding(async |binding| {
        let client = binding.client("slow-writer").await;
        let req = user_message("sections=4 delay=20ms", None);
        let events = collect(client.send_streaming_message(&req).await.unwrap()).await;
        let written = chunks(&events);
        assert!(written.len() >= 4);
        for (at, chunk) in written.iter().enumerate() {
            assert_eq!(chunk.artifact.artifact_id, written[0].artifact.artifact_id);
            assert_eq!(chunk.append.unwrap_or_default(), at > 0, "{at}");
            assert_eq!(chunk.last_chunk.unwrap_or_default(), at == written.len() - 1, "{at}");
        }
        assert_ends_once(&events, &TaskState::Completed);

        let folded = fold(&events);
        let stored = get(&client, &folded).await.unwrap();
        assert_eq!((&folded.status, texts(&folded)), (&stored.status, texts(&stored)));
        assert!(!texts(&stored).concat().is_empty());
    })
    .await;
}

#[tokio::test]
async fn stream_ends_when_input_is_required() {
    for_each_binding(async |binding| {
        let client = binding.client("approver").await;
        let events =
            collect(client.send_streaming_message(&user_message("may I?", None)).await.unwrap()).await;
        assert_eq!(states(&events).last(), Some(&TaskState::InputRequired));
        assert!(!fold(&events).status.message.unwrap().parts.is_empty());
    })
    .await;
}
