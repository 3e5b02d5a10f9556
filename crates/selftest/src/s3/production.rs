//! A configuration that does not state who may call: allowed in development, refused in production.

use serde_json::Value;

use crate::{
    CheckError, CheckResult,
    counted_function::CountedFunction,
    credentials::{SECRET, token_of},
    fixture::Fixture,
    http::Server,
    json::{ValueChecks as _, parse},
    mismatch,
    server_process::{Environment, ServerProcess},
    test_client::TestClient,
};

/// What the hosting providers set: Netlify, AWS Lambda, Cloudflare Pages and Workers, Vercel, Render, Fly and Cloud Run.
const PROVIDERS: [Environment; 8] = [
    &[("NETLIFY", "true")],
    &[("AWS_LAMBDA_FUNCTION_NAME", "agent")],
    &[("CF_PAGES", "1")],
    &[("CLOUDFLARE_WORKERS", "1")],
    &[("VERCEL", "1")],
    &[("RENDER", "true")],
    &[("FLY_APP_NAME", "agent")],
    &[("K_SERVICE", "agent")],
];

const NO_ARGUMENTS: &str = r#"[{"kind":"data","data":{}}]"#;

fn native(server: &Server, skill: &'static str) -> TestClient {
    TestClient::new(server, "/_agent-native/a2a", skill)
}

pub(super) async fn one_warning(at: &Fixture) -> CheckResult {
    let function = CountedFunction::start().await?;
    let program = at.open_server("development", &function, &[]).await?;
    for path in ["/_agent-native/a2a", "/", "/a2a/main"] {
        let client = TestClient::new(&program.server, path, "echo");
        client.hello().await?.has_state("completed")?;
    }
    // Lines are written in order, and those of the calls are the last.
    let logged = program.wait_for_log(r#""target":"a2ad::call""#).await;
    logged.map_err(|error| mismatch("lines for the calls", error))?;
    let log = program.log();
    let warnings = log.lines().filter(|line| is_warning(line));
    match warnings.clone().count() {
        1 => Ok(()),
        _ => {
            Err(mismatch("one warning about missing authentication", warnings.collect::<Vec<_>>().join("\n")))
        }
    }
}

/// Whether a line of the log warns that calls are not authenticated.
fn is_warning(line: &str) -> bool {
    let Ok(line) = parse(line) else { return false };
    let text = line.to_string().to_lowercase();
    line.is("level", "WARN").is_ok()
        && ["auth", "credential", "anonymous"].iter().any(|word| text.contains(word))
}

/// Detected from the environment, and stated in the configuration.
pub(super) async fn nothing_runs(at: &Fixture) -> CheckResult {
    let function = CountedFunction::start().await?;
    for (name, environment) in [
        ("production-detected", &[("K_SERVICE", "agent")][..]),
        ("production-stated", &[("A2AD_SERVER__MODE", "prod")]),
    ] {
        let program = at.open_server(name, &function, environment).await?;
        let token = token_of("ada");
        for path in ["/_agent-native/a2a", "/", "/a2a/main", "/a2a/rpc"] {
            let client = TestClient::new(&program.server, path, "count");
            for client in [client.with_bearer(&token), client.with_key("nonsense"), client] {
                client.message(NO_ARGUMENTS, "").await?.has_status(503)?;
                client.message(NO_ARGUMENTS, r#","async":true"#).await?.has_status(503)?;
                let params = client.message_params(NO_ARGUMENTS, "", "");
                client.call("message/stream", &params).await?.has_status(503)?;
            }
        }
        TestClient::new(&program.server, "/run/count", "").post("{}").await?.has_status(503)?;
        program.server.get("/.well-known/agent-card.json", &[]).await?.has_status(200)?;
    }
    match function.calls("/count") {
        0 => Ok(()),
        calls => Err(mismatch("no call of the function", calls)),
    }
}

/// Each variable by itself; and none of them, for comparison.
pub(super) async fn detected(at: &Fixture) -> CheckResult {
    let function = CountedFunction::start().await?;
    let status = async |name: String, environment: Environment| -> Result<u16, CheckError> {
        let program: ServerProcess = at.open_server(&name, &function, environment).await?;
        Ok(native(&program.server, "echo").hello().await?.status())
    };
    for environment in PROVIDERS {
        let variable = environment.first().map_or("", |variable| variable.0);
        let status = status(format!("provider-{variable}"), environment).await?;
        if status != 503 {
            return Err(mismatch(format!("503 with {variable}"), status));
        }
    }
    match status("no-provider".into(), &[("NODE_ENV", "development")]).await? {
        200 => Ok(()),
        status => Err(mismatch("200 without a provider's variable", status)),
    }
}

/// The card without a secret, with a static token, with a secret, and without both in production.
pub(super) async fn card_offers_tokens(at: &Fixture) -> CheckResult {
    const BEARER: [(&str, &str); 2] =
        [("A2AD_AUTH__BEARER_ENV", "TOKEN"), ("TOKEN", "selftest-static-token-0123456789")];
    let function = CountedFunction::start().await?;
    for (name, environment, offers_static, offers_signed) in [
        ("card-without", &[][..], false, false),
        ("card-with-static", &BEARER, true, false),
        ("card-with-secret", &[("A2A_SECRET", SECRET)], false, true),
        ("card-in-production", &[("VERCEL", "1")], false, true),
    ] {
        let program = at.open_server(name, &function, environment).await?;
        let card = program.server.get("/.well-known/agent-card.json", &[]).await?;
        card.has_status(200)?;
        let has = |scheme: &str| card.find(&format!("securitySchemes.{scheme}")).is_some();
        card.ensure(has("apiKey") == offers_static, &format!("{name}: apiKey {offers_static}"))?;
        card.ensure(has("jwtBearer") == offers_signed, &format!("{name}: jwtBearer {offers_signed}"))?;
        if offers_signed {
            has_jwt_scheme(&card)?;
        }
    }
    Ok(())
}

/// Checks that a card describes tokens signed with a shared secret.
pub(super) fn has_jwt_scheme(card: &Value) -> CheckResult {
    card.is("securitySchemes.jwtBearer.type", "http")?;
    is_bearer(card, "jwtBearer")?;
    card.is("securitySchemes.jwtBearer.bearerFormat", "JWT")
}

pub(super) fn is_bearer(card: &Value, name: &str) -> CheckResult {
    let scheme = card.text(&format!("securitySchemes.{name}.scheme"))?;
    card.ensure(scheme.eq_ignore_ascii_case("bearer"), "the scheme bearer")
}
