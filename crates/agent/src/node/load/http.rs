//! Requests of HTTP, each over a connection of its own, whether those before it have been answered or not.
//!
//! HTTP/1.0 (RFC 1945): the server ends the connection with the answer, so nobody has to understand how long that is.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{connect, socket, AddressFamily, SockFlag, SockProtocol, SockType, SockaddrStorage};

use crate::error::{Doing, Result};
use crate::node::load::tally::Tally;

/// The begin of an answer, up to the first digit of its status: `HTTP/1.1 2`.
const STATUS_AT: usize = 9;

/// Requests, and those that are not answered yet.
pub struct Http {
    to: SocketAddr,
    text: String,
    events: Epoll,
    open: HashMap<u64, Exchange>,
    number: u64,
}

struct Exchange {
    stream: TcpStream,
    is_asked: bool,
    /// How much has come, and the begin of it.
    length: usize,
    head: [u8; STATUS_AT + 1],
}

/// What has become of a request.
enum Fate {
    Open,
    Answered,
    Failed,
}

impl Http {
    /// Requests of a path.
    ///
    /// # Errors
    /// The kernel gives nothing to wait with.
    pub fn new(to: IpAddr, port: u16, host: &str, path: &str) -> Result<Self> {
        let events = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).doing(|| "watch for events".to_owned())?;
        let text = format!("GET {path} HTTP/1.0\r\nHost: {host}\r\nUser-Agent: dilaton\r\n\r\n");
        Ok(Self { to: SocketAddr::new(to, port), text, events, open: HashMap::new(), number: 0 })
    }

    /// Begins the next one.
    ///
    /// # Errors
    /// The kernel begins no connection.
    pub fn send(&mut self) -> nix::Result<()> {
        let family = if self.to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(family, SockType::Stream, flags, SockProtocol::Tcp)?;
        match connect(socket.as_raw_fd(), &SockaddrStorage::from(self.to)) {
            Err(Errno::EINPROGRESS) => {}
            begun => begun?,
        }
        let interest = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
        self.events.add(&socket, EpollEvent::new(interest, self.number))?;
        let exchange = Exchange { stream: socket.into(), is_asked: false, length: 0, head: [0; STATUS_AT + 1] };
        self.open.insert(self.number, exchange);
        self.number += 1;
        Ok(())
    }

    /// Goes on with all that can go on.
    ///
    /// # Errors
    /// The kernel does not say what can.
    pub fn take_answers(&mut self, tally: &Tally) -> Result<()> {
        let mut ready = [EpollEvent::empty(); 64];
        loop {
            let count = match self.events.wait(&mut ready, EpollTimeout::ZERO) {
                Err(Errno::EINTR) => continue,
                result => result.doing(|| "wait for events".to_owned())?,
            };
            for event in &ready[..count] {
                let Some(exchange) = self.open.get_mut(&event.data()) else { continue };
                match exchange.go_on(&self.text) {
                    Fate::Open => continue,
                    Fate::Answered => tally.answered.add(),
                    Fate::Failed => tally.failed.add(),
                }
                self.open.remove(&event.data());
            }
            if count < ready.len() {
                return Ok(());
            }
        }
    }
}

impl AsFd for Http {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.0.as_fd()
    }
}

impl Exchange {
    fn go_on(&mut self, request: &str) -> Fate {
        if !self.is_asked {
            match self.stream.write(request.as_bytes()) {
                // A new connection has room for all of it.
                Ok(count) if count == request.len() => self.is_asked = true,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Fate::Open,
                _ => return Fate::Failed,
            }
        }
        let mut bytes = [0; 16_384];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) if self.is_good() => return Fate::Answered,
                Ok(0) => return Fate::Failed,
                Ok(count) => {
                    let at = self.length.min(self.head.len());
                    let head = count.min(self.head.len() - at);
                    self.head[at..at + head].copy_from_slice(&bytes[..head]);
                    self.length += count;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Fate::Open,
                Err(_) => return Fate::Failed,
            }
        }
    }

    /// Whether what has come is an answer, and not one of an error of the server's.
    fn is_good(&self) -> bool {
        self.head.starts_with(b"HTTP/") && (b'2'..b'5').contains(&self.head[STATUS_AT])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::time::Duration;

    #[test]
    fn an_answer_counts_when_it_is_whole_and_one_of_a_server_in_trouble_fails() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let mut http = Http::new(address.ip(), address.port(), "web", "/x").unwrap();
        let tally = Tally::new().unwrap();
        for answer in ["HTTP/1.0 200 OK\r\n\r\nhello", "HTTP/1.0 503 Busy\r\n\r\n", "", "HTTP/1.1 404 None\r\n\r\n"] {
            http.send().unwrap();
            let (mut stream, _) = server.accept().unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            http.take_answers(&tally).unwrap();
            let mut asked = [0; 64];
            let length = stream.read(&mut asked).unwrap();
            assert!(asked[..length].starts_with(b"GET /x HTTP/1.0\r\nHost: web\r\n"));
            stream.write_all(answer.as_bytes()).unwrap();
            drop(stream);
            while !http.open.is_empty() {
                http.take_answers(&tally).unwrap();
            }
        }
        let counts = tally.counts();
        assert_eq!((counts.answered, counts.failed), (2, 2));
    }
}
