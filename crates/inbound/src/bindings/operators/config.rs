//! `/console/api/config`: the configuration in use, without secrets.

use axum::response::Response;
use http::StatusCode;
use protocol::{Error, ErrorKind};

use super::{config_document, query_parameters, respond};
use crate::request::exchange::Exchange;

/// `GET`
pub(super) fn show(exchange: &Exchange) -> Result<Response, Error> {
    let [] = query_parameters(exchange, [])?;
    let none = || Error::new(ErrorKind::NotFound, "the server was started by an application, without keys");
    let reports = exchange.server.reports.as_ref().ok_or_else(none)?;
    Ok(respond(StatusCode::OK, config_document::document(&reports.configuration())))
}
