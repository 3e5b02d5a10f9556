//! Push notification configs: the config in a wrapper with its resource name.

use crate::{
    ConfigId, PushConfig, TaskId,
    dialect::{
        v1::push::{URL, is_url},
        v03_proto::push::{self, parse_name},
    },
    grpc::{
        generated::v03 as pb,
        read::{expected, filled, lacks, list, maybe, need, text},
    },
    json::read::{Path, Read},
    model::{PushAuth, Secret},
};

use super::name;

/// Reads a config in its wrapper.
pub(super) fn decode(config: pb::TaskPushNotificationConfig, path: &Path<'_>) -> Read<PushConfig> {
    let bare =
        need(config.push_notification_config, path, "pushNotificationConfig", "a config", decode_bare)?;
    let (task_id, id) = parse_name(&config.name, bare.id.as_ref());
    Ok(PushConfig { task_id, id, ..bare })
}

/// Reads the config a client registers: the task is outside the wrapper, the config id in one of three
/// places.
pub(super) fn decode_created(req: pb::CreateTaskPushNotificationConfigRequest) -> Read<PushConfig> {
    let task = name::task(&req.parent, "parent")?;
    let config = need(req.config, &Path::Root, "config", "a config", |config, path| {
        let config = decode(config, path)?;
        match &config.task_id {
            Some(other) if *other != task => {
                Err(expected(&Path::Field(path, "name"), "a config of the task in parent"))
            }
            _ => Ok(config),
        }
    })?;
    let id = config.id.or_else(|| text(req.config_id).map(ConfigId::from));
    Ok(PushConfig { task_id: Some(task), id, ..config })
}

/// Writes a config in its wrapper.
pub(super) fn encode(config: &PushConfig) -> pb::TaskPushNotificationConfig {
    pb::TaskPushNotificationConfig {
        name: push::name(config).unwrap_or_default(),
        push_notification_config: Some(encode_bare(config)),
    }
}

/// Writes the request that registers a config.
pub(super) fn encode_created(config: &PushConfig) -> pb::CreateTaskPushNotificationConfigRequest {
    pb::CreateTaskPushNotificationConfigRequest {
        parent: config.task_id.as_ref().map(name::of_task).unwrap_or_default(),
        config_id: config.id.as_ref().map(ConfigId::to_string).unwrap_or_default(),
        config: Some(encode(config)),
    }
}

/// Reads the bare config, which a send contains without a wrapper.
pub(super) fn decode_bare(config: pb::PushNotificationConfig, path: &Path<'_>) -> Read<PushConfig> {
    Ok(PushConfig {
        id: text(config.id).map(ConfigId::from),
        task_id: None::<TaskId>,
        url: match config.url {
            url if url.is_empty() => return Err(lacks(path, "url", URL)),
            url if is_url(&url) => url,
            _ => return Err(expected(&Path::Field(path, "url"), URL)),
        },
        token: text(config.token).map(Secret::new),
        authentication: maybe(config.authentication, path, "authentication", decode_auth)?.flatten(),
        tenant: None,
    })
}

/// Writes the bare config.
pub(super) fn encode_bare(config: &PushConfig) -> pb::PushNotificationConfig {
    let secret = |secret: &Option<Secret>| secret.as_ref().map(Secret::expose).unwrap_or_default().to_owned();
    let auth = |auth: &PushAuth| pb::AuthenticationInfo {
        schemes: auth.schemes.clone(),
        credentials: secret(&auth.credentials),
    };
    pb::PushNotificationConfig {
        id: config.id.as_ref().map(ConfigId::to_string).unwrap_or_default(),
        url: config.url.clone(),
        token: secret(&config.token),
        authentication: config.authentication.as_ref().map(auth),
    }
}

/// Neither schemes nor credentials means no authentication.
fn decode_auth(auth: pb::AuthenticationInfo, path: &Path<'_>) -> Read<Option<PushAuth>> {
    let schemes = list(auth.schemes, path, "schemes", filled)?;
    let credentials = text(auth.credentials).map(Secret::new);
    match (schemes.is_empty(), &credentials) {
        (true, None) => Ok(None),
        (true, Some(_)) => Err(lacks(path, "schemes", "at least one scheme")),
        (false, _) => Ok(Some(PushAuth { schemes, credentials, extra: None })),
    }
}
