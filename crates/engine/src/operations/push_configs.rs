//! Push notification configs of a task. Not implemented: the capability is off on every card, and these
//! operations are rejected.

use protocol::ErrorKind;

use crate::error::Error;

/// The error of every push notification operation.
pub(super) fn not_supported() -> Error {
    let text = "push notifications are not supported by this agent; stream the task or poll it instead";
    Error::refused(ErrorKind::PushNotificationNotSupported, text)
}
