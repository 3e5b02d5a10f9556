//! One HTTP/1.1 exchange after the other on a connection, without an async runtime: what a call costs is measured from
//! outside, so the measuring side should cost little.

use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, ensure};

/// A keep-alive connection.
pub struct Exchange {
    writer: TcpStream,
    reader: BufReader<TcpStream>,
    address: SocketAddr,
}

impl Exchange {
    /// Connects.
    pub fn open(address: SocketAddr) -> Result<Self> {
        let writer = TcpStream::connect(address).context("cannot connect")?;
        writer.set_nodelay(true)?;
        let reader = BufReader::new(writer.try_clone()?);
        Ok(Self { writer, reader, address })
    }

    /// Posts a JSON body and returns that of the response.
    pub fn post(&mut self, path: &str, body: &str) -> Result<Vec<u8>> {
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        self.writer.write_all(request.as_bytes())?;
        read_message(&mut self.reader)
    }
}

/// Reads the head and the body of a request or of a successful response.
pub fn read_message(reader: &mut (impl BufRead + Read)) -> Result<Vec<u8>> {
    let (mut line, mut length) = (String::new(), None);
    ensure!(reader.read_line(&mut line)? > 0, "the connection was closed");
    ensure!(!line.starts_with("HTTP/") || line.contains(" 200 "), "the response is {line}");
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = Some(value.trim().parse()?);
        }
    }
    let mut body = vec![0; length.context("the message has no content-length")?];
    reader.read_exact(&mut body)?;
    Ok(body)
}
