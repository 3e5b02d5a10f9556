//! Tasks and changes to try a store with, and short ways to hand them over.

use std::sync::Arc;

use bytes::Bytes;
use engine::{
    Scope, Store,
    ids::{Tag, TaskNo},
    log::{Entry, Line, Log},
    store::{
        Accept, Advance, Change, Committed, Ended, Lookup, NewContext, NotCommitted, Receipt, Snapshot, Step,
        Visibility, Waiting, When, Work,
    },
    task::Names,
};
use protocol::{Artifact, Dialect, Event, Message, Part, Role, TaskState, Timestamp, model::ArtifactUpdate};

pub(crate) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

pub(crate) fn scope() -> Scope {
    Scope::anonymous("default", "agent")
}

pub(crate) fn foreign_scope() -> Scope {
    Scope::anonymous("foreign", "agent")
}

/// A different tag for each number, the same each time.
pub(crate) fn tag(no: TaskNo) -> Tag {
    let mut bytes = [0x5a; 10];
    bytes[..8].copy_from_slice(&no.0.to_be_bytes());
    Tag(bytes)
}

fn names() -> Names {
    Names { task: "task".into(), context: "context".into() }
}

fn message(role: Role, text: &str) -> Message {
    Message::new(text, role, vec![Part::text(text)])
}

/// A status with a word of the agent.
pub(crate) fn status(state: TaskState, text: &str) -> Line {
    (names().status(state, Some(message(Role::Agent, text)), at(0)), None)
}

/// A status with a message of the user riding on it.
pub(crate) fn asked(state: TaskState, text: &str) -> Line {
    (names().status(state, None, at(0)), Some(Arc::new(message(Role::User, text))))
}

pub(crate) fn artifact(text: &str) -> Line {
    let update = ArtifactUpdate {
        task_id: names().task,
        context_id: names().context,
        artifact: Artifact::new("artifact", vec![Part::text(text)]),
        append: true,
        last_chunk: false,
        metadata: None,
    };
    (Event::Artifact(update), None)
}

/// The word in an entry: the agent's, or the user's that rides on it.
pub(crate) fn word(entry: &Entry) -> String {
    if let Some(message) = entry.rider().unwrap() {
        return message.text();
    }
    match entry.event().unwrap() {
        Event::Status(update) => update.status.message.as_ref().map(Message::text).unwrap_or_default(),
        Event::Artifact(update) => format!("{:?}", update.artifact.parts[0].content),
        Event::Message(message) => message.text(),
        Event::Task(_) => String::new(),
    }
}

pub(crate) fn words(log: &[Arc<Entry>]) -> Vec<String> {
    log.iter().map(|entry| word(entry)).collect()
}

/// A visible task of its own conversation, held and working since time 0.
pub(crate) fn task(no: TaskNo) -> Accept {
    Accept {
        no,
        tag: tag(no),
        scope: scope(),
        client_id: None,
        skill: None,
        origin: Dialect::V1,
        context: NewContext::Own,
        log: Log::pack([asked(TaskState::Submitted, "first"), status(TaskState::Working, "second")]),
        state: TaskState::Working,
        status_at: at(0),
        visibility: Visibility::Visible,
        work: Work::Held,
        saved: None,
        key: None,
    }
}

/// A step that records nothing.
pub(crate) fn step(no: TaskNo, step: Step) -> Advance {
    Advance {
        no,
        step,
        log: Log::default(),
        status: None,
        visibility: None,
        saved: None,
        skill: None,
        key: None,
    }
}

/// A step that says a new state, with a word.
pub(crate) fn says(no: TaskNo, arrow: Step, state: TaskState, text: &str) -> Advance {
    Advance { log: Log::pack([status(state, text)]), status: Some((state, at(0))), ..step(no, arrow) }
}

/// A task waits for its client's answer since the turn of this fence.
pub(crate) const fn asks(fence: i64) -> Waiting {
    Waiting { when: When::Interrupted, fence }
}

/// A task is over since the turn of this fence.
pub(crate) const fn over(fence: i64) -> Waiting {
    Waiting { when: When::Over, fence }
}

/// The holder of the first fence records these words.
pub(crate) fn report(no: TaskNo, words: &[&str]) -> Advance {
    let log = Log::pack(words.iter().map(|word| status(TaskState::Working, word)));
    Advance { log, ..step(no, Step::Report { fence: 1 }) }
}

/// The same, and saves something.
pub(crate) fn save(advance: Advance, bytes: &'static str) -> Advance {
    Advance { saved: Some(Bytes::from_static(bytes.as_bytes())), ..advance }
}

/// Hands over what need not be waited for yet.
pub(crate) fn hand_over(store: &dyn Store, advance: Advance) -> Receipt {
    store.commit(Change::Advance(Box::new(advance)))
}

pub(crate) async fn advance(store: &dyn Store, advance: Advance) -> Result<Committed, NotCommitted> {
    hand_over(store, advance).await
}

pub(crate) async fn accept(store: &dyn Store, accept: Accept) -> Result<Committed, NotCommitted> {
    store.commit(Change::Accept(Box::new(accept))).await
}

pub(crate) async fn number(store: &dyn Store) -> TaskNo {
    store.reserve(1).await.unwrap()
}

/// Accepts [`task`] under the next number, changed as the test needs it.
pub(crate) async fn accepted(store: &dyn Store, change: impl FnOnce(&mut Accept)) -> TaskNo {
    let no = number(store).await;
    let mut new = task(no);
    change(&mut new);
    accept(store, new).await.unwrap();
    no
}

/// A lookup by the name the store's ids give to a number and a tag.
pub(crate) fn lookup(store: &dyn Store, no: TaskNo, tag: Tag) -> Lookup {
    let name = store.ids().task(no, tag);
    Lookup { ours: store.ids().parse_task(&name), name }
}

/// A task of [`scope`] that must be there.
pub(crate) async fn found(store: &dyn Store, no: TaskNo) -> Snapshot {
    store.find(&scope(), lookup(store, no, tag(no))).await.unwrap().unwrap()
}

/// A task of [`scope`] as whoever empties it has seen it.
pub(crate) async fn ended(store: &dyn Store, no: TaskNo) -> Ended {
    Ended { no, last_seq: found(store, no).await.row.last_seq }
}

/// The whole log of a task of [`scope`], whatever of it a snapshot may have folded already.
pub(crate) async fn log(store: &dyn Store, no: TaskNo) -> Vec<Arc<Entry>> {
    log_of(store, &scope(), no).await
}

pub(crate) async fn log_of(store: &dyn Store, scope: &Scope, no: TaskNo) -> Vec<Arc<Entry>> {
    let entries = store.entries(scope, no, 0, usize::MAX).await.unwrap();
    assert!(entries.iter().map(|(seq, _)| *seq).eq(1..=entries.len() as u64), "{entries:?}");
    entries.into_iter().map(|(_, entry)| entry).collect()
}

/// The words in it.
pub(crate) async fn told(store: &dyn Store, no: TaskNo) -> Vec<String> {
    words(&log(store, no).await)
}
