//! A follower by hand, on one socket: it may stop reading, and cut its connection at any byte.

use nylorun_client::Event;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::server::Server;

/// Where to follow, and as whom.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    host: String,
    key: String,
    session: String,
    /// Bytes that the kernel keeps for this reader; its own choice when `None`.
    receive_buffer: Option<u32>,
}

impl Target {
    pub(crate) fn new(server: &Server, session: &str) -> Self {
        let host = server.url.strip_prefix("http://").expect("a plain URL").to_owned();
        Self { host, key: server.key_text("applicationKey"), session: session.to_owned(), receive_buffer: None }
    }

    /// Of a reader for which the kernel keeps only so many bytes.
    pub(crate) fn with_receive_buffer(self, bytes: u32) -> Self {
        Self { receive_buffer: Some(bytes), ..self }
    }

    /// Connects and asks for what follows `after`.
    pub(crate) async fn follow(&self, after: Option<&str>) -> std::io::Result<Follower> {
        let socket = TcpSocket::new_v4()?;
        if let Some(bytes) = self.receive_buffer {
            socket.set_recv_buffer_size(bytes)?;
        }
        let address = self.host.parse().expect("an address");
        let mut stream = socket.connect(address).await?;
        let resume = after.map(|cursor| format!("Last-Event-ID: {cursor}\r\n")).unwrap_or_default();
        let request = format!(
            "GET /v1/sessions/{}/events HTTP/1.1\r\nHost: {}\r\nNylorun-Protocol: 10\r\n\
             Authorization: Bearer {}\r\n{resume}\r\n",
            self.session, self.host, self.key
        );
        stream.write_all(request.as_bytes()).await?;
        Ok(Follower { stream, coded: Vec::new(), text: Vec::new(), body_begun: false })
    }
}

/// A whole frame that has an id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) id: String,
    pub(crate) data: String,
}

impl Frame {
    /// The frame in which an event of the history was to come.
    pub(crate) fn of(event: &Event) -> Self {
        Self { id: event.cursor.clone(), data: event.text.clone() }
    }
}

/// A connection that follows.
pub(crate) struct Follower {
    stream: TcpStream,
    /// What came and was not decoded yet.
    coded: Vec<u8>,
    /// What was decoded and makes no whole frame yet.
    text: Vec<u8>,
    body_begun: bool,
}

impl Follower {
    /// The next frame; `None` when the connection ended before it was whole.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.take_frame() {
                return Some(frame);
            }
            if self.read(64 << 10).await == 0 {
                return None;
            }
        }
    }

    /// Reads this many bytes of the connection, fewer when it ends or the frame `last` came, and gives the frames that
    /// came whole.
    pub(crate) async fn read_bytes(&mut self, mut bytes: usize, last: Option<&str>) -> Vec<Frame> {
        let mut frames: Vec<Frame> = Vec::new();
        while bytes > 0 && (last.is_none() || frames.last().map(|frame| frame.id.as_str()) != last) {
            let came = self.read(bytes).await;
            if came == 0 {
                break;
            }
            bytes -= came;
            frames.extend(std::iter::from_fn(|| self.take_frame()));
        }
        frames
    }

    /// An end and a reset are the same: the connection is over.
    async fn read(&mut self, limit: usize) -> usize {
        let mut buffer = vec![0; limit.min(64 << 10)];
        let came = self.stream.read(&mut buffer).await.unwrap_or(0);
        self.coded.extend_from_slice(&buffer[..came]);
        self.decode();
        came
    }

    /// Moves the content of whole chunks, and of the head nothing, to the text.
    fn decode(&mut self) {
        if !self.body_begun {
            let Some(end) = find(&self.coded, b"\r\n\r\n") else { return };
            let head = String::from_utf8_lossy(&self.coded[..end]).to_ascii_lowercase();
            assert!(head.starts_with("http/1.1 200 ") && head.contains("transfer-encoding: chunked"), "{head}");
            self.coded.drain(..end + 4);
            self.body_begun = true;
        }
        let mut at = 0;
        while let Some(line) = find(&self.coded[at..], b"\r\n") {
            let size = std::str::from_utf8(&self.coded[at..at + line]).expect("a size in ASCII");
            let size = usize::from_str_radix(size, 16).expect("a size in hexadecimal");
            let begin = at + line + 2;
            if self.coded.len() < begin + size + 2 {
                break;
            }
            self.text.extend_from_slice(&self.coded[begin..begin + size]);
            at = begin + size + 2;
        }
        self.coded.drain(..at);
    }

    /// The next whole frame that is no comment.
    fn take_frame(&mut self) -> Option<Frame> {
        loop {
            let end = find(&self.text, b"\n\n")?;
            let frame: Vec<u8> = self.text.drain(..end + 2).collect();
            let frame = String::from_utf8(frame).expect("frames are text");
            let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
            if let (Some(id), Some(data)) = (field("id: "), field("data: ")) {
                return Some(Frame { id, data });
            }
        }
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}
