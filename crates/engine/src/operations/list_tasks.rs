//! Reads many tasks, page by page, newest status first (A2A 3.1.4).
//!
//! A page token is a place in the list, sealed together with the caller's scope and the filter: it opens the
//! next page of the same question by the same caller and nothing else.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use protocol::{ListTasks, Reply, TaskPage, Timestamp};
use sha2::Sha256;

use super::trim_history;
use crate::{
    engine::{Call, Parts},
    error::{Error, Result},
    ids::TaskNo,
    scope::Scope,
    store::{ContextLookup, ListQuery, Place},
    task::fold,
};

/// Tasks a page when the caller does not say.
const PAGE_SIZE: u32 = 50;

pub(super) async fn list_tasks(engine: &Parts, call: Call, req: ListTasks) -> Result<Reply> {
    engine.agent(&call)?;
    let seal = Seal::new(engine.store.seal_key(), &call.scope, &req);
    let after = match &req.page_token {
        Some(token) => Some(seal.open(token).ok_or_else(bad_token)?),
        None => None,
    };
    let size = req.page_size.unwrap_or(PAGE_SIZE);
    let context = req.context_id.as_ref();
    let query = ListQuery {
        context: context
            .map(|name| ContextLookup { ours: engine.ids.parse_context(name), name: name.clone() }),
        state: req.status,
        since: req.status_timestamp_after,
        after,
        size: size as usize,
    };
    let page = engine.store.list(&call.scope, query).await?;
    let last = page.tasks.last().filter(|_| page.more);
    let next = last.map(|last| seal.token(Place { status_at: last.row.status_at, no: last.row.no }));
    let mut tasks = Vec::with_capacity(page.tasks.len());
    for snapshot in &page.tasks {
        let mut task = fold::snapshot(&engine.ids, snapshot)?;
        trim_history(&mut task, req.history_length);
        tasks.push(task);
    }
    Ok(Reply::Tasks(TaskPage {
        tasks,
        next_page_token: next,
        page_size: size,
        total_size: page.total,
        with_artifacts: req.include_artifacts,
    }))
}

fn bad_token() -> Error {
    Error::invalid("pageToken", "expected a nextPageToken of the same caller and the same filters")
}

/// Makes and opens page tokens for one caller and one filter.
struct Seal(Hmac<Sha256>);

/// The place, then the first half of its authentication code.
const PLACE: usize = 16;
const CODE: usize = 16;

impl Seal {
    fn new(key: [u8; 32], scope: &Scope, req: &ListTasks) -> Self {
        let mut code = <Hmac<Sha256>>::new_from_slice(&key).expect("any key length will do");
        let scope = scope.parts();
        let status = req.status.map_or(String::new(), |state| state.number().to_string());
        let since = req.status_timestamp_after.map_or(String::new(), |at| at.as_millis().to_string());
        let context = req.context_id.as_ref().map_or("", |id| id.as_str());
        for part in [&scope.tenant, &scope.principal, &scope.agent, &scope.end_user, context, &status, &since]
        {
            // Each part is preceded by its length, so that no two lists of parts read the same.
            code.update(&(part.len() as u64).to_be_bytes());
            code.update(part.as_bytes());
        }
        Self(code)
    }

    fn token(&self, place: Place) -> String {
        let mut bytes = [0; PLACE + CODE];
        bytes[..8].copy_from_slice(&place.status_at.as_millis().to_be_bytes());
        bytes[8..PLACE].copy_from_slice(&place.no.0.to_be_bytes());
        let code = self.0.clone().chain_update(&bytes[..PLACE]).finalize().into_bytes();
        bytes[PLACE..].copy_from_slice(&code[..CODE]);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    fn open(&self, token: &str) -> Option<Place> {
        let bytes: [u8; PLACE + CODE] = URL_SAFE_NO_PAD.decode(token).ok()?.try_into().ok()?;
        self.0.clone().chain_update(&bytes[..PLACE]).verify_truncated_left(&bytes[PLACE..]).ok()?;
        let status_at = Timestamp::from_millis(i64::from_be_bytes(bytes[..8].try_into().ok()?));
        Some(Place { status_at, no: TaskNo(i64::from_be_bytes(bytes[8..PLACE].try_into().ok()?)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_opens_for_its_caller_and_its_filter_only() {
        let scope = Scope::anonymous("default", "echo");
        let req = ListTasks::default();
        let place = Place { status_at: Timestamp::from_millis(7), no: TaskNo(42) };
        let token = Seal::new([1; 32], &scope, &req).token(place);
        assert_eq!(Seal::new([1; 32], &scope, &req).open(&token), Some(place));
        let other_filter = ListTasks { status: Some(protocol::TaskState::Working), ..ListTasks::default() };
        let other_scope = Scope::anonymous("default", "other");
        assert_eq!(Seal::new([1; 32], &scope, &other_filter).open(&token), None);
        assert_eq!(Seal::new([1; 32], &other_scope, &req).open(&token), None);
        assert_eq!(Seal::new([2; 32], &scope, &req).open(&token), None);
        for bad in ["", "x", "AAAA", &format!("{token}A"), &token[1..]] {
            assert_eq!(Seal::new([1; 32], &scope, &req).open(bad), None, "{bad}");
        }
    }
}
