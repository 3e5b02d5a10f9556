//! Webhooks of a task (A2A 3.1.7 to 3.1.10).
//!
//! A webhook belongs to the owner of its task: it is looked up inside the caller's scope, like the task. Whoever registers
//! it sees its secrets once, in that response; they are masked afterwards.

use protocol::{
    ConfigId, ErrorKind, PushConfig, PushConfigPage, PushConfigQuery, PushConfigRef, Reply, TaskId,
    error::{Violation, excerpt},
};

use super::get_task::load_row;
use crate::{
    catalog::RegisteredAgent,
    cursor::PageTokens,
    engine::{Call, CallResponse, EngineInner, ResponseNote},
    error::{Error, Result},
    ids::TaskNo,
    push::{Deliverer, MAX_WEBHOOKS, host_key, masked, random_key},
    store::{ListPosition, NewWebhook, NotificationForm, Registered, TaskRow, Webhook},
};

/// Registers a webhook, or replaces the one with its id.
pub(super) async fn create(
    engine: &EngineInner,
    call: Call,
    registered: &RegisteredAgent,
    config: PushConfig,
) -> Result<CallResponse> {
    supported(engine)?;
    let task_id =
        config.task_id.clone().ok_or_else(|| Error::invalid("taskId", "required, expected a task"))?;
    let row = load_row(engine, &call, &task_id).await?;
    let registration = WebhookRequest { task: row.no, task_id: &task_id, config: &config, field: None };
    let (webhook, note) = registration.webhook(engine, &call, registered)?;
    let id = webhook.id.clone();
    match engine.store.register_webhook(row.no, webhook, MAX_WEBHOOKS).await? {
        Registered::Stored => {}
        Registered::TooMany => return Err(too_many()),
        Registered::NoTask => return Err(protocol::Error::task_not_found(&task_id).into()),
    }
    let reply = Reply::PushConfig(PushConfig { id: Some(id), task_id: Some(task_id), ..config });
    Ok(CallResponse::Reply(reply).with_note(note))
}

/// A webhook that a request registers for a task.
pub(super) struct WebhookRequest<'a> {
    pub(super) task: TaskNo,
    pub(super) task_id: &'a TaskId,
    pub(super) config: &'a PushConfig,
    /// The field of the request that has the config; `None` if the request has only that.
    pub(super) field: Option<&'static str>,
}

impl WebhookRequest<'_> {
    /// The webhook, and the key that was made for it.
    pub(super) fn webhook(
        &self,
        engine: &EngineInner,
        call: &Call,
        registered: &RegisteredAgent,
    ) -> Result<(NewWebhook, Option<ResponseNote>)> {
        let (push, config) = (supported(engine)?, self.config);
        push.sender.check(config).map_err(|violation| self.invalid(violation))?;
        let dialect = call.dialect();
        let given = config.id.clone().or_else(|| dialect.default_webhook_id(self.task_id));
        let id = given.unwrap_or_else(|| ConfigId::from(uuid::Uuid::new_v4().to_string()));
        let form = NotificationForm { dialect, style: call.style };
        let events = registered.settings().push_events;
        let signs = config.token.as_ref().is_some_and(|token| push.sender.is_signing_key(token));
        let made = if signs { None } else { Some(random_key()) };
        let sealed = push.records.seal(self.task, config, made.as_ref());
        let host = host_key(&call.scope, &config.url);
        Ok((NewWebhook { id, form, events, host, sealed }, made.map(ResponseNote::WebhookSecret)))
    }

    fn invalid(&self, violation: Violation) -> protocol::Error {
        let violation = match self.field {
            Some(field) => Violation::new(format_args!("{field}.{}", violation.field), violation.problem),
            None => violation,
        };
        protocol::Error::invalid_params(violation)
    }
}

/// Reads one webhook without its secrets.
pub(super) async fn get(engine: &EngineInner, call: Call, req: PushConfigRef) -> Result<CallResponse> {
    let (_, mut webhooks) = load(engine, &call, &req.task_id).await?;
    // Without an id: the one that has the id of the task, as in the draft, else the oldest.
    let id = req.id.as_ref().map_or(req.task_id.as_str(), ConfigId::as_str);
    let named = webhooks.iter().position(|(webhook, _)| webhook.config.id.as_str() == id);
    let oldest = (req.id.is_none() && !webhooks.is_empty()).then_some(0);
    let Some((webhook, config)) = named.or(oldest).map(|position| webhooks.swap_remove(position)) else {
        let text = match &req.id {
            Some(id) => format!("the task has no push notification config {:?}", excerpt(id.as_str())),
            None => "the task has no push notification config".to_owned(),
        };
        return Err(Error::refused(ErrorKind::TaskNotFound, text));
    };
    let note = ResponseNote::PushHealth(health(&webhook));
    Ok(CallResponse::Reply(Reply::PushConfig(config)).with_note(Some(note)))
}

/// Lists the webhooks of a task without their secrets.
pub(super) async fn list(engine: &EngineInner, call: Call, req: PushConfigQuery) -> Result<Reply> {
    let (row, webhooks) = load(engine, &call, &req.task_id).await?;
    let tokens = PageTokens::of_webhooks(engine.store.seal_key(), &call.scope, row.no);
    let after = match req.page_token.as_deref().filter(|token| !token.is_empty()) {
        Some(token) => tokens.open(token).ok_or_else(bad_token)?.no.0,
        None => 0,
    };
    let size = req.page_size.filter(|size| *size > 0).map_or(MAX_WEBHOOKS, |size| size as usize);
    let mut rest = webhooks.into_iter().filter(|(webhook, _)| webhook.no.0 > after).peekable();
    let page: Vec<_> = rest.by_ref().take(size).collect();
    let last = page.last().filter(|_| rest.peek().is_some());
    let position = |webhook: &Webhook| ListPosition {
        status_at: protocol::Timestamp::from_millis(0),
        no: TaskNo(webhook.no.0),
    };
    Ok(Reply::PushConfigs(PushConfigPage {
        next_page_token: last.map(|(webhook, _)| tokens.token(position(webhook))),
        configs: page.into_iter().map(|(_, config)| config).collect(),
    }))
}

/// Deletes a webhook with what is still to be delivered to it. Deleting one that does not exist succeeds.
pub(super) async fn delete(engine: &EngineInner, call: Call, req: PushConfigRef) -> Result<Reply> {
    supported(engine)?;
    let row = load_row(engine, &call, &req.task_id).await?;
    let id = req.id.ok_or_else(|| Error::invalid("id", "required, expected the id of a config"))?;
    engine.store.delete_webhook(row.no, id).await?;
    Ok(Reply::Deleted)
}

/// The webhooks of a task that is visible to the caller, as the caller may see them.
async fn load(
    engine: &EngineInner,
    call: &Call,
    task_id: &TaskId,
) -> Result<(TaskRow, Vec<(Webhook, PushConfig)>)> {
    let push = supported(engine)?;
    let row = load_row(engine, call, task_id).await?;
    let webhooks = engine.store.webhooks(&call.scope, row.no).await?;
    let shown = |webhook: Webhook| {
        let opened = push.records.open(row.no, &webhook.config).ok_or_else(|| {
            Error::Unavailable("a webhook cannot be opened: <store>.keys/seal was replaced".into())
        })?;
        let config = PushConfig { task_id: Some(task_id.clone()), ..masked(opened.config) };
        Ok((webhook, config))
    };
    let shown = webhooks.into_iter().map(shown).collect::<Result<_>>()?;
    Ok((row, shown))
}

fn supported(engine: &EngineInner) -> Result<&Deliverer> {
    engine.push().ok_or_else(|| {
        let text = "push notifications are not supported by this agent; stream the task or poll it instead";
        Error::refused(ErrorKind::PushNotificationNotSupported, text)
    })
}

/// The error for one webhook more than a task may have.
pub(crate) fn too_many() -> Error {
    Error::invalid(
        "id",
        format_args!(
            "a task has at most {MAX_WEBHOOKS} push notification configs; delete one, or replace it by its id"
        ),
    )
}

fn bad_token() -> Error {
    Error::invalid("pageToken", "expected a nextPageToken of the same caller and task")
}

/// How deliveries to a webhook are going: a word, then facts. The error of a notification that was given up stays until one
/// is delivered.
fn health(webhook: &Webhook) -> String {
    let delivered = webhook.delivered;
    if webhook.disabled {
        return format!("disabled; delivered={delivered}; reason=410");
    }
    match (webhook.next_at, webhook.attempts) {
        (Some(next), attempts) if attempts > 0 => {
            format!("failing; delivered={delivered}; attempts={attempts}; next={next}")
        }
        (Some(_), _) => format!("pending; delivered={delivered}"),
        (None, _) if webhook.error.is_some() => format!("failed; delivered={delivered}"),
        (None, _) => format!("ok; delivered={delivered}"),
    }
}
