//! The admin token, the credential of operators: made at the first start with a store, and kept beside it.
//!
//! It is shown once, on a terminal. A log never has it: that names the file.

use std::{
    io::{IsTerminal as _, Write as _},
    path::Path,
};

use engine::random_text;
use protocol::model::Secret;
use store::{KeyFile, KeyFolder, KeyOrigin};

use crate::ServeError;

/// The name of the file in the folder with the keys of a store.
pub const FILE: &str = "admin";
const PREFIX: &str = "a2ad_admin_";
/// Characters after the prefix; each has five random bits.
const LENGTH: usize = 52;

/// The admin token of a server.
pub(crate) struct AdminToken(KeyFile);

impl AdminToken {
    /// Reads the token beside a store that is open in this process, or makes it.
    pub(crate) fn of(store: &Path) -> Result<Self, ServeError> {
        let file = KeyFolder::of(store).read_or_make(FILE, || format!("{PREFIX}{}", random_text(LENGTH)))?;
        Ok(Self(file))
    }

    pub(crate) fn secret(&self) -> Secret {
        self.0.key.clone()
    }

    /// Shows a new token, and reports that others could read it. Follows the startup message.
    pub(crate) fn announce(&self) {
        let file = self.0.path.display();
        match self.0.origin {
            KeyOrigin::Found => {}
            KeyOrigin::FoundExposed => tracing::warn!(
                %file,
                "other users could read the admin token; their permissions were removed. If somebody may have read it, \
                 remove the file and start again: that makes a new token"
            ),
            KeyOrigin::Made if std::io::stderr().is_terminal() => {
                let token = self.0.key.expose();
                write(&format!("Admin token, shown only now and kept in {file}:\n\n  {token}\n\n"));
            }
            KeyOrigin::Made if !tracing::dispatcher::has_been_set() => {
                write(&format!("Admin token: in {file}\n\n"));
            }
            KeyOrigin::Made => tracing::info!(%file, "the admin token was made; it is in this file"),
        }
    }
}

/// Writes to stderr, in one write so that no log line is interleaved.
fn write(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
