//! Tasks and changes to test a store with, and helpers to commit them.

use std::sync::Arc;

use engine::{
    Origin, Scope, Store,
    ids::{Tag, TaskNo},
    log::{Entry, Log, NewEntry},
    store::{
        Accept, Advance, Change, Committed, DueTask, FinishedTask, JournalChange, Lookup, NewContext,
        NotCommitted, PrincipalCaps, Receipt, SavedState, SkillSource, Snapshot, StartState, Step,
        TurnPrecondition, Visibility, WorkState,
    },
    task::PublicIds,
};
use protocol::{Artifact, Event, Message, Part, Role, TaskState, Timestamp, model::ArtifactUpdate};

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

fn names() -> PublicIds {
    PublicIds { task: "task".into(), context: "context".into() }
}

fn message(role: Role, text: &str) -> Message {
    Message::new(text, role, vec![Part::text(text)])
}

/// A status with an agent message.
pub(crate) fn status(state: TaskState, text: &str) -> NewEntry {
    (names().status(state, Some(message(Role::Agent, text)), at(0)), None)
}

/// A status with the user message that caused it.
pub(crate) fn user_message(state: TaskState, text: &str) -> NewEntry {
    (names().status(state, None, at(0)), Some(Arc::new(message(Role::User, text))))
}

pub(crate) fn artifact(text: &str) -> NewEntry {
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

/// The text of an entry: of its agent message, or of the user message attached to it.
pub(crate) fn text_of(entry: &Entry) -> String {
    if let Some(message) = entry.user_message().unwrap() {
        return message.text();
    }
    match entry.event().unwrap() {
        Event::Status(update) => update.status.message.as_ref().map(Message::text).unwrap_or_default(),
        Event::Artifact(update) => format!("{:?}", update.artifact.parts[0].content),
        Event::Message(message) => message.text(),
        Event::Task(_) => String::new(),
    }
}

pub(crate) fn texts(log: &[Arc<Entry>]) -> Vec<String> {
    log.iter().map(|entry| text_of(entry)).collect()
}

/// A visible task in its own context, held and working since time 0.
pub(crate) fn task(no: TaskNo) -> Accept {
    Accept {
        no,
        tag: tag(no),
        scope: scope(),
        client_id: None,
        skill: None,
        skill_source: SkillSource::Server,
        admitted: false,
        origin: Origin::default(),
        context: NewContext::Own,
        log: Log::pack([user_message(TaskState::Submitted, "first"), status(TaskState::Working, "second")]),
        state: TaskState::Working,
        status_at: at(0),
        visibility: Visibility::Visible,
        work: WorkState::Held,
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

/// A step that records nothing.
pub(crate) fn step(no: TaskNo, step: Step) -> Advance {
    Advance::new(no, step)
}

/// A step that records a new state with an agent message.
pub(crate) fn with_status(no: TaskNo, arrow: Step, state: TaskState, text: &str) -> Advance {
    Advance { log: Log::pack([status(state, text)]), status: Some((state, at(0))), ..step(no, arrow) }
}

/// Guard: the task has waited for its client since the turn with this fencing token.
pub(crate) const fn interrupted(fence: i64) -> TurnPrecondition {
    TurnPrecondition { when: StartState::Interrupted, fence }
}

/// Guard: the task has been finished since the turn with this fencing token.
pub(crate) const fn finished(fence: i64) -> TurnPrecondition {
    TurnPrecondition { when: StartState::Terminal, fence }
}

/// A report of these texts by the holder of the first fencing token.
pub(crate) fn report(no: TaskNo, texts: &[&str]) -> Advance {
    let log = Log::pack(texts.iter().map(|text| status(TaskState::Working, text)));
    Advance { log, ..step(no, Step::Report { fence: 1 }) }
}

/// The same change, also saving a checkpoint.
pub(crate) fn save(advance: Advance, bytes: &'static str) -> Advance {
    Advance { saved: Some(SavedState::new(None, bytes)), ..advance }
}

/// Queues a change; the caller awaits the receipt when it needs the result.
pub(crate) fn queue_advance(store: &dyn Store, advance: Advance) -> Receipt {
    store.commit(Change::Advance(Box::new(advance)))
}

pub(crate) async fn advance(store: &dyn Store, advance: Advance) -> Result<Committed, NotCommitted> {
    queue_advance(store, advance).await
}

pub(crate) async fn accept(store: &dyn Store, accept: Accept) -> Result<Committed, NotCommitted> {
    store.commit(Change::Accept(Box::new(accept))).await
}

pub(crate) async fn number(store: &dyn Store) -> TaskNo {
    store.reserve(1).await.unwrap()
}

/// Accepts [`task`] with the next number, modified as the test needs it.
pub(crate) async fn accepted(store: &dyn Store, change: impl FnOnce(&mut Accept)) -> TaskNo {
    let no = number(store).await;
    let mut new = task(no);
    change(&mut new);
    accept(store, new).await.unwrap();
    no
}

/// A lookup by the id that the store generates for a number and a tag.
pub(crate) fn lookup(store: &dyn Store, no: TaskNo, tag: Tag) -> Lookup {
    let name = store.ids().task(no, tag);
    Lookup { ours: store.ids().parse_task(&name), name }
}

/// A task of [`scope`] that must exist.
pub(crate) async fn found(store: &dyn Store, no: TaskNo) -> Snapshot {
    store.find(&scope(), lookup(store, no, tag(no))).await.unwrap().unwrap()
}

/// The numbers of due tasks.
pub(crate) fn numbers(tasks: &[DueTask]) -> Vec<TaskNo> {
    tasks.iter().map(|task| task.no).collect()
}

/// Suspects among due tasks.
pub(crate) fn suspects(tasks: &[DueTask]) -> Vec<TaskNo> {
    tasks.iter().filter(|task| task.suspect).map(|task| task.no).collect()
}

/// A task of [`scope`] as the retention job identifies it.
pub(crate) async fn ended(store: &dyn Store, no: TaskNo) -> FinishedTask {
    FinishedTask { no, last_seq: found(store, no).await.row.last_seq }
}

/// The whole log of a task of [`scope`], including what a snapshot has folded already.
pub(crate) async fn log(store: &dyn Store, no: TaskNo) -> Vec<Arc<Entry>> {
    log_of(store, &scope(), no).await
}

pub(crate) async fn log_of(store: &dyn Store, scope: &Scope, no: TaskNo) -> Vec<Arc<Entry>> {
    let mut entries = Vec::new();
    loop {
        let slice = store.entries(scope, no, entries.len() as u64, usize::MAX).await.unwrap();
        if slice.is_empty() {
            break;
        }
        entries.extend(slice);
    }
    assert!(entries.iter().map(|(seq, _)| *seq).eq(1..=entries.len() as u64), "{entries:?}");
    entries.into_iter().map(|(_, entry)| entry).collect()
}

/// The texts of the whole log of a task of [`scope`].
pub(crate) async fn log_texts(store: &dyn Store, no: TaskNo) -> Vec<String> {
    texts(&log(store, no).await)
}
