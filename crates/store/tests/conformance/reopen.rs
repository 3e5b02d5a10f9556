//! After a restart: ids stay valid, and work held by the dead process is due again.

use engine::{
    Clock, Origin,
    ids::{Tag, TaskNo},
    store::{Advance, SkillSource, Step, WorkState},
};
use protocol::TaskState;

use super::{
    samples::{
        accepted, advance, at, finished, found, interrupted, log, numbers, report, step, suspects, texts,
        with_status,
    },
    test_database::TestDatabase,
};

on_every_database![
    ids_and_seal_key_survive_a_restart,
    held_work_is_due_again_and_counts_a_crash,
    unheld_work_is_unchanged,
    released_work_counts_no_crash,
    crash_count_is_reset_with_the_attempts,
    committed_entries_survive_a_restart,
    turn_skill_and_origin_survive_a_restart,
    skill_that_the_client_has_named_is_kept,
];

async fn ids_and_seal_key_survive_a_restart(database: &dyn TestDatabase) {
    let store = database.open();
    let (ids, seal) = (store.ids(), store.seal_key());
    let store = database.reopen(store, &Clock::manual(at(0)));
    let (no, tag) = (TaskNo(42), Tag([7; 10]));
    assert_eq!(store.ids().task(no, tag), ids.task(no, tag));
    assert_eq!(store.ids().context(no, tag), ids.context(no, tag));
    assert_eq!(store.ids().context_tag(tag), ids.context_tag(tag));
    assert_eq!(store.seal_key(), seal);
    assert_ne!(seal, [0; 32]);
}

async fn held_work_is_due_again_and_counts_a_crash(database: &dyn TestDatabase) {
    let mut store = database.open();
    let no = accepted(&*store, |_| {}).await;
    let mut delays = Vec::new();
    for death in 1..=12 {
        let now = at(1_000_000 * death);
        store = database.reopen(store, &Clock::manual(now));
        let row = found(&*store, no).await.row;
        assert_eq!(
            (row.deaths, row.fence, row.attempt, row.state),
            (death, death, death, TaskState::Working)
        );
        let early = store.due(at(1_000_000 * death - 1), 10).await.unwrap();
        assert_eq!(numbers(&early.tasks), []);
        // Immediately the first time, then with exponential backoff and jitter.
        let next = early.next.unwrap();
        let delay = next.as_millis() - now.as_millis();
        let longest = if death < 2 { 0 } else { 100_000.min(1_000 << (death - 2)) };
        assert!((0..=longest).contains(&delay), "death {death}: {delay} ms");
        delays.push(delay);
        // From the second crash on the task is a suspect.
        let due = store.due(next, 10).await.unwrap();
        let suspect = if death < 2 { vec![] } else { vec![no] };
        assert_eq!((numbers(&due.tasks), suspects(&due.tasks)), (vec![no], suspect));
        let claimed = advance(&*store, step(no, Step::Claim { probation: false })).await.unwrap();
        assert_eq!((claimed.fence, claimed.attempt), (death + 1, death + 1));
    }
    assert!(delays.iter().any(|delay| *delay > 0), "every delay is zero");
}

async fn unheld_work_is_unchanged(database: &dyn TestDatabase) {
    let store = database.open();
    let queued = accepted(&*store, |task| task.work = WorkState::Due(at(70))).await;
    let paused = accepted(&*store, |_| {}).await;
    advance(&*store, with_status(paused, Step::Pause { fence: 1 }, TaskState::InputRequired, "?"))
        .await
        .unwrap();
    let finished = accepted(&*store, |_| {}).await;
    advance(&*store, with_status(finished, Step::Finish { fence: 1 }, TaskState::Completed, "!"))
        .await
        .unwrap();
    let store = database.reopen(store, &Clock::manual(at(1)));
    let due = store.due(at(1_000), 10).await.unwrap();
    assert_eq!((numbers(&due.tasks), due.next), (vec![queued], None));
    assert_eq!(store.due(at(69), 10).await.unwrap().next, Some(at(70)));
    for no in [queued, paused, finished] {
        assert_eq!(found(&*store, no).await.row.deaths, 0, "{no:?}");
    }
}

async fn released_work_counts_no_crash(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    advance(&*store, step(no, Step::Release { fence: 1, at: at(5) })).await.unwrap();
    let store = database.reopen(store, &Clock::manual(at(9)));
    let row = found(&*store, no).await.row;
    assert_eq!((row.deaths, row.attempt), (0, 0));
    assert_eq!(numbers(&store.due(at(5), 10).await.unwrap().tasks), [no]);
}

async fn crash_count_is_reset_with_the_attempts(database: &dyn TestDatabase) {
    const CLAIM: Step = Step::Claim { probation: false };
    const PAUSE: Step = Step::Pause { fence: 2 };
    let (again, at_once) =
        (Step::Requeue { fence: 2, at: at(0) }, Step::Queue { waiting: interrupted(2), at: at(0) });
    let ways: [(&[Step], i64); 7] = [
        (&[CLAIM], 1),
        (&[CLAIM, Step::Retry { fence: 2, at: at(0) }, CLAIM], 1),
        (&[CLAIM, Step::Release { fence: 2, at: at(0) }, CLAIM], 1),
        (&[CLAIM, Step::QueueMessage, again], 0),
        (&[CLAIM, PAUSE, Step::Resume(interrupted(2))], 0),
        (&[CLAIM, PAUSE, at_once], 0),
        (&[CLAIM, PAUSE, Step::Settle(interrupted(2))], 0),
    ];
    let store = database.open();
    let mut tasks = Vec::new();
    for _ in &ways {
        tasks.push(accepted(&*store, |_| {}).await);
    }
    let store = database.reopen(store, &Clock::manual(at(0)));
    for (no, (way, deaths)) in tasks.into_iter().zip(ways) {
        for step_to_take in way {
            let state = if *step_to_take == PAUSE { TaskState::InputRequired } else { TaskState::Working };
            let state =
                if *step_to_take == Step::Settle(interrupted(2)) { TaskState::Completed } else { state };
            advance(&*store, with_status(no, *step_to_take, state, "on")).await.unwrap();
        }
        assert_eq!(found(&*store, no).await.row.deaths, deaths, "{way:?}");
    }
}

async fn committed_entries_survive_a_restart(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |task| task.status_at = at(3)).await;
    advance(&*store, report(no, &["third", "fourth"])).await.unwrap();
    let before = log(&*store, no).await;
    let store = database.reopen(store, &Clock::manual(at(0)));
    let row = found(&*store, no).await.row;
    assert_eq!((row.last_seq, row.status_at), (4, at(3)));
    let after = log(&*store, no).await;
    assert_eq!(texts(&after), ["first", "second", "third", "fourth"]);
    for (before, after) in before.iter().zip(&after) {
        assert_eq!((before.kind(), before.v1()), (after.kind(), after.v1()));
    }
}

async fn turn_skill_and_origin_survive_a_restart(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |task| {
        (task.state, task.work) = (TaskState::Completed, WorkState::Idle);
        (task.skill, task.origin) = (Some("draw".into()), Origin::Run);
        task.client_id = Some("t-1".into());
    })
    .await;
    advance(&*store, with_status(no, Step::Settle(finished(1)), TaskState::Failed, "second")).await.unwrap();
    advance(&*store, with_status(no, Step::Resume(finished(2)), TaskState::Working, "third")).await.unwrap();
    let store = database.reopen(store, &Clock::manual(at(9)));
    let row = found(&*store, no).await.row;
    assert_eq!((row.turn, row.skill.as_deref(), row.origin), (3, Some("draw"), Origin::Run));
    assert_eq!((row.client_id, row.deaths), (Some("t-1".into()), 1));
    assert_eq!(numbers(&store.due(at(9), 10).await.unwrap().tasks), [no]);
    // The next process ends the turn, and a client starts the fourth.
    let fence = advance(&*store, step(no, Step::Claim { probation: false })).await.unwrap().fence;
    advance(&*store, with_status(no, Step::Finish { fence }, TaskState::Completed, "done")).await.unwrap();
    let queue = Step::Queue { waiting: finished(fence), at: at(20) };
    advance(&*store, with_status(no, queue, TaskState::Working, "fourth")).await.unwrap();
    let store = database.reopen(store, &Clock::manual(at(9)));
    let row = found(&*store, no).await.row;
    assert_eq!((row.turn, row.attempt, row.deaths), (4, 0, 0));
    assert_eq!(numbers(&store.due(at(20), 10).await.unwrap().tasks), [no]);
}

async fn skill_that_the_client_has_named_is_kept(database: &dyn TestDatabase) {
    let mut store = database.open();
    let no = accepted(&*store, |task| task.skill = Some("selected".into())).await;
    for (skill, source, expected) in [
        (None, SkillSource::Client, ("selected", SkillSource::Server)),
        (Some("other"), SkillSource::Server, ("other", SkillSource::Server)),
        (Some("named"), SkillSource::Client, ("named", SkillSource::Client)),
        (Some("later"), SkillSource::Client, ("named", SkillSource::Client)),
        (Some("later"), SkillSource::Server, ("named", SkillSource::Client)),
    ] {
        let report = step(no, Step::Report { fence: 1 });
        let skill = skill.map(str::to_owned);
        advance(&*store, Advance { skill, skill_source: source, ..report }).await.unwrap();
        let row = found(&*store, no).await.row;
        assert_eq!((row.skill.as_deref(), row.skill_source), (Some(expected.0), Some(expected.1)));
    }
    store = database.reopen(store, &Clock::manual(at(0)));
    let row = found(&*store, no).await.row;
    assert_eq!((row.skill.as_deref(), row.skill_source), (Some("named"), Some(SkillSource::Client)));
}
