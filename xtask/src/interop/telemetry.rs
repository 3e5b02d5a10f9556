//! Metrics in Prometheus, and traces in a collector on the official messages of OpenTelemetry.

use std::path::Path;

use anyhow::Result;

use super::{TEST_LIMIT, debian::Package, file, finish, python};
use crate::program;

const PROGRAMS: [Package; 2] = [
    Package { name: "prometheus", program: "prometheus", variable: "PROMETHEUS" },
    Package { name: "prometheus", program: "promtool", variable: "PROMTOOL" },
];

/// Runs the tests of metrics and traces, with a program that can send traces.
pub(super) async fn test(dir: &Path, options: &[String]) -> Result<()> {
    let program = program::build_with("otel")?;
    let folder = file("telemetry");
    let mut command = python::tests(&folder, &dir.join("telemetry")).await?;
    for package in PROGRAMS {
        command.env(package.variable, package.program(&dir.join("prometheus")).await?);
    }
    command.args(options).env("A2AD_PROGRAM", program);
    finish(command, TEST_LIMIT, "the tests of metrics and traces").await
}
