//! Arbitrary values of the model that the wire form can express.
//!
//! Where absent and empty mean the same on the wire, the model holds `None`, and so do these values. Counts
//! are 32-bit.

use a2ad_protocol::{
    AgentCard, Artifact, CancelTask, ConfigId, Content, ContextId, Error, ErrorKind, Event, GetExtendedCard,
    GetTask, Json, ListTasks, Message, Operation, Part, PushConfig, PushConfigPage, PushConfigQuery,
    PushConfigRef, Reply, Role, SendMessage, SubscribeToTask, Task, TaskId, TaskPage, TaskState, TaskStatus,
    Timestamp, Violation,
    model::{AgentCapabilities, AgentInterface, ArtifactUpdate, PushAuth, Secret, StatusUpdate},
};
use proptest::{
    collection::vec,
    option,
    prelude::{BoxedStrategy, Just, Strategy, any, prop_oneof},
    sample::select,
};

pub(crate) fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => send().prop_map(Operation::SendMessage),
        1 => send().prop_map(Operation::SendStreamingMessage),
        1 => get().prop_map(Operation::GetTask),
        2 => list().prop_map(Operation::ListTasks),
        1 => cancel().prop_map(Operation::CancelTask),
        1 => (filled(), maybe_filled())
            .prop_map(|(id, tenant)| Operation::SubscribeToTask(SubscribeToTask { id: id.into(), tenant })),
        1 => (push_config(), filled()).prop_map(|(config, task)| {
            Operation::CreatePushConfig(PushConfig { task_id: Some(task.into()), ..config })
        }),
        1 => config_ref().prop_map(Operation::GetPushConfig),
        1 => config_ref().prop_map(Operation::DeletePushConfig),
        1 => config_query().prop_map(Operation::ListPushConfigs),
        1 => maybe_filled().prop_map(|tenant| Operation::GetExtendedCard(GetExtendedCard { tenant })),
    ]
}

pub(crate) fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        task().prop_map(Event::Task),
        message().prop_map(Event::Message),
        status_update().prop_map(Event::Status),
        artifact_update().prop_map(Event::Artifact),
    ]
}

pub(crate) fn reply() -> impl Strategy<Value = Reply> {
    prop_oneof![
        task().prop_map(Reply::SentTask),
        message().prop_map(Reply::SentMessage),
        task().prop_map(Reply::Task),
        task_page().prop_map(Reply::Tasks),
        push_config().prop_map(Reply::PushConfig),
        (vec(push_config(), 0..3), maybe_filled()).prop_map(|(configs, next_page_token)| {
            Reply::PushConfigs(PushConfigPage { configs, next_page_token })
        }),
        Just(Reply::Deleted),
        card().prop_map(|card| Reply::Card(Box::new(card))),
    ]
}

/// Errors without machine-readable details, which are not decoded.
pub(crate) fn error() -> impl Strategy<Value = Error> {
    let violation = (text(), text()).prop_map(|(field, problem)| Violation { field, problem });
    (select(ErrorKind::ALL.to_vec()), text(), vec(violation, 0..3))
        .prop_map(|(kind, message, violations)| Error { violations, ..Error::new(kind, message) })
}

fn send() -> impl Strategy<Value = SendMessage> {
    let configuration = (texts(), maybe_count(), any::<bool>(), option::of(push_config()));
    (message(), configuration, maybe_object(), maybe_filled(), maybe_filled()).prop_map(
        |(message, configuration, metadata, skill, tenant)| {
            let (accepted_output_modes, history_length, return_immediately, push) = configuration;
            SendMessage {
                message,
                accepted_output_modes,
                history_length,
                return_immediately,
                push,
                metadata,
                skill,
                tenant,
            }
        },
    )
}

fn get() -> impl Strategy<Value = GetTask> {
    (filled(), maybe_count(), maybe_filled()).prop_map(|(id, history_length, tenant)| GetTask {
        id: id.into(),
        history_length,
        tenant,
    })
}

fn list() -> impl Strategy<Value = ListTasks> {
    // The zero state means no filter.
    let status = option::of(state().prop_filter("a filter", |state| *state != TaskState::Unspecified));
    let page = (option::of(1u32..=100), maybe_filled());
    let shown = (maybe_count(), option::of(timestamp()), any::<bool>());
    (maybe_filled(), status, page, shown, maybe_filled()).prop_map(
        |(context, status, page, shown, tenant)| ListTasks {
            context_id: context.map(ContextId::from),
            status,
            page_size: page.0,
            page_token: page.1,
            history_length: shown.0,
            status_timestamp_after: shown.1,
            include_artifacts: shown.2,
            tenant,
        },
    )
}

fn cancel() -> impl Strategy<Value = CancelTask> {
    (filled(), maybe_object(), maybe_filled()).prop_map(|(id, metadata, tenant)| CancelTask {
        id: id.into(),
        metadata,
        tenant,
    })
}

fn config_ref() -> impl Strategy<Value = PushConfigRef> {
    (filled(), filled(), maybe_filled()).prop_map(|(task, id, tenant)| PushConfigRef {
        task_id: task.into(),
        id: Some(id.into()),
        tenant,
    })
}

fn config_query() -> impl Strategy<Value = PushConfigQuery> {
    (filled(), maybe_count(), maybe_filled(), maybe_filled()).prop_map(
        |(task, page_size, page_token, tenant)| PushConfigQuery {
            task_id: task.into(),
            page_size,
            page_token,
            tenant,
        },
    )
}

fn push_config() -> impl Strategy<Value = PushConfig> {
    let auth = (filled(), maybe_filled())
        .prop_map(|(scheme, credentials)| PushAuth::new(scheme, credentials.map(Secret::new)));
    let names = (maybe_filled(), maybe_filled(), maybe_filled());
    (names, url(), maybe_filled(), option::of(auth)).prop_map(|(names, url, token, authentication)| {
        PushConfig {
            id: names.0.map(ConfigId::from),
            task_id: names.1.map(TaskId::from),
            url,
            token: token.map(Secret::new),
            authentication,
            tenant: names.2,
        }
    })
}

fn url() -> impl Strategy<Value = String> {
    (select(vec!["http", "https"]), "[a-z0-9.-]{1,8}", "[a-z0-9/?#&=%é:-]{0,8}")
        .prop_map(|(scheme, host, rest)| format!("{scheme}://{host}/{rest}"))
}

fn task_page() -> impl Strategy<Value = TaskPage> {
    (vec(task(), 0..3), maybe_filled(), count(), count()).prop_map(|(tasks, token, page_size, total)| {
        TaskPage {
            with_artifacts: tasks.iter().any(|task| !task.artifacts.is_empty()),
            tasks,
            next_page_token: token,
            page_size,
            total_size: total.into(),
        }
    })
}

/// A small card: cards have separate strategies and samples.
fn card() -> impl Strategy<Value = AgentCard> {
    let interface = (filled(), filled(), maybe_filled(), filled())
        .prop_map(|(url, binding, tenant, version)| AgentInterface { url, binding, tenant, version });
    (filled(), text(), vec(interface, 1..3), texts(), option::of(text())).prop_map(
        |(name, text, interfaces, modes, icon_url)| AgentCard {
            name,
            description: text.clone(),
            interfaces,
            provider: None,
            version: text,
            documentation_url: icon_url.clone(),
            capabilities: AgentCapabilities::default(),
            security_schemes: Vec::new(),
            security_requirements: Vec::new(),
            default_input_modes: modes.clone(),
            default_output_modes: modes,
            skills: Vec::new(),
            signatures: Vec::new(),
            icon_url,
        },
    )
}

fn task() -> impl Strategy<Value = Task> {
    (filled(), text(), status(), vec(artifact(), 0..3), vec(message(), 0..3), maybe_object()).prop_map(
        |(id, context, status, artifacts, history, metadata)| Task {
            id: id.into(),
            context_id: context.into(),
            status,
            artifacts,
            history,
            metadata,
            created_at: None,
        },
    )
}

fn status_update() -> impl Strategy<Value = StatusUpdate> {
    (filled(), text(), status(), maybe_object()).prop_map(|(task, context, status, metadata)| StatusUpdate {
        task_id: task.into(),
        context_id: context.into(),
        status,
        metadata,
    })
}

fn artifact_update() -> impl Strategy<Value = ArtifactUpdate> {
    (filled(), text(), artifact(), any::<bool>(), any::<bool>(), maybe_object()).prop_map(
        |(task, context, artifact, append, last_chunk, metadata)| ArtifactUpdate {
            task_id: task.into(),
            context_id: context.into(),
            artifact,
            append,
            last_chunk,
            metadata,
        },
    )
}

fn status() -> impl Strategy<Value = TaskStatus> {
    (state(), option::of(message()), option::of(timestamp()))
        .prop_map(|(state, message, timestamp)| TaskStatus { state, message, timestamp })
}

fn state() -> impl Strategy<Value = TaskState> {
    select(TaskState::ALL.to_vec())
}

fn artifact() -> impl Strategy<Value = Artifact> {
    (filled(), maybe_filled(), maybe_filled(), vec(part(), 1..4), texts(), maybe_object()).prop_map(
        |(id, name, description, parts, extensions, metadata)| Artifact {
            id: id.into(),
            name,
            description,
            parts,
            extensions,
            metadata,
        },
    )
}

fn message() -> BoxedStrategy<Message> {
    let place = (maybe_filled(), maybe_filled(), vec(filled(), 0..3));
    let role = select(vec![Role::User, Role::Agent]);
    (filled(), role, vec(part(), 1..4), place, texts(), maybe_object())
        .prop_map(|(id, role, parts, place, extensions, metadata)| Message {
            id: id.into(),
            role,
            parts,
            context_id: place.0.map(ContextId::from),
            task_id: place.1.map(TaskId::from),
            reference_task_ids: place.2.into_iter().map(TaskId::from).collect(),
            extensions,
            metadata,
        })
        .boxed()
}

fn part() -> impl Strategy<Value = Part> {
    let content = prop_oneof![
        text().prop_map(Content::Text),
        vec(any::<u8>(), 0..9).prop_map(Content::Raw),
        text().prop_map(Content::Url),
        json_text().prop_map(|text| Content::Data(Json::parse(&text).unwrap())),
    ];
    (content, maybe_filled(), maybe_filled(), maybe_object()).prop_map(
        |(content, media_type, filename, metadata)| Part { content, media_type, filename, metadata },
    )
}

fn timestamp() -> impl Strategy<Value = Timestamp> {
    prop_oneof![
        any::<i64>().prop_map(Timestamp::from_millis),
        (-4_000_000_000_000i64..8_000_000_000_000).prop_map(Timestamp::from_millis),
    ]
}

/// Any text: control characters, quotes and non-ASCII included.
fn text() -> impl Strategy<Value = String> + Clone {
    vec(any::<char>(), 0..6).prop_map(String::from_iter)
}

fn filled() -> impl Strategy<Value = String> + Clone {
    vec(any::<char>(), 1..6).prop_map(String::from_iter)
}

fn maybe_filled() -> impl Strategy<Value = Option<String>> {
    option::of(filled())
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    vec(text(), 0..3)
}

fn count() -> impl Strategy<Value = u32> {
    prop_oneof![0u32..3, 0u32..=i32::MAX.unsigned_abs()]
}

fn maybe_count() -> impl Strategy<Value = Option<u32>> {
    option::of(count())
}

fn maybe_object() -> impl Strategy<Value = Option<Json>> {
    option::of(members(json_text()).prop_map(|members| Json::parse(&format!("{{ {members} }}")).unwrap()))
}

/// The text of any JSON value, with white space between tokens and numbers that no float can represent.
pub(crate) fn json_text() -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        select(vec!["null", "true", "false", "0", "-0", "1.0", "2147483648", "9007199254740993", "1e400"])
            .prop_map(str::to_owned),
        any::<i128>().prop_map(|number| number.to_string()),
        any::<f64>()
            .prop_filter("JSON has no such number", |number| number.is_finite())
            .prop_map(|n| format!("{n:e}")),
        text().prop_map(|text| quoted(&text)),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(|items| format!("[{}]", items.join(" , "))),
            members(inner).prop_map(|members| format!("{{{members}}}")),
        ]
    })
    .boxed()
}

fn members(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let member = (text(), value).prop_map(|(name, value)| format!("{}: {value}", quoted(&name)));
    vec(member, 0..3).prop_map(|members| members.join(" ,\n"))
}

pub(crate) fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// The request as it is decoded again: with the skill in the metadata.
pub(crate) fn with_skill(operation: Operation) -> Operation {
    let moved = |req: SendMessage| SendMessage { metadata: req.metadata_with_skill(), skill: None, ..req };
    match operation {
        Operation::SendMessage(req) => Operation::SendMessage(moved(req)),
        Operation::SendStreamingMessage(req) => Operation::SendStreamingMessage(moved(req)),
        other => other,
    }
}
