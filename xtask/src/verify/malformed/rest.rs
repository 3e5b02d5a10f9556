//! The HTTP+JSON binding in both generations.

use anyhow::Result;

use super::Clinic;

/// Asks every operation at its paths.
pub(super) async fn examine(_: &mut Clinic<'_>) -> Result<()> {
    Ok(())
}
