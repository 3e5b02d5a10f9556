//! Texts that are not valid JSON, made from a valid JSON object. The decoder itself gets arbitrary bytes in `fuzz`.

/// Number of positions at which a text is truncated.
const CUTS: usize = 64;

/// What is wrong with a text, and the text.
pub(crate) type Broken = (String, Vec<u8>);

pub(crate) fn texts(whole: &str) -> Vec<Broken> {
    let ends = (0..CUTS).map(|cut| 1 + cut * (whole.len() - 2) / CUTS);
    let mut texts: Vec<Broken> =
        ends.map(|end| (format!("truncated after {end} bytes"), whole.as_bytes()[..end].to_vec())).collect();
    let inserted = |name: String, at: usize, bytes: &[u8]| {
        (name, [&whole.as_bytes()[..at], bytes, &whole.as_bytes()[at..]].concat())
    };
    let pieces =
        ["}", "]", "{", "null", "0", "\"\"", "x", ";", "//", "/**/", "\u{feff}", "='1'", ")]}',", "data: "];
    for piece in pieces {
        for at in [0, 1, whole.len()] {
            texts.push(inserted(format!("{piece:?} at {at}"), at, piece.as_bytes()));
        }
    }
    // An empty object and a quotation mark may follow the opening bracket of an object, but nothing of this may.
    let values =
        ["\"2.0", r#""2.\x30""#, "undefined", "True", "01", "+1", ".5", "1.", "1e", "0x1", "--1", "NaN", "١"];
    for value in values {
        let comma = if whole == "{}" { "" } else { "," };
        texts.push(inserted(
            format!("{value:?} as a value"),
            1,
            format!("\"unknown\":{value}{comma}").as_bytes(),
        ));
    }
    let controls = (0..0x20).filter(|byte| !b"\t\n\r".contains(byte)).map(|byte| vec![byte]);
    let not_utf8: [&[u8]; 8] = [
        b"\x80",
        b"\xc0\x80",
        b"\xc3",
        b"\xe2\x82",
        b"\xed\xa0\x80",
        b"\xf0\x9f\x92",
        b"\xf4\x90\x80\x80",
        b"\xff",
    ];
    for bytes in controls.chain(not_utf8.map(<[u8]>::to_vec)) {
        texts.push(inserted(format!("bytes {bytes:x?} between tokens"), 1, &bytes));
        let text = [&b"\"unknown\":\""[..], &bytes, b"\","].concat();
        texts.push(inserted(format!("bytes {bytes:x?} in a text"), 1, &text));
    }
    texts.push(("in UTF-16".to_owned(), whole.encode_utf16().flat_map(u16::to_le_bytes).collect()));
    texts.push(("white space only".to_owned(), b" \r\n\t ".to_vec()));
    texts
}
