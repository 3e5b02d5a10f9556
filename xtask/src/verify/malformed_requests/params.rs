//! Requests with invalid parameters, generated from the method's description: each member in turn missing, null, of
//! each wrong type and with each invalid value of its kind. Also those that are unusual but accepted.

use super::case::{AGENT_DISABLED, Case, INVALID_PARAMS, NOT_FOUND, request};
use super::methods::{Dialect, Method};
use super::schema::{Edit, Field, Kind, Need, Step, params, path, snake};
use super::values;

/// Name of the parameters as a whole in errors.
const PARAMS: &str = "params";
const IGNORED: &str = "unknown members are ignored at every depth";
const NOT_SET: &str = "null counts as absent";
const LAST_WINS: &str = "of two members with the same name inside the parameters the last one counts";
const SPELLING: &str = "names are accepted in both spellings";

/// Parameters with one change.
pub(crate) struct Changed {
    /// What is unusual about them, for findings.
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) outcome: Outcome,
}

/// The expected result of a request with such parameters.
pub(crate) enum Outcome {
    /// Refused with this JSON-RPC code; `field` must be named if given.
    Refused { code: i64, field: Option<String> },
    /// Accepted by this rule.
    Accepted(&'static str),
}

/// Members that a part of some form must not have next to its content, and where in the part the fault is reported.
pub(crate) type ForbiddenMembers = fn(&[Field]) -> Vec<(&'static str, &'static str)>;

pub(crate) fn cases(method: &Method) -> Vec<Case> {
    let no_object = values::TYPES.iter().filter(|text| !text.starts_with('{')).map(|text| {
        let name = format!("params = {text}");
        Case::refused(method, name, request(method.name, text), INVALID_PARAMS).naming_field(PARAMS)
    });
    let forbidden_members = if method.dialect == Dialect::V1 { second_contents } else { second_files };
    let changes = changes(method.fields, forbidden_members).into_iter().map(|changed| {
        let body = request(method.name, &changed.text);
        match changed.outcome {
            Outcome::Accepted(why) => Case::accepted(method, changed.name, body, why),
            Outcome::Refused { code, field } => {
                let case = Case::refused(method, changed.name, body, code);
                let case = if code == AGENT_DISABLED { case.with_status(NOT_FOUND) } else { case };
                match field {
                    Some(field) => case.naming_field(field),
                    None => case,
                }
            }
        }
    });
    no_object.chain(changes).collect()
}

/// Every change of the parameters with this description.
pub(crate) fn changes(fields: &'static [Field], forbidden_members: ForbiddenMembers) -> Vec<Changed> {
    let mut maker = Maker { fields, forbidden_members, changes: Vec::new() };
    maker.object(fields, &[]);
    maker.changes
}

struct Maker {
    fields: &'static [Field],
    forbidden_members: ForbiddenMembers,
    changes: Vec<Changed>,
}

impl Maker {
    fn object(&mut self, fields: &'static [Field], location: &[Step]) {
        let unknown = [r#""unknown":1"#, r#""":null"#, r#""__proto__":{"x":1}"#, r#""\u0000":[]"#];
        for member in unknown {
            self.accept(location, &Edit::Add(member.to_owned()), IGNORED);
        }
        for field in fields {
            self.member(field, location);
        }
    }

    fn member(&mut self, field: &'static Field, around: &[Step]) {
        let location = [around, &[Step::Member(field.name)]].concat();
        for (index, wrong) in values::wrong(field).into_iter().enumerate() {
            let at = format!("{}{}", path(&location), wrong.inside);
            // Of two members with the same name the last one counts, so the first one is as if absent.
            if index == 0 && !field.good().is_empty() {
                self.refuse(&location, &Edit::Again(wrong.text.clone()), &at, wrong.code);
            }
            self.refuse(&location, &Edit::Put(wrong.text), &at, wrong.code);
        }
        for unusual in values::unusual(field.kind) {
            self.accept(&location, &Edit::Put(unusual.text), unusual.why);
        }
        self.absence(field, around, &location);
        if field.name != snake(field.name) {
            self.accept(&location, &Edit::Rename(snake(field.name)), SPELLING);
        }
        self.accept(&location, &Edit::Twice("{\"x\":[5]}".to_owned()), LAST_WINS);
        match field.kind {
            Kind::Object(fields) => self.object(fields, &location),
            Kind::Parts(forms) => self.parts(forms, &location),
            _ => {}
        }
    }

    fn absence(&mut self, field: &Field, around: &[Step], location: &[Step]) {
        let null = Edit::Put("null".to_owned());
        match field.need {
            Need::Optional => self.accept(location, &null, NOT_SET),
            // Null is a valid value of data.
            Need::Content if matches!(field.kind, Kind::Data { .. }) => {
                self.refuse(location, &Edit::Remove, &path(around), INVALID_PARAMS);
            }
            need => {
                let at = if need == Need::Content { path(around) } else { path(location) };
                self.refuse(location, &Edit::Remove, &at, INVALID_PARAMS);
                self.refuse(location, &null, &at, INVALID_PARAMS);
            }
        }
    }

    fn parts(&mut self, forms: &'static [&'static [Field]], location: &[Step]) {
        for form in forms {
            let part = [location, &[Step::Element(form)]].concat();
            self.object(form, &part);
            for (second, at) in (self.forbidden_members)(form) {
                let at = format!("{}{at}", path(&part));
                self.refuse(&part, &Edit::Add(second.to_owned()), &at, INVALID_PARAMS);
            }
        }
    }

    fn refuse(&mut self, location: &[Step], edit: &Edit, at: &str, code: i64) {
        let field = (code == INVALID_PARAMS).then(|| at.to_owned());
        self.change(location, edit, Outcome::Refused { code, field });
    }

    fn accept(&mut self, location: &[Step], edit: &Edit, why: &'static str) {
        // Members that are not in every request are refused when present: webhooks are off, and the task is
        // unknown.
        if !self.is_rare(location) {
            self.change(location, edit, Outcome::Accepted(why));
        }
    }

    /// Whether the location is inside a member that not every request has.
    fn is_rare(&self, location: &[Step]) -> bool {
        let mut fields = self.fields;
        for step in location {
            match step {
                Step::Element(form) => fields = form,
                Step::Member(name) => match fields.iter().find(|field| field.name == *name) {
                    Some(field) if field.in_valid_requests => {
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

    fn change(&mut self, location: &[Step], edit: &Edit, outcome: Outcome) {
        let what = match edit {
            Edit::Put(text) => format!("= {}", shown(text)),
            Edit::Remove => "missing".to_owned(),
            Edit::Rename(name) => format!("called {name}"),
            Edit::Twice(_) => "twice".to_owned(),
            Edit::Again(text) => format!("again = {}", shown(text)),
            Edit::Add(member) => format!("with {member}"),
        };
        let text = params(self.fields, Some((location, edit)));
        self.changes.push(Changed { name: format!("{} {what}", path(location)), text, outcome });
    }
}

/// In 1.0 a part has exactly one content member.
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

/// Before 1.0 a part has a type tag, and only files have more than one form. Of two files the last one counts.
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
