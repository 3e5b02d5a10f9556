//! Texts that are not valid JSON, made from a valid JSON object.

/// Number of positions at which a text is truncated.
const CUTS: usize = 64;

/// What is wrong with a text, and the text.
pub(crate) type Broken = (String, Vec<u8>);

pub(crate) fn texts(whole: &str) -> Vec<Broken> {
    let mut texts = truncated(whole);
    texts.extend(with_extra_text(whole));
    texts.extend(misspelt(whole));
    texts.extend(invalid_bytes(whole));
    // A replacement without a match leaves valid JSON.
    texts.retain(|(_, body)| body != whole.as_bytes());
    texts
}

fn truncated(whole: &str) -> Vec<Broken> {
    let ends = (0..CUTS).map(|cut| 1 + cut * (whole.len() - 2) / CUTS);
    ends.map(|end| (format!("truncated after {end} bytes"), whole.as_bytes()[..end].to_vec())).collect()
}

fn with_extra_text(whole: &str) -> Vec<Broken> {
    let tails =
        ["}", "]", ",", "{}", "null", "0", "\"\"", "x", "\0", ";", "\u{feff}", whole, "//", "/**/", "\n\n1"];
    let heads =
        ["\u{feff}", "x", "\0", ",", ")]}',\n", "data: ", "{", "[", "//\n", "POST / HTTP/1.1\r\n\r\n"];
    let tails = tails.map(|tail| (format!("followed by {tail:.20?}"), [whole, tail].concat().into()));
    let heads = heads.map(|head| (format!("preceded by {head:?}"), [head, whole].concat().into()));
    tails.into_iter().chain(heads).collect()
}

fn misspelt(whole: &str) -> Vec<Broken> {
    let with_member = |member: &str| whole.replacen('{', &format!("{{{member},"), 1);
    let mut texts = vec![
        whole.replace('"', "'"),
        whole.replacen('"', "", 2),
        whole.replacen('{', "{/* */", 1),
        whole.replacen('{', "{,", 1),
        format!("{},}}", &whole[..whole.len() - 1]),
        whole.replacen(':', "=", 1),
        whole.replacen(',', ";", 1),
        whole.replacen(',', " ", 1),
        "a=1&b=2".to_owned(),
        "<request><id>1</id></request>".to_owned(),
        "a: '1'\nb: 2\n".to_owned(),
        " \r\n\t ".to_owned(),
        "\"".to_owned(),
        "-".to_owned(),
    ];
    #[rustfmt::skip]
    let values = [
        r#""2.0"#, r#""2.\0""#, r#""2.\u00""#, r#""2.\u{30}""#, r#""2.\x30""#, "undefined", "True", "nul",
        "01", "+1", ".5", "1.", "1e", "0x1", "-", "--1", "1_000", "NaN", "Infinity", "-Infinity", "١",
    ];
    texts.extend(values.map(|value| with_member(&format!("\"unknown\":{value}"))));
    let named = |text: String| (format!("{text:.60?}"), text.into_bytes());
    let mut texts: Vec<Broken> = texts.into_iter().map(named).collect();
    texts.push(("in UTF-16".to_owned(), whole.encode_utf16().flat_map(u16::to_le_bytes).collect()));
    texts.push(("compressed".to_owned(), b"\x1f\x8b\x08\0\0\0\0\0\0\x03".to_vec()));
    texts
}

/// Control bytes and invalid UTF-8, inside a string and between tokens.
fn invalid_bytes(whole: &str) -> Vec<Broken> {
    let (between, value) = (1, r#""unknown":"""#);
    let comma = if whole == "{}" { "" } else { "," };
    let inside = between + value.len() - 1;
    let padded = format!("{{{value}{comma}{}", &whole[between..]);
    let put = |text: &str, at: usize, bytes: &[u8]| {
        [&text.as_bytes()[..at], bytes, &text.as_bytes()[at..]].concat()
    };
    let mut texts = Vec::new();
    for byte in 0..0x20u8 {
        texts.push((format!("byte {byte:#04x} in a text"), put(&padded, inside, &[byte])));
        if !matches!(byte, b'\t' | b'\n' | b'\r') {
            texts.push((format!("byte {byte:#04x} between tokens"), put(whole, between, &[byte])));
        }
    }
    #[rustfmt::skip]
    let broken: &[&[u8]] = &[
        b"\x80", b"\xbf", b"\xc0\x80", b"\xc1\xbf", b"\xc3", b"\xe2\x82", b"\xe0\x80\x80", b"\xed\xa0\x80",
        b"\xf0\x9f\x92", b"\xf0\x80\x80\x80", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xfe", b"\xff",
    ];
    for bytes in broken {
        texts.push((format!("bytes {bytes:x?} in a text"), put(&padded, inside, bytes)));
        texts.push((format!("bytes {bytes:x?} between tokens"), put(whole, between, bytes)));
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_texts_are_not_json() {
        for whole in ["{}", r#"{"a":{"b":[1,"x"]},"c":null}"#] {
            let texts = texts(whole);
            assert!(texts.len() > 100, "{}", texts.len());
            for (name, body) in texts {
                assert!(serde_json::from_slice::<serde_json::Value>(&body).is_err(), "{name}");
            }
        }
    }
}
