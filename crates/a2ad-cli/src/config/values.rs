//! Values that are strings in the file: durations, sizes, addresses, URLs, networks.

use std::{
    net::{IpAddr, SocketAddr},
    str::FromStr,
    time::Duration,
};

use inbound::IpNet;

use super::{read::Parsed, tree::Item};

pub(super) fn text(item: &Item) -> Parsed<String> {
    item.text().map(str::to_owned)
}

/// A duration such as `"250ms"`, `"10s"`, `"10m"`, `"24h"`, `"7d"`.
pub(super) fn duration(item: &Item) -> Parsed<Duration> {
    const UNITS: [(&str, u64); 5] =
        [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    let text = item.text()?;
    let millis = number_with_unit(text, &UNITS);
    let millis =
        millis.ok_or_else(|| format!("{text:?} is not a duration; write 250ms, 10s, 10m, 24h or 7d"))?;
    Ok(Duration::from_millis(millis))
}

/// A duration of more than zero.
pub(super) fn positive_duration(item: &Item) -> Parsed<Duration> {
    non_zero(duration(item)?)
}

const SIZES: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// A size such as `"64KiB"` or `"16MiB"`, in bytes.
pub(super) fn size(item: &Item) -> Parsed<u64> {
    let text = item.text()?;
    number_with_unit(text, &SIZES)
        .ok_or_else(|| format!("{text:?} is not a size; write 512B, 64KiB, 16MiB or 1GiB"))
}

/// Formats a size as the file has it, in the largest unit that divides it.
pub(super) fn show_size(bytes: u64) -> String {
    let unit = SIZES.into_iter().find(|(_, factor)| bytes.is_multiple_of(*factor)).unwrap_or(("B", 1));
    format!("{}{}", bytes / unit.1, unit.0)
}

/// A number of things, 0 or more.
pub(super) fn count(item: &Item) -> Parsed<usize> {
    let count = item.count()?;
    usize::try_from(count).map_err(|_| format!("{count} is too large"))
}

/// Rejects zero.
pub(super) fn non_zero<T: Default + PartialEq>(value: T) -> Parsed<T> {
    if value == T::default() { Err("expected more than 0".into()) } else { Ok(value) }
}

/// A whole number followed by one of these units, converted to the base unit.
fn number_with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|character: char| !character.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let factor = units.iter().find(|known| known.0 == unit.trim())?.1;
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// An address to listen on.
pub(super) fn address(item: &Item) -> Parsed<SocketAddr> {
    let text = item.text()?;
    // `localhost` is loopback by definition; other names would need DNS.
    let port = text.strip_prefix("localhost:");
    let literal = port.map_or_else(|| text.to_owned(), |port| format!("127.0.0.1:{port}"));
    literal
        .parse()
        .map_err(|_| format!("{text:?} is not an address with a port, such as 127.0.0.1:4242 or [::1]:4242"))
}

/// The base URL under which clients reach the server; an empty string is `None`.
pub(super) fn url(item: &Item) -> Parsed<Option<String>> {
    let text = item.text()?;
    if text.is_empty() {
        return Ok(None);
    }
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")).unwrap_or_default();
    let is_invalid = |character: char| {
        character.is_whitespace() || character.is_control() || "?#@\\\"<>".contains(character)
    };
    if rest.is_empty() || rest.contains(is_invalid) || !inbound::is_public_url(text) {
        return Err(format!("{text:?} is not a URL such as https://agents.example.com"));
    }
    Ok(Some(text.trim_end_matches('/').to_owned()))
}

/// A value whose type parses it. Its error is the end of a sentence that begins with the value.
pub(super) fn parsed<T: FromStr<Err = &'static str>>(item: &Item) -> Parsed<T> {
    let text = item.text()?;
    text.parse::<T>().map_err(|problem| format!("{text:?} {problem}"))
}

/// A media type such as `image/png` or `image/*`.
pub(super) fn media_type(item: &Item) -> Parsed<String> {
    let name = item.text()?;
    let is_word = |word: &str| {
        !word.is_empty()
            && word.chars().all(|sign| sign.is_ascii_alphanumeric() || "!#$&-^_.+*".contains(sign))
    };
    let essence = name.split(';').next().unwrap_or_default().trim();
    let is_type = essence.split_once('/').is_some_and(|(kind, rest)| is_word(kind) && is_word(rest));
    if is_type {
        return Ok(name.to_owned());
    }
    Err(format!("{name:?} is not a media type; write text/plain, image/* or */*"))
}

/// A network such as `10.0.0.0/8`, or a single address.
pub(super) fn network(item: &Item) -> Parsed<IpNet> {
    let text = item.text()?;
    let range = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    range.map_err(|_| format!("{text:?} is neither an address nor a range such as 10.0.0.0/8"))
}
