//! Webhooks are due when an event that they want is committed, and are moved on by the results of deliveries.

use std::time::Duration;

use bytes::Bytes;
use engine::{
    Clock, Store,
    ids::TaskNo,
    push::PushEvents,
    store::{
        Accept, Advance, DeliveryOutcome, DeliveryResult, DueWebhook, DueWebhooks, DueWebhooksQuery, Expiry,
        NewDeadLetter, NewWebhook, NotificationForm, Registered, Step, TenantAgent, WaitingSince, WebhookNo,
        WebhookOwner, WorkState,
    },
};
use protocol::{Dialect, TaskState, dialect::Style};

use super::{
    samples::{accepted, advance, at, finished, foreign_scope, report, scope, with_status},
    test_database::TestDatabase,
};

on_every_database![
    a_webhook_is_due_with_the_event_it_wants,
    results_move_a_webhook_on,
    a_webhook_is_replaced_and_goes_on_where_it_was,
    a_task_has_a_limited_number_of_webhooks,
    webhooks_of_an_earlier_turn_stay_ended,
    busy_hosts_are_left_out_and_released,
    hosts_are_examined_one_after_another,
    pending_deliveries_keep_their_task_for_a_day,
    dead_letters_outlive_their_task,
];

fn webhook(id: &str) -> NewWebhook {
    NewWebhook {
        id: id.into(),
        form: NotificationForm {
            dialect: Dialect::V03,
            style: Style { cancelled: true, ..Style::default() },
        },
        events: PushEvents::STATUS,
        host: "default/receiver.example".into(),
        sealed: Bytes::from_static(b"sealed"),
    }
}

async fn register(store: &dyn Store, task: TaskNo, id: &str) {
    assert_eq!(store.register_webhook(task, webhook(id), 10).await.unwrap(), Registered::Stored);
}

fn query(now: i64, without: &[&str]) -> DueWebhooksQuery {
    DueWebhooksQuery {
        now: at(now),
        after_host: String::new(),
        without_hosts: without.iter().map(|host| (*host).to_owned()).collect(),
        too_old: Some(at(now - 1_000_000)),
        max_ahead: Duration::from_secs(1_000),
        max_per_host: 10,
        max: 10,
    }
}

async fn due(store: &dyn Store, now: i64, without: &[&str]) -> DueWebhooks {
    store.due_webhooks(query(now, without)).await.unwrap()
}

async fn due_numbers(store: &dyn Store, now: i64) -> Vec<i64> {
    due(store, now, &[]).await.webhooks.into_iter().map(|webhook| webhook.no.0).collect()
}

async fn record(store: &dyn Store, webhook: i64, now: i64, outcome: DeliveryOutcome) -> bool {
    store
        .record_delivery(DeliveryResult { webhook: WebhookNo(webhook), now: at(now), outcome })
        .await
        .unwrap()
}

fn completed(no: TaskNo) -> Advance {
    with_status(no, Step::Finish { fence: 1 }, TaskState::Completed, "end")
}

async fn a_webhook_is_due_with_the_event_it_wants(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    register(&*store, no, "a").await;
    assert!(due_numbers(&*store, 10).await.is_empty(), "a task that works is not news");
    advance(&*store, report(no, &["progress"])).await.unwrap();
    assert!(due_numbers(&*store, 10).await.is_empty(), "the state is the same");
    advance(&*store, completed(no)).await.unwrap();
    assert_eq!(due_numbers(&*store, 10).await, [1]);
    let store = database.reopen(store, &Clock::manual(at(0)));
    assert_eq!(due_numbers(&*store, 10).await, [1]);
    let pending = store.pending_delivery(WebhookNo(1)).await.unwrap().unwrap();
    assert_eq!((pending.task.no, &pending.scope), (no, &scope()));
    assert_eq!(pending.webhook.config.form, webhook("a").form);
    assert_eq!(pending.webhook.acked, 2);
    assert!(store.webhooks(&foreign_scope(), no).await.unwrap().is_empty());
    // Registered after the end: the end is delivered all the same.
    register(&*store, no, "late").await;
    assert_eq!(due_numbers(&*store, 10).await, [1, 2]);
    // With the first message, which ends at once.
    let at_once = |task: &mut Accept| {
        (task.state, task.work) = (TaskState::Completed, WorkState::Idle);
        task.webhook = Some(Box::new(webhook("inline")));
    };
    accepted(&*store, at_once).await;
    assert_eq!(due_numbers(&*store, 10).await.len(), 3);
}

async fn results_move_a_webhook_on(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    register(&*store, no, "a").await;
    advance(&*store, with_status(no, Step::Pause { fence: 1 }, TaskState::InputRequired, "which"))
        .await
        .unwrap();
    let failed =
        DeliveryOutcome::Failed { retry_at: at(500), attempts: 1, error: "the receiver failed".into() };
    assert!(record(&*store, 1, 10, failed).await);
    assert!(due_numbers(&*store, 499).await.is_empty());
    assert_eq!(due(&*store, 20, &[]).await.next, Some(at(500)));
    assert!(store.retry_delivery(WebhookNo(1), at(30)).await.unwrap());
    assert_eq!(due_numbers(&*store, 30).await, [1]);
    let health = &store.webhooks(&scope(), no).await.unwrap()[0];
    assert_eq!((health.attempts, health.error.as_deref()), (1, Some("the receiver failed")));
    assert!(record(&*store, 1, 40, DeliveryOutcome::Delivered(3)).await);
    assert!(due_numbers(&*store, 1_000).await.is_empty());
    let health = &store.webhooks(&scope(), no).await.unwrap()[0];
    assert_eq!((health.attempts, health.delivered, health.acked), (0, 1, 3));
    assert!(!record(&*store, 99, 40, DeliveryOutcome::Delivered(3)).await);
    // An event that was committed during an attempt is due after it.
    advance(&*store, with_status(no, Step::Cancel, TaskState::Canceled, "stop")).await.unwrap();
    assert!(record(&*store, 1, 50, DeliveryOutcome::Delivered(3)).await);
    assert_eq!(due_numbers(&*store, 50).await, [1]);
    let nothing = DeliveryOutcome::Nothing { acked: 4, last_seq: 4 };
    assert!(record(&*store, 1, 60, nothing).await);
    assert!(due_numbers(&*store, 1_000).await.is_empty());
}

async fn a_webhook_is_replaced_and_goes_on_where_it_was(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    register(&*store, no, "a").await;
    advance(&*store, completed(no)).await.unwrap();
    register(&*store, no, "a").await;
    assert_eq!(due_numbers(&*store, 10).await, [1], "the same webhook, still with its notification");
    assert!(store.delete_webhook(no, "a".into()).await.unwrap());
    assert!(!store.delete_webhook(no, "a".into()).await.unwrap());
    assert!(due_numbers(&*store, 10).await.is_empty());
    register(&*store, no, "a").await;
    assert_ne!(due_numbers(&*store, 10).await, [1], "numbers are not used again");
}

async fn a_task_has_a_limited_number_of_webhooks(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    for id in ["a", "b"] {
        assert_eq!(store.register_webhook(no, webhook(id), 2).await.unwrap(), Registered::Stored);
    }
    assert_eq!(store.register_webhook(no, webhook("c"), 2).await.unwrap(), Registered::TooMany);
    assert_eq!(store.register_webhook(no, webhook("a"), 2).await.unwrap(), Registered::Stored);
    assert_eq!(store.register_webhook(TaskNo(999), webhook("a"), 2).await.unwrap(), Registered::NoTask);
}

async fn webhooks_of_an_earlier_turn_stay_ended(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    register(&*store, no, "a").await;
    advance(&*store, completed(no)).await.unwrap();
    let reopened = with_status(no, Step::Resume(finished(1)), TaskState::Working, "again");
    advance(&*store, reopened).await.unwrap();
    let pending = store.pending_delivery(WebhookNo(1)).await.unwrap().unwrap();
    assert_eq!((pending.webhook.until, pending.task.last_seq), (Some(3), 4));
    assert!(record(&*store, 1, 10, DeliveryOutcome::Delivered(3)).await);
    assert!(due_numbers(&*store, 1_000).await.is_empty(), "the rest belongs to the next turn");
    advance(&*store, with_status(no, Step::Finish { fence: 2 }, TaskState::Completed, "end")).await.unwrap();
    assert!(due_numbers(&*store, 1_000).await.is_empty());
}

async fn busy_hosts_are_left_out_and_released(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    let other = NewWebhook { host: "default/other.example".into(), ..webhook("b") };
    register(&*store, no, "a").await;
    store.register_webhook(no, other, 10).await.unwrap();
    advance(&*store, completed(no)).await.unwrap();
    let host = webhook("a").host;
    let left: Vec<_> = due(&*store, 10, &[&host]).await.webhooks;
    let owner = WebhookOwner::new(scope().tenant(), &scope().parts().principal);
    assert_eq!(left, [DueWebhook { no: WebhookNo(2), host: "default/other.example".to_owned(), owner }]);
    let failed = DeliveryOutcome::Failed { retry_at: at(9_000), attempts: 1, error: "down".into() };
    assert!(record(&*store, 1, 10, failed).await);
    assert_eq!(store.first_pending(host.clone()).await.unwrap().unwrap().no, WebhookNo(1));
    assert!(store.release_host(host.clone(), at(20)).await.unwrap());
    assert!(due_numbers(&*store, 20).await.contains(&1));
    // What has waited too long is found although its host is left out, if it is searched for.
    let found = due(&*store, 2_000_000, &[&host]).await.webhooks;
    assert_eq!(found.len(), 2);
    let not_searched = DueWebhooksQuery { too_old: None, ..query(2_000_000, &[&host]) };
    assert_eq!(store.due_webhooks(not_searched).await.unwrap().webhooks.len(), 1);
}

async fn hosts_are_examined_one_after_another(database: &dyn TestDatabase) {
    let store = database.open();
    for (number, host) in ["default/a", "default/b", "default/c"].into_iter().cycle().take(9).enumerate() {
        let at_once = |task: &mut Accept| {
            (task.state, task.work) = (TaskState::Completed, WorkState::Idle);
            let new = NewWebhook { host: host.to_owned(), ..webhook(&number.to_string()) };
            task.webhook = Some(Box::new(new));
        };
        accepted(&*store, at_once).await;
    }
    let next = async |after: &str, max_per_host: usize, max: usize| {
        let query =
            DueWebhooksQuery { after_host: after.to_owned(), max_per_host, max, ..query(10, &["default/b"]) };
        let due = store.due_webhooks(query).await.unwrap();
        let numbers: Vec<i64> = due.webhooks.iter().map(|webhook| webhook.no.0).collect();
        (numbers, due.more, due.resume_after)
    };
    assert_eq!(next("", 2, 10).await, (vec![1, 4, 3, 6], true, None));
    assert_eq!(next("", 4, 3).await, (vec![1, 4, 7], false, Some("default/a".to_owned())));
    assert_eq!(next("default/a", 4, 3).await, (vec![3, 6, 9], false, Some("default/c".to_owned())));
    assert_eq!(next("default/c", 4, 3).await, (vec![], false, None));
}

async fn pending_deliveries_keep_their_task_for_a_day(database: &dyn TestDatabase) {
    const DAY: i64 = 24 * 60 * 60 * 1_000;
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    register(&*store, no, "a").await;
    advance(&*store, completed(no)).await.unwrap();
    let expired = async |now: i64| {
        let expiry = Expiry {
            owner: TenantAgent::of(&scope()),
            now: at(now),
            ended_before: at(now),
            max_tasks: None,
            waiting_since: WaitingSince { default: at(0), skills: Vec::new() },
            max: 10,
        };
        store.expired(expiry).await.unwrap().finished
    };
    assert!(expired(100).await.is_empty());
    assert_eq!(expired(DAY + 100).await.len(), 1);
    assert!(record(&*store, 1, 200, DeliveryOutcome::Delivered(3)).await);
    let finished = expired(300).await;
    assert_eq!(finished.len(), 1);
    store.purge(finished, at(300)).await.unwrap();
    assert!(store.pending_delivery(WebhookNo(1)).await.unwrap().is_none());
}

async fn dead_letters_outlive_their_task(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    register(&*store, no, "a").await;
    advance(&*store, completed(no)).await.unwrap();
    let letter = NewDeadLetter {
        seq: 3,
        attempts: 10,
        error: "the receiver responded with status 500".into(),
        body: Bytes::from_static(b"{}"),
        media_type: "application/json".into(),
    };
    let dead = DeliveryOutcome::Dead { letter: Box::new(letter), disable: true };
    assert!(record(&*store, 1, 50, dead).await);
    assert!(store.webhooks(&scope(), no).await.unwrap()[0].disabled);
    assert!(store.pending_deliveries(WebhookNo(0), 10).await.unwrap().is_empty());
    let listed = store.dead_letters(i64::MAX, 10).await.unwrap();
    assert_eq!((listed.len(), listed[0].size, listed[0].letter.body.len()), (1, 2, 0));
    let finished = vec![engine::store::FinishedTask { no, last_seq: 3 }];
    assert_eq!(store.purge(finished, at(60)).await.unwrap(), 1);
    let kept = store.dead_letter(listed[0].no).await.unwrap().unwrap();
    assert_eq!((&kept.letter.body[..], &kept.scope, kept.died_at), (&b"{}"[..], &scope(), at(50)));
    assert_eq!(kept.config.form, webhook("a").form);
    assert_eq!(store.expire_dead_letters(at(50), 10).await.unwrap(), 0);
    assert_eq!(store.expire_dead_letters(at(51), 10).await.unwrap(), 1);
    assert!(!store.delete_dead_letter(listed[0].no).await.unwrap());
}
