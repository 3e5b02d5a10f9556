//! The modes in which a kit is run: the example's configuration with a few keys changed.
//!
//! Some tests want a server that offers something, others one that does not; no server is both at once. Each mode is
//! `examples/tck.toml` and these variables, so that anybody can start the same server by hand.

use super::kit::Kit;

/// One way to start the server.
pub(super) struct Mode {
    pub(super) name: &'static str,
    /// What it is for.
    pub(super) about: &'static str,
    /// Overrides of keys.
    pub(super) variables: &'static [(&'static str, &'static str)],
    /// Where it is there for a few tests only: of parts with this word in their names, those that pytest's `-k` finds by
    /// these words.
    pub(super) only: Option<(&'static str, &'static str)>,
}

const V1: &[Mode] = &[
    Mode { name: "default", about: "the example as it is", variables: &[], only: None },
    Mode {
        name: "1.0.0",
        about: "the card and the statuses of A2A 1.0.0, and nothing of 0.3 beside",
        variables: &[("A2AD_CARD__STYLE", "v1"), ("A2AD_PROTOCOL__ERRORS", "1.0.0")],
        only: None,
    },
    Mode {
        name: "off",
        about: "the same without streams and without an extended card",
        variables: &[
            ("A2AD_CARD__STYLE", "v1"),
            ("A2AD_PROTOCOL__ERRORS", "1.0.0"),
            ("A2AD_AGENTS__TCK__STREAMING", "false"),
            ("A2AD_AGENTS__TCK__EXTENDED_CARD", "off"),
        ],
        only: None,
    },
    Mode {
        name: "extension",
        about: "an extension that clients have to name; the kit has a test that does not, and means it",
        variables: &[(
            "A2AD_AGENTS__TCK__EXTENSIONS",
            r#"[{ uri = "urn:a2a:tck:required-extension", required = true }]"#,
        )],
        only: Some(("", "TestCapabilityExtensionRequired")),
    },
];

/// What the kits before 1.0 expect of a server.
const OLD: Mode = Mode {
    name: "0.3",
    about: "an extended card for known callers only, sends that wait a moment at most, gRPC's address as a URL",
    variables: &[
        ("A2AD_AGENTS__TCK__EXTENDED_CARD", "protected"),
        ("A2AD_LIMITS__WAIT", "20ms"),
        ("A2AD_CARD__GRPC_SCHEME", "true"),
    ],
    only: None,
};

const V03: &[Mode] = &[
    OLD,
    Mode {
        name: "closed",
        about: "an agent that wants a credential",
        variables: &[("A2AD_AGENTS__TCK__AUTH", "bearer, api-key, mtls"), ("A2AD_CARD__GRPC_SCHEME", "true")],
        only: Some(("capabilities", "auth or Auth or Security")),
    },
    Mode {
        name: "ajar",
        about: "one that names credentials and does without",
        variables: &[
            ("A2AD_AGENTS__TCK__AUTH", "anonymous, bearer, api-key, mtls"),
            ("A2AD_CARD__GRPC_SCHEME", "true"),
        ],
        only: Some(("capabilities", "auth or Auth or Security")),
    },
];

const MAIN: &[Mode] = &[
    OLD,
    Mode {
        name: "open",
        about: "the same with an extended card for everybody",
        variables: &[("A2AD_LIMITS__WAIT", "20ms"), ("A2AD_CARD__GRPC_SCHEME", "true")],
        only: Some(("mandatory", "ExtendedAgentCard or card_access")),
    },
];

/// The modes a kit needs.
pub(super) fn of(kit: Kit) -> &'static [Mode] {
    match kit {
        Kit::V1 => V1,
        Kit::V03 => V03,
        Kit::Main => MAIN,
    }
}
