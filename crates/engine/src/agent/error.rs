//! The error of an agent: any error, or a text.

use std::{error::Error, fmt};

/// The result of an agent's work.
pub type AgentResult<T> = Result<T, AgentError>;

/// Why an agent could not do its work. Made with `?` from any type that implements [`Error`], and from
/// everything else that converts into a boxed error, such as a text or `anyhow::Error`, with
/// [`AgentError::new`].
///
/// `Display` shows the error itself. `Debug` shows its causes as well, one per line, so that a `main` which
/// returns it prints a readable report.
pub struct AgentError(Box<dyn Error + Send + Sync>);

impl AgentError {
    /// An error from a text, or from a boxed error.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(error.into())
    }

    /// The error it was made from, if it has this type.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.0.downcast_ref()
    }

    /// Whether the turn was lost; see [`Lost`].
    pub fn is_lost(&self) -> bool {
        self.downcast_ref::<Lost>().is_some()
    }

    /// The causes, outermost first, without the error itself.
    pub fn causes(&self) -> impl Iterator<Item = &(dyn Error + 'static)> {
        std::iter::successors(self.0.source(), |&cause| cause.source())
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        for cause in self.causes() {
            write!(f, "\n  caused by: {cause}")?;
        }
        Ok(())
    }
}

/// Not for `AgentError` itself, which therefore is no [`Error`]: the two would overlap.
impl<E: Error + Send + Sync + 'static> From<E> for AgentError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl From<AgentError> for Box<dyn Error + Send + Sync> {
    fn from(error: AgentError) -> Self {
        error.0
    }
}

impl From<AgentError> for Box<dyn Error> {
    fn from(error: AgentError) -> Self {
        error.0
    }
}

/// The turn no longer belongs to this run: its task was cancelled, its deadline expired, it exceeded a limit, or another
/// process holds it. Nothing that the run still records is kept, so an agent returns this error with `?`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the turn has ended, nothing more is recorded for it")]
pub struct Lost;
