//! Where a command of operators works: at the server that has the store open, else in the store itself.
//!
//! Both give the documents of the operators' API.

use std::path::Path;

use store::{InstanceState, LockHolder, OpenError};

use super::{
    OperateFlags,
    server_api::{ServerAddress, ServerApi},
    stopped_store::StoppedStore,
};
use crate::{
    cli::{
        failure::{Failure, code},
        output::Output,
    },
    config::OperatorView,
};

/// What happens where there is no store yet.
#[derive(Clone, Copy)]
pub(in crate::cli) enum MissingStore<'a> {
    /// It is created, if this check of the configuration permits it.
    CreateIf(&'a dyn Fn(Option<&OperatorView>) -> Result<(), Failure>),
    Refuse,
}

pub(in crate::cli) enum Access {
    Server(Box<ServerApi>),
    Store(Box<StoppedStore>),
}

impl Access {
    /// Opens the store; if a server has it open, finds that server.
    pub(in crate::cli) fn open(
        flags: &OperateFlags,
        missing: MissingStore<'_>,
        output: &Output,
    ) -> Result<Self, Failure> {
        let path = flags.store_path()?;
        if !path.exists() {
            match missing {
                MissingStore::CreateIf(check) => check(flags.config()?.as_ref())?,
                MissingStore::Refuse => {
                    let text = format!("there is no store {}", path.display());
                    return Err(Failure::new(code::ERROR, text).with_next("name it with --store or --config"));
                }
            }
        }
        match StoppedStore::open(&path) {
            Ok(store) => Ok(Self::Store(Box::new(store.with_config(flags.config()?)))),
            Err(OpenError::InUse { holder, .. }) if holder.state == InstanceState::Serving => {
                let server = ServerAddress::of(&holder).ok_or_else(|| does_not_listen(&path, &holder))?;
                Ok(Self::Server(Box::new(ServerApi::at(server, &path, output)?)))
            }
            Err(error) => Err(not_available(&error)),
        }
    }

    /// Where it is, as the end of a sentence.
    pub(in crate::cli) fn place(&self) -> String {
        match self {
            Self::Server(server) => format!("on the running server {}", server.url()),
            Self::Store(store) => format!("in the store {}, which no server uses", store.path().display()),
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
