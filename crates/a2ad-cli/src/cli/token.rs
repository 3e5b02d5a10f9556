//! `a2ad token`: prints a JSON Web Token that is signed with a shared secret (HS256).

use std::{path::PathBuf, time::Duration};

use aws_lc_rs::hmac;
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64URL};
use clap::Args;
use engine::Clock;
use inbound::AuthOptions;
use protocol::{Json, json::write::Writer, model::Secret};

use crate::cli::duration;

use crate::cli::failure::{Failure, code};

use crate::cli::output::Output;

use crate::cli::variables;
use crate::config::{self, ConfigFile};

/// The variable of the secret, unless another one is named.
const SECRET: &str = "A2A_SECRET";
const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;
/// Claims that have an option of their own.
const OWN_CLAIMS: [&str; 6] = ["sub", "iat", "exp", "aud", "iss", ORGANISATION];
/// The claim whose secret is that of an organisation.
const ORGANISATION: &str = "org_domain";

/// The help after the options.
pub(super) const TOKEN_HELP: &str = "\
The secret comes from an environment variable, never from an argument: every process on the machine can read
arguments. For example:
  TOKEN=$(a2ad token --sub alice) a2ad send echo hello --bearer-env TOKEN

Exit codes:
  0    success
  1    the output cannot be written
  2    invalid arguments or configuration, or there is no secret";

#[derive(Debug, Args)]
pub(super) struct TokenFlags {
    /// Subject: who calls with the token.
    #[arg(long, value_name = "NAME")]
    sub: String,
    /// How long the token is valid.
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = duration::parse)]
    ttl: Duration,
    /// Audience: the server that the token is for.
    #[arg(long, value_name = "AUDIENCE")]
    aud: Option<String>,
    /// Issuer.
    #[arg(long, value_name = "ISSUER")]
    iss: Option<String>,
    /// Organisation: sets the claim org_domain and signs with its secret, which auth.org_secrets names.
    #[arg(long, value_name = "DOMAIN")]
    org: Option<String>,
    /// Environment variable with the secret [default: that of the configuration, else A2A_SECRET].
    #[arg(long, value_name = "VAR")]
    secret_env: Option<String>,
    /// Another claim with a JSON value, such as roles='["admin"]'; can be repeated.
    #[arg(long = "claim", value_name = "NAME=JSON")]
    claims: Vec<String>,
    /// Configuration file that names the secrets [default: ./a2ad.toml if it exists; env: A2AD_CONFIG].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(super) fn run(flags: &TokenFlags) -> Result<u8, Failure> {
    if flags.sub.is_empty() {
        return Err(Failure::usage("--sub: expected a name, such as alice"));
    }
    let secret = secret(flags)?;
    let claims = claims(flags, Clock::system().now().as_millis() / 1_000)?;
    Output::new().document(sign(&claims, &secret).as_bytes())?;
    Ok(code::SUCCESS)
}

/// The secret to sign with.
fn secret(flags: &TokenFlags) -> Result<Secret, Failure> {
    if let Some(variable) = &flags.secret_env {
        return of_variable(variable);
    }
    let AuthOptions { secret, org_secrets, .. } = auth_options(flags)?;
    if let Some(domain) = &flags.org {
        let lower = domain.to_lowercase();
        let found = org_secrets.into_iter().find(|(known, _)| known.to_lowercase() == lower);
        return found.map(|(_, secret)| secret).ok_or_else(|| {
            let text = format!("the configuration has no secret of the organisation {domain:?}");
            Failure::usage(text)
                .with_next("add it to auth.org_secrets, or name its variable with --secret-env")
        });
    }
    match secret {
        Some(secret) => Ok(secret.secret),
        None => of_variable(SECRET),
    }
}

fn auth_options(flags: &TokenFlags) -> Result<AuthOptions, Failure> {
    let variables = variables();
    let file = ConfigFile::find(flags.config.as_deref(), &variables);
    let source = config::Source { file: file.as_ref(), variables, ..config::Source::default() };
    Ok(config::load(source).map_err(anyhow::Error::from)?.auth.options)
}

fn of_variable(variable: &str) -> Result<Secret, Failure> {
    let value = std::env::var(variable).ok().filter(|value| !value.is_empty());
    value.map(Secret::new).ok_or_else(|| {
        let text = format!("the environment variable {variable} is not set");
        Failure::usage(text).with_next("it has the secret to sign with; --secret-env names another variable")
    })
}

/// The claims of the token as JSON; `now` is in seconds.
fn claims(flags: &TokenFlags, now: i64) -> Result<Vec<u8>, Failure> {
    let more = flags.claims.iter().map(|claim| parse_claim(claim)).collect::<Result<Vec<_>, _>>()?;
    for (at, (name, _)) in more.iter().enumerate() {
        if OWN_CLAIMS.contains(name) {
            let text = format!("--claim {name}: this claim is set by an option of its own or by the program");
            return Err(Failure::usage(text));
        }
        if more[..at].iter().any(|(earlier, _)| earlier == name) {
            return Err(Failure::usage(format!("--claim {name} is given twice")));
        }
    }
    // Rounded up, so that a token of less than a second is valid at all.
    let ttl = i64::try_from(flags.ttl.as_millis().div_ceil(1_000)).unwrap_or(i64::MAX);
    let mut writer = Writer::new();
    writer.object(|out| {
        out.text("sub", &flags.sub);
        out.maybe_text("iss", flags.iss.as_deref());
        out.maybe_text("aud", flags.aud.as_deref());
        out.maybe_text(ORGANISATION, flags.org.as_deref());
        out.key("iat").int(now);
        out.key("exp").int(now.saturating_add(ttl));
        for (name, value) in &more {
            out.key(name).raw(value.as_str());
        }
    });
    Ok(writer.finish())
}

fn parse_claim(claim: &str) -> Result<(&str, Json), Failure> {
    let parsed = claim.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = parsed.ok_or_else(|| {
        Failure::usage(format!("--claim {claim:?}: expected NAME=JSON, such as admin=true or team='\"red\"'"))
    })?;
    let value = Json::parse(value).map_err(|problem| {
        let text = format!("--claim {name}: the value is not JSON: {problem}");
        Failure::usage(text).with_next(format!("quote a text: --claim {name}='\"{value}\"'"))
    })?;
    Ok((name, value))
}

/// A token with these claims (RFC 7515, HS256).
fn sign(claims: &[u8], secret: &Secret) -> String {
    let signed = format!("{}.{}", BASE64URL.encode(HEADER), BASE64URL.encode(claims));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes());
    let signature = BASE64URL.encode(hmac::sign(&key, signed.as_bytes()));
    format!("{signed}.{signature}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags() -> TokenFlags {
        TokenFlags {
            sub: "alice".into(),
            ttl: Duration::from_millis(1_500),
            aud: None,
            iss: None,
            org: None,
            secret_env: None,
            claims: Vec::new(),
            config: None,
        }
    }

    #[test]
    fn a_token_is_signed_as_other_programs_sign_it() {
        // Computed with Python: hmac.new(secret, header + "." + claims, sha256).
        let token =
            sign(br#"{"sub":"alice","iat":1000,"exp":1002}"#, &Secret::new("a secret of some length"));
        assert_eq!(token, EXPECTED);
    }

    const EXPECTED: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhbGljZSIsImlhdCI6MTAwMCwiZXhwIjoxMDAyfQ.U6CcxZ5LjHx0k1aV5aoLdfWgMVFQxxmZC96wzvZ48oQ";

    #[test]
    fn claims_are_those_of_the_options() {
        let text = |flags: &TokenFlags| String::from_utf8(claims(flags, 1_000).unwrap()).unwrap();
        assert_eq!(text(&flags()), r#"{"sub":"alice","iat":1000,"exp":1002}"#);
        let all = TokenFlags {
            aud: Some("a2ad".into()),
            iss: Some("me".into()),
            org: Some("acme.example".into()),
            claims: vec!["roles=[\"x\", 7]".into(), "admin=true".into(), "nbf=5".into()],
            ..flags()
        };
        let expected = r#"{"sub":"alice","iss":"me","aud":"a2ad","org_domain":"acme.example","iat":1000,"exp":1002,"roles":["x",7],"admin":true,"nbf":5}"#;
        assert_eq!(text(&all), expected);
        for (wrong, problem) in [
            (vec!["admin"], "expected NAME=JSON"),
            (vec!["=1"], "expected NAME=JSON"),
            (vec!["team=red"], "the value is not JSON"),
            (vec!["exp=1"], "option of its own"),
            (vec!["a=1", "a=2"], "given twice"),
        ] {
            let wrong = TokenFlags { claims: wrong.into_iter().map(Into::into).collect(), ..flags() };
            let failure = claims(&wrong, 1_000).unwrap_err();
            assert!(failure.code == code::USAGE && failure.text.contains(problem), "{}", failure.text);
        }
    }
}
