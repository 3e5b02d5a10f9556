//! `/console/api/audit`: reads and follows the audit log.

use std::{ops::RangeInclusive, time::Duration};

use axum::response::Response;
use http::StatusCode;
use protocol::{Error, ErrorKind, Violation, json::write::Writer};

use super::{failure, query_parameters, respond};
use crate::request::exchange::Exchange;

const LIMIT: u64 = 100;
const MAX_LIMIT: u64 = 1_000;
/// The longest time that a request may wait for an entry.
const MAX_WAIT: u64 = 30;

/// `GET`: the entries after a number, oldest first.
pub(super) async fn read(exchange: &Exchange) -> Result<Response, Error> {
    let [after, limit, wait] = query_parameters(exchange, ["after", "limit", "wait"])?;
    let after = number("after", after, 0, &(0..=u64::MAX))?;
    let limit = number("limit", limit, LIMIT, &(1..=MAX_LIMIT))?;
    let wait = number("wait", wait, 0, &(0..=MAX_WAIT))?;
    let off = || Error::new(ErrorKind::NotFound, "the audit log is off; set audit.file in the configuration");
    let audit = exchange.server.audit.as_ref().ok_or_else(off)?;
    let max = usize::try_from(limit).unwrap_or(usize::MAX);
    let entries = audit.read(after, max, Duration::from_secs(wait)).await.map_err(|error| {
        let broken = engine::Error::Broken(format!("the audit log cannot be read: {error}"));
        failure(exchange, broken)
    })?;
    let mut writer = Writer::new();
    writer.object(|out| out.key("entries").array(&entries, |out, entry| out.raw(entry)));
    Ok(respond(StatusCode::OK, writer.finish()))
}

fn number(
    name: &'static str,
    text: Option<String>,
    default: u64,
    range: &RangeInclusive<u64>,
) -> Result<u64, Error> {
    let Some(text) = text else { return Ok(default) };
    text.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| {
        let expected = format_args!("expected a number from {} to {}", range.start(), range.end());
        Violation::new(name, expected).into()
    })
}
