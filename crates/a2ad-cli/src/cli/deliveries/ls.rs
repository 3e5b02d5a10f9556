//! `a2ad deliveries ls`: lists notifications that were not delivered, of a running server or in the store.

use std::sync::Arc;

use clap::Args;
use engine::push::{Deliveries, DeliveryId};
use inbound::delivery_document::{self, DeliveryFilter};
use protocol::json::{
    read::{Object, Read},
    write::Writer,
};

use crate::cli::{
    failure::{Failure, code},
    named_value::NamedValue,
    operate::{Access, MissingStore, OperateFlags, columns, counted, read_document, with_query},
    output::Output,
    runtime,
};

/// The largest page.
const PAGE: usize = 100;

#[derive(Debug, Args)]
pub(in crate::cli) struct LsFlags {
    /// Only deliveries in this state: pending or dead.
    #[arg(long, value_name = "STATE", value_parser = NamedValue { names: &["pending", "dead"], parse: parse_state })]
    state: Option<DeliveryFilter>,
    /// Print at most N deliveries; 0 prints all.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
    #[command(flatten)]
    operate: OperateFlags,
}

fn parse_state(text: &str) -> Result<DeliveryFilter, String> {
    delivery_document::parse_filter(text).map_err(|_| "expected pending or dead".to_owned())
}

pub(super) fn run(flags: &LsFlags) -> Result<u8, Failure> {
    let output = Output::new();
    let access = Access::open(&flags.operate, MissingStore::Refuse, &output)?;
    let limit = if flags.limit == 0 { usize::MAX } else { flags.limit };
    let Listed { rows, documents, has_more } = runtime()?.block_on(walk(&access, flags.state, limit))?;
    let more = if has_more { "; there are more: --limit shows them" } else { "" };
    let found = counted(rows.len(), "delivery", "deliveries");
    output.message(&format!("a2ad: {found} {}{more}", access.place()));
    if flags.operate.json {
        let mut writer = Writer::new();
        writer.object(|out| {
            out.key("deliveries").array(&documents, |out, document| out.raw(document));
            out.key("complete").boolean(!has_more);
        });
        output.document(&writer.finish())?;
    } else {
        output.text(&columns(&rows))?;
    }
    Ok(code::SUCCESS)
}

#[derive(Default)]
struct Listed {
    rows: Vec<[String; 7]>,
    /// The same as JSON.
    documents: Vec<String>,
    has_more: bool,
}

async fn walk(access: &Access, state: Option<DeliveryFilter>, limit: usize) -> Result<Listed, Failure> {
    let mut listed = Listed::default();
    let mut token: Option<String> = None;
    loop {
        let size = PAGE.min(limit - listed.rows.len());
        let document = page(access, state, size, token.as_deref()).await?;
        token = read_document(&document, |object| {
            let read =
                object.list("deliveries", |node| Ok((row(&node.object()?)?, node.text().to_owned())))?;
            for (row, document) in read {
                listed.rows.push(row);
                listed.documents.push(document);
            }
            object.text("nextPageToken")
        })?;
        listed.has_more = token.is_some();
        if token.is_none() || listed.rows.len() >= limit {
            return Ok(listed);
        }
    }
}

async fn page(
    access: &Access,
    state: Option<DeliveryFilter>,
    size: usize,
    token: Option<&str>,
) -> Result<Vec<u8>, Failure> {
    match access {
        Access::Server(server) => {
            let state = state.map(|state| match state {
                DeliveryFilter::Pending => "pending",
                DeliveryFilter::Dead => "dead",
            });
            let size = size.to_string();
            let parameters = [("state", state), ("pageSize", Some(&*size)), ("pageToken", token)];
            server.get(&with_query("/deliveries", &parameters)).await
        }
        Access::Store(store) => {
            let deliveries = Deliveries::of_store(Arc::clone(&store.store), store.clock.clone());
            let from = token.and_then(DeliveryId::parse);
            let (found, next) = delivery_document::page(&deliveries, state, from, size).await?;
            Ok(delivery_document::list(&found, next))
        }
    }
}

fn row(object: &Object<'_, '_>) -> Read<[String; 7]> {
    let attempts = object.need("attempts", "a number", |node| node.int32())?;
    let time = match object.text("nextAttemptAt")? {
        Some(next) => next,
        None => object.need_text("diedAt")?,
    };
    Ok([
        object.need_text("id")?,
        object.need_text("task")?,
        object.need_text("state")?,
        object.need_text("host")?,
        counted(usize::try_from(attempts).unwrap_or(0), "attempt", "attempts"),
        time,
        object.text("error")?.unwrap_or_default(),
    ])
}
