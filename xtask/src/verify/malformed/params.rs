//! Requests whose parameters are wrong, made from the method's description: each member in turn missing, null, of each
//! wrong type and with each wrong value of its kind. Beside them, those that are odd and taken.

use super::case::{AGENT_DISABLED, Case, INVALID_PARAMS, NOT_FOUND, request};
use super::methods::{Dialect, Method};
use super::schema::{Edit, Field, Kind, Need, Step, params, path, snake};
use super::values;

/// How the parameters themselves are called when they are what is wrong.
const PARAMS: &str = "params";
const IGNORED: &str = "unknown members are ignored at every depth";
const NOT_SET: &str = "null counts as not set";
const LAST_WINS: &str = "of two equal names inside the parameters the last one counts";
const SPELLING: &str = "names are read in both spellings";

/// Parameters with one thing changed.
pub(crate) struct Changed {
    /// What is odd about them.
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) outcome: Outcome,
}

/// What becomes of a request with such parameters.
pub(crate) enum Outcome {
    /// It is refused with this code of JSON-RPC, and a field may have to be named.
    Refused { code: i64, field: Option<String> },
    /// Odd, and right by this ruling.
    Taken(&'static str),
}

/// What a part of some form cannot have beside its content, and where in the part the fault is then found.
pub(crate) type Seconds = fn(&[Field]) -> Vec<(&'static str, &'static str)>;

pub(crate) fn cases(method: &Method) -> Vec<Case> {
    let no_object = values::TYPES.iter().filter(|text| !text.starts_with('{')).map(|text| {
        let name = format!("params = {text}");
        Case::refused(method, name, request(method.name, text), INVALID_PARAMS).naming(PARAMS)
    });
    let seconds = if method.dialect == Dialect::V1 { second_contents } else { second_files };
    let changes = changes(method.fields, seconds).into_iter().map(|changed| {
        let body = request(method.name, &changed.text);
        match changed.outcome {
            Outcome::Taken(why) => Case::taken(method, changed.name, body, why),
            Outcome::Refused { code, field } => {
                let case = Case::refused(method, changed.name, body, code);
                let case = if code == AGENT_DISABLED { case.with_status(NOT_FOUND) } else { case };
                match field {
                    Some(field) => case.naming(field),
                    None => case,
                }
            }
        }
    });
    no_object.chain(changes).collect()
}

/// Every change of parameters of this description.
pub(crate) fn changes(fields: &'static [Field], seconds: Seconds) -> Vec<Changed> {
    let mut maker = Maker { fields, seconds, changes: Vec::new() };
    maker.object(fields, &[]);
    maker.changes
}

struct Maker {
    fields: &'static [Field],
    seconds: Seconds,
    changes: Vec<Changed>,
}

impl Maker {
    fn object(&mut self, fields: &'static [Field], place: &[Step]) {
        let unknown = [r#""unknown":1"#, r#""":null"#, r#""__proto__":{"x":1}"#, r#""\u0000":[]"#];
        for member in unknown {
            self.take(place, &Edit::Add(member.to_owned()), IGNORED);
        }
        for field in fields {
            self.member(field, place);
        }
    }

    fn member(&mut self, field: &'static Field, around: &[Step]) {
        let place = [around, &[Step::Member(field.name)]].concat();
        for (index, wrong) in values::wrong(field).into_iter().enumerate() {
            let at = format!("{}{}", path(&place), wrong.inside);
            // Of two equal names the last one counts, so it is as if the first were not there.
            if index == 0 && !field.good().is_empty() {
                self.refuse(&place, &Edit::Again(wrong.text.clone()), &at, wrong.code);
            }
            self.refuse(&place, &Edit::Put(wrong.text), &at, wrong.code);
        }
        for odd in values::odd(field.kind) {
            self.take(&place, &Edit::Put(odd.text), odd.why);
        }
        self.absence(field, around, &place);
        if field.name != snake(field.name) {
            self.take(&place, &Edit::Rename(snake(field.name)), SPELLING);
        }
        self.take(&place, &Edit::Twice("{\"x\":[5]}".to_owned()), LAST_WINS);
        match field.kind {
            Kind::Object(fields) => self.object(fields, &place),
            Kind::Parts(forms) => self.parts(forms, &place),
            _ => {}
        }
    }

    fn absence(&mut self, field: &Field, around: &[Step], place: &[Step]) {
        let null = Edit::Put("null".to_owned());
        match field.need {
            Need::Optional => self.take(place, &null, NOT_SET),
            // A null is a value there.
            Need::Content if matches!(field.kind, Kind::Data { .. }) => {
                self.refuse(place, &Edit::Remove, &path(around), INVALID_PARAMS);
            }
            need => {
                let at = if need == Need::Content { path(around) } else { path(place) };
                self.refuse(place, &Edit::Remove, &at, INVALID_PARAMS);
                self.refuse(place, &null, &at, INVALID_PARAMS);
            }
        }
    }

    fn parts(&mut self, forms: &'static [&'static [Field]], place: &[Step]) {
        for form in forms {
            let part = [place, &[Step::Element(form)]].concat();
            self.object(form, &part);
            for (second, at) in (self.seconds)(form) {
                let at = format!("{}{at}", path(&part));
                self.refuse(&part, &Edit::Add(second.to_owned()), &at, INVALID_PARAMS);
            }
        }
    }

    fn refuse(&mut self, place: &[Step], edit: &Edit, at: &str, code: i64) {
        let field = (code == INVALID_PARAMS).then(|| at.to_owned());
        self.change(place, edit, Outcome::Refused { code, field });
    }

    fn take(&mut self, place: &[Step], edit: &Edit, why: &'static str) {
        // What not every request has is refused for being there: there are no webhooks, and no such task.
        if !self.is_rare(place) {
            self.change(place, edit, Outcome::Taken(why));
        }
    }

    /// Whether the place lies in a member that not every request has.
    fn is_rare(&self, place: &[Step]) -> bool {
        let mut fields = self.fields;
        for step in place {
            match step {
                Step::Element(form) => fields = form,
                Step::Member(name) => match fields.iter().find(|field| field.name == *name) {
                    Some(field) if field.usual => {
                        if let Kind::Object(inner) = field.kind {
                            fields = inner;
                        }
                    }
                    _ => return true,
                },
            }
        }
        false
    }

    fn change(&mut self, place: &[Step], edit: &Edit, outcome: Outcome) {
        let what = match edit {
            Edit::Put(text) => format!("= {}", shown(text)),
            Edit::Remove => "missing".to_owned(),
            Edit::Rename(name) => format!("called {name}"),
            Edit::Twice(_) => "twice".to_owned(),
            Edit::Again(text) => format!("again = {}", shown(text)),
            Edit::Add(member) => format!("with {member}"),
        };
        let text = params(self.fields, Some((place, edit)));
        self.changes.push(Changed { name: format!("{} {what}", path(place)), text, outcome });
    }
}

/// In 1.0 a part is its content.
pub(crate) fn second_contents(form: &[Field]) -> Vec<(&'static str, &'static str)> {
    let has = |name: &str| form.iter().any(|field| field.name == name);
    let all = [
        ("text", r#""text":"a""#),
        ("raw", r#""raw":"aGk=""#),
        ("url", r#""url":"https://a.example""#),
        ("data", r#""data":{"k":1}"#),
    ];
    all.into_iter().filter(|(name, _)| !has(name)).map(|(_, member)| (member, "")).collect()
}

/// Before that a part says what it is, and only a file has more than one form. The last of two files counts.
fn second_files(form: &[Field]) -> Vec<(&'static str, &'static str)> {
    if !form.iter().any(|field| field.name == "file") {
        return Vec::new();
    }
    vec![
        (r#""file":{"bytes":"aGk=","uri":"https://a.example"}"#, ".file"),
        (r#""file":{"bytes":"","uri":""}"#, ".file"),
        (r#""file":{"bytes":"aGk=","fileWithBytes":"aGk="}"#, ".file"),
        (r#""file":{"uri":"https://a.example","fileWithUri":"https://a.example"}"#, ".file"),
        (r#""file":{"name":"a.png"}"#, ".file"),
        (r#""file":{"bytes":null,"uri":null}"#, ".file"),
        (r#""file":{}"#, ".file"),
        (r#""file":{"fileWithBytes":"%"}"#, ".file.fileWithBytes"),
        (r#""file":{"data":5}"#, ".file.data"),
        (r#""file":{"fileWithUri":[]}"#, ".file.fileWithUri"),
    ]
}

/// The beginning of a long value.
fn shown(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}
