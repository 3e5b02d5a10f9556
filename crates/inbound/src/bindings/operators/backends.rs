//! `/console/api/backends`: whether the backends work.

use axum::response::Response;
use http::StatusCode;
use protocol::{Error, Timestamp, json::write::Writer};

use super::{agent_document::number, query_parameters, respond};
use crate::{operator_reports::BackendHealth, request::exchange::Exchange};

/// `GET`: empty for a server whose application has its own backends.
pub(super) fn list(exchange: &Exchange) -> Result<Response, Error> {
    let [] = query_parameters(exchange, [])?;
    let reports = exchange.server.reports.as_ref();
    let backends = reports.map(|reports| reports.backends()).unwrap_or_default();
    Ok(respond(StatusCode::OK, document(&backends, exchange.now())))
}

fn document(backends: &[BackendHealth], now: Timestamp) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.object(|out| {
        out.key("backends").array(backends, |out, backend| out.object(|out| write(out, backend, now)));
    });
    writer.finish()
}

fn write(out: &mut Writer, backend: &BackendHealth, now: Timestamp) {
    out.text("name", &backend.name);
    out.text("kind", backend.kind);
    out.text("state", backend.state.name());
    if let Some(tools) = backend.tools {
        out.key("tools").int(number(tools as u64));
    }
    if let Some(processes) = backend.processes {
        out.key("processes").int(number(processes.ready as u64));
        out.key("restarts").int(number(processes.restarts));
    }
    out.key("calls").int(number(backend.calls));
    out.key("failures").int(number(backend.failures));
    if let Some(error) = &backend.last_error {
        let age = i64::try_from(error.age.as_millis()).unwrap_or(i64::MAX);
        let at = Timestamp::from_millis(now.as_millis().saturating_sub(age));
        out.text("lastError", &error.text);
        out.text("lastErrorAt", &at.to_string());
    }
}
