//! Listing tasks in pages.

use std::time::Duration;

use a2ad_engine::{Clock, Scope};
use protocol::{ErrorKind, ListTasks, Operation, TaskId, TaskState, Timestamp};

use crate::common::{Setup, TestServer, done, msg, need_input, refusal, refused};

/// Seven tasks, one per second; every third waits for input.
async fn seven_tasks(clock: &Clock) -> (TestServer, Vec<TaskId>) {
    let server = Setup::overlapping().clock(clock).open();
    let mut ids = Vec::new();
    for number in 0..7 {
        server.agent.prepare_turn([], if number % 3 == 0 { need_input("which?") } else { done() });
        ids.push(server.send_for_task(msg("hello")).await.id);
        clock.advance(Duration::from_secs(1));
    }
    (server, ids)
}

fn start() -> Clock {
    Clock::manual(Timestamp::from_millis(1_000_000))
}

async fn list_all_pages(server: &TestServer, filter: &ListTasks) -> Vec<TaskId> {
    let mut req = filter.clone();
    let mut seen = Vec::new();
    loop {
        let page = server.list(req.clone()).await.unwrap();
        assert_eq!(Some(page.page_size), filter.page_size);
        seen.extend(page.tasks.iter().map(|task| task.id.clone()));
        match page.next_page_token {
            Some(token) => {
                assert_eq!(page.tasks.len(), page.page_size as usize);
                req.page_token = Some(token);
            }
            None => {
                assert_eq!(page.total_size, seen.len() as u64);
                return seen;
            }
        }
    }
}

#[tokio::test]
async fn pages_show_every_task_once_newest_status_first() {
    let (server, mut ids) = seven_tasks(&start()).await;
    ids.reverse();
    for size in [1, 2, 3, 6, 7, 8, 100] {
        let filter = ListTasks { page_size: Some(size), ..ListTasks::default() };
        assert_eq!(list_all_pages(&server, &filter).await, ids, "{size}");
    }
    let page = server.list(ListTasks::default()).await.unwrap();
    assert_eq!((page.page_size, page.total_size, page.next_page_token), (50, 7, None));
    let full = server.list(ListTasks { page_size: Some(2), ..ListTasks::default() }).await.unwrap();
    assert_eq!(full.total_size, 7);
}

#[tokio::test]
async fn page_of_large_tasks_is_shorter() {
    let server = Setup::overlapping().open();
    let text = "x".repeat(6 << 20);
    for _ in 0..4 {
        server.agent.prepare_turn([], done());
        server.send(msg(&text)).await.unwrap();
    }
    let mut req = ListTasks { page_size: Some(50), ..ListTasks::default() };
    let mut shown = Vec::new();
    loop {
        let page = server.list(req.clone()).await.unwrap();
        assert_eq!(page.total_size, 4);
        shown.push(page.tasks.len());
        let Some(token) = page.next_page_token else { break };
        req.page_token = Some(token);
    }
    assert_eq!(shown, [2, 2]);
}

#[tokio::test]
async fn tasks_with_equal_timestamps_are_listed_newest_first() {
    let clock = start();
    let server = Setup::overlapping().clock(&clock).open();
    let mut ids = Vec::new();
    for _ in 0..5 {
        server.agent.prepare_turn([], done());
        ids.push(server.send_for_task(msg("hello")).await.id);
    }
    ids.reverse();
    let filter = ListTasks { page_size: Some(2), ..ListTasks::default() };
    assert_eq!(list_all_pages(&server, &filter).await, ids);
}

#[tokio::test]
async fn filters_narrow_the_list_and_its_total() {
    let (server, ids) = seven_tasks(&start()).await;
    let open =
        ListTasks { status: Some(TaskState::InputRequired), page_size: Some(2), ..ListTasks::default() };
    assert_eq!(list_all_pages(&server, &open).await, [ids[6].clone(), ids[3].clone(), ids[0].clone()]);
    let recent = ListTasks {
        status_timestamp_after: Some(Timestamp::from_millis(1_004_000)),
        page_size: Some(2),
        ..ListTasks::default()
    };
    assert_eq!(list_all_pages(&server, &recent).await, [ids[6].clone(), ids[5].clone(), ids[4].clone()]);
    let both = ListTasks { status: Some(TaskState::Completed), ..recent };
    assert_eq!(list_all_pages(&server, &both).await, [ids[5].clone(), ids[4].clone()]);
}

#[tokio::test]
async fn task_that_changes_between_pages_is_not_listed_twice() {
    let clock = start();
    let (server, ids) = seven_tasks(&clock).await;
    let req = ListTasks { page_size: Some(2), ..ListTasks::default() };
    let first = server.list(req.clone()).await.unwrap();
    // The last task of the first page and one of a later page move to the front.
    for id in [&ids[6], &ids[3]] {
        server.cancel(id).await.unwrap();
        clock.advance(Duration::from_secs(1));
    }
    let mut seen: Vec<_> = first.tasks.iter().map(|task| task.id.clone()).collect();
    let mut token = first.next_page_token;
    while let Some(next) = token {
        let page = server.list(ListTasks { page_token: Some(next), ..req.clone() }).await.unwrap();
        seen.extend(page.tasks.iter().map(|task| task.id.clone()));
        token = page.next_page_token;
    }
    assert_eq!(seen, [6, 5, 4, 2, 1, 0].map(|number: usize| ids[number].clone()));
    let front = server.list(req).await.unwrap();
    assert_eq!(front.tasks[0].id, ids[3]);
}

#[tokio::test]
async fn page_token_is_valid_only_for_its_caller_and_filter() {
    let (server, _) = seven_tasks(&start()).await;
    let req = ListTasks { page_size: Some(2), ..ListTasks::default() };
    let token = server.list(req.clone()).await.unwrap().next_page_token.unwrap();
    let with_token = ListTasks { page_token: Some(token.clone()), ..req.clone() };
    assert!(server.list(with_token.clone()).await.is_ok());
    // The page size is not part of the filter.
    assert!(server.list(ListTasks { page_size: Some(3), ..with_token.clone() }).await.is_ok());
    for other in [
        ListTasks { status: Some(TaskState::Completed), ..with_token.clone() },
        ListTasks { context_id: Some("chat".into()), ..with_token.clone() },
        ListTasks { status_timestamp_after: Some(Timestamp::from_millis(1)), ..with_token.clone() },
        ListTasks { page_token: Some(format!("{token}A")), ..req.clone() },
        ListTasks { page_token: Some("made up".into()), ..req.clone() },
    ] {
        let refusal = refusal(server.list(other).await);
        assert_eq!(
            (refusal.kind, refusal.violations[0].field.as_str()),
            (ErrorKind::InvalidParams, "pageToken")
        );
    }
    let elsewhere = Scope::anonymous("elsewhere", "scripted");
    assert_eq!(
        refused(server.call(elsewhere, Operation::ListTasks(with_token)).await),
        ErrorKind::InvalidParams
    );
}
