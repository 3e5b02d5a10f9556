//! `/console/api/deliveries`: push notifications that were not delivered, and sending them again.

use axum::response::Response;
use engine::push::{Deliveries, DeliveryId, ListedDelivery, Resent};
use http::StatusCode;
use protocol::{Error, ErrorKind, Violation, error::excerpt};

use super::{Subject, delivery_document, failure, named, query_parameters, respond, tasks::read_size};
use crate::request::exchange::Exchange;

const PAGE_SIZE: usize = 50;

/// `GET`: a page of deliveries: dead letters, newest first, then pending ones.
pub(super) async fn list(exchange: &Exchange) -> Result<Response, Error> {
    let [state, page_size, page_token] = query_parameters(exchange, ["state", "pageSize", "pageToken"])?;
    let filter = state.map_or(Ok(None), |text| delivery_document::parse_filter(&text).map(Some))?;
    let size = page_size.map_or(Ok(PAGE_SIZE), |text| read_size(&text))?;
    let from = match page_token {
        Some(token) => Some(DeliveryId::parse(&token).ok_or_else(bad_token)?),
        None => None,
    };
    let deliveries = exchange.server.engine.deliveries();
    let page = delivery_document::page(&deliveries, filter, from, size).await;
    let (mut found, next) = page.map_err(|error| failure(exchange, error))?;
    found.retain(|delivery: &ListedDelivery| delivery.scope.tenant() == exchange.endpoint.tenant.id());
    Ok(respond(StatusCode::OK, delivery_document::list(&found, next)))
}

/// `POST …/{id}/resend`: sends a dead letter once more and waits for the response, or lets a pending delivery start now.
pub(super) async fn resend(exchange: &Exchange, subject: &mut Subject) -> Result<Response, Error> {
    let [] = query_parameters(exchange, [])?;
    let text = named(exchange);
    subject.delivery = Some(excerpt(&text));
    let id = DeliveryId::parse(&text).ok_or_else(|| unknown(&text))?;
    let deliveries: Deliveries = exchange.server.engine.deliveries();
    let resent = deliveries.resend(id).await;
    match resent.map_err(|error| failure(exchange, error))? {
        Resent::Unknown => Err(unknown(&text)),
        resent => Ok(respond(StatusCode::OK, delivery_document::resent(&text, &resent))),
    }
}

fn unknown(id: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no delivery with the id {:?}", excerpt(id)))
}

fn bad_token() -> Error {
    Violation::new("pageToken", "expected a nextPageToken of this list").into()
}
