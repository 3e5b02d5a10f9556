//! Requests whose parameters are wrong, made from the method's description: each member in turn missing, null, of each
//! wrong type and with each wrong value of its kind. Beside them, those that are odd and taken.

use super::case::{Case, INVALID_PARAMS, request};
use super::methods::{Dialect, Method};
use super::schema::{Edit, Field, Kind, Need, Step, params, path, snake};
use super::values;

/// How the parameters themselves are called when they are what is wrong.
const PARAMS: &str = "params";
const IGNORED: &str = "unknown members are ignored at every depth (wire-dialects 16)";
const NOT_SET: &str = "null counts as not set (wire-dialects 2)";
const LAST_WINS: &str = "of two equal names inside the parameters the last one counts (architecture 6)";
const SPELLING: &str = "names are read in both spellings (wire-dialects 16)";

pub(crate) fn cases(method: &Method) -> Vec<Case> {
    let mut maker = Maker { method, cases: Vec::new() };
    maker.no_object();
    maker.object(method.fields, &[]);
    maker.cases
}

struct Maker<'a> {
    method: &'a Method,
    cases: Vec<Case>,
}

impl Maker<'_> {
    fn no_object(&mut self) {
        for text in values::TYPES.iter().filter(|text| !text.starts_with('{')) {
            let body = request(self.method.name, text);
            let name = format!("params = {text}");
            self.cases.push(Case::refused(self.method, name, body, INVALID_PARAMS).naming(PARAMS));
        }
    }

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
        for wrong in values::wrong(field) {
            let at = format!("{}{}", path(&place), wrong.inside);
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
            for (second, at) in second_contents(self.method.dialect, form) {
                let at = format!("{}{at}", path(&part));
                self.refuse(&part, &Edit::Add(second.to_owned()), &at, INVALID_PARAMS);
            }
        }
    }

    fn refuse(&mut self, place: &[Step], edit: &Edit, at: &str, code: i64) {
        let (name, body) = self.write(place, edit);
        let case = Case::refused(self.method, name, body, code);
        self.cases.push(if code == INVALID_PARAMS { case.naming(at) } else { case });
    }

    fn take(&mut self, place: &[Step], edit: &Edit, why: &'static str) {
        // What not every request has is refused for being there: there are no webhooks, and no such task.
        if self.is_rare(place) {
            return;
        }
        let (name, body) = self.write(place, edit);
        self.cases.push(Case::taken(self.method, name, body, why));
    }

    /// Whether the place lies in a member that not every request has.
    fn is_rare(&self, place: &[Step]) -> bool {
        let mut fields = self.method.fields;
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

    fn write(&self, place: &[Step], edit: &Edit) -> (String, String) {
        let what = match edit {
            Edit::Put(text) => format!("= {}", shown(text)),
            Edit::Remove => "missing".to_owned(),
            Edit::Rename(name) => format!("called {name}"),
            Edit::Twice(_) => "twice".to_owned(),
            Edit::Add(member) => format!("with {member}"),
        };
        let text = params(self.method.fields, Some((place, edit)));
        (format!("{} {what}", path(place)), request(self.method.name, &text))
    }
}

/// A second content beside the first, and where in the part the fault is then found.
fn second_contents(dialect: Dialect, form: &[Field]) -> Vec<(&'static str, &'static str)> {
    let has = |name: &str| form.iter().any(|field| field.name == name);
    if dialect == Dialect::V1 {
        let all = [
            ("text", r#""text":"a""#),
            ("raw", r#""raw":"aGk=""#),
            ("url", r#""url":"https://a.example""#),
            ("data", r#""data":{"k":1}"#),
        ];
        return all.into_iter().filter(|(name, _)| !has(name)).map(|(_, member)| (member, "")).collect();
    }
    if !has("file") {
        return Vec::new();
    }
    // The last of two files counts.
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
