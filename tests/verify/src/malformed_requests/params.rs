//! Requests with invalid parameters, generated from the method's description: each member in turn missing, null, of
//! each wrong type and with each invalid value of its kind.

use super::case::Case;
use super::errors::{Dialect, ErrorRow, INVALID_PARAMS};
use super::methods::Method;
use super::schema::{Edit, Field, Kind, Need, Step, params, path};
use super::values;

/// Name of the parameters as a whole in errors.
const PARAMS: &str = "params";

/// Members that a part of some form must not have next to its content, and where in the part the fault is reported.
pub(crate) type ForbiddenMembers = fn(&[Field]) -> Vec<(&'static str, &'static str)>;

pub(crate) fn cases(method: &Method, good: &Case) -> Vec<Case> {
    let no_object = values::TYPES.iter().filter(|text| !text.starts_with('{')).map(|text| {
        let case = good.refused(format!("params = {text}"), INVALID_PARAMS).naming_field(PARAMS);
        case.with_body(method.request(text))
    });
    let forbidden_members = if method.dialect == Dialect::V1 { second_contents } else { second_files };
    let request = |params: &str| method.request(params);
    no_object.chain(changes(method.fields, good, forbidden_members, &request)).collect()
}

/// The request with every change of the parameters with this description; `request` puts them into a body.
pub(crate) fn changes(
    fields: &'static [Field],
    good: &Case,
    forbidden_members: ForbiddenMembers,
    request: &dyn Fn(&str) -> String,
) -> Vec<Case> {
    let mut maker = Maker { fields, good, forbidden_members, request, cases: Vec::new() };
    maker.object(fields, &[]);
    maker.cases
}

struct Maker<'a> {
    fields: &'static [Field],
    good: &'a Case,
    forbidden_members: ForbiddenMembers,
    request: &'a dyn Fn(&str) -> String,
    cases: Vec<Case>,
}

impl Maker<'_> {
    fn object(&mut self, fields: &'static [Field], location: &[Step]) {
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
                self.refuse(&location, &Edit::Again(wrong.text.clone()), &at, wrong.error);
            }
            self.refuse(&location, &Edit::Put(wrong.text), &at, wrong.error);
        }
        self.absence(field, around, &location);
        match field.kind {
            Kind::Object(fields) => self.object(fields, &location),
            Kind::Parts(forms) => self.parts(forms, &location),
            _ => {}
        }
    }

    fn absence(&mut self, field: &Field, around: &[Step], location: &[Step]) {
        let null = Edit::Put("null".to_owned());
        match field.need {
            Need::Optional => {}
            // Null is a valid value of data.
            Need::Content if matches!(field.kind, Kind::Value) => {
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

    fn refuse(&mut self, location: &[Step], edit: &Edit, at: &str, error: &'static ErrorRow) {
        let case = self.change(location, edit, self.good.refused("", error));
        self.cases.push(if error == INVALID_PARAMS { case.naming_field(at) } else { case });
    }

    fn change(&self, location: &[Step], edit: &Edit, case: Case) -> Case {
        let what = match edit {
            Edit::Put(text) => format!("= {}", shown(text)),
            Edit::Remove => "missing".to_owned(),
            Edit::Again(text) => format!("again = {}", shown(text)),
            Edit::Add(member) => format!("with {member}"),
        };
        let body = (self.request)(&params(self.fields, Some((location, edit))));
        Case { name: format!("{} {what}", path(location)), ..case.with_body(body) }
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
