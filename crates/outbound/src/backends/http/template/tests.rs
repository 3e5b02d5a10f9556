//! What templates become, and which are not accepted.

use super::*;

fn template(change: impl FnOnce(&mut HttpConfig)) -> Result<Template, String> {
    let mut config = HttpConfig::new("http://127.0.0.1:9000/fx");
    change(&mut config);
    Template::new(&config)
}

fn url(url: &str) -> Template {
    template(|config| config.url = url.into()).unwrap_or_else(|problem| panic!("{url}: {problem}"))
}

fn get(url: &str) -> Template {
    let (method, url) = ("GET".into(), url.into());
    template(|config| *config = HttpConfig { url, method, ..HttpConfig::new("") }).unwrap()
}

/// The request's first line and body.
fn request(template: &Template, arguments: &str) -> Result<String, String> {
    let request = build(template, &Json::parse(arguments).unwrap())?;
    let body = String::from_utf8(request.body().to_vec()).unwrap();
    Ok(format!("{} {} {body}", request.method(), request.uri()).trim_end().to_owned())
}

#[test]
fn arguments_are_encoded_where_they_stand() {
    let post = url("http://h:1/a/{id}/x-{n}?q={q}&fixed=a%20b&flag");
    for (arguments, expected) in [
        (
            r#"{"id":"a b/c","n":1.50,"q":"&=?#%+ü","rest":[1,2.0]}"#,
            r#"POST http://h:1/a/a%20b%2Fc/x-1.50?q=%26%3D%3F%23%25%2B%C3%BC&fixed=a%20b&flag {"rest":[1,2.0]}"#,
        ),
        (r#"{"id":true,"n":"n"}"#, "POST http://h:1/a/true/x-n?fixed=a%20b&flag {}"),
        (r#"{"id":"i","n":"n","q":null}"#, "POST http://h:1/a/i/x-n?fixed=a%20b&flag {}"),
        (
            r#"{"id":"i","n":"n","q":["a",{}]}"#,
            "POST http://h:1/a/i/x-n?q=%5B%22a%22%2C%7B%7D%5D&fixed=a%20b&flag {}",
        ),
        (r#"{"id":"first","id":"last","n":"n"}"#, "POST http://h:1/a/last/x-n?fixed=a%20b&flag {}"),
    ] {
        assert_eq!(request(&post, arguments).as_deref(), Ok(expected), "{arguments}");
    }
}

#[test]
fn numbers_in_the_body_stay_exact() {
    let exact = r#"{"a":9007199254740993,"b":1.10,"c":1e400}"#;
    let expected = format!("POST http://127.0.0.1:9000/fx {exact}");
    assert_eq!(request(&template(|_| ()).unwrap(), exact), Ok(expected));
    assert_eq!(request(&template(|_| ()).unwrap(), "[1]").unwrap(), "POST http://127.0.0.1:9000/fx [1]");
}

#[test]
fn unused_arguments_are_the_query_of_requests_without_a_body() {
    let get = get("http://h/{id}?a={a}");
    let arguments = r#"{"id":1,"b c":"d&e","n":null,"list":[1],"a":"x"}"#;
    assert_eq!(request(&get, arguments).unwrap(), "GET http://h/1?a=x&b%20c=d%26e&list=%5B1%5D");
    assert_eq!(request(&get, "[1]").unwrap_err(), "arguments.id: it is part of a path and must not be empty");
    assert_eq!(request(&self::get("http://h"), "[1]").unwrap_err(), "arguments: expected an object");
    assert_eq!(request(&self::get("http://h"), "{}").unwrap(), "GET http://h/");
}

#[test]
fn unused_arguments_cannot_repeat_a_configured_query_parameter() {
    let get = get("http://h/?tenant=acme&a%20b={x}&flag");
    for name in ["tenant", "Tenant", "tenant[]", "tenant[0]", " tenant", "a b", "flag"] {
        let problem = request(&get, &format!(r#"{{"{name}":"other"}}"#)).unwrap_err();
        assert_eq!(problem, format!("arguments.{name}: the configuration sets this query parameter"));
    }
    let other = request(&get, r#"{"tenants":"other","x":"1"}"#);
    assert_eq!(other.unwrap(), "GET http://h/?tenant=acme&a%20b=1&flag&tenants=other");
}

#[test]
fn path_keeps_its_segments() {
    let dots = "arguments.id: a path must not have a segment . or ..";
    let empty = "arguments.id: it is part of a path and must not be empty";
    let scalar = "arguments.id: expected a string, a number or a boolean";
    for (value, problem) in [
        (r#""..""#, dots),
        (r#"".""#, dots),
        (r#""../../etc""#, dots),
        (r#""a/../b""#, dots),
        (r#""..\\x""#, dots),
        (r#""..;x""#, dots),
        (r#""a\r\nb""#, "arguments.id: a path must not have control characters"),
        (r#""\u0000""#, "arguments.id: a path must not have control characters"),
        (r#""""#, empty),
        ("null", empty),
        ("{}", scalar),
        ("[1]", scalar),
    ] {
        let arguments = format!(r#"{{"id":{value}}}"#);
        assert_eq!(request(&url("http://h/a/{id}/b"), &arguments).unwrap_err(), problem, "{value}");
    }
    assert_eq!(request(&url("http://h/a/{id}/b"), "{}").unwrap_err(), empty);
    assert!(request(&url("http://h/{a}{b}/c"), r#"{"a":".","b":"."}"#).is_err());
    assert_eq!(request(&url("http://h/{a}{b}/c"), r#"{"a":".","b":"a"}"#).unwrap(), "POST http://h/.a/c {}");
    assert_eq!(request(&url("http://h/{a}"), r#"{"a":"%2e%2e"}"#).unwrap(), "POST http://h/%252e%252e {}");
    assert_eq!(request(&url("http://h/{a}"), r#"{"a":"@evil"}"#).unwrap(), "POST http://h/%40evil {}");
    let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(70_000));
    assert_eq!(request(&url("http://h/{a}"), &long).unwrap_err(), "arguments: they do not fit into a URL");
}

#[test]
fn headers_cannot_be_split() {
    let headers = [("X-Id", "id {id}"), ("x-only", "{only}"), ("Content-Type", "application/merge+json")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let template = template(|config| config.headers = headers.into()).unwrap();
    let built = build(&template, &Json::parse(r#"{"id":"ü 1"}"#).unwrap()).unwrap();
    assert_eq!(built.headers()["x-id"].as_bytes(), "id ü 1".as_bytes());
    assert_eq!(built.headers().get("x-only"), None);
    assert_eq!(built.headers()["content-type"], "application/merge+json");
    for value in ["a\\r\\nb: c", "a\\nb", "a\\u0000", "\\u007f", "\\u0085", "\\t"] {
        let arguments = format!(r#"{{"id":"{value}"}}"#);
        let expected = "arguments.id: the header x-id must not contain control characters";
        assert_eq!(request(&template, &arguments).unwrap_err(), expected, "{value}");
    }
    assert_eq!(request(&template, "{}").unwrap_err(), "arguments.id: it is required");
    assert!(request(&template, r#"{"id":{}}"#).is_err());
}

#[test]
fn configured_query_is_encoded() {
    let query = [("a b", "x&{v}"), ("v", "{v}")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let template = template(|config| config.query = query.into()).unwrap();
    assert_eq!(
        request(&template, r#"{"v":"="}"#).unwrap(),
        "POST http://127.0.0.1:9000/fx?a%20b=x%26%3D&v=%3D {}"
    );
    assert_eq!(request(&template, "{}").unwrap_err(), "arguments.v: it is required");
}

#[test]
fn host_is_stored_in_its_canonical_form() {
    for (text, origin) in [
        ("HTTP://Example.COM:80/x", "http://example.com"),
        ("http://127.1:9000", "http://127.0.0.1:9000"),
        ("https://[::1]:8443?a={b}", "https://[::1]:8443"),
    ] {
        assert_eq!(url(text).origin(), origin);
    }
}

#[test]
fn problem_with_a_template_names_the_key() {
    for (text, problem) in [
        ("/fx", "url: expected an absolute URL such as https://host/path"),
        ("ftp://h/", "url: the scheme must be http or https"),
        ("http://{host}/", "url: an argument cannot be in the scheme, host or port"),
        ("http://h{x}.example/", "url: an argument cannot be in the scheme, host or port"),
        ("http://h:{port}/", "url: an argument cannot be in the scheme, host or port"),
        ("{scheme}://h/", "url: an argument cannot be in the scheme, host or port"),
        ("http://user:secret@h/", "url: credentials are not allowed in a URL, use bearer_env or headers_env"),
        ("http:///x", "url: empty host"),
        ("http://h/a#b", "url: a fragment is never sent, remove the #"),
        ("http://h/a/../b", "url: a path must not have a segment . or .."),
        ("http://h/%2e%2E/b", "url: a path must not have a segment . or .."),
        ("http://h/a b", "url: percent-encode what is not allowed in a URL"),
        ("http://h/ü", "url: percent-encode what is not allowed in a URL"),
        ("http://h/%zz", "url: percent-encode what is not allowed in a URL"),
        ("http://h/{a", "url: a { without }"),
        ("http://h/a}", "url: a } without {"),
        ("http://h/{a}}", "url: a } without {"),
        ("http://h/{{a}}", "url: braces that do not match"),
        ("http://h/{}", "url: {} without the name of an argument"),
        ("http://h/?{a}=1", "url: an argument cannot be the name of a query parameter"),
    ] {
        assert_eq!(template(|config| config.url = text.into()).err().as_deref(), Some(problem), "{text}");
    }
    let header = |name: &str, value: &str| {
        let headers = vec![("x-a".to_owned(), String::new()), (name.to_owned(), value.to_owned())];
        template(|config| config.headers = headers).err().unwrap()
    };
    assert_eq!(header("a b", ""), "headers.a b: not a valid header name");
    assert_eq!(
        header("Host", "h"),
        "headers.Host: this header is set by the server and cannot be configured"
    );
    assert_eq!(header("X-A", "h"), "headers.X-A: it is there twice");
    assert_eq!(header("x-b", "a\nb"), "headers.x-b: a header must not contain control characters");
    let method = template(|config| config.method = "CONNECT".into()).err().unwrap();
    let expected = r#"method: expected one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, found "CONNECT""#;
    assert_eq!(method, expected);
}
