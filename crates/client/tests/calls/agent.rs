//! A server on a loopback socket that answers one request a connection, each with the bytes it was given.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread::JoinHandle,
};

/// The pieces of an answer; each is written and flushed by itself.
pub(crate) type Answer = Vec<Vec<u8>>;

/// An answer with a body and a length.
pub(crate) fn answer(status: &str, media_type: &str, body: &str) -> Answer {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {media_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    vec![head.into_bytes(), body.as_bytes().to_vec()]
}

/// A JSON answer.
pub(crate) fn json(body: &str) -> Answer {
    answer("200 OK", "application/json", body)
}

/// A stream that comes in these pieces.
pub(crate) fn events(pieces: &[&str]) -> Answer {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";
    let mut answer = vec![head.as_bytes().to_vec()];
    answer.extend(pieces.iter().map(|piece| format!("{:x}\r\n{piece}\r\n", piece.len()).into_bytes()));
    answer.push(b"0\r\n\r\n".to_vec());
    answer
}

/// A stream that breaks off after these pieces.
pub(crate) fn broken(pieces: &[&str]) -> Answer {
    let mut answer = events(pieces);
    answer.pop();
    answer
}

/// The server, and what it was asked.
pub(crate) struct Agent {
    url: String,
    served: JoinHandle<Vec<Request>>,
}

/// A request as it came.
pub(crate) struct Request {
    /// Method, path and version.
    pub(crate) line: String,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|header| header.0 == name).map(|header| header.1.as_str())
    }
}

impl Agent {
    /// Starts a server that gives these answers in this order. They may speak of the server's own URL.
    pub(crate) fn start(answers: impl FnOnce(&str) -> Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answers = answers(&url);
        let served =
            std::thread::spawn(move || answers.iter().map(|answer| serve(&listener, answer)).collect());
        Self { url, served }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// What it was asked, once every answer has been given.
    pub(crate) fn requests(self) -> Vec<Request> {
        self.served.join().unwrap()
    }
}

fn serve(listener: &TcpListener, answer: &Answer) -> Request {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_nodelay(true).unwrap();
    let request = read(&stream);
    for piece in answer {
        // A client that has read enough hangs up; that is its right.
        let _ = stream.write_all(piece).and_then(|()| stream.flush());
    }
    request
}

fn read(stream: &TcpStream) -> Request {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let headers: Vec<(String, String)> = lines[1..]
        .iter()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers
        .iter()
        .find(|header| header.0 == "content-length")
        .map_or(0, |header| header.1.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    Request { line: lines.swap_remove(0), headers, body: String::from_utf8(body).unwrap() }
}
