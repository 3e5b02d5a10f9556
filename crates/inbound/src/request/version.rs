//! The protocol version that a request names, and the versions that the server accepts.

use http::{HeaderMap, Uri};
use protocol::{Dialect, Error, ErrorKind, error::excerpt};

/// Name of the header and of the query parameter.
const NAME: &str = "a2a-version";

/// The protocol versions a server accepts, and how it treats requests that name none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptedVersions {
    /// The first public draft.
    pub draft: bool,
    /// 0.2 and 0.3.
    pub v03: bool,
    /// 1.0.
    pub v1: bool,
    /// Accepts methods of 1.0 in requests that name no version.
    pub lenient_version: bool,
}

impl Default for AcceptedVersions {
    fn default() -> Self {
        Self { draft: true, v03: true, v1: true, lenient_version: true }
    }
}

impl AcceptedVersions {
    pub(crate) fn accepts(self, dialect: Dialect) -> bool {
        match dialect {
            Dialect::Draft => self.draft,
            Dialect::V03 | Dialect::V03Proto => self.v03,
            Dialect::V1 => self.v1,
        }
    }

    /// The accepted versions as clients send them, newest first.
    pub(crate) fn versions(self) -> Vec<&'static str> {
        self.dialects().map(Dialect::version).collect()
    }

    /// The accepted versions as people read them, newest first.
    pub fn labels(self) -> Vec<&'static str> {
        self.dialects().map(Dialect::label).collect()
    }

    fn dialects(self) -> impl Iterator<Item = Dialect> {
        [Dialect::V1, Dialect::V03, Dialect::Draft].into_iter().filter(move |dialect| self.accepts(*dialect))
    }

    /// The error for a version that is not accepted.
    pub(crate) fn unsupported(self, asked: &str) -> Error {
        let accepted_versions = self.versions().join(", ");
        let text = format!("A2A-Version {asked} is not supported; use {accepted_versions}");
        Error::new(ErrorKind::VersionNotSupported, text).with("supportedVersions", accepted_versions)
    }
}

/// The version that a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Absent,
    /// A known version.
    Named(Dialect),
    /// An unknown version, truncated.
    Unknown(String),
}

impl Version {
    /// Reads the header, else the query parameter. Patch numbers are ignored, and an empty value counts as absent.
    pub(crate) fn of(headers: &HeaderMap, uri: &Uri) -> Self {
        let header = headers.get(NAME).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let Some(asked) = header.or_else(|| query(uri)) else { return Self::Absent };
        match asked.trim() {
            "" => Self::Absent,
            // Truncated, because the error text repeats it.
            asked => Dialect::of_version(asked).map_or_else(|| Self::Unknown(excerpt(asked)), Self::Named),
        }
    }
}

fn query(uri: &Uri) -> Option<String> {
    let mut pairs = form_urlencoded::parse(uri.query()?.as_bytes());
    pairs.find(|(name, _)| name.eq_ignore_ascii_case(NAME)).map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(version: &str) -> Version {
        let mut headers = HeaderMap::new();
        headers.insert(NAME, version.parse().unwrap());
        Version::of(&headers, &Uri::from_static("/"))
    }

    #[test]
    fn long_unknown_version_is_truncated() {
        let Version::Unknown(echoed) = of(&"9".repeat(10_000)) else { panic!("expected an unknown version") };
        assert_eq!(echoed, "9".repeat(64));
    }
}
