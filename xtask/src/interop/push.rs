//! Push notifications as software of others sees them: the packages standardwebhooks and PyJWT verify them, and the
//! official Python SDKs register webhooks and read the notifications.

use std::path::Path;

use anyhow::Result;

use super::{TEST_LIMIT, file, finish, python};

/// Runs the tests of push notifications in the environment of the suite `python`; the older SDK is in that of
/// `python03`.
pub(super) async fn test(program: &Path, dir: &Path, options: &[String]) -> Result<()> {
    let requirements = |suite: &str| file(suite).join("requirements.txt");
    let python = python::environment_of(&requirements("python"), &dir.join("python")).await?;
    let older = python::environment_of(&requirements("python03"), &dir.join("python03")).await?;
    let mut command = python::pytest(&python, &file("push"));
    command.args(options).env("A2AD_PROGRAM", program).env("PYTHON_SDK_03", older);
    finish(command, TEST_LIMIT, "the tests of push notifications").await
}
