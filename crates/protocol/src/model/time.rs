//! Timestamps in whole milliseconds, the precision of every wire form and of the store.

use std::fmt;

/// Milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From the year 0000 to almost the end of 9999: the range RFC 3339 can express in any time zone.
    const RANGE: std::ops::RangeInclusive<i64> = -62_167_219_200_000..=253_402_207_199_999;

    /// A timestamp from milliseconds; values outside the years 0000 to 9999 are clamped.
    pub fn from_millis(millis: i64) -> Self {
        Self(millis.clamp(*Self::RANGE.start(), *Self::RANGE.end()))
    }

    /// Milliseconds since the Unix epoch.
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// The form HTTP headers use: `Fri, 02 Jan 2026 03:04:05 GMT`.
    pub fn http_date(self) -> String {
        let time = jiff::Timestamp::from_millisecond(self.0).expect("within the years 0000 to 9999");
        time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
    }

    /// Parses the form that [`Self::http_date`] writes; `None` for any other text.
    pub fn parse_http_date(text: &str) -> Option<Self> {
        let time = jiff::civil::DateTime::strptime("%a, %d %b %Y %H:%M:%S GMT", text).ok()?;
        let time = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        Some(Self::from_millis(time.timestamp().as_millisecond()))
    }

    /// Parses RFC 3339 with any offset and up to nine fraction digits; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        // jiff accepts more forms than RFC 3339, so the shape is checked first.
        let time: jiff::Timestamp = is_rfc_3339(text).then(|| text.parse().ok())??;
        Self::RANGE.contains(&time.as_millisecond()).then(|| Self(time.as_millisecond()))
    }
}

/// Matches `2026-01-02T03:04:05`, up to nine fraction digits, and `Z` or an offset such as `+02:00`.
fn is_rfc_3339(text: &str) -> bool {
    const SHAPE: &[u8] = b"0000-00-00T00:00:00";
    let fits = |(byte, shape): (u8, &u8)| match shape {
        b'0' => byte.is_ascii_digit(),
        _ => byte.eq_ignore_ascii_case(shape),
    };
    let Some((head, rest)) = text.as_bytes().split_at_checked(SHAPE.len()) else { return false };
    if !head.iter().copied().zip(SHAPE).all(fits) {
        return false;
    }
    let digits =
        rest.strip_prefix(b".").map(|rest| rest.iter().take_while(|byte| byte.is_ascii_digit()).count());
    let zone = match digits {
        Some(digits @ 1..=9) => &rest[1 + digits..],
        Some(_) => return false,
        None => rest,
    };
    match zone {
        b"Z" | b"z" => true,
        [b'+' | b'-', offset @ ..] => {
            const OFFSET: &[u8] = b"00:00";
            offset.len() == OFFSET.len()
                && offset.iter().copied().zip(OFFSET).all(fits)
                && offset < b"24".as_slice()
        }
        _ => false,
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = jiff::Timestamp::from_millisecond(self.0).expect("within the years 0000 to 9999");
        write!(out, "{time:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::Timestamp;

    #[test]
    fn output_has_three_fraction_digits_and_utc_zone() {
        let cases = [
            ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000Z"),
            ("2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05.678Z"),
            ("2026-01-02t03:04:05.123456789z", "2026-01-02T03:04:05.123Z"),
            ("2026-01-02T03:04:05.5+02:00", "2026-01-02T01:04:05.500Z"),
            ("1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"),
        ];
        for (text, expected) in cases {
            assert_eq!(Timestamp::parse(text).unwrap().to_string(), expected);
        }
        for bad in ["", "now", "2026-13-01T00:00:00Z", "2026-01-02T03:04:05"] {
            assert_eq!(Timestamp::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn http_date_uses_the_header_format() {
        let time = Timestamp::parse("2026-01-02T03:04:05.678Z").unwrap();
        assert_eq!(time.http_date(), "Fri, 02 Jan 2026 03:04:05 GMT");
        let read = Timestamp::parse_http_date("Fri, 02 Jan 2026 03:04:05 GMT");
        assert_eq!(read, Timestamp::parse("2026-01-02T03:04:05Z"));
        for bad in ["", "Fri, 02 Jan 2026 03:04:05", "Sat, 02 Jan 2026 03:04:05 GMT", "2026-01-02T03:04:05Z"]
        {
            assert_eq!(Timestamp::parse_http_date(bad), None, "{bad}");
        }
    }

    #[test]
    fn range_limits_are_formatted() {
        for millis in [i64::MIN, i64::MAX] {
            let time = Timestamp::from_millis(millis);
            assert_eq!(Timestamp::parse(&time.to_string()), Some(time));
        }
    }
}
