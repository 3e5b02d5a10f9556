//! Push notification configs: the task id, and the config nested beside it.

use crate::{
    PushConfig,
    dialect::legacy::push,
    json::{
        read::{Node, Read},
        write::Writer,
    },
};

/// Reads a config and the task it is for.
pub fn decode(node: Node<'_, '_>) -> Read<PushConfig> {
    let object = node.object()?;
    let task_id = object.need_text("taskId")?.into();
    let config = object.need("pushNotificationConfig", "a config", decode_config)?;
    Ok(PushConfig { task_id: Some(task_id), ..config })
}

/// Writes a config and the task it is for.
pub fn encode(writer: &mut Writer, config: &PushConfig) {
    writer.object(|writer| {
        writer.text("taskId", config.task_id.as_ref().map_or("", AsRef::as_ref));
        encode_config(writer.key("pushNotificationConfig"), config);
    });
}

/// Reads a config that is part of a send: it has no task yet.
pub(super) fn decode_config(node: Node<'_, '_>) -> Read<PushConfig> {
    push::decode(node)
}

/// Writes a config that is part of a send.
pub(super) fn encode_config(writer: &mut Writer, config: &PushConfig) {
    writer.object(|writer| {
        writer.maybe_text("id", config.id.as_ref().map(AsRef::as_ref));
        push::encode_members(writer, config);
    });
}
