//! Parses durations of the command line: `30s`, `5m`, `1h`, `250ms`; a bare number is seconds.

use std::time::Duration;

const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
const MAX_MILLIS: u64 = 7 * 24 * 3_600_000;

pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = if unit.is_empty() { "s" } else { unit };
    let scale = UNITS.iter().find(|row| row.0 == unit).map(|row| row.1);
    let millis = number.parse::<u64>().ok().zip(scale).and_then(|(number, scale)| number.checked_mul(scale));
    match millis {
        Some(millis @ 1..=MAX_MILLIS) => Ok(Duration::from_millis(millis)),
        _ => Err("expected a duration such as 30s, 5m or 1h, at most 168h".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_and_bounds() {
        for (text, millis) in [("5m", 300_000), ("30", 30_000), ("250ms", 250), ("168h", MAX_MILLIS)] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "0", "m", "-1s", "1.5s", "5 m", "1d", "169h", "99999999999999999999s"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
