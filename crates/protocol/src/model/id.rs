//! Identifiers as types of their own, so that a context cannot be passed where a task is meant.

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
    /// Names a task. The server makes it; only the oldest generation lets a client choose.
    TaskId
);
identifier!(
    /// Names a conversation that several tasks may share.
    ContextId
);
identifier!(
    /// Names a message; its sender makes it.
    MessageId
);
identifier!(
    /// Names an artifact within its task.
    ArtifactId
);
identifier!(
    /// Names a push notification config within its task.
    ConfigId
);
