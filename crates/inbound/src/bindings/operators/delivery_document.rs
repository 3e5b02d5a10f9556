//! Deliveries of push notifications as JSON, for operators.

use engine::{
    Result as EngineResult,
    push::{Deliveries, DeliveryId, ListedDelivery, ListedState, Resent},
    store::WebhookNo,
};
use protocol::{Error, Violation, json::write::Writer};

/// Which deliveries are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeliveryFilter {
    /// Those that are attempted again.
    Pending,
    /// Those that were given up.
    Dead,
}

/// Reads the name of a filter.
pub(super) fn parse_filter(text: &str) -> Result<DeliveryFilter, Error> {
    match text {
        "pending" => Ok(DeliveryFilter::Pending),
        "dead" => Ok(DeliveryFilter::Dead),
        _ => Err(Violation::new("state", "expected pending or dead").into()),
    }
}

/// A page of at most `size` deliveries after one of an earlier page, and where the next page begins.
pub(super) async fn page(
    deliveries: &Deliveries,
    filter: Option<DeliveryFilter>,
    from: Option<DeliveryId>,
    size: usize,
) -> EngineResult<(Vec<ListedDelivery>, Option<DeliveryId>)> {
    let mut found = Vec::new();
    let (before, after) = match from {
        None => (Some(i64::MAX), WebhookNo(0)),
        Some(DeliveryId::Dead(no)) => (Some(no), WebhookNo(0)),
        Some(DeliveryId::Pending(webhook)) => (None, webhook),
    };
    if let Some(before) = before.filter(|_| filter != Some(DeliveryFilter::Pending)) {
        found = deliveries.dead(before, size).await?;
    }
    if found.len() < size && filter != Some(DeliveryFilter::Dead) {
        found.extend(deliveries.pending(after, size - found.len()).await?);
    }
    let next = found.last().filter(|_| found.len() == size).map(|last| last.id);
    Ok((found, next))
}

/// A page as JSON.
pub(super) fn list(found: &[ListedDelivery], next: Option<DeliveryId>) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.object(|out| {
        out.key("deliveries").array(found, |out, delivery| out.object(|out| write_members(out, delivery)));
        out.maybe_text("nextPageToken", next.map(DeliveryId::text).as_deref());
    });
    writer.finish()
}

fn write_members(out: &mut Writer, delivery: &ListedDelivery) {
    let owner = delivery.scope.parts();
    let (state, time_name, time) = match delivery.state {
        ListedState::Pending(next) => ("pending", "nextAttemptAt", next),
        ListedState::Dead(died) => ("dead", "diedAt", died),
    };
    out.text("id", &delivery.id.text());
    out.text("task", delivery.task.as_str());
    out.text("state", state);
    out.text("config", &delivery.config);
    out.text("notification", &delivery.notification);
    out.text("agent", &owner.agent);
    out.text("owner", &owner.principal);
    out.text("host", &delivery.host);
    out.key("attempts").int(i64::from(delivery.attempts));
    out.text(time_name, &time.to_string());
    out.maybe_text("error", delivery.error.as_deref());
}

/// The result of sending a notification again, as JSON.
pub(super) fn resent(id: &str, resent: &Resent) -> Vec<u8> {
    let (result, error) = match resent {
        Resent::Delivered => ("delivered", None),
        Resent::Scheduled => ("scheduled", None),
        Resent::Failed(error) => ("failed", Some(error.as_str())),
        Resent::Unknown => ("unknown", None),
    };
    let mut writer = Writer::new();
    writer.object(|out| {
        out.text("id", id);
        out.text("result", result);
        out.maybe_text("error", error);
    });
    writer.finish()
}
