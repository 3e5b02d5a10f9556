//! An agent calls skills inside its own task.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use a2ad_engine::{
    AgentResult, CallResult, DynAgent, ExecutionPolicy, IntoOutcome as _, OnCrash, Outcome, RunSettings,
    Skill, SkillInput, Turn, agent_fn,
};
use protocol::{Artifact, Part, TaskState};

use crate::{
    common::{
        RunningTurn, Setup, agent_message, artifacts, done, history, join, msg, process, skill, status_text,
        task, with_timeout,
    },
    crash::finished,
};

/// A hidden skill whose work counts how often it runs.
fn counted<F, R>(id: &str, runs: &Arc<AtomicU32>, policy: ExecutionPolicy, work: F) -> Skill
where
    F: Fn(Turn, u32) -> R + Send + Sync + Clone + 'static,
    R: Future<Output = AgentResult<Outcome>> + Send + 'static,
{
    let runs = Arc::clone(runs);
    let agent = agent_fn(move |turn: Turn| work(turn, runs.fetch_add(1, Ordering::SeqCst) + 1));
    Skill::new(skill(id), DynAgent::new(agent.with_policy(policy)))
}

fn policy(on_crash: OnCrash) -> ExecutionPolicy {
    ExecutionPolicy::default().with_on_crash(on_crash)
}

/// Returns the text of its call and the number of its run.
fn repeat(runs: &Arc<AtomicU32>) -> Skill {
    counted("repeat", runs, policy(OnCrash::Retry), async |turn: Turn, run| {
        turn.progress("repeating").await?;
        Ok(Outcome::artifact("text", format!("{} {run}", turn.text())))
    })
}

/// Asks for a colour, and returns it.
fn colour(runs: &Arc<AtomicU32>) -> Skill {
    counted("colour", runs, policy(OnCrash::Retry), async |turn: Turn, _| {
        if turn.saved::<String>()?.is_none() {
            turn.chunk("text", "the colour is ").await?;
            return turn.record().save("asked").then(Outcome::ask(format!("which {}?", turn.text())));
        }
        turn.record().last_chunk("text", turn.text()).then(Outcome::done())
    })
}

async fn called(turn: &RunningTurn, skill: &str, text: &str) -> CallResult {
    with_timeout(turn.call(skill, text)).await.unwrap()
}

#[test]
fn finished_call_is_not_repeated_after_a_crash() {
    for on_crash in [OnCrash::Retry, OnCrash::Resume, OnCrash::Fail] {
        let (folder, runs) = (tempfile::tempdir().unwrap(), Arc::default());
        let setup = || Setup::plain().on_crash(on_crash).hidden(repeat(&runs));
        let id = process(folder.path(), setup(), async |server| {
            let (id, turn) = server.start_task("hello").await;
            // Equal calls are numbered.
            assert_eq!(called(&turn, "repeat", "a").await.text(), "a 1");
            assert_eq!(called(&turn, "repeat", "a").await.text(), "a 2");
            assert_eq!(turn.call_as("third", "repeat", &["b"]).await.unwrap().text(), " 3");
            id
        });
        process(folder.path(), setup(), async |server| {
            let turn = server.agent.turn().await;
            assert_eq!(turn.attempt, 2);
            assert_eq!(called(&turn, "repeat", "a").await.text(), "a 1");
            assert_eq!(called(&turn, "repeat", "a").await.text(), "a 2");
            assert_eq!(turn.call_as("third", "repeat", &["b"]).await.unwrap().text(), " 3");
            assert_eq!(called(&turn, "repeat", "a").await.text(), "a 4");
            let hash = "ac8d8342bbb2362d";
            let expected = [1, 2, 3].map(|number| format!("call:repeat:{hash}:{number}"));
            assert_eq!(server.journal(&id).await, [&expected[..], &["call:third".into()]].concat());
            turn.end(called(&turn, "repeat", "b").await.into_outcome().unwrap());
            let task = finished(server, &id).await;
            assert_eq!(artifacts(&task), [("text".into(), "b 5".into())]);
            assert!(server.journal(&id).await.is_empty());
        });
        assert_eq!(runs.load(Ordering::SeqCst), 5);
    }
}

#[test]
fn question_of_a_called_skill_is_that_of_the_task() {
    let (folder, runs, repeats) = (tempfile::tempdir().unwrap(), Arc::default(), Arc::default());
    let setup = || Setup::plain().hidden(colour(&runs)).hidden(repeat(&repeats));
    let id = process(folder.path(), setup(), async |server| {
        let (id, turn) = server.start_task("hello").await;
        assert_eq!(called(&turn, "repeat", "a").await.text(), "a 1");
        let question = with_timeout(turn.call("colour", "paint")).await.unwrap_err();
        assert_eq!(question.to_string(), "the skill colour asks the client: which paint?");
        turn.fail(question);
        server.store.until("pause", 1).await;
        let asked = server.get(&id).await.unwrap();
        assert_eq!(
            (asked.status.state, status_text(&asked).as_deref()),
            (TaskState::InputRequired, Some("which paint?"))
        );
        assert!(asked.artifacts.is_empty(), "the caller has recorded none");
        id
    });
    process(folder.path(), setup(), async |server| {
        let call = server.spawn_send(msg("blue").to(&id));
        let turn = server.agent.turn().await;
        assert_eq!(called(&turn, "repeat", "a").await.text(), "a 1");
        let colour = called(&turn, "colour", "paint").await;
        turn.end(colour.into_outcome().unwrap());
        let task = task(join(call).await.unwrap());
        assert_eq!(artifacts(&task), [("text".into(), "the colour is blue".into())]);
        assert_eq!(history(&task).len(), 3);
    });
    assert_eq!((runs.load(Ordering::SeqCst), repeats.load(Ordering::SeqCst)), (2, 1));
}

#[tokio::test]
async fn calls_at_the_same_time_ask_one_question_in_each_turn() {
    let (runs, repeats) = (Arc::default(), Arc::default());
    let slow = counted("slow", &repeats, policy(OnCrash::Retry), async |_, run| {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Ok(Outcome::artifact("text", format!("slow {run}")))
    });
    let mut server = Setup::plain().hidden(colour(&runs)).hidden(slow).open();
    let all = async |turn: &RunningTurn| {
        let calls = async {
            tokio::join!(turn.call("colour", "wall"), turn.call("slow", ""), turn.call("colour", "door"))
        };
        with_timeout(calls).await
    };
    let (id, turn) = server.start_task("hello").await;
    let (wall, slow, door) = all(&turn).await;
    // Who asks waits for the others.
    assert_eq!(slow.unwrap().text(), "slow 1");
    assert!(wall.is_err() && door.is_err());
    turn.fail(wall.unwrap_err());
    server.store.until("pause", 1).await;
    let first = server.spawn_send(msg("white").to(&id));
    let turn = server.agent.turn().await;
    let (wall, slow, door) = all(&turn).await;
    assert_eq!(
        (wall.unwrap().text(), slow.unwrap().text()),
        ("the colour is  white".into(), "slow 1".into())
    );
    let question = door.unwrap_err();
    assert_eq!(question.to_string(), "the skill colour asks the client: which door?");
    turn.fail(question);
    join(first).await.unwrap();
    let second = server.spawn_send(msg("red").to(&id));
    let turn = server.agent.turn().await;
    let (wall, _, door) = all(&turn).await;
    assert_eq!(
        (wall.unwrap().text(), door.unwrap().text()),
        ("the colour is  white".into(), "the colour is  red".into())
    );
    turn.end(done());
    join(second).await.unwrap();
    assert_eq!((runs.load(Ordering::SeqCst), repeats.load(Ordering::SeqCst)), (4, 1));
}

/// The policy of the called skill decides, not that of the caller.
#[test]
fn interrupted_call_runs_again_unless_it_must_not() {
    let cases = [
        (OnCrash::Retry, OnCrash::Fail, false),
        (OnCrash::Resume, OnCrash::Fail, false),
        (OnCrash::Retry, OnCrash::Retry, true),
        (OnCrash::Fail, OnCrash::Retry, true),
    ];
    for (caller, callee, again) in cases {
        let (folder, runs) = (tempfile::tempdir().unwrap(), Arc::default());
        let pay = || {
            counted("pay", &runs, policy(callee), async |turn: Turn, run| {
                if run == 1 {
                    // What it has recorded before it is interrupted is on disk.
                    turn.checkpoint("begun").await?;
                    return std::future::pending().await;
                }
                Ok(Outcome::artifact("text", format!("paid {run}")))
            })
        };
        let setup = || Setup::plain().on_crash(caller).hidden(pay());
        process(folder.path(), setup(), async |server| {
            let (id, turn) = server.start_task("hello").await;
            let call = turn.call("pay", "1 EUR");
            tokio::time::timeout(Duration::from_millis(300), call).await.unwrap_err();
            assert!(server.journal(&id).await.iter().any(|step| step.starts_with("saved:call:pay:")));
        });
        process(folder.path(), setup(), async |server| {
            let turn = server.agent.turn().await;
            let paid = called(&turn, "pay", "1 EUR").await;
            let text = "interrupted: the server stopped while pay ran, and it must not run twice";
            assert_eq!(paid.text(), if again { "paid 2" } else { text }, "{caller:?} {callee:?}");
            assert_eq!(paid.is_done(), again);
        });
    }
}

#[test]
fn resumed_call_goes_on_from_its_checkpoint_with_its_artifacts() {
    for input in [SkillInput::Message, SkillInput::Arguments(None)] {
        let (folder, runs) = (tempfile::tempdir().unwrap(), Arc::default());
        let write = || {
            let skill = counted("write", &runs, policy(OnCrash::Resume), async |turn: Turn, run| {
                for page in turn.saved::<u32>()?.unwrap_or(0)..3 {
                    if (run, page) == (1, 2) {
                        return std::future::pending().await;
                    }
                    turn.record().chunk("text", format!("{run}{page}")).save(&(page + 1)).commit().await?;
                }
                Ok(Outcome::done())
            });
            Skill { input: input.clone(), ..skill }
        };
        let setup = || Setup::plain().hidden(write());
        process(folder.path(), setup(), async |server| {
            let (_, turn) = server.start_task("hello").await;
            tokio::time::timeout(Duration::from_millis(300), turn.call("write", "")).await.unwrap_err();
        });
        process(folder.path(), setup(), async |server| {
            let turn = server.agent.turn().await;
            assert_eq!(called(&turn, "write", "").await.text(), "10 11 22");
        });
    }
}

#[tokio::test]
async fn failures_are_results_and_only_those_that_last_are_kept() {
    let runs = Arc::default();
    let outcomes =
        counted("outcomes", &runs, policy(OnCrash::Retry), async |turn: Turn, run| match &*turn.text() {
            "fail" => Ok(Outcome::fail(format!("broken {run}"))),
            "error" => Err(a2ad_engine::AgentError::new(format!("error {run}"))),
            "reject" => Ok(Outcome::reject(format!("no {run}"))),
            "retry" => Ok(Outcome::retry(format!("busy {run}"))),
            "message" => Ok(Outcome::message(format!("said {run}"))),
            _ => Ok(Outcome::done()),
        });
    let mut server = Setup::plain().hidden(outcomes).open();
    let (_, turn) = server.start_task("hello").await;
    let call = async |kind: &str| turn.call_as(kind, "outcomes", kind).await.unwrap();
    for again in [false, true] {
        let failed = call("fail").await;
        assert!(matches!(failed, CallResult::Failed { retryable: false, .. }));
        assert_eq!((failed.text(), call("error").await.text()), ("broken 1".into(), "error 2".into()));
        let rejected = call("reject").await;
        assert!(matches!(rejected, CallResult::Rejected { .. }));
        assert_eq!((rejected.text(), call("message").await.text()), ("no 3".into(), "said 4".into()));
        let retried = call("retry").await;
        assert!(matches!(retried, CallResult::Failed { retryable: true, .. }));
        assert_eq!(retried.text(), if again { "busy 6" } else { "busy 5" });
    }
    turn.end(done());
    server.store.until("finish", 1).await;
}

#[tokio::test]
async fn call_has_limits_of_its_own_and_a_bounded_path() {
    let runs = Arc::default();
    let nested = counted("nested", &runs, policy(OnCrash::Retry), async |turn: Turn, _| {
        turn.call("nested", "").await?.into_outcome()
    });
    let chain = (0..10).map(|number| {
        counted(&format!("c{number}"), &runs, policy(OnCrash::Retry), move |turn: Turn, _| async move {
            turn.call(&format!("c{}", number + 1), "").await?.into_outcome()
        })
    });
    let hangs = counted("hangs", &runs, policy(OnCrash::Retry), async |turn: Turn, _| {
        turn.cancel.cancelled().await;
        Ok(Outcome::done())
    });
    let run = RunSettings { run_time: Some(Duration::from_millis(20)), ..RunSettings::default() };
    let setup = Setup::plain().hidden(nested).hidden(Skill { run, ..hangs });
    let mut server = chain.fold(setup, Setup::hidden).open();
    let (id, turn) = server.start_task("hello").await;
    let text = async |skill: &str| match with_timeout(turn.call(skill, "")).await {
        Ok(result) => result.text(),
        Err(error) => error.to_string(),
    };
    assert_eq!(text("nested").await, "the skill nested calls itself: nested → nested");
    let path = "c0 → c1 → c2 → c3 → c4 → c5 → c6 → c7 → c8";
    assert_eq!(text("c0").await, format!("calls of skills are nested deeper than 8: {path}"));
    assert_eq!(text("hangs").await, "hangs took longer than its run_time, 20ms");
    assert!(text("unknown").await.starts_with("there is no skill unknown to call; expected one of c0, c1"));
    assert_eq!(
        turn.call_as("", "c0", "").await.unwrap_err().to_string(),
        "expected the id of a call of 1 to 200 bytes, not 0"
    );
    // Work of the agent can call hidden skills, and no client can name them.
    assert!(server.send(msg("hello").skill("hangs")).await.is_err());
    assert!(server.get(&id).await.is_ok());
}

#[tokio::test]
async fn progress_is_that_of_the_task_and_artifacts_belong_to_the_caller() {
    let runs = Arc::default();
    let mut server = Setup::plain().hidden(repeat(&runs)).open();
    let (id, turn) = server.start_task("hello").await;
    let mut frames = server.subscribe(&id).await.unwrap();
    let result = called(&turn, "repeat", "a").await;
    turn.record().artifact(Artifact::new("mine", vec![Part::text(result.text())])).await.unwrap();
    turn.end(Outcome::Done { artifacts: Vec::new(), message: Some(agent_message("done")) });
    let lines = frames.lines().await;
    let progress = lines.iter().filter(|line| line.contains("repeating")).count();
    assert_eq!(progress, 1, "{lines:?}");
    assert_eq!(artifacts(&server.get(&id).await.unwrap()), [("mine".into(), "a 1".into())]);
}
