//! Tests that pass in no mode, each with its reason.

use super::kit::Kit;

/// Why a test passes in no mode, where that is known. `test` is its name with the part of the kit before it.
pub(super) fn reason(kit: Kit, test: &str) -> Option<&'static str> {
    let row = KNOWN.iter().find(|row| row.0.is_none_or(|of| of == kit) && test.contains(row.1));
    row.map(|row| row.2)
}

/// Of which kit, or of any; a piece of the test's name; why.
const KNOWN: &[(Option<Kit>, &str, &str)] = &[(None, "push", "webhooks are not served yet")];
