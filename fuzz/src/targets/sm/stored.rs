//! The same changes in a store: after each of them the stored row is the simulated one.

use engine::{
    Clock, Feed, Origin, Scope, Store,
    ids::{Tag, TaskNo},
    log::Log,
    store::{Accept, Advance, Change, JournalChange, NewContext, PrincipalCaps, SkillSource, WorkState},
    task::CurrentState,
};
use protocol::Timestamp;
use store::{Sqlite, SqliteOptions};

use super::{
    SCRIPTS, TARGET, corpus, execute, script,
    simulated_task::{Probation, Row},
};
use crate::mutate::Mutator;

/// What happened to a simulated task.
pub(super) enum Recorded {
    Accepted(Log, CurrentState, WorkState),
    /// A change, and whether it was allowed.
    Advanced(Box<Advance>, bool),
    Crashed,
}

/// Random scripts that are compared.
const RANDOM_SCRIPTS: u64 = 100;

#[tokio::test]
async fn stored_rows_are_the_simulated_ones() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions { sync: false, ..SqliteOptions::at(folder.path().join("a2ad.db")) };
    let clock = Clock::manual(Timestamp::from_millis(0));
    let open = || Sqlite::open(&options, Feed::default(), &clock).unwrap();
    let mut store = open();
    let mutator = Mutator::new(corpus(), TARGET.dictionary, 7);
    let listed = SCRIPTS.iter().map(|(actions, _)| script(actions));
    let (mut crashes, mut deaths_on_probation, mut steps) = (0, 0, 0);
    for script in listed.chain((0..RANDOM_SCRIPTS).map(|number| mutator.input(number))) {
        let mut no = TaskNo(0);
        for (recorded, row) in execute(&script).history {
            match recorded {
                Recorded::Accepted(log, current, work) => {
                    no = store.reserve(1).await.unwrap();
                    store.commit(Change::Accept(Box::new(accept(no, log, current, work)))).await.unwrap();
                }
                Recorded::Advanced(advance, allowed) => {
                    let (step, advance) = (advance.step, Advance { no, ..*advance });
                    let result = store.commit(Change::Advance(Box::new(advance))).await;
                    assert_eq!(result.is_ok(), allowed, "{step:?} in {script:?}: {result:?}");
                }
                Recorded::Crashed => {
                    drop(store);
                    store = open();
                    crashes += 1;
                }
            }
            compare(&store, no, row).await;
            deaths_on_probation += usize::from(row.probation == Probation::Died);
            steps += row.journal;
        }
    }
    assert!(
        crashes > 20 && deaths_on_probation > 0 && steps > 20,
        "{crashes}, {deaths_on_probation}, {steps}"
    );
}

fn accept(no: TaskNo, log: Log, current: CurrentState, work: WorkState) -> Accept {
    Accept {
        no,
        tag: Tag([7; 10]),
        scope: Scope::anonymous("default", "agent"),
        client_id: None,
        skill: None,
        skill_source: SkillSource::Server,
        admitted: false,
        origin: Origin::default(),
        context: NewContext::Own,
        log,
        state: current.state,
        status_at: Timestamp::from_millis(0),
        visibility: current.visibility,
        work,
        saved: None,
        journal: JournalChange::Keep,
        deadline: None,
        progress_size: 0,
        key: None,
        webhook: None,
        caps: PrincipalCaps::default(),
        asking_turns: 0,
    }
}

async fn compare(store: &Sqlite, no: TaskNo, expected: Row) {
    let work = store.work(no).await.unwrap().unwrap();
    let row = &work.row;
    let found = Row {
        current: CurrentState { state: row.state, visibility: row.visibility },
        turn: row.turn,
        last_seq: row.last_seq,
        fence: row.fence,
        attempt: row.attempt,
        deaths: row.deaths,
        crashes: row.crashes,
        // Whether a run is on probation is visible only after a crash.
        probation: match (row.died_on_probation, expected.probation) {
            (true, _) => Probation::Died,
            (false, Probation::On) => Probation::On,
            (false, Probation::No | Probation::Died) => Probation::No,
        },
        unanswered: row.unanswered,
        // Only the steps depend on it.
        work: expected.work,
        journal: work.journal.len(),
    };
    assert_eq!(found, expected);
}
