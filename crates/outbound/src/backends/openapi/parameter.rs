//! The parameters of an operation: where each is sent, and under which name it is an argument.

use http::{HeaderName, header};

use super::{
    Tree,
    document::{Document, shorten},
    path::Template,
    serialize::Style,
};
use crate::backends::http::facts::is_own;

/// Maximum number of parameters of an operation.
const MAX_PARAMETERS: usize = 200;

/// One parameter.
pub(super) struct Parameter<'d> {
    /// Name in the request.
    pub(super) name: String,
    /// Name of the argument.
    pub(super) argument: String,
    pub(super) location: Location,
    pub(super) format: Format,
    pub(super) required: bool,
    pub(super) schema: Option<&'d Tree>,
    pub(super) description: Option<&'d str>,
}

/// Where a parameter is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Location {
    Path,
    Query,
    Header(HeaderName),
    Cookie,
}

/// How a parameter is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Styled(Style, bool),
    Json,
}

impl Location {
    fn name(&self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header(_) => "header",
            Self::Cookie => "cookie",
        }
    }
}

/// Headers that an argument never sets, beside those of the connection and the call: what they say is known without the
/// client, or only the operator may say it.
const RESERVED_HEADERS: [HeaderName; 8] = [
    header::ACCEPT,
    header::AUTHORIZATION,
    header::CONTENT_ENCODING,
    header::CONTENT_TYPE,
    header::COOKIE,
    header::FORWARDED,
    header::USER_AGENT,
    header::VIA,
];

/// The parameters of an operation and of its path. The error is the reason why the operation is skipped.
pub(super) fn parameters<'d>(
    document: &'d Document,
    item: &'d Tree,
    operation: &'d Tree,
    template: &Template,
) -> Result<Vec<Parameter<'d>>, String> {
    let mut found: Vec<Parameter<'d>> = Vec::new();
    // Those of the operation replace those of the path with the same name and location.
    for described in [operation, item].into_iter().flat_map(|owner| owner["parameters"].as_array()).flatten()
    {
        let Some(parameter) = parameter(document.resolve(described)?)? else { continue };
        if !found.iter().any(|known| same(known, &parameter)) {
            found.push(parameter);
        }
        if found.len() > MAX_PARAMETERS {
            return Err(format!("it has more than {MAX_PARAMETERS} parameters"));
        }
    }
    let in_template: Vec<&str> = template.parameters().collect();
    found.retain(|parameter| {
        parameter.location != Location::Path || in_template.contains(&parameter.name.as_str())
    });
    for name in in_template {
        if !found.iter().any(|known| known.location == Location::Path && known.name == name) {
            found.push(undescribed(name));
        }
    }
    if found.len() > MAX_PARAMETERS {
        return Err(format!("it has more than {MAX_PARAMETERS} parameters"));
    }
    name_arguments(&mut found);
    Ok(found)
}

fn same(one: &Parameter<'_>, other: &Parameter<'_>) -> bool {
    one.location == other.location && (one.name == other.name || matches!(one.location, Location::Header(_)))
}

/// Reads one parameter; `None` if it is never sent.
fn parameter(described: &Tree) -> Result<Option<Parameter<'_>>, String> {
    let name = described["name"].as_str().filter(|name| !name.is_empty()).ok_or("a parameter has no name")?;
    let shown = shorten(name, 64);
    let required = described["required"] == true;
    let location = match described["in"].as_str() {
        Some("path") => Location::Path,
        Some("query") => Location::Query,
        Some("header") => {
            let header = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| format!("the header parameter {shown:?} is not a valid header name"))?;
            if RESERVED_HEADERS.contains(&header) || is_own(&header) {
                return Ok(None);
            }
            Location::Header(header)
        }
        Some("cookie") => Location::Cookie,
        _ => return Err(format!("the parameter {shown:?} has an unknown location")),
    };
    let (format, schema) = format(described, &location)
        .map_err(|problem| format!("the {} parameter {shown:?} {problem}", location.name()))?;
    Ok(Some(Parameter {
        name: name.to_owned(),
        argument: name.to_owned(),
        required: required || location == Location::Path,
        location,
        format,
        schema,
        description: described["description"].as_str(),
    }))
}

fn format<'d>(described: &'d Tree, location: &Location) -> Result<(Format, Option<&'d Tree>), String> {
    if let Some(content) = described["content"].as_object() {
        return match content.iter().next() {
            Some((media_type, content)) if is_json(media_type) => Ok((Format::Json, content.get("schema"))),
            _ => Err("has a media type other than JSON".into()),
        };
    }
    let style = match (location, described["style"].as_str()) {
        (Location::Path | Location::Header(_), None | Some("simple")) => Style::Simple,
        (Location::Path, Some("label")) => Style::Label,
        (Location::Path, Some("matrix")) => Style::Matrix,
        (Location::Query | Location::Cookie, None | Some("form")) => Style::Form,
        (Location::Query, Some("spaceDelimited")) => Style::SpaceDelimited,
        (Location::Query, Some("pipeDelimited")) => Style::PipeDelimited,
        (Location::Query, Some("deepObject")) => Style::DeepObject,
        (_, Some(style)) => {
            return Err(format!("has the style {:?}, which is not supported", shorten(style, 32)));
        }
    };
    let explode = described["explode"].as_bool().unwrap_or(style == Style::Form);
    Ok((Format::Styled(style, explode), described.get("schema")))
}

/// Whether a media type is JSON, with or without parameters and suffix.
pub(super) fn is_json(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || essence.ends_with("+json")
}

/// A parameter that is only in the path.
fn undescribed(name: &str) -> Parameter<'static> {
    Parameter {
        name: name.to_owned(),
        argument: name.to_owned(),
        location: Location::Path,
        format: Format::Styled(Style::Simple, false),
        required: true,
        schema: None,
        description: None,
    }
}

/// Arguments have the names of their parameters. Where a name is used in several locations, or is that of the request
/// body, the location comes first: `query_id`.
fn name_arguments(parameters: &mut [Parameter<'_>]) {
    let names: Vec<String> = parameters.iter().map(|parameter| parameter.name.clone()).collect();
    let mut used: Vec<String> = vec![BODY.into()];
    for parameter in parameters.iter_mut() {
        let shared = names.iter().filter(|name| **name == parameter.name).count() > 1;
        let base = if shared || parameter.name == BODY {
            format!("{}_{}", parameter.location.name(), parameter.name)
        } else {
            parameter.name.clone()
        };
        let taken = |name: &String| used.contains(name) || (*name != parameter.name && names.contains(name));
        let numbered = (2..).map(|number| format!("{base}_{number}"));
        let argument = std::iter::once(base.clone())
            .chain(numbered)
            .find(|name| !taken(name))
            .expect("there are more numbers than parameters");
        used.push(argument.clone());
        parameter.argument = argument;
    }
}

/// The argument with the request body.
pub(super) const BODY: &str = "body";

#[cfg(test)]
mod tests {
    use super::{super::parse, *};

    fn arguments(path: &str, parameters_json: &str) -> Result<Vec<String>, String> {
        let text = format!(r#"{{"openapi":"3.0.0","op":{{"parameters":{parameters_json}}},"item":{{}}}}"#);
        let document = parse(&text).unwrap();
        let template = Template::parse(path).unwrap();
        let found = parameters(&document, &document.root["item"], &document.root["op"], &template)?;
        Ok(found.into_iter().map(|parameter| parameter.argument).collect())
    }

    #[test]
    fn names_in_several_locations_get_the_location() {
        let json = r#"[{"in":"path","name":"id"},{"in":"query","name":"id"},{"in":"header","name":"X-A"},
            {"in":"query","name":"query_id"},{"in":"query","name":"body"}]"#;
        let expected = ["path_id", "query_id_2", "X-A", "query_id", "query_body"];
        assert_eq!(arguments("/{id}", json).unwrap(), expected);
    }

    #[test]
    fn reserved_headers_are_no_arguments() {
        let json = r#"[{"in":"header","name":"Host"},{"in":"header","name":"AUTHORIZATION","required":true},
            {"in":"header","name":"A2AD-Task"},{"in":"cookie","name":"c"},{"in":"path","name":"unused"}]"#;
        assert_eq!(arguments("/{id}", json).unwrap(), ["c", "id"]);
    }

    #[test]
    fn what_cannot_be_sent_is_named() {
        for (json, part) in [
            (
                r#"[{"in":"query","name":"id","style":"matrix"}]"#,
                "query parameter \"id\" has the style \"matrix\"",
            ),
            (r#"[{"in":"header","name":"a b"}]"#, "not a valid header name"),
            (r#"[{"in":"body","name":"x"}]"#, "unknown location"),
            (r#"[{"in":"query","name":"x","content":{"text/xml":{}}}]"#, "other than JSON"),
        ] {
            let error = arguments("/{id}", json).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
