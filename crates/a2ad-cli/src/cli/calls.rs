//! The commands that call an agent, and what they share: the target, the connection, credentials, the session, and how
//! results are printed.

pub(crate) mod card;
pub(crate) mod compose;
pub(crate) mod connection;
pub(crate) mod credentials;
pub(crate) mod directory;
pub(crate) mod inbox;
pub(crate) mod outcome;
pub(crate) mod printer;
pub(crate) mod reply;
pub(crate) mod send;
pub(crate) mod session;
pub(crate) mod stream;
pub(crate) mod target;
pub(crate) mod tasks;
