//! Webhooks of a task. The capability is off on every card, and these operations say so.

use protocol::ErrorKind;

use crate::error::Error;

/// The answer while the capability is off.
pub(super) fn not_supported() -> Error {
    let text = "push notifications are not supported by this agent; stream the task or poll it instead";
    Error::refused(ErrorKind::PushNotificationNotSupported, text)
}
