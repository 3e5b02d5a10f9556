//! Push notification configs: flat messages with one authentication scheme.

use crate::{
    ConfigId, PushConfig, TaskId,
    dialect::v1::push::{URL, is_url},
    grpc::{
        generated::v1 as pb,
        read::{expected, lacks, maybe, need_text, text},
    },
    json::read::{Path, Read},
    model::{PushAuth, Secret},
};

/// Reads a config; one that is part of a send has no task yet.
pub(super) fn decode(config: pb::TaskPushNotificationConfig, path: &Path<'_>) -> Read<PushConfig> {
    Ok(PushConfig {
        id: text(config.id).map(ConfigId::from),
        task_id: text(config.task_id).map(TaskId::from),
        url: match config.url {
            url if url.is_empty() => return Err(lacks(path, "url", URL)),
            url if is_url(&url) => url,
            _ => return Err(expected(&Path::Field(path, "url"), URL)),
        },
        token: text(config.token).map(Secret::new),
        authentication: maybe(config.authentication, path, "authentication", |auth, path| {
            let scheme = need_text(auth.scheme, path, "scheme")?;
            Ok(PushAuth::new(scheme, text(auth.credentials).map(Secret::new)))
        })?,
        tenant: text(config.tenant),
    })
}

/// Writes a config.
pub(super) fn encode(config: &PushConfig) -> pb::TaskPushNotificationConfig {
    let secret = |secret: &Option<Secret>| secret.as_ref().map(Secret::expose).unwrap_or_default().to_owned();
    let auth = |auth: &PushAuth| pb::AuthenticationInfo {
        scheme: auth.schemes.first().cloned().unwrap_or_default(),
        credentials: secret(&auth.credentials),
    };
    pb::TaskPushNotificationConfig {
        tenant: config.tenant.clone().unwrap_or_default(),
        id: config.id.as_ref().map(ConfigId::to_string).unwrap_or_default(),
        task_id: config.task_id.as_ref().map(TaskId::to_string).unwrap_or_default(),
        url: config.url.clone(),
        token: secret(&config.token),
        authentication: config.authentication.as_ref().map(auth),
    }
}
