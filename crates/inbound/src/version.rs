//! Which generation of the protocol a request names.

use http::{HeaderMap, Uri};
use protocol::{Error, ErrorKind, dialect::v1};

/// The header, and the query parameter of the same name.
const NAME: &str = "a2a-version";

/// Accepts requests that name A2A 1.0 or nothing.
pub(crate) fn check(headers: &HeaderMap, uri: &Uri) -> Result<(), Error> {
    let header = headers.get(NAME).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let Some(asked) = header.or_else(|| query(uri)) else { return Ok(()) };
    let asked = asked.trim();
    let mut numbers = asked.split('.');
    // Patch numbers take no part in negotiation, and a bare `1` is 1.0.
    let known = numbers.next() == Some("1") && matches!(numbers.next(), None | Some("0"));
    if asked.is_empty() || known {
        return Ok(());
    }
    let text = format!("A2A-Version {asked:?} is not supported here; use {}", v1::VERSION);
    Err(Error::new(ErrorKind::VersionNotSupported, text).with("supportedVersions", v1::VERSION))
}

fn query(uri: &Uri) -> Option<String> {
    let pairs = uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(NAME)).map(|(_, value)| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_point_zero_in_every_spelling_and_nothing_else() {
        let ask = |version: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(NAME, version.parse().unwrap());
            check(&headers, &Uri::from_static("/")).is_ok()
        };
        for good in ["1.0", "1", "1.0.1", " 1.0 ", ""] {
            assert!(ask(good), "{good}");
        }
        for bad in ["0.3", "1.1", "2.0", "99.0", "abc", "10", "1.00"] {
            assert!(!ask(bad), "{bad}");
        }
        assert!(check(&HeaderMap::new(), &Uri::from_static("/?A2A-Version=1.0")).is_ok());
        assert!(check(&HeaderMap::new(), &Uri::from_static("/?x=1&a2a-version=0.3")).is_err());
        assert!(check(&HeaderMap::new(), &Uri::from_static("/")).is_ok());
    }
}
