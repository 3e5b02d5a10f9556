//! A rate as it is written in the configuration, such as `600/min`.

use std::{
    fmt::{self, Display, Formatter},
    num::NonZeroU32,
    str::FromStr,
};

/// How many calls are permitted in a second, a minute or an hour, such as `600/min`. As many may come at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    calls: NonZeroU32,
    unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Second,
    Minute,
    Hour,
}

impl Unit {
    const NAMES: [(&str, Self); 3] = [("s", Self::Second), ("min", Self::Minute), ("h", Self::Hour)];

    fn nanos(self) -> u64 {
        let seconds = match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
        };
        seconds * 1_000_000_000
    }

    fn name(self) -> &'static str {
        match self {
            Self::Second => "s",
            Self::Minute => "min",
            Self::Hour => "h",
        }
    }
}

impl Rate {
    /// The largest number of calls in a rate.
    const MAX_CALLS: u32 = 1_000_000;

    /// A rate in seconds.
    pub(super) const fn per_second(calls: NonZeroU32) -> Self {
        Self { calls, unit: Unit::Second }
    }

    /// The highest rate.
    pub(super) fn max() -> Self {
        Self::per_second(NonZeroU32::MIN.saturating_add(Self::MAX_CALLS - 1))
    }

    /// The nanoseconds in which a caller that has used up its rate gets all of it back.
    pub(super) fn unit(self) -> u64 {
        self.unit.nanos()
    }

    /// The nanoseconds in which it gets one call back.
    pub(super) fn interval(self) -> u64 {
        self.unit() / u64::from(self.calls.get())
    }
}

impl FromStr for Rate {
    /// What is wrong, as the end of a sentence that begins with the text.
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "is not a rate; write 20/s, 600/min or 1000/h, with 1 to 1000000 calls";
        let (calls, unit) = text.split_once('/').ok_or(WRONG)?;
        let is_number = !calls.is_empty() && calls.bytes().all(|digit| digit.is_ascii_digit());
        let calls = calls.parse().ok().filter(|calls| is_number && *calls <= Self::MAX_CALLS);
        let calls = calls.and_then(NonZeroU32::new).ok_or(WRONG)?;
        let unit = Unit::NAMES.into_iter().find(|known| known.0 == unit).ok_or(WRONG)?.1;
        Ok(Self { calls, unit })
    }
}

impl Display for Rate {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.calls, self.unit.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_and_shown() {
        for text in ["1/s", "600/min", "1000000/h"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        for wrong in ["", "0/s", "5", "/s", "+5/s", "5/m", "5/ s", "5 /s", "1.5/s", "1000001/h", "-1/h"] {
            assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
        }
    }
}
