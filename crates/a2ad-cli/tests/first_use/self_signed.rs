//! A server with a certificate that it has signed itself.

use std::{fs, path::Path};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

use testkit::process::Server;

use super::{a2ad, run};

fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", BASE64_STANDARD.encode(der))
}

/// Writes `NAME.pem` and `NAME.key`: an authority for itself, as `openssl req -x509` makes it.
fn self_signed(folder: &Path, name: &str, change: impl FnOnce(&mut CertificateParams)) {
    let mut params = CertificateParams::new(["localhost".into(), "127.0.0.1".into()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    fs::write(folder.join(format!("{name}.pem")), pem("CERTIFICATE", certificate.der())).unwrap();
    fs::write(folder.join(format!("{name}.key")), pem("PRIVATE KEY", &key.serialize_der())).unwrap();
}

#[tokio::test]
async fn a_self_signed_certificate_is_trusted_if_it_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    self_signed(folder.path(), "server", |_| {});
    self_signed(folder.path(), "other", |_| {});
    self_signed(folder.path(), "elsewhere", |params| {
        params.subject_alt_names =
            CertificateParams::new(["elsewhere.example".into()]).unwrap().subject_alt_names;
    });
    for (number, (certificate, ca, code, message)) in [
        ("server", Some("server"), 0, ""),
        ("server", Some("other"), 1, "its certificate is not trusted"),
        ("server", None, 1, "--ca"),
        ("elsewhere", Some("elsewhere"), 1, "it is for another host name"),
    ]
    .into_iter()
    .enumerate()
    {
        let config = format!(
            "[server]\ntls = {{ cert = \"{certificate}.pem\", key = \"{certificate}.key\" }}\n\
             [skills.say]\nbuiltin = \"echo\"\n"
        );
        fs::write(folder.path().join("a2ad.toml"), config).unwrap();
        let store = format!("{number}.db");
        let command = a2ad(folder.path(), &["serve", "--listen", "127.0.0.1:0", "--store", &store]);
        let log = folder.path().join(format!("{number}.log"));
        let server = Server::spawn_command(command, log).unwrap();
        server.wait_for_log("a2ad serves").await.unwrap();
        let log = server.log();
        let url = log.split("\"url\":\"").nth(1).unwrap().split('"').next().unwrap();
        let url = format!("{url}/a2a/main");
        let ca = ca.map(|ca| format!("{ca}.pem"));
        let mut arguments = vec!["send", url.as_str(), "hello"];
        arguments.extend(ca.iter().flat_map(|ca| ["--ca", ca.as_str()]));
        let done = run(folder.path(), &arguments).await;
        assert_eq!(done.code, code, "{certificate}, {ca:?}: {done:?}");
        assert!(done.err.contains(message), "{certificate}, {ca:?}: {done:?}");
        assert!(!done.err.contains("CaUsed") && !done.err.contains("Other("), "{done:?}");
        if code == 0 {
            assert_eq!(done.out, "hello\n");
        }
    }
}
