//! A task that requests input, receives it in a second message, and continues with the same id.

use a2a::{Role, TaskState};

use crate::helpers::{BINDINGS, assert_ends_once, collect, first, for_each_binding, get, send, user_message};

#[tokio::test]
async fn answer_decides_the_final_state() {
    for_each_binding(async |binding| {
        let client = binding.client("approver").await;
        for (answer, outcome) in [("approve", TaskState::Completed), ("deny", TaskState::Rejected)] {
            let request = user_message("please do it", None);
            let waiting = send(&client, &request).await;
            assert_eq!(waiting.status.state, TaskState::InputRequired);
            let question = waiting.status.message.as_ref().unwrap();
            assert!(question.role == Role::Agent && !question.parts.is_empty(), "{question:?}");

            let reply = user_message(answer, Some(&waiting));
            let finished = send(&client, &reply).await;
            assert_eq!((&finished.id, &finished.context_id), (&waiting.id, &waiting.context_id));
            assert_eq!(finished.status.state, outcome);
            let stored = get(&client, &waiting).await.unwrap();
            assert_eq!(stored.status, finished.status);
            let by_user = stored.history.iter().flatten().filter(|message| message.role == Role::User);
            let ids: Vec<&String> = by_user.map(|message| &message.message_id).collect();
            assert_eq!(ids, [&request.message.message_id, &reply.message.message_id]);
        }
    })
    .await;
}

#[tokio::test]
async fn second_turn_can_be_streamed() {
    for_each_binding(async |binding| {
        let client = binding.client("approver").await;
        let waiting = send(&client, &user_message("please do it", None)).await;
        let reply = user_message("approve", Some(&waiting));
        let events = collect(client.send_streaming_message(&reply).await.unwrap()).await;
        let shown = first(&events);
        assert_eq!(shown.id, waiting.id);
        let last = shown.history.as_ref().unwrap().last().unwrap();
        assert_eq!(last.message_id, reply.message.message_id);
        assert_ends_once(&events, &TaskState::Completed);
    })
    .await;
}

#[tokio::test]
async fn task_can_change_bindings_between_turns() {
    for_each_binding(async |binding| {
        for other in BINDINGS {
            let waiting = send(&binding.client("approver").await, &user_message("please do it", None)).await;
            let finished =
                send(&other.client("approver").await, &user_message("approve", Some(&waiting))).await;
            assert_eq!(
                (&finished.id, &finished.status.state),
                (&waiting.id, &TaskState::Completed),
                "{other:?}"
            );
        }
    })
    .await;
}
