//! The modes in which a kit is run: the example configuration with a few keys changed.
//!
//! Some tests need a server with a feature, others one without it. Each mode is `examples/tck.toml` with these
//! environment variables, so that the same server can be started by hand.

use super::kit::Kit;

pub(super) struct Mode {
    pub(super) name: &'static str,
    /// Purpose, for the report.
    pub(super) about: &'static str,
    /// Environment variables that override configuration keys.
    pub(super) variables: &'static [(&'static str, &'static str)],
    /// For modes that serve some tests only: a text in the names of the parts, and the expression for pytest's
    /// `-k`, which may be empty.
    pub(super) only: Option<(&'static str, &'static str)>,
}

const V1: &[Mode] = &[
    Mode { name: "default", about: "the example configuration", variables: &[], only: None },
    Mode {
        name: "1.0.0",
        about: "the card and the statuses of A2A 1.0.0, and nothing of 0.3 beside",
        variables: &[("A2AD_CARD__STYLE", "v1"), ("A2AD_PROTOCOL__ERRORS", "1.0.0")],
        only: None,
    },
    Mode {
        name: "off",
        about: "the same without streams, webhooks and an extended card",
        variables: &[
            ("A2AD_CARD__STYLE", "v1"),
            ("A2AD_PROTOCOL__ERRORS", "1.0.0"),
            ("A2AD_AGENTS__TCK__STREAMING", "false"),
            ("A2AD_AGENTS__TCK__PUSH", "false"),
            ("A2AD_AGENTS__TCK__EXTENDED_CARD", "off"),
        ],
        only: None,
    },
    Mode {
        name: "extension",
        about: "a required extension; one test of the kit omits it and expects the error",
        variables: &[(
            "A2AD_AGENTS__TCK__EXTENSIONS",
            r#"[{ uri = "urn:a2a:tck:required-extension", required = true }]"#,
        )],
        only: Some(("", "TestCapabilityExtensionRequired")),
    },
];

/// The server that the kits before 1.0 expect.
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
        about: "an agent that requires a credential",
        variables: &[("A2AD_AGENTS__TCK__AUTH", "bearer, api-key"), ("A2AD_CARD__GRPC_SCHEME", "true")],
        only: Some(("capabilities", "auth or Auth or Security")),
    },
    Mode {
        name: "ajar",
        about: "an agent that lists credentials and also accepts anonymous callers",
        variables: &[
            ("A2AD_AGENTS__TCK__AUTH", "anonymous, bearer, api-key"),
            ("A2AD_CARD__GRPC_SCHEME", "true"),
        ],
        only: Some(("capabilities", "auth or Auth or Security")),
    },
];

const MAIN: &[Mode] = &[
    // Only the mandatory tests of this kit are required.
    Mode { only: Some(("mandatory", "")), ..OLD },
    Mode {
        name: "open",
        about: "the same with an extended card for every caller",
        variables: &[("A2AD_LIMITS__WAIT", "20ms"), ("A2AD_CARD__GRPC_SCHEME", "true")],
        only: Some(("mandatory", "ExtendedAgentCard or card_access")),
    },
    Mode {
        name: "push",
        about: "as 0.3, for the tests of webhooks",
        only: Some(("capabilities", "push")),
        ..OLD
    },
];

/// The modes of a kit.
pub(super) fn of(kit: Kit) -> &'static [Mode] {
    match kit {
        Kit::V1 => V1,
        Kit::V03 => V03,
        Kit::Main => MAIN,
    }
}
