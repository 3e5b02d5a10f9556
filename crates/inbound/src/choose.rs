//! Which dialect a request speaks: by its method over JSON-RPC, by its path over HTTP+JSON, by its service over gRPC. The
//! answer is in the dialect of the question, errors too.

use protocol::{
    Dialect, Error, ErrorKind,
    dialect::{MethodFamily, nearest_method, not_found, of_method},
};

use crate::{
    profile::Profile,
    version::{AcceptedVersions, Version},
};

/// What is known before the parameters are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) version: &'a Version,
    pub(crate) profile: &'a Profile,
    pub(crate) accepted_versions: AcceptedVersions,
}

/// What a request speaks.
#[derive(Debug, PartialEq)]
pub(crate) enum Choice {
    /// This.
    Dialect(Dialect),
    /// What the task it names was made in: the draft, or else 0.3.
    OfTask,
}

/// A refusal in the dialect it is to be told in.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) dialect: Dialect,
    pub(crate) error: Error,
}

impl Asked<'_> {
    /// The dialect of answers to what cannot be read: the one named, else the profile's. Where nothing tells, it is
    /// 0.3 with the details that only the draft has, which is the draft's own error object.
    pub(crate) fn fallback(self) -> Dialect {
        match self.version {
            Version::Named(dialect) => *dialect,
            Version::Unknown(_) => Dialect::V1,
            Version::Absent => self.profile.shared_names.unwrap_or(Dialect::Draft),
        }
    }

    /// The dialect of a method. `enveloped` is whether the request named JSON-RPC's version.
    pub(crate) fn choose(self, method: &str, enveloped: bool) -> Result<Choice, Refused> {
        if let Version::Unknown(asked) = self.version {
            return Err(Refused {
                dialect: Dialect::V1,
                error: self.accepted_versions.refuse(&format!("{asked:?}")),
            });
        }
        if let Version::Named(dialect) = self.version
            && !self.accepted_versions.speaks(*dialect)
        {
            return Err(self.not_spoken(Dialect::V1, "of this request"));
        }
        let family = of_method(method);
        let chosen = match (self.version, family) {
            (_, MethodFamily::Unknown) => return Err(self.unknown(method)),
            (Version::Named(Dialect::V1), MethodFamily::V1) => Choice::Dialect(Dialect::V1),
            (Version::Named(Dialect::V1), _) => return Err(unknown(Dialect::V1, method)),
            (Version::Absent, MethodFamily::V1) if self.accepted_versions.lenient_version => {
                Choice::Dialect(Dialect::V1)
            }
            (Version::Absent, MethodFamily::V1) => {
                return Err(self.not_spoken(Dialect::V1, "without a value"));
            }
            (_, MethodFamily::V1) => return Err(self.not_spoken(Dialect::V1, "0.x for a method of 1.0")),
            (_, MethodFamily::Draft) => Choice::Dialect(Dialect::Draft),
            (_, MethodFamily::V03) => Choice::Dialect(Dialect::V03),
            (Version::Named(dialect), MethodFamily::Shared) => Choice::Dialect(*dialect),
            (_, MethodFamily::Shared) if !enveloped => Choice::Dialect(Dialect::Draft),
            (_, MethodFamily::Shared) => self.profile.shared_names.map_or(Choice::OfTask, Choice::Dialect),
        };
        match chosen {
            Choice::Dialect(dialect) if !self.accepted_versions.speaks(dialect) => {
                Err(self.not_spoken(dialect, &format!("of the method {method:?}")))
            }
            Choice::OfTask if !self.accepted_versions.v03 && !self.accepted_versions.draft => {
                Err(self.not_spoken(Dialect::V03, &format!("of the method {method:?}")))
            }
            // One of the two is not spoken: the other is meant.
            Choice::OfTask if !self.accepted_versions.v03 => Ok(Choice::Dialect(Dialect::Draft)),
            Choice::OfTask if !self.accepted_versions.draft => Ok(Choice::Dialect(Dialect::V03)),
            chosen => Ok(chosen),
        }
    }

    /// Whether a path or a service of this dialect may be asked for. A version is refused in the way of 1.0, which has a
    /// word for it; so is everything asked of a path of 1.0.
    pub(crate) fn allows(self, dialect: Dialect) -> Result<(), Refused> {
        let of_v1 = dialect == Dialect::V1;
        match self.version {
            Version::Unknown(asked) => Err(Refused {
                dialect: Dialect::V1,
                error: self.accepted_versions.refuse(&format!("{asked:?}")),
            }),
            Version::Named(named) if !self.accepted_versions.speaks(*named) => {
                Err(self.not_spoken(Dialect::V1, "of this request"))
            }
            Version::Named(Dialect::V1) if !of_v1 => Err(elsewhere("1.0", "0.3")),
            Version::Named(named) if of_v1 && *named != Dialect::V1 => Err(elsewhere("0.x", "1.0")),
            Version::Absent if of_v1 && !self.accepted_versions.lenient_version => {
                Err(self.not_spoken(Dialect::V1, "without a value"))
            }
            _ if !self.accepted_versions.speaks(dialect) => Err(self.not_spoken(dialect, "of this path")),
            _ => Ok(()),
        }
    }

    /// The refusal of a method that no generation has. Where nothing names the generation, that of the method which was
    /// probably meant decides: the draft's error object, which is used otherwise, has no place for a hint.
    fn unknown(self, method: &str) -> Refused {
        if self.profile.send_only {
            // Most methods are not served there, and are refused in the same words.
            let error = Error::new(ErrorKind::MethodNotFound, "only messages can be sent here");
            return Refused { dialect: self.fallback(), error };
        }
        let unnamed = *self.version == Version::Absent && self.profile.shared_names.is_none();
        let meant = nearest_method(method).filter(|_| unnamed).map(|(near, family)| match family {
            MethodFamily::V1 => (near, Dialect::V1),
            _ => (near, Dialect::V03),
        });
        match meant.filter(|(_, dialect)| self.accepted_versions.speaks(*dialect)) {
            Some((near, dialect)) => {
                Refused { dialect, error: not_found(dialect, method, &format!("did you mean {near}?")) }
            }
            None => unknown(self.fallback(), method),
        }
    }

    fn not_spoken(self, dialect: Dialect, asked: &str) -> Refused {
        Refused { dialect, error: self.accepted_versions.refuse(asked) }
    }
}

/// The refusal of a version that is spoken here, but not at this path or by this service.
fn elsewhere(asked: &str, here: &'static str) -> Refused {
    let text = format!(
        "A2A-Version {asked} is not supported at an address of {here}; name {here}, or call the address that the card has for {asked}"
    );
    let error = Error::new(ErrorKind::VersionNotSupported, text).with("supportedVersions", here);
    Refused { dialect: Dialect::V1, error }
}

fn unknown(dialect: Dialect, method: &str) -> Refused {
    // The dialect's own decoder words it, with the methods there are.
    let error = match dialect.decode_operation(method, None) {
        Err(error) if error.kind == ErrorKind::MethodNotFound => error,
        _ => not_found(dialect, method, "the agent card names the versions that are served"),
    };
    Refused { dialect, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(
        version: &Version,
        profile: &Profile,
        method: &str,
        enveloped: bool,
    ) -> Result<Choice, (Dialect, ErrorKind)> {
        let asked = Asked { version, profile, accepted_versions: AcceptedVersions::default() };
        asked.choose(method, enveloped).map_err(|refused| (refused.dialect, refused.error.kind))
    }

    #[test]
    fn the_method_decides_and_the_version_may_forbid() {
        use Dialect::{Draft, V1, V03};
        let neutral = Profile::neutral();
        let absent = || Version::Absent;
        let named = Version::Named;
        let cases = [
            (absent(), "SendMessage", Ok(Choice::Dialect(V1))),
            (named(V1), "SendMessage", Ok(Choice::Dialect(V1))),
            (named(V03), "SendMessage", Err((V1, ErrorKind::VersionNotSupported))),
            (Version::Unknown("9".into()), "tasks/send", Err((V1, ErrorKind::VersionNotSupported))),
            (absent(), "tasks/send", Ok(Choice::Dialect(Draft))),
            (named(V03), "tasks/sendSubscribe", Ok(Choice::Dialect(Draft))),
            (absent(), "message/send", Ok(Choice::Dialect(V03))),
            (named(Draft), "message/stream", Ok(Choice::Dialect(V03))),
            (named(V1), "message/send", Err((V1, ErrorKind::MethodNotFound))),
            (named(V1), "tasks/get", Err((V1, ErrorKind::MethodNotFound))),
            (named(V03), "tasks/get", Ok(Choice::Dialect(V03))),
            (named(Draft), "tasks/cancel", Ok(Choice::Dialect(Draft))),
            (absent(), "tasks/resubscribe", Ok(Choice::OfTask)),
            (absent(), "tasks/make", Err((Draft, ErrorKind::MethodNotFound))),
            (named(V03), "tasks/make", Err((V03, ErrorKind::MethodNotFound))),
            (named(V1), "Make", Err((V1, ErrorKind::MethodNotFound))),
        ];
        for (version, method, expected) in cases {
            let told = format!("{version:?} {method}");
            assert_eq!(choose(&version, &neutral, method, true), expected, "{told}");
        }
        assert_eq!(choose(&absent(), &neutral, "tasks/get", false), Ok(Choice::Dialect(Draft)));
        assert_eq!(choose(&absent(), &Profile::fold(), "tasks/get", true), Ok(Choice::Dialect(Draft)));
        assert_eq!(choose(&absent(), &Profile::agent_native(), "tasks/get", true), Ok(Choice::Dialect(V03)));
    }

    #[test]
    fn what_is_not_spoken_is_refused() {
        let accepted_versions =
            AcceptedVersions { draft: false, lenient_version: false, ..AcceptedVersions::default() };
        let profile = Profile::neutral();
        let asked = Asked { version: &Version::Absent, profile: &profile, accepted_versions };
        for method in ["SendMessage", "tasks/send"] {
            let refused = asked.choose(method, true).unwrap_err();
            assert_eq!(refused.error.kind, ErrorKind::VersionNotSupported, "{method}");
        }
        assert_eq!(asked.choose("tasks/get", true).unwrap(), Choice::Dialect(Dialect::V03));
    }
}
