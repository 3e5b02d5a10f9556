//! Paging through many tasks.

use a2a::{ListTasksRequest, ListTasksResponse, Task, TaskState, error_code};

use crate::helpers::{Client, cancel, for_each_binding, send, user_message};

fn in_context(context: &str) -> ListTasksRequest {
    ListTasksRequest {
        context_id: Some(context.to_owned()),
        status: None,
        page_size: None,
        page_token: None,
        history_length: None,
        status_timestamp_after: None,
        include_artifacts: None,
        tenant: None,
    }
}

/// Every task that matches a filter, page by page.
async fn list_all(client: &Client, page_size: i32, filter: &ListTasksRequest) -> Vec<Task> {
    let mut tasks: Vec<Task> = Vec::new();
    let mut filter = ListTasksRequest { page_size: Some(page_size), ..filter.clone() };
    let mut totals = Vec::new();
    loop {
        let ListTasksResponse { tasks: more, next_page_token, page_size: reported_size, total_size } =
            client.list_tasks(&filter).await.unwrap();
        assert_eq!(reported_size, page_size);
        assert!(i32::try_from(more.len()).unwrap() <= page_size);
        tasks.extend(more);
        totals.push(total_size);
        if next_page_token.is_empty() {
            assert!(totals.iter().all(|total| usize::try_from(*total).unwrap() == tasks.len()), "{totals:?}");
            return tasks;
        }
        filter.page_token = Some(next_page_token);
    }
}

fn ids(tasks: &[Task]) -> Vec<&str> {
    tasks.iter().map(|task| task.id.as_str()).collect()
}

async fn create_tasks(client: &Client, context: &str, count: usize) -> Vec<Task> {
    let mut tasks = Vec::new();
    for n in 0..count {
        let mut req = user_message(&format!("number {n}"), None);
        req.message.context_id = Some(context.to_owned());
        tasks.push(send(client, &req).await);
    }
    tasks
}

#[tokio::test]
async fn paging_returns_every_task_once_newest_first() {
    for_each_binding(async |binding| {
        let client = binding.client("echo").await;
        let context = uuid::Uuid::new_v4().to_string();
        let mut sent = create_tasks(&client, &context, 15).await;
        sent.reverse();
        for page_size in [1, 7, 15, 100] {
            assert_eq!(ids(&list_all(&client, page_size, &in_context(&context)).await), ids(&sent));
        }
    })
    .await;
}

#[tokio::test]
async fn list_is_filtered_by_state_and_includes_artifacts_on_request() {
    for_each_binding(async |binding| {
        let client = binding.client("approver").await;
        let context = uuid::Uuid::new_v4().to_string();
        let waiting = create_tasks(&client, &context, 3).await;
        let done = send(&client, &user_message("approve", Some(&waiting[0]))).await;
        cancel(&client, &waiting[1]).await.unwrap();
        for (state, expected) in [
            (TaskState::Completed, vec![&waiting[0].id]),
            (TaskState::Canceled, vec![&waiting[1].id]),
            (TaskState::InputRequired, vec![&waiting[2].id]),
            (TaskState::Working, vec![]),
        ] {
            let filter = ListTasksRequest { status: Some(state.clone()), ..in_context(&context) };
            assert_eq!(ids(&list_all(&client, 2, &filter).await), expected, "{state:?}");
        }
        let all = list_all(&client, 10, &in_context(&context)).await;
        assert!(all.iter().all(|task| task.artifacts.as_ref().is_none_or(Vec::is_empty)));
        let filter = ListTasksRequest { include_artifacts: Some(true), ..in_context(&context) };
        let shown = list_all(&client, 10, &filter).await;
        let first = shown.iter().find(|task| task.id == done.id).unwrap();
        assert_eq!(first.artifacts.clone().unwrap_or_default(), done.artifacts.unwrap_or_default());
    })
    .await;
}

#[tokio::test]
async fn page_token_of_another_filter_is_rejected() {
    for_each_binding(async |binding| {
        let client = binding.client("echo").await;
        let context = uuid::Uuid::new_v4().to_string();
        create_tasks(&client, &context, 2).await;
        let page = client
            .list_tasks(&ListTasksRequest { page_size: Some(1), ..in_context(&context) })
            .await
            .unwrap();
        let other = ListTasksRequest {
            page_size: Some(1),
            page_token: Some(page.next_page_token),
            ..in_context(&uuid::Uuid::new_v4().to_string())
        };
        let error = client.list_tasks(&other).await.unwrap_err();
        assert_eq!(error.code, error_code::INVALID_PARAMS, "{error}");
    })
    .await;
}
