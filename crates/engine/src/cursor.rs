//! Places that callers carry away and bring back: page tokens and event numbers.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use protocol::{ListTasks, Timestamp};
use sha2::Sha256;

use crate::{ids::TaskNo, log::Seq, scope::Scope, store::Place};

/// Makes and opens page tokens for one caller and one filter.
///
/// A token is a place in a list, sealed together with the caller's scope and the filter: it opens the next page
/// of the same question by the same caller and nothing else.
pub struct PageTokens(Hmac<Sha256>);

/// The place, then the first half of its authentication code.
const PLACE: usize = 16;
const CODE: usize = 16;

impl PageTokens {
    /// Tokens for this caller and this filter.
    pub fn new(key: [u8; 32], scope: &Scope, filter: &ListTasks) -> Self {
        let mut code = <Hmac<Sha256>>::new_from_slice(&key).expect("any key length will do");
        let scope = scope.parts();
        let status = filter.status.map_or(String::new(), |state| state.number().to_string());
        let since = filter.status_timestamp_after.map_or(String::new(), |at| at.as_millis().to_string());
        let context = filter.context_id.as_ref().map_or("", |id| id.as_str());
        for part in [&scope.tenant, &scope.principal, &scope.agent, &scope.end_user, context, &status, &since]
        {
            // Each part is preceded by its length, so that no two lists of parts read the same.
            code.update(&(part.len() as u64).to_be_bytes());
            code.update(part.as_bytes());
        }
        Self(code)
    }

    /// The token of a place.
    pub fn token(&self, place: Place) -> String {
        let mut bytes = [0; PLACE + CODE];
        bytes[..8].copy_from_slice(&place.status_at.as_millis().to_be_bytes());
        bytes[8..PLACE].copy_from_slice(&place.no.0.to_be_bytes());
        let code = self.0.clone().chain_update(&bytes[..PLACE]).finalize().into_bytes();
        bytes[PLACE..].copy_from_slice(&code[..CODE]);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The place of a token, if it was made for this caller and this filter.
    pub fn open(&self, token: &str) -> Option<Place> {
        let bytes: [u8; PLACE + CODE] = URL_SAFE_NO_PAD.decode(token).ok()?.try_into().ok()?;
        self.0.clone().chain_update(&bytes[..PLACE]).verify_truncated_left(&bytes[PLACE..]).ok()?;
        let status_at = Timestamp::from_millis(i64::from_be_bytes(bytes[..8].try_into().ok()?));
        Some(Place { status_at, no: TaskNo(i64::from_be_bytes(bytes[8..PLACE].try_into().ok()?)) })
    }
}

/// The event number a client saw last, if that is what the header holds.
pub fn last_event_id(header: &str) -> Option<Seq> {
    let text = header.trim();
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_opens_for_its_caller_and_its_filter_only() {
        let scope = Scope::anonymous("default", "echo");
        let filter = ListTasks::default();
        let place = Place { status_at: Timestamp::from_millis(7), no: TaskNo(42) };
        let token = PageTokens::new([1; 32], &scope, &filter).token(place);
        assert_eq!(PageTokens::new([1; 32], &scope, &filter).open(&token), Some(place));
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
    fn an_event_number_is_digits_and_nothing_else() {
        assert_eq!(last_event_id(" 12 "), Some(12));
        for bad in ["", "+1", "-1", "1.0", "0x1", "one", "99999999999999999999999"] {
            assert_eq!(last_event_id(bad), None, "{bad}");
        }
    }
}
