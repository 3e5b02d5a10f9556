//! Version negotiation: selects a request's dialect by its method over JSON-RPC, its path over HTTP+JSON, its service
//! over gRPC, and checks it against the version header. The response uses the same dialect, errors included. Pure: no
//! I/O.

use engine::Profile;
use protocol::{
    Dialect, Error, ErrorKind,
    dialect::{MethodFamily, nearest_method, not_found, of_method},
};

use crate::request::version::{AcceptedVersions, Version};

/// The inputs that are known before the parameters are decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Negotiation<'a> {
    pub(crate) version: &'a Version,
    pub(crate) profile: &'a Profile,
    pub(crate) accepted_versions: AcceptedVersions,
}

/// The result of the selection.
#[derive(Debug, PartialEq)]
pub(crate) enum DialectChoice {
    /// The request's method or version names it.
    Dialect(Dialect),
    /// The dialect in which the named task was created: the draft, otherwise 0.3.
    TaskOrigin,
}

/// An error and the dialect in which to report it.
#[derive(Debug)]
pub(crate) struct NegotiationError {
    pub(crate) dialect: Dialect,
    pub(crate) error: Error,
}

impl Negotiation<'_> {
    /// The dialect of errors about requests that cannot be decoded: the named one, else the profile's. With neither, it
    /// is the draft's error object, which is 0.3's with additional details.
    pub(crate) fn fallback_dialect(self) -> Dialect {
        match self.version {
            Version::Named(dialect) => *dialect,
            Version::Unknown(_) => Dialect::V1,
            Version::Absent => self.profile.shared_names.unwrap_or(Dialect::Draft),
        }
    }

    /// Selects the dialect of a method. `enveloped` is whether the request named its JSON-RPC version.
    pub(crate) fn select(self, method: &str, enveloped: bool) -> Result<DialectChoice, NegotiationError> {
        let named = match self.version {
            Version::Unknown(asked) => return Err(self.unsupported(Dialect::V1, &format!("{asked:?}"))),
            Version::Named(dialect) if !self.accepted_versions.accepts(*dialect) => {
                return Err(self.unsupported(Dialect::V1, "of this request"));
            }
            Version::Named(dialect) => Some(*dialect),
            Version::Absent => None,
        };
        let chosen = match (named, of_method(method)) {
            (_, MethodFamily::Unknown) => return Err(self.unknown_method(method)),
            (Some(Dialect::V1), MethodFamily::V1) => DialectChoice::Dialect(Dialect::V1),
            (Some(Dialect::V1), MethodFamily::V03 | MethodFamily::Draft | MethodFamily::Shared) => {
                return Err(method_not_found(Dialect::V1, method));
            }
            (Some(Dialect::Draft | Dialect::V03 | Dialect::V03Proto), MethodFamily::V1) => {
                return Err(self.unsupported(Dialect::V1, "0.x for a method of 1.0"));
            }
            (None, MethodFamily::V1) if self.accepted_versions.lenient_version => {
                DialectChoice::Dialect(Dialect::V1)
            }
            (None, MethodFamily::V1) => return Err(self.unsupported(Dialect::V1, "without a value")),
            (None | Some(Dialect::Draft | Dialect::V03 | Dialect::V03Proto), MethodFamily::Draft) => {
                DialectChoice::Dialect(Dialect::Draft)
            }
            (None | Some(Dialect::Draft | Dialect::V03 | Dialect::V03Proto), MethodFamily::V03) => {
                DialectChoice::Dialect(Dialect::V03)
            }
            (Some(dialect @ (Dialect::Draft | Dialect::V03 | Dialect::V03Proto)), MethodFamily::Shared) => {
                DialectChoice::Dialect(dialect)
            }
            (None, MethodFamily::Shared) if !enveloped => DialectChoice::Dialect(Dialect::Draft),
            (None, MethodFamily::Shared) => {
                self.profile.shared_names.map_or(DialectChoice::TaskOrigin, DialectChoice::Dialect)
            }
        };
        match chosen {
            DialectChoice::Dialect(dialect) if !self.accepted_versions.accepts(dialect) => {
                Err(self.unsupported(dialect, &format!("of the method {method:?}")))
            }
            DialectChoice::TaskOrigin if !self.accepted_versions.v03 && !self.accepted_versions.draft => {
                Err(self.unsupported(Dialect::V03, &format!("of the method {method:?}")))
            }
            // Only one of the two versions is accepted, so the task's origin need not be known.
            DialectChoice::TaskOrigin if !self.accepted_versions.v03 => {
                Ok(DialectChoice::Dialect(Dialect::Draft))
            }
            DialectChoice::TaskOrigin if !self.accepted_versions.draft => {
                Ok(DialectChoice::Dialect(Dialect::V03))
            }
            chosen => Ok(chosen),
        }
    }

    /// Checks that a path or a service of this dialect may be used. Version errors are reported in the form of 1.0, the
    /// only one that defines such an error, and so is every error about a path of 1.0.
    pub(crate) fn check_path(self, dialect: Dialect) -> Result<(), NegotiationError> {
        match self.version {
            Version::Unknown(asked) => return Err(self.unsupported(Dialect::V1, &format!("{asked:?}"))),
            Version::Named(named) if !self.accepted_versions.accepts(*named) => {
                return Err(self.unsupported(Dialect::V1, "of this request"));
            }
            Version::Named(named) => check_version_of_path(*named, dialect)?,
            Version::Absent => match dialect {
                Dialect::V1 if !self.accepted_versions.lenient_version => {
                    return Err(self.unsupported(Dialect::V1, "without a value"));
                }
                Dialect::Draft | Dialect::V03 | Dialect::V03Proto | Dialect::V1 => {}
            },
        }
        if self.accepted_versions.accepts(dialect) {
            Ok(())
        } else {
            Err(self.unsupported(dialect, "of this path"))
        }
    }

    /// The error for a method that no version has. If nothing names the version, the most similar method decides:
    /// the draft's error object, used otherwise, has no field for a hint.
    fn unknown_method(self, method: &str) -> NegotiationError {
        if self.profile.send_only {
            // Most methods are unsupported by such a profile, and get the same text.
            let error = Error::new(ErrorKind::MethodNotFound, "this endpoint supports only message sends");
            return NegotiationError { dialect: self.fallback_dialect(), error };
        }
        let unnamed = *self.version == Version::Absent && self.profile.shared_names.is_none();
        let meant = nearest_method(method).filter(|_| unnamed).map(|(near, family)| match family {
            MethodFamily::V1 => (near, Dialect::V1),
            MethodFamily::V03 | MethodFamily::Draft | MethodFamily::Shared | MethodFamily::Unknown => {
                (near, Dialect::V03)
            }
        });
        match meant.filter(|(_, dialect)| self.accepted_versions.accepts(*dialect)) {
            Some((near, dialect)) => NegotiationError {
                dialect,
                error: not_found(dialect, method, &format!("did you mean {near}?")),
            },
            None => method_not_found(self.fallback_dialect(), method),
        }
    }

    fn unsupported(self, dialect: Dialect, asked: &str) -> NegotiationError {
        NegotiationError { dialect, error: self.accepted_versions.unsupported(asked) }
    }
}

/// Rejects a version that does not belong to the dialect of a path or service.
fn check_version_of_path(named: Dialect, of_path: Dialect) -> Result<(), NegotiationError> {
    use Dialect::{Draft, V1, V03, V03Proto};
    match (named, of_path) {
        (V1, V1) | (Draft | V03 | V03Proto, Draft | V03 | V03Proto) => Ok(()),
        (V1, Draft | V03 | V03Proto) => Err(version_of_other_path("1.0", "0.3")),
        (Draft | V03 | V03Proto, V1) => Err(version_of_other_path("0.x", "1.0")),
    }
}

/// The error for a version that the server accepts, but not at this path or service.
fn version_of_other_path(asked: &str, here: &'static str) -> NegotiationError {
    let text = format!(
        "A2A-Version {asked} is not supported at an address of version {here}; send A2A-Version {here}, or use the card's address for {asked}"
    );
    let error = Error::new(ErrorKind::VersionNotSupported, text).with("supportedVersions", here);
    NegotiationError { dialect: Dialect::V1, error }
}

fn method_not_found(dialect: Dialect, method: &str) -> NegotiationError {
    // The dialect's own decoder creates the error, with the list of its methods.
    let error = match dialect.decode_operation(method, None) {
        Err(error) if error.kind == ErrorKind::MethodNotFound => error,
        _ => not_found(dialect, method, "the agent card lists the supported versions"),
    };
    NegotiationError { dialect, error }
}
