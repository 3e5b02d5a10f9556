//! Push notification configs: the config in a wrapper with its resource name.

use crate::{
    ConfigId, PushConfig, TaskId,
    dialect::legacy,
    json::{
        read::{Node, Object, Read},
        write::Writer,
    },
};

pub(crate) const TASKS: &str = "tasks/";
pub(crate) const CONFIGS: &str = "/pushNotificationConfigs/";
/// Expectation text for a task id in the body.
const TASK_OF_PATH: &str = "the task of the path";

/// Reads a config in its wrapper.
pub fn decode(node: Node<'_, '_>) -> Read<PushConfig> {
    let object = node.object()?;
    let config = object.need("pushNotificationConfig", "a config", decode_bare)?;
    let name = object.text_or_empty("name")?;
    let (task_id, id) = parse_name(&name, config.id.as_ref());
    Ok(PushConfig { task_id, id, ..config })
}

/// Reads the config a client registers for this task, in any of the three forms that clients send: the
/// wrapper inside `config`, the wrapper, and the bare config.
pub fn decode_created(node: Node<'_, '_>, task: &TaskId) -> Read<PushConfig> {
    let object = node.object()?;
    let named = object.text("configId")?.map(ConfigId::from);
    check_task(&object, "parent", task)?;
    let config = match object.maybe("config", |node| decode_wrapped(node, task))? {
        Some(config) => config,
        None => decode_wrapped(node, task)?,
    };
    Ok(PushConfig { task_id: Some(task.clone()), id: config.id.clone().or(named), ..config })
}

/// Writes a config in its wrapper.
pub fn encode(writer: &mut Writer, config: &PushConfig) {
    writer.object(|writer| {
        writer.maybe_text("name", name(config).as_deref());
        encode_bare(writer.key("pushNotificationConfig"), config);
    });
}

/// The resource name of a config whose task is known.
pub(crate) fn name(config: &PushConfig) -> Option<String> {
    let task = config.task_id.as_ref()?;
    Some(match &config.id {
        Some(id) => format!("{TASKS}{task}{CONFIGS}{id}"),
        None => format!("{TASKS}{task}"),
    })
}

/// Reads the bare config, which a send contains without a wrapper.
pub(super) fn decode_bare(node: Node<'_, '_>) -> Read<PushConfig> {
    legacy::push::decode(node)
}

/// Writes the bare config.
pub(super) fn encode_bare(writer: &mut Writer, config: &PushConfig) {
    writer.object(|writer| {
        writer.maybe_text("id", config.id.as_ref().map(AsRef::as_ref));
        legacy::push::encode_members(writer, config);
    });
}

fn decode_wrapped(node: Node<'_, '_>, task: &TaskId) -> Read<PushConfig> {
    let object = node.object()?;
    check_task(&object, "name", task)?;
    object.maybe("taskId", |node| match node.string()?.as_ref() {
        other if other.is_empty() || other == task.as_str() => Ok(()),
        _ => Err(node.expected(TASK_OF_PATH)),
    })?;
    match object.maybe("pushNotificationConfig", decode_bare)? {
        Some(config) => {
            let (_, id) = parse_name(&object.text_or_empty("name")?, config.id.as_ref());
            Ok(PushConfig { id, ..config })
        }
        None => decode_bare(node),
    }
}

/// Rejects a resource name in the body that refers to another task than the path; any other text is ignored.
fn check_task(object: &Object<'_, '_>, field: &str, task: &TaskId) -> Read<()> {
    object.maybe(field, |node| {
        let name = node.string()?;
        let rest = name.strip_prefix(TASKS).filter(|rest| !rest.is_empty());
        let after = rest.map(|rest| rest.strip_prefix(task.as_str()));
        let same =
            |after: Option<&str>| after.is_some_and(|rest| rest.is_empty() || rest.starts_with(CONFIGS));
        if after.is_none_or(same) { Ok(()) } else { Err(node.expected(TASK_OF_PATH)) }
    })?;
    Ok(())
}

/// The task and the config of `tasks/{task}/pushNotificationConfigs/{config}`, or only the task. Ids may
/// contain slashes, so the config's own id, if known, determines where the name is split.
pub(crate) fn parse_name(name: &str, known: Option<&ConfigId>) -> (Option<TaskId>, Option<ConfigId>) {
    let filled = |text: &&str| !text.is_empty();
    let name = name.strip_prefix(TASKS).unwrap_or_default();
    let divided = known.and_then(|id| name.strip_suffix(id.as_str())?.strip_suffix(CONFIGS));
    let (task, id) = match divided {
        Some(task) => (task, ""),
        None => name.rsplit_once(CONFIGS).unwrap_or((name, "")),
    };
    let id = known.cloned().or_else(|| Some(id).filter(filled).map(ConfigId::from));
    (Some(task).filter(filled).map(TaskId::from), id)
}
