//! Contexts (conversations): a task starts its own or joins one by id.

use a2ad_engine::{Call, CallResponse, Clock, Outcome, ResponseNote, Scope, TaskPolicy};
use protocol::{ContextId, ListTasks, Operation, Task, TaskState, Timestamp};

use crate::common::{
    RunningTurn, Setup, agent_message, bare_message, done, done_with, history, join, msg, need_input,
    refusal, reply, scope, task,
};

async fn earlier(turn: &RunningTurn) -> Vec<String> {
    turn.conversation.messages().await.unwrap().iter().map(protocol::Message::text).collect()
}

#[tokio::test]
async fn later_tasks_join_the_context_of_the_first() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut server = setup.open();
        let mut messages = Vec::new();
        let mut context: Option<ContextId> = None;
        for number in 1..=3 {
            let (question, updated) = (format!("question {number}"), format!("answer {number}"));
            server.agent.prepare_turn([], done_with(&updated));
            let asked = msg(&question);
            let asked = if let Some(context) = &context { asked.context(context.clone()) } else { asked };
            let task = server.send_for_task(asked).await;
            let turn = server.agent.turn().await;
            assert_eq!(turn.context_id, task.context_id);
            assert_eq!(earlier(&turn).await, messages);
            assert!(turn.history.is_empty(), "the history has messages of another task");
            assert_eq!(history(&task), [question.clone(), updated.clone()]);
            assert_eq!(context.get_or_insert(task.context_id.clone()), &task.context_id);
            messages.extend([question, updated]);
        }
        server.agent.prepare_turn([], done_with("elsewhere"));
        assert_ne!(Some(server.send_for_task(msg("alone")).await.context_id), context);
        let page = server.list(ListTasks { context_id: context, ..ListTasks::default() }).await.unwrap();
        assert_eq!(page.total_size, 3);
        assert_eq!(history(&page.tasks[2]), ["question 1", "answer 1"]);
    }
}

#[tokio::test]
async fn client_chosen_context_id_is_kept() {
    let mut server = Setup::overlapping().open();
    let mut before = Vec::new();
    for text in ["one", "two", "three"] {
        server.agent.prepare_turn([], done_with("ok"));
        let task = server.send_for_task(msg(text).context("my chat")).await;
        assert_eq!(task.context_id.as_str(), "my chat");
        assert_eq!(earlier(&server.agent.turn().await).await, before);
        before.extend([text.to_owned(), "ok".to_owned()]);
    }
    let client_task = ListTasks { context_id: Some("my chat".into()), ..ListTasks::default() };
    assert_eq!(server.list(client_task).await.unwrap().total_size, 3);
    let unknown = ListTasks { context_id: Some("your chat".into()), ..ListTasks::default() };
    assert_eq!(server.list(unknown).await.unwrap().total_size, 0);
}

#[tokio::test]
async fn bare_message_reply_is_part_of_its_context() {
    let mut server = Setup::overlapping().open();
    server.agent.prepare_turn([bare_message("hello yourself")], done_with(""));
    server.send(msg("hello").context("chat")).await.unwrap();
    server.agent.turn().await;
    server.agent.prepare_turn([], done_with("ok"));
    server.send(msg("go on").context("chat")).await.unwrap();
    assert_eq!(earlier(&server.agent.turn().await).await, ["hello", "hello yourself"]);
}

#[tokio::test]
async fn context_id_of_another_tenant_starts_a_new_context() {
    let mut server = Setup::overlapping().open();
    server.agent.prepare_turn([], done_with("ours"));
    let ours = server.send_for_task(msg("hello")).await;
    server.agent.turn().await;
    for name in [ours.context_id.as_str(), "shared name"] {
        let mut tasks: Vec<Task> = Vec::new();
        for tenant in ["default", "elsewhere"] {
            server.agent.prepare_turn([], done_with("ok"));
            let send = Operation::SendMessage(msg("hi").context(name).into());
            let answered = server.call(Scope::anonymous(tenant, "scripted"), send).await.unwrap();
            tasks.push(task(reply(answered)));
            let turn = server.agent.turn().await;
            let known = tenant == "default" && name != "shared name";
            assert_eq!(earlier(&turn).await.len(), if known { 2 } else { 0 }, "{tenant} {name}");
        }
        assert!(tasks.iter().all(|task| task.context_id.as_str() == name));
    }
}

/// A call under a profile with `resume_by_context`.
fn call_with_resume_by_context() -> Call {
    let task_policy = TaskPolicy { resume_by_context: true, ..TaskPolicy::default() };
    Call { task_policy, ..Call::new(scope()) }
}

#[tokio::test]
async fn message_to_a_context_continues_its_waiting_task() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut server = setup.open();
        for outcome in [need_input("which?"), Outcome::NeedAuth { message: agent_message("which?") }] {
            server.agent.prepare_turn([], outcome);
            let asked = server.send_for_task(msg("one of them")).await;
            server.agent.turn().await;
            let context = || asked.context_id.clone();
            // Not continued: from another context, without a context, or without `resume_by_context`.
            for other in [msg("blue"), msg("blue").context("elsewhere")] {
                server.agent.prepare_turn([], done());
                let created =
                    task(reply(server.send_as(call_with_resume_by_context(), other).await.unwrap()));
                assert_ne!(created.id, asked.id);
                server.agent.turn().await;
            }
            server.agent.prepare_turn([], done());
            assert_ne!(server.send_for_task(msg("blue").context(context())).await.id, asked.id);
            server.agent.turn().await;

            server.agent.prepare_turn([], done());
            let updated =
                server.send_as(call_with_resume_by_context(), msg("blue").context(context())).await.unwrap();
            let updated = task(reply(updated));
            assert_eq!((&updated.id, updated.status.state), (&asked.id, TaskState::Completed));
            assert_eq!(history(&updated), ["one of them", "which?", "blue"]);
            server.agent.turn().await;
            // Nothing waits in the context now, so a new task starts.
            server.agent.prepare_turn([], done());
            let next =
                server.send_as(call_with_resume_by_context(), msg("red").context(context())).await.unwrap();
            let next = task(reply(next));
            assert_ne!(next.id, asked.id);
            assert_eq!(next.context_id, asked.context_id);
            server.agent.turn().await;
        }
    }
}

#[tokio::test]
async fn newest_waiting_task_of_a_context_is_continued() {
    let clock = Clock::manual(Timestamp::from_millis(1_000));
    let server = Setup::overlapping().clock(&clock).open();
    let auth = || Outcome::NeedAuth { message: agent_message("who?") };
    let mut waiting = Vec::new();
    for outcome in [need_input("one?"), auth(), need_input("two?"), auth(), need_input("three?")] {
        clock.advance(std::time::Duration::from_millis(1));
        server.agent.prepare_turn([], outcome);
        waiting.push(server.send_for_task(msg("hello").context("chat")).await.id);
    }
    for newest in waiting.into_iter().rev() {
        server.agent.prepare_turn([], done());
        let updated =
            server.send_as(call_with_resume_by_context(), msg("here").context("chat")).await.unwrap();
        assert_eq!(task(reply(updated)).id, newest);
    }
}

#[tokio::test]
async fn retry_of_a_message_to_a_context_is_deduplicated() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let server = setup.open();
        server.agent.prepare_turn([], need_input("which?"));
        server.send(msg("one of them").context("chat")).await.unwrap();
        let message = msg("blue").context("chat");
        server.agent.prepare_turn([], done());
        let first = server.send_as(call_with_resume_by_context(), message.clone()).await.unwrap();
        server.agent.prepare_turn([], done());
        let second = server.send_as(call_with_resume_by_context(), message).await.unwrap();
        assert!(
            matches!(second, CallResponse::Noted(ResponseNote::Replayed, _)),
            "the retry was not deduplicated"
        );
        assert_eq!(reply(first), reply(second));
        assert_eq!(server.list(ListTasks::default()).await.unwrap().total_size, 1);
    }
}

#[tokio::test]
async fn retry_of_a_message_to_a_context_reaches_no_other_task() {
    let server = Setup::overlapping().open();
    for _ in 0..2 {
        server.agent.prepare_turn([], need_input("which?"));
        server.send(msg("one of them").context("chat")).await.unwrap();
    }
    let message = msg("blue").context("chat");
    server.agent.prepare_turn([], done());
    let first = server.send_as(call_with_resume_by_context(), message.clone()).await.unwrap();
    // Another task still waits in the context.
    server.agent.prepare_turn([], done());
    let second = server.send_as(call_with_resume_by_context(), message.clone()).await.unwrap();
    assert!(
        matches!(second, CallResponse::Noted(ResponseNote::Replayed, _)),
        "the retry continued another task"
    );
    assert_eq!(reply(first), reply(second));
    assert_eq!(server.count(TaskState::InputRequired).await, 1);
    // The duplicate is still detected when the context has newer tasks.
    server.agent.clear_prepared();
    server.agent.prepare_turn([], done());
    server.send(msg("something else").context("chat")).await.unwrap();
    server.agent.prepare_turn([], done());
    let third = server.send_as(call_with_resume_by_context(), message).await.unwrap();
    assert!(matches!(third, CallResponse::Noted(ResponseNote::Replayed, _)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn message_to_a_context_without_waiting_task_starts_a_task() {
    let server = Setup::overlapping().open();
    for round in 0..50 {
        let chat = format!("chat {round}");
        server.agent.prepare_turn([], need_input("which?"));
        server.send(msg("one of them").context(chat.as_str())).await.unwrap();
        // More than enough, because a call that loses a race retries and may run the agent again.
        for _ in 0..32 {
            server.agent.prepare_turn([], done());
        }
        let calls: Vec<_> = (0..4)
            .map(|number| {
                let message = msg(&format!("answer {number}")).context(chat.as_str());
                server.spawn_send_as(call_with_resume_by_context(), message)
            })
            .collect();
        for call in calls {
            let updated = task(reply(join(call).await.unwrap()));
            assert_eq!(updated.status.state, TaskState::Completed);
        }
        server.agent.clear_prepared();
    }
}

#[tokio::test]
async fn known_contexts_only_rejects_unknown_contexts() {
    let server = Setup::overlapping().open();
    let strict = |scope: Scope| {
        let task_policy = TaskPolicy { known_contexts_only: true, ..TaskPolicy::default() };
        Call { task_policy, ..Call::new(scope) }
    };
    server.agent.prepare_turn([], done());
    let own = server.send_for_task(msg("hello")).await;
    server.agent.prepare_turn([], done());
    server.send(msg("hello").context("chat")).await.unwrap();
    server.agent.prepare_turn([bare_message("a bare answer")], done());
    server.send(msg("hello").context("bare")).await.unwrap();
    for known in [own.context_id.as_str(), "chat", "bare"] {
        server.agent.prepare_turn([], done());
        let updated = server.send_as(strict(scope()), msg("more").context(known)).await.unwrap();
        assert_eq!(task(reply(updated)).context_id.as_str(), known);
    }
    // A context of another tenant and a missing one give the same error.
    let other_tenant = Scope::anonymous("elsewhere", "scripted");
    let mut refusals = Vec::new();
    for unknown in [own.context_id.as_str(), "chat", "bare", "nobody's", ""] {
        let refused = server.send_as(strict(other_tenant.clone()), msg("more").context(unknown)).await;
        refusals.push(format!("{:?}", refusal(refused)));
    }
    assert!(refusals.iter().all(|refusal| *refusal == refusals[0]), "{refusals:?}");
    assert!(refusals[0].contains("message.contextId"), "{}", refusals[0]);
    // Without a context id a new context is started.
    server.agent.prepare_turn([], done());
    server.send_as(strict(other_tenant), msg("hello")).await.unwrap();
}
