//! Values that must not leave the places where they are secrets, and the search for them.

use base64::{Engine as _, prelude::BASE64_STANDARD_NO_PAD};

/// Every canary contains this, so that one search finds all of them.
const MARK: &str = "canarysecret";

/// The canaries that were made.
#[derive(Default)]
pub(crate) struct Canaries {
    /// What each is, and its value.
    made: Vec<(String, String)>,
    /// Secrets that the program has made, which have no mark.
    foreign: Vec<(String, String)>,
}

/// Where a canary was found.
#[derive(Debug)]
pub(crate) struct Found {
    /// What it is.
    pub(crate) what: String,
    /// What surrounds it.
    #[expect(dead_code, reason = "shown when the test fails")]
    context: String,
}

impl Canaries {
    /// A new canary, in letters and digits.
    pub(crate) fn make(&mut self, what: &str) -> String {
        let value = format!("{MARK}{:04}{}", self.made.len(), uuid::Uuid::new_v4().simple());
        self.made.push((what.to_owned(), value.clone()));
        value
    }

    /// A secret that the program has made.
    pub(crate) fn add(&mut self, what: &str, value: &str) {
        assert!(value.len() >= 16, "{what} is too short to be searched for");
        self.foreign.push((what.to_owned(), value.to_owned()));
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.made.len() + self.foreign.len()
    }

    /// All canaries in some bytes: as they are, in any case, in hexadecimal digits, or in base64.
    pub(crate) fn find(&self, bytes: &[u8]) -> Vec<Found> {
        let lower = bytes.to_ascii_lowercase();
        let mut found: Vec<Found> = marks()
            .iter()
            .flat_map(|mark| positions(&lower, mark))
            .map(|at| self.identify(bytes, at))
            .collect();
        for (what, value) in &self.foreign {
            let forms = [value.to_ascii_lowercase().into_bytes(), hex(value).into_bytes()];
            let positions = forms.iter().flat_map(|form| positions(&lower, form));
            found.extend(positions.map(|at| Found { what: what.clone(), context: context(bytes, at) }));
        }
        found
    }

    /// The canary at a position where a mark is.
    fn identify(&self, bytes: &[u8], at: usize) -> Found {
        let rest = String::from_utf8_lossy(&bytes[at..bytes.len().min(at + 200)]).to_ascii_lowercase();
        let what = self.made.iter().find(|(_, value)| rest.starts_with(value));
        let what = what.map_or("a canary in another form", |(what, _)| what);
        Found { what: what.to_owned(), context: context(bytes, at) }
    }
}

/// The forms of the mark, in lower case.
fn marks() -> Vec<Vec<u8>> {
    // A text is encoded differently at each of three positions; the letters at its ends depend on what surrounds it.
    let base64 = |before: usize| {
        let encoded = BASE64_STANDARD_NO_PAD.encode(format!("{}{MARK}", "x".repeat(before)));
        let (first, last) = (before.div_ceil(3) * 4, encoded.len() - 4);
        encoded[first..last].to_ascii_lowercase().into_bytes()
    };
    vec![MARK.as_bytes().to_vec(), hex(MARK).into_bytes(), base64(0), base64(1), base64(2)]
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn positions(bytes: &[u8], wanted: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = bytes[from..].windows(wanted.len()).position(|window| window == wanted) {
        found.push(from + at);
        from += at + wanted.len();
    }
    found
}

fn context(bytes: &[u8], at: usize) -> String {
    let shown = &bytes[at.saturating_sub(120)..bytes.len().min(at + 80)];
    String::from_utf8_lossy(shown).into_owned()
}

#[test]
fn canaries_are_found_in_every_form() {
    let mut canaries = Canaries::default();
    let value = canaries.make("a test");
    canaries.add("a key", "abcdefghijklmnopqrstuvwxyz234567");
    for shown in [
        format!("x {value} y"),
        value.to_uppercase(),
        hex(&value),
        BASE64_STANDARD_NO_PAD.encode(&value),
        BASE64_STANDARD_NO_PAD.encode(format!("u:{value}")),
        BASE64_STANDARD_NO_PAD.encode(format!("user:{value}")),
        BASE64_STANDARD_NO_PAD.encode(format!("someone:{value}")),
        "key=abcdefghijklmnopqrstuvwxyz234567.".to_owned(),
    ] {
        assert_eq!(canaries.find(shown.as_bytes()).len(), 1, "{shown}");
    }
    assert_eq!(canaries.find(value.as_bytes())[0].what, "a test");
    assert!(canaries.find(b"canary secret").is_empty());
}
