//! `cargo xtask gen`: generates Rust code from the protobuf files, their descriptors for gRPC reflection, and
//! docs/configuration.md and docs/metrics.md from the catalogues of configuration keys and of metrics.
//!
//! The output is committed, so that building needs neither a protobuf compiler nor a build script. `gen --check`
//! fails when the code is stale; the test below runs that check with every test run. The document is written and
//! checked by a test of the crate that has the catalogue, because this one does not depend on them.

use std::{collections::BTreeSet, fs, path::PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use prost_build::{Config, Module};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet};

use crate::{program, run};

/// A protobuf file, its package, and the name of the Rust file generated from it.
struct Source {
    file: &'static str,
    package: &'static str,
    rust: &'static str,
}

const V1: Source = Source { file: "a2a_v1.proto", package: "lf.a2a.v1", rust: "v1.rs" };
const V03: Source = Source { file: "a2a_v03.proto", package: "a2a.v1", rust: "v03.rs" };
const DESCRIPTORS: &str = "descriptors.bin";
const HEAD: &str =
    "// Made by `cargo xtask gen` from the files in `crates/protocol/proto`; not to be edited.\n";

/// Values of arbitrary JSON shape stay encoded until code that knows their position in the request decodes them.
const PACKED: &str = "crate::grpc::packed::Packed";

/// Messages of 0.3 and their names in 1.0, where field numbers and types are the same: both use one Rust type.
const SHARED: [(&str, &str); 17] = [
    ("AgentProvider", "AgentProvider"),
    ("AgentExtension", "AgentExtension"),
    ("AgentSkill", "AgentSkill"),
    ("AgentCardSignature", "AgentCardSignature"),
    ("Security", "SecurityRequirement"),
    ("StringList", "StringList"),
    ("SecurityScheme", "SecurityScheme"),
    ("APIKeySecurityScheme", "APIKeySecurityScheme"),
    ("HTTPAuthSecurityScheme", "HTTPAuthSecurityScheme"),
    ("OAuth2SecurityScheme", "OAuth2SecurityScheme"),
    ("OpenIdConnectSecurityScheme", "OpenIdConnectSecurityScheme"),
    ("MutualTlsSecurityScheme", "MutualTlsSecurityScheme"),
    ("OAuthFlows", "OAuthFlows"),
    ("AuthorizationCodeOAuthFlow", "AuthorizationCodeOAuthFlow"),
    ("ClientCredentialsOAuthFlow", "ClientCredentialsOAuthFlow"),
    ("ImplicitOAuthFlow", "ImplicitOAuthFlow"),
    ("PasswordOAuthFlow", "PasswordOAuthFlow"),
];

/// The packages and their tests that write docs/configuration.md and docs/metrics.md.
const DOCUMENT_TESTS: [(&str, &str); 2] = [
    ("a2ad-cli", "config::reference::the_documentation_of_the_configuration_is_fresh"),
    ("a2ad-inbound", "metrics::catalogue::tests::the_documentation_of_the_metrics_is_fresh"),
];

/// Writes the stale files; with `--check`, only reports stale code.
pub(crate) fn run(args: &[String]) -> Result<()> {
    match args {
        [] => {
            for (path, content) in stale()? {
                fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
                println!("{}", path.display());
            }
            for (package, test) in DOCUMENT_TESTS {
                let command = ["test", "--quiet", "--package", package, "--lib", "--", "--exact", test];
                run::run_command(run::cargo_command().env("UPDATE_DOCS", "1").args(command))?;
            }
            Ok(())
        }
        [check] if check == "--check" => {
            let stale: Vec<String> = stale()?.iter().map(|(path, _)| path.display().to_string()).collect();
            ensure!(stale.is_empty(), "stale: {}; run `cargo xtask gen`", stale.join(", "));
            Ok(())
        }
        _ => bail!("usage: cargo xtask gen [--check]"),
    }
}

/// The stale files, each with the content it should have.
fn stale() -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let dir = program::workspace().join("crates/protocol/src/grpc/generated");
    let files = generate()?.into_iter().map(|(name, content)| (dir.join(name), content));
    Ok(files.filter(|(path, content)| fs::read(path).ok().as_ref() != Some(content)).collect())
}

fn generate() -> Result<Vec<(&'static str, Vec<u8>)>> {
    let mut compiler = protox::Compiler::new([program::workspace().join("crates/protocol/proto")])?;
    compiler.include_imports(true).open_files([V1.file, V03.file])?;
    let set = compiler.file_descriptor_set();
    check_shared(&set)?;
    let descriptors = compiler.encode_file_descriptor_set();
    let [v1, v03] = rust(&set)?;
    Ok(vec![(DESCRIPTORS, descriptors), (V1.rust, v1.into_bytes()), (V03.rust, v03.into_bytes())])
}

fn rust(set: &FileDescriptorSet) -> Result<[String; 2]> {
    let mut config = Config::new();
    // Maps are sorted by key, so that one card always encodes to the same bytes.
    config.btree_map(["."]);
    // Decode errors name the message that could not be decoded.
    config.enable_type_names();
    for value in [".google.protobuf.Struct", ".google.protobuf.Value"] {
        config.extern_path(value, PACKED);
    }
    for (old, new) in SHARED {
        let rust = new.replace("API", "Api").replace("HTTP", "Http");
        config.extern_path(format!(".{}.{old}", V03.package), format!("super::v1::{rust}"));
    }
    let files = set.file.iter();
    let files = files.map(|file| (Module::from_protobuf_package_name(file.package()), file.clone()));
    let mut code = config.generate(files.collect())?;
    let mut code = |source: &Source| -> Result<String> {
        let code = code.remove(&Module::from_protobuf_package_name(source.package));
        Ok(format!("{HEAD}{}", code.with_context(|| format!("no code was generated from {}", source.file))?))
    };
    Ok([code(&V1)?, code(&V03)?])
}

fn file<'a>(set: &'a FileDescriptorSet, source: &Source) -> Result<&'a FileDescriptorProto> {
    let file = set.file.iter().find(|file| file.name() == source.file);
    file.with_context(|| format!("{} was not compiled", source.file))
}

/// Fails if a shared message has a field in 0.3 that differs from the one in 1.0.
fn check_shared(set: &FileDescriptorSet) -> Result<()> {
    let find = |source, name: &str| -> Result<_> {
        let message = file(set, source)?.message_type.iter().find(|message| message.name() == name);
        message.with_context(|| format!("{} has no message {name}", source.file))
    };
    for (old, new) in SHARED {
        let (old_fields, new_fields) = (fields(find(&V03, old)?), fields(find(&V1, new)?));
        let others: Vec<_> = old_fields.difference(&new_fields).collect();
        ensure!(others.is_empty(), "{old} of 0.3 is not {new} of 1.0: {others:?}");
    }
    Ok(())
}

/// The parts of a message's fields that matter on the wire: numbers and types, not names.
fn fields(message: &DescriptorProto) -> BTreeSet<String> {
    let entries = message.nested_type.iter();
    let entries = entries.flat_map(|entry| {
        entry.field.iter().map(|field| format!("{} {}", entry.name(), shape(field))).collect::<Vec<_>>()
    });
    message.field.iter().map(shape).chain(entries).collect()
}

fn shape(field: &FieldDescriptorProto) -> String {
    // The last path segment: without the package, and for map entries without the enclosing message.
    let name = field.type_name().rsplit('.').next().unwrap_or_default();
    let kind = SHARED.iter().find(|(old, _)| *old == name).map_or(name, |(_, new)| new);
    let alone = field.oneof_index.is_none();
    format!("{} {:?} {:?} {kind} {alone}", field.number(), field.label(), field.r#type())
}

#[cfg(test)]
mod tests {
    #[test]
    fn generated_code_is_fresh() {
        super::run(&["--check".to_owned()]).unwrap();
    }
}
