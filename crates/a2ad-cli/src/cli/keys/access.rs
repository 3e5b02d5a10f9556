//! Where keys are made, listed and revoked: at the server that has the store open, else in the store itself.
//!
//! Both return the documents of the operators' API.

use std::path::Path;

use store::{InstanceState, LockHolder, OpenError};

use super::{
    KeyFlags,
    server_api::ServerApi,
    stopped_store::{self, StoppedStore},
};
use crate::cli::{
    failure::{Failure, code},
    output::Output,
};

/// What happens where there is no store yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissingStore<'a> {
    /// It is created, if the configuration has this agent.
    CreateFor(&'a str),
    Refuse,
}

pub(super) enum KeyAccess {
    Server(Box<ServerApi>),
    Store(Box<StoppedStore>),
}

impl KeyAccess {
    /// Opens the store; if a server has it open, finds that server.
    pub(super) fn open(
        flags: &KeyFlags,
        missing: MissingStore<'_>,
        output: &Output,
    ) -> Result<Self, Failure> {
        let path = flags.store_path()?;
        if !path.exists() {
            match missing {
                MissingStore::CreateFor(agent) => {
                    stopped_store::check_agent(flags.config()?.as_ref(), agent)?;
                }
                MissingStore::Refuse => {
                    let text = format!("there is no store {}", path.display());
                    return Err(Failure::new(code::ERROR, text).with_next("name it with --store or --config"));
                }
            }
        }
        match StoppedStore::open(&path) {
            Ok(store) => Ok(Self::Store(Box::new(store.with_config(flags.config()?)))),
            Err(OpenError::InUse { holder, .. }) if holder.state == InstanceState::Serving => {
                let address = holder.address.as_deref().and_then(|address| address.parse().ok());
                let address = address.ok_or_else(|| does_not_listen(&path, &holder))?;
                Ok(Self::Server(Box::new(ServerApi::at(address, &path, output)?)))
            }
            Err(error) => Err(not_available(&error)),
        }
    }

    /// Where it is, as the end of a sentence.
    pub(super) fn place(&self) -> String {
        match self {
            Self::Server(server) => format!("on the running server {}", server.url()),
            Self::Store(store) => format!("in the store {}, which no server uses", store.path().display()),
        }
    }

    /// All keys, or those of one agent.
    pub(super) async fn list(&self, agent: Option<&str>) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Server(server) => server.list(agent).await,
            Self::Store(store) => store.list(agent).await,
        }
    }

    /// Makes a key.
    pub(super) async fn create(&self, agent: &str, owner: Option<&str>) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Server(server) => server.create(agent, owner).await,
            Self::Store(store) => store.create(agent, owner).await,
        }
    }

    /// Revokes a key.
    pub(super) async fn revoke(&self, id: &str) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Server(server) => server.revoke(id).await,
            Self::Store(store) => store.revoke(id).await,
        }
    }
}

fn does_not_listen(path: &Path, holder: &LockHolder) -> Failure {
    let text =
        format!("the store {} is open in another process ({holder}), which has no address", path.display());
    let next = "try again if it has just been started; if it is part of an application, use the API of that";
    Failure::new(code::ERROR, text).with_next(next)
}

/// The error of a store that can neither be opened nor asked for.
fn not_available(error: &OpenError) -> Failure {
    let OpenError::InUse { path, holder } = error else {
        return Failure::new(code::ERROR, error.to_string());
    };
    let next = match holder.state {
        InstanceState::Starting => "it is starting: try again in a moment",
        InstanceState::Draining => "it is shutting down: try again when it has stopped or restarted",
        InstanceState::Serving | InstanceState::Checking | InstanceState::Restoring => {
            "try again when it has ended"
        }
    };
    let text = format!("the store {} is in use by another a2ad ({holder})", path.display());
    Failure::new(code::ERROR, text).with_next(next)
}
