//! `server.mode`: whether this is production, where an agent without authentication answers no call.

/// Development or production.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Dev,
    Prod,
}

impl Mode {
    pub(crate) const NAMES: [(&'static str, Self); 2] = [("dev", Self::Dev), ("prod", Self::Prod)];
}

/// The mode, and the variable that has decided it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServerMode {
    pub(crate) mode: Mode,
    pub(crate) decided_by: Option<&'static str>,
}

/// Variables that hosting providers set for the programs they run: Netlify, AWS Lambda, Cloudflare Pages and Workers,
/// Vercel, Render, Fly and Cloud Run.
const PROVIDERS: [&str; 8] = [
    "NETLIFY",
    "AWS_LAMBDA_FUNCTION_NAME",
    "CF_PAGES",
    "CLOUDFLARE_WORKERS",
    "VERCEL",
    "RENDER",
    "FLY_APP_NAME",
    "K_SERVICE",
];

/// The mode of the file; without one, production where a provider runs this program.
pub(super) fn mode(written: Option<Mode>) -> ServerMode {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    decide(written, PROVIDERS.into_iter().find(is_set))
}

fn decide(written: Option<Mode>, provider: Option<&'static str>) -> ServerMode {
    match (written, provider) {
        (Some(mode), _) => ServerMode { mode, decided_by: None },
        (None, Some(variable)) => ServerMode { mode: Mode::Prod, decided_by: Some(variable) },
        (None, None) => ServerMode { mode: Mode::Dev, decided_by: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_mode_takes_precedence_over_the_variable_of_a_provider() {
        let mode = |written, provider| decide(written, provider).mode;
        assert_eq!(mode(None, None), Mode::Dev);
        assert_eq!(mode(None, Some("VERCEL")), Mode::Prod);
        assert_eq!(mode(Some(Mode::Dev), Some("VERCEL")), Mode::Dev);
        assert_eq!(mode(Some(Mode::Prod), None), Mode::Prod);
        assert_eq!(decide(None, Some("VERCEL")).decided_by, Some("VERCEL"));
        assert_eq!(decide(Some(Mode::Prod), Some("VERCEL")).decided_by, None);
    }
}
