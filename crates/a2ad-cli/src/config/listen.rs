//! `server.listen`, `server.admin_listen` and `server.tls`: the addresses of the server.
//!
//! ```toml
//! listen = ["127.0.0.1:4242", { address = "0.0.0.0:4443", tls = { cert = "cert.pem", key = "key.pem" } }]
//! ```

use std::{net::SocketAddr, path::Path, sync::Arc};

use a2ad::internal::{ListenAddress, is_loopback};
use engine::Clock;
use inbound::{
    RouteSet,
    tls::{self, ServerTls, TlsFile, TlsFiles},
};

use super::{
    ServerConfig,
    read::{Parsed, Section},
    tree::Item,
    values::{self, text},
};

/// The address of a server without a configuration.
const DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 4242);

/// The addresses of `[server]`; at least one for callers. Files are relative to this directory. For a reload, the addresses in
/// use are kept, and the keys are only checked: files of TLS are read again when they change, and not with the configuration.
pub(super) fn addresses(
    server: &Section<'_>,
    directory: &Path,
    in_use: Option<&[ListenAddress]>,
) -> Vec<ListenAddress> {
    let reader = Reader { directory, shared: None, reads_files: in_use.is_none() };
    let shared = reader.tls(&server.open("tls"));
    let reader = Reader { shared, ..reader };
    let callers = server.each_or_table("listen", values::address, |section| reader.table(section));
    if callers.as_ref().is_some_and(Vec::is_empty) {
        server.report("listen", "expected at least one address, such as \"127.0.0.1:4242\"");
    }
    let callers = callers.filter(|found| !found.is_empty());
    let callers = callers.unwrap_or_else(|| vec![Element::Value(DEFAULT)]);
    let admin = server.each_or_table("admin_listen", admin_address, |section| reader.table(section));
    let admin = admin.into_iter().flatten().filter_map(|element| match element {
        Element::Value(None) => None,
        Element::Value(Some(address)) => Some(Element::Value(address)),
        Element::Table(found) => Some(Element::Table(found)),
    });
    let admin: Vec<_> = admin.map(|element| reader.address(element, RouteSet::Operators)).collect();
    let routes = if admin.is_empty() { RouteSet::All } else { RouteSet::Callers };
    let mut all: Vec<_> = callers.into_iter().map(|element| reader.address(element, routes)).collect();
    check_admin(server, &admin);
    all.extend(admin);
    check_repeated(server, &all);
    in_use.map_or(all, <[ListenAddress]>::to_vec)
}

impl ServerConfig {
    /// What TLS the addresses have.
    pub(crate) fn all_tls(&self) -> Vec<Arc<ServerTls>> {
        tls::distinct(self.listen.iter().filter_map(|one| one.tls.as_ref()))
    }
}

/// An element of a list of addresses: a plain one, or what its table has.
pub(super) enum Element<V, T> {
    Value(V),
    Table(T),
}

/// An address with its own TLS, or with that of the server.
struct AddressWithTls {
    address: SocketAddr,
    tls: Option<Arc<ServerTls>>,
}

struct Reader<'a> {
    directory: &'a Path,
    /// `server.tls`
    shared: Option<Arc<ServerTls>>,
    reads_files: bool,
}

impl Reader<'_> {
    fn address(&self, element: Element<SocketAddr, AddressWithTls>, routes: RouteSet) -> ListenAddress {
        match element {
            Element::Value(address) => ListenAddress { address, tls: self.shared.clone(), routes },
            Element::Table(AddressWithTls { address, tls }) => ListenAddress { address, tls, routes },
        }
    }

    /// `{ address = "0.0.0.0:4443", tls = { cert = "cert.pem", key = "key.pem" } }`; an empty `tls` is plain HTTP.
    fn table(&self, section: &Section<'_>) -> Option<AddressWithTls> {
        let expected = "expected an address with a port, such as \"0.0.0.0:4443\"";
        let address = section.required("address", expected, values::address);
        let tls = if section.has("tls") { self.tls(&section.open("tls")) } else { self.shared.clone() };
        Some(AddressWithTls { address: address?, tls })
    }

    /// `{ cert = "cert.pem", key = "key.pem", client_ca = "" }`; `None` if it is empty or a problem was reported.
    fn tls(&self, section: &Section<'_>) -> Option<Arc<ServerTls>> {
        let path = |key: &str| {
            let text = section.value(key, text);
            (!text.is_empty()).then(|| self.directory.join(text))
        };
        let (cert, key, client_ca) = (path("cert"), path("key"), path("client_ca"));
        let (Some(cert), Some(key)) = (&cert, &key) else {
            if cert.is_some() {
                section.report("key", "expected the file with the private key of the certificate, in PEM");
            } else if key.is_some() || client_ca.is_some() {
                section.report(
                    "cert",
                    "expected the file with the certificate of the server and its chain, in PEM",
                );
            }
            return None;
        };
        if !self.reads_files {
            return None;
        }
        let files = TlsFiles { cert: cert.clone(), key: key.clone(), client_ca };
        let loaded = ServerTls::load(files, Clock::system().now());
        loaded
            .map_err(|error| {
                let key = match error.file {
                    TlsFile::Cert => "cert",
                    TlsFile::Key => "key",
                    TlsFile::ClientCa => "client_ca",
                };
                section.report(key, error.to_string());
            })
            .ok()
    }
}

/// An empty string is no address.
fn admin_address(item: &Item) -> Parsed<Option<SocketAddr>> {
    if item.text()?.is_empty() { Ok(None) } else { values::address(item).map(Some) }
}

/// One address at most, and none that others can reach without TLS.
fn check_admin(server: &Section<'_>, admin: &[ListenAddress]) {
    if admin.len() > 1 {
        server.report("admin_listen", "expected one address, not a list of several");
    }
    for one in admin.iter().filter(|one| !is_loopback(one.address) && one.tls.is_none()) {
        let (address, port) = (one.address, one.address.port());
        let text = format!(
            "listening on {address} would send the admin token over the network without TLS; set server.tls, or use a loopback \
             address such as 127.0.0.1:{port}"
        );
        server.report("admin_listen", text);
    }
}

fn check_repeated(server: &Section<'_>, all: &[ListenAddress]) {
    for (at, one) in all.iter().enumerate() {
        let is_same = |other: &ListenAddress| other.address == one.address && one.address.port() != 0;
        if all[..at].iter().any(is_same) {
            let key = if one.routes == RouteSet::Operators { "admin_listen" } else { "listen" };
            server.report(key, format!("{} is listed twice", one.address));
        }
    }
}
