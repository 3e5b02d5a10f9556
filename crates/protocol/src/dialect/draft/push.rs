//! Push notification configs: each task has at most one, identified by the task id.

use crate::{
    ConfigId, PushConfig, TaskId,
    dialect::legacy::push,
    json::{
        read::{Node, Read},
        write::Writer,
    },
};

use super::task;

/// Reads a config and the task it is for.
pub fn decode(node: Node<'_, '_>) -> Read<PushConfig> {
    let object = node.object()?;
    let task_id = TaskId::from(object.need("id", "a non-empty string", task::decode_id)?);
    let config =
        object.need("pushNotificationConfig", "a config", |node| decode_config(node, Some(&task_id)))?;
    Ok(PushConfig { task_id: Some(task_id), ..config })
}

/// Writes a config and the task it is for.
pub fn encode(writer: &mut Writer, config: &PushConfig) {
    writer.object(|writer| {
        writer.text("id", config.task_id.as_ref().map_or("", AsRef::as_ref));
        encode_config(writer.key("pushNotificationConfig"), config);
    });
}

/// Reads a config that is part of a send to the given task.
pub(super) fn decode_config(node: Node<'_, '_>, task_id: Option<&TaskId>) -> Read<PushConfig> {
    let id = task_id.map(|task_id| ConfigId::from(task_id.as_str()));
    Ok(PushConfig { id, ..push::decode(node)? })
}

/// Writes a config that is part of a send.
pub(super) fn encode_config(writer: &mut Writer, config: &PushConfig) {
    writer.object(|writer| push::encode_members(writer, config));
}
