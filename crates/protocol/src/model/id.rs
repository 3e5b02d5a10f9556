//! Identifiers as distinct types, so that a context id cannot be passed where a task id is expected.

use std::{fmt, sync::Arc};

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl<T: Into<Arc<str>>> From<T> for $name {
            fn from(text: T) -> Self {
                Self(text.into())
            }
        }

        impl From<&$name> for $name {
            fn from(id: &$name) -> Self {
                id.clone()
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, "{:?}", &*self.0)
            }
        }
    };
}

identifier!(
    /// Identifies a task. Assigned by the server; only the draft lets clients choose it.
    TaskId
);
identifier!(
    /// Identifies a context (conversation) that several tasks may share.
    ContextId
);
identifier!(
    /// Identifies a message; assigned by its sender.
    MessageId
);
identifier!(
    /// Identifies an artifact within its task.
    ArtifactId
);
identifier!(
    /// Identifies a push notification config within its task.
    ConfigId
);
