//! Cursors that clients hold: page tokens of task lists and event ids of streams.

use aws_lc_rs::{constant_time, hmac};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use protocol::{ListTasks, Timestamp};

use crate::{
    access::scope::Scope,
    ids::TaskNo,
    log::Seq,
    store::{ListPosition, OperatorQuery},
};

/// Creates and verifies page tokens for one caller and one filter.
///
/// A token is a pagination cursor with an HMAC over the cursor, the caller's scope and the filter: it is
/// valid only for the next page of the same query by the same caller.
pub struct PageTokens(hmac::Context);

/// Token layout: the cursor, then the first 16 bytes of the HMAC.
const CURSOR_BYTES: usize = 16;
const CODE_BYTES: usize = 16;

impl PageTokens {
    /// Tokens bound to this caller and this filter.
    pub fn new(key: [u8; 32], scope: &Scope, filter: &ListTasks) -> Self {
        let scope = scope.parts();
        let status = filter.status.map_or(String::new(), |state| state.number().to_string());
        let since = filter.status_timestamp_after.map_or(String::new(), |at| at.as_millis().to_string());
        let context = filter.context_id.as_ref().map_or("", |id| id.as_str());
        let parts =
            [&scope.tenant, &scope.principal, &scope.agent, &scope.end_user, context, &status, &since];
        Self::over(key, &parts)
    }

    /// Tokens of operators, bound to this filter. They have another number of parts than those of callers, so that
    /// neither are valid as the others.
    pub(crate) fn of_operators(key: [u8; 32], filter: &OperatorQuery) -> Self {
        let text = |value: &Option<String>| value.as_ref().map_or(String::new(), |value| format!("={value}"));
        let state = filter.state.map_or(String::new(), |state| state.number().to_string());
        let since = filter.since.map_or(String::new(), |at| at.as_millis().to_string());
        let (agent, principal) = (text(&filter.agent), text(&filter.principal));
        Self::over(key, &["operators", &filter.tenant, &agent, &principal, &state, &since])
    }

    /// Tokens of lists of a task's webhooks, bound to the caller and the task.
    pub(crate) fn of_webhooks(key: [u8; 32], scope: &Scope, task: TaskNo) -> Self {
        let (scope, task) = (scope.parts(), task.0.to_string());
        let owner = [&scope.tenant, &scope.principal, &scope.agent, &scope.end_user].map(String::as_str);
        Self::over(key, &["webhooks", owner[0], owner[1], owner[2], owner[3], &task, "", ""])
    }

    fn over(key: [u8; 32], parts: &[&str]) -> Self {
        let mut code = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &key));
        for part in parts {
            // Length-prefixed, so that two different lists of parts never give the same bytes.
            code.update(&(part.len() as u64).to_be_bytes());
            code.update(part.as_bytes());
        }
        Self(code)
    }

    /// Encodes a cursor.
    pub fn token(&self, cursor: ListPosition) -> String {
        let mut bytes = [0; CURSOR_BYTES + CODE_BYTES];
        bytes[..8].copy_from_slice(&cursor.status_at.as_millis().to_be_bytes());
        bytes[8..CURSOR_BYTES].copy_from_slice(&cursor.no.0.to_be_bytes());
        let code = self.code(&bytes[..CURSOR_BYTES]);
        bytes[CURSOR_BYTES..].copy_from_slice(&code);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The first bytes of the HMAC over the caller, the filter and this cursor.
    fn code(&self, cursor: &[u8]) -> [u8; CODE_BYTES] {
        let mut code = self.0.clone();
        code.update(cursor);
        let tag = code.sign();
        std::array::from_fn(|at| tag.as_ref()[at])
    }

    /// The cursor of a token, if the token was created for this caller and this filter.
    pub fn open(&self, token: &str) -> Option<ListPosition> {
        let bytes: [u8; CURSOR_BYTES + CODE_BYTES] = URL_SAFE_NO_PAD.decode(token).ok()?.try_into().ok()?;
        let code = self.code(&bytes[..CURSOR_BYTES]);
        constant_time::verify_slices_are_equal(&code, &bytes[CURSOR_BYTES..]).ok()?;
        let status_at = Timestamp::from_millis(i64::from_be_bytes(bytes[..8].try_into().ok()?));
        Some(ListPosition {
            status_at,
            no: TaskNo(i64::from_be_bytes(bytes[8..CURSOR_BYTES].try_into().ok()?)),
        })
    }
}

/// Parses a `Last-Event-ID` header; `None` if it is not a plain decimal event number.
pub fn last_event_id(header: &str) -> Option<Seq> {
    let text = header.trim();
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_token_is_valid_only_for_its_caller_and_filter() {
        let scope = Scope::anonymous("default", "echo");
        let filter = ListTasks::default();
        let cursor = ListPosition { status_at: Timestamp::from_millis(7), no: TaskNo(42) };
        let token = PageTokens::new([1; 32], &scope, &filter).token(cursor);
        assert_eq!(PageTokens::new([1; 32], &scope, &filter).open(&token), Some(cursor));
        let other_filter = ListTasks { status: Some(protocol::TaskState::Working), ..ListTasks::default() };
        let other_scope = Scope::anonymous("default", "other");
        assert_eq!(PageTokens::new([1; 32], &scope, &other_filter).open(&token), None);
        assert_eq!(PageTokens::new([1; 32], &other_scope, &filter).open(&token), None);
        assert_eq!(PageTokens::new([2; 32], &scope, &filter).open(&token), None);
        for bad in ["", "x", "AAAA", &format!("{token}A"), &token[1..]] {
            assert_eq!(PageTokens::new([1; 32], &scope, &filter).open(bad), None, "{bad}");
        }
    }

    #[test]
    fn last_event_id_accepts_only_digits() {
        assert_eq!(last_event_id(" 12 "), Some(12));
        for bad in ["", "+1", "-1", "1.0", "0x1", "one", "99999999999999999999999"] {
            assert_eq!(last_event_id(bad), None, "{bad}");
        }
    }
}
