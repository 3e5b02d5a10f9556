//! An OpenAPI document whose operations are skills.

use std::{fmt, time::Duration};

use outbound::{
    backends::openapi::{self, OpenApiConfig, OpenApiError},
    dial::Dialer,
    skill::BackendSkill,
};

/// The time before a document is fetched again; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A document.
pub enum Document {
    /// It was read already.
    Read(Vec<BackendSkill>),
    /// It is fetched.
    Fetched {
        /// From here.
        url: String,
        /// How its operations are called.
        config: Box<OpenApiConfig>,
    },
}

/// A document cannot be fetched or is not valid.
#[derive(Debug, thiserror::Error)]
#[error("openapi.{name}.url: {reason}")]
pub struct DocumentError {
    /// The name of the document.
    pub name: String,
    /// What is wrong.
    pub reason: OpenApiError,
}

impl Document {
    /// Whether it is fetched in the same way as another one.
    pub(super) fn is_fetched_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Fetched { url, config }, Self::Fetched { url: other_url, config: other }) => {
                url == other_url && config == other
            }
            _ => false,
        }
    }

    /// The same, until it succeeds.
    pub(super) async fn fetched(&self, dialer: &Dialer) -> Vec<BackendSkill> {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.skills(dialer).await {
                Ok(skills) => return skills,
                Err(error) => {
                    tracing::warn!(%error, "the document is fetched again in {} s", pause.as_secs())
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// The operations as skills.
    ///
    /// # Errors
    ///
    /// It cannot be fetched or is not valid.
    pub async fn skills(&self, dialer: &Dialer) -> Result<Vec<BackendSkill>, DocumentError> {
        match self {
            Self::Read(skills) => Ok(skills.clone()),
            Self::Fetched { url, config } => {
                let fetched = openapi::fetch(url, dialer).await;
                let skills = fetched.and_then(|text| document_skills(&text, config, dialer));
                skills.map_err(|reason| DocumentError { name: config.name.clone(), reason })
            }
        }
    }
}

impl fmt::Debug for Document {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(skills) => write!(out, "{} operations", skills.len()),
            Self::Fetched { url, .. } => out.write_str(url),
        }
    }
}

/// The operations of a document that the configuration selects, as skills.
///
/// # Errors
///
/// The document or its configuration is not valid.
pub fn document_skills(
    text: &str,
    config: &OpenApiConfig,
    dialer: &Dialer,
) -> Result<Vec<BackendSkill>, OpenApiError> {
    let operations = openapi::parse(text)?.operations(config)?;
    for skipped in &operations.skipped {
        tracing::warn!(document = %config.name, operation = %skipped.target, reason = %skipped.reason, "operation skipped");
    }
    Ok(operations.offered.iter().map(|operation| operation.skill(dialer)).collect())
}
