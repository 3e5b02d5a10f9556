//! A scripted server on a loopback socket: one request per connection, each answered with prepared bytes.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread::JoinHandle,
};

/// The chunks of a response; each is written and flushed by itself.
pub(crate) type Response = Vec<Vec<u8>>;

/// A response with a body and a content length.
pub(crate) fn response(status: &str, media_type: &str, body: &str) -> Response {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {media_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    vec![head.into_bytes(), body.as_bytes().to_vec()]
}

/// A JSON response.
pub(crate) fn json(body: &str) -> Response {
    response("200 OK", "application/json", body)
}

/// A complete event stream in these chunks.
pub(crate) fn events(chunks: &[&str]) -> Response {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";
    let mut response = vec![head.as_bytes().to_vec()];
    response.extend(chunks.iter().map(|chunk| format!("{:x}\r\n{chunk}\r\n", chunk.len()).into_bytes()));
    response.push(b"0\r\n\r\n".to_vec());
    response
}

/// An event stream whose connection breaks after these chunks.
pub(crate) fn broken(chunks: &[&str]) -> Response {
    let mut response = events(chunks);
    response.pop();
    response
}

/// The server and the requests it received.
pub(crate) struct ScriptedAgent {
    url: String,
    served: JoinHandle<Vec<Request>>,
}

/// A request as received.
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

impl ScriptedAgent {
    /// Starts a server that sends these responses in order. They may contain the server's own URL.
    pub(crate) fn start(responses: impl FnOnce(&str) -> Vec<Response>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let responses = responses(&url);
        let served =
            std::thread::spawn(move || responses.iter().map(|response| serve(&listener, response)).collect());
        Self { url, served }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// The requests, after every response was sent.
    pub(crate) fn requests(self) -> Vec<Request> {
        self.served.join().unwrap()
    }
}

fn serve(listener: &TcpListener, response: &Response) -> Request {
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_nodelay(true).unwrap();
    let request = read(&stream);
    for chunk in response {
        // A client may close the connection once it has read enough.
        let _ = stream.write_all(chunk).and_then(|()| stream.flush());
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
