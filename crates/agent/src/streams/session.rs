//! One session: its request, and the agent's ends of its program's standard streams.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{Error as IoError, ErrorKind, Read, Result as IoResult, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::errno::Errno;
use nix::fcntl::{fcntl, FcntlArg, OFlag};
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use nix::sys::memfd::{memfd_create, MemFdCreateFlag};
use nix::unistd::pipe2;

use crate::error::{Doing, Error, Result};
use crate::node::Handle;

/// The number of standard input among a session's streams.
pub const STDIN: usize = 0;
/// The numbers of standard output and standard error.
pub const OUTPUTS: [usize; 2] = [1, 2];
const STREAMS: usize = 3;

/// Rows and columns of a terminal.
pub type Size = [u32; 2];

/// What the host asks for when it opens a session.
#[derive(Debug)]
pub struct Request {
    /// Where the program runs.
    pub node: String,
    /// The size of the terminal that it gets; `None`: it gets pipes.
    pub terminal: Option<Size>,
    /// What is executed, for the node's init to read (see `node/spawn.rs`).
    program: Vec<u8>,
}

impl Request {
    /// Reads the payload of a frame.
    ///
    /// # Errors
    /// It is no request.
    pub fn parse(payload: &[u8]) -> Result<Self> {
        let wrong = || Error::new("a session's request is malformed");
        let mut parts = payload.splitn(3, |&byte| byte == 0);
        let mut text = || std::str::from_utf8(parts.next()?).ok();
        let (node, size) = (text().ok_or_else(wrong)?, text().ok_or_else(wrong)?);
        let terminal = match size.split_once(' ') {
            Some((rows, columns)) => Some([rows.parse().map_err(|_| wrong())?, columns.parse().map_err(|_| wrong())?]),
            None if size.is_empty() => None,
            None => return Err(wrong()),
        };
        let program = parts.next().ok_or_else(wrong)?.to_vec();
        Ok(Self { node: node.to_owned(), terminal, program })
    }
}

/// A session between its opening and the end of its program.
pub struct Session {
    node: String,
    is_terminal: bool,
    /// Our ends of the streams that are open; of a terminal, its master side twice.
    ends: [Option<File>; STREAMS],
    /// Streams in which nothing moves any more, to be let go of when the epoll instance is told.
    over: [bool; STREAMS],
    /// What the epoll instance watches of each.
    watched: [EpollFlags; STREAMS],
    /// Input that the program has not taken yet.
    input: Vec<u8>,
    /// Whether the input ends with that.
    input_ends: bool,
    /// Bytes that the host still takes of each output.
    granted: [usize; STREAMS],
}

impl Session {
    /// Opens the streams. Returns with the session what goes to the node's init: the request and the program's ends.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn begin(request: &Request, node: &Handle) -> Result<(Self, [OwnedFd; 4])> {
        let doing = || format!("open a session on node {}", request.node);
        let name = CString::new("request").map_err(|_| Error::new("memfd"))?;
        let program = memfd_create(&name, MemFdCreateFlag::MFD_CLOEXEC).doing(doing)?;
        let mut file = File::from(program);
        file.write_all(&request.program).doing(doing)?;
        let (ends, [stdin, stdout, stderr]) = match request.terminal {
            Some(size) => open_terminal(node, size).doing(doing)?,
            None => open_pipes().doing(doing)?,
        };
        let session = Self {
            node: request.node.clone(),
            is_terminal: request.terminal.is_some(),
            ends,
            over: [false; STREAMS],
            watched: [EpollFlags::empty(); STREAMS],
            input: Vec::new(),
            input_ends: false,
            granted: [0; STREAMS],
        };
        Ok((session, [file.into(), stdin, stdout, stderr]))
    }

    /// The node that it runs in.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Keeps input until the program takes it.
    pub fn keep_input(&mut self, bytes: &[u8]) {
        if self.ends[STDIN].is_some() && !self.over[STDIN] {
            self.input.extend_from_slice(bytes);
        }
    }

    /// The host takes `count` more bytes of an output.
    pub fn grant(&mut self, stream: usize, count: u32) {
        if let Some(granted) = self.granted.get_mut(stream) {
            *granted += count as usize;
        }
    }

    /// How many bytes of an output the host takes.
    pub fn granted(&self, stream: usize) -> usize {
        self.granted[stream]
    }

    /// The input ends after what there is, or nobody reads an output any more. A terminal hangs up.
    pub fn close(&mut self, stream: usize) {
        match stream {
            _ if self.is_terminal => self.over = [true; STREAMS],
            STDIN => self.input_ends = true,
            _ => {
                if let Some(end) = self.ends.get_mut(stream) {
                    *end = None;
                }
            }
        }
    }

    /// Tells the program, by its terminal, that this has a new size.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn resize(&self, size: Size) -> Result<()> {
        match &self.ends[STDIN] {
            Some(master) if self.is_terminal => set_size(master, size).doing(|| "resize a terminal".to_owned()),
            _ => Ok(()),
        }
    }

    /// Hands input to the program; returns how many bytes it took.
    ///
    /// # Errors
    /// It takes none any more.
    pub fn write_input(&mut self) -> IoResult<u32> {
        let Some(end) = self.ends[STDIN].as_mut().filter(|_| !self.over[STDIN]) else { return Ok(0) };
        let mut taken = 0;
        while !self.input.is_empty() {
            match end.write(&self.input) {
                Ok(count) => {
                    self.input.drain(..count);
                    taken += count as u32;
                }
                Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(taken),
                Err(cause) => {
                    self.forget_input();
                    return Err(cause);
                }
            }
        }
        if self.input_ends {
            self.over[STDIN] = true;
        } else if !self.is_terminal && taken == 0 && !is_read(end) {
            self.forget_input();
            return Err(IoError::from_raw_os_error(libc::EPIPE));
        }
        Ok(taken)
    }

    fn forget_input(&mut self) {
        self.over[STDIN] = true;
        self.input.clear();
    }

    /// Takes up to `count` bytes that the program wrote; `None` when there are none now, or none may be taken.
    ///
    /// # Errors
    /// None will come any more.
    pub fn read(&mut self, stream: usize, count: usize) -> IoResult<Option<Vec<u8>>> {
        let Some(end) = self.ends[stream].as_mut().filter(|_| count > 0 && !self.over[stream]) else {
            return Ok(None);
        };
        let mut bytes = vec![0; count];
        let result = loop {
            match end.read(&mut bytes) {
                Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(None),
                // Of a pipe 0 bytes, of a terminal an error: no program holds the other end.
                Ok(0) => break Err(ErrorKind::UnexpectedEof.into()),
                result => break result,
            }
        };
        match result {
            Ok(taken) => {
                bytes.truncate(taken);
                self.granted[stream] = self.granted[stream].saturating_sub(taken);
                Ok(Some(bytes))
            }
            Err(cause) => {
                self.over[stream] = true;
                Err(cause)
            }
        }
    }

    /// Has `epoll` watch for what can go on, under the tokens from `token`; outputs only while there is room for them.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn watch(&mut self, epoll: &Epoll, token: u64, has_room: bool) -> nix::Result<()> {
        for stream in 0..STREAMS {
            let Some(end) = &self.ends[stream] else { continue };
            if self.over[stream] {
                // A terminal's other stream is the same open file, which would stay registered.
                if !self.watched[stream].is_empty() {
                    epoll.delete(end)?;
                }
                self.ends[stream] = None;
                continue;
            }
            let wanted = match stream {
                STDIN if !self.input.is_empty() => EpollFlags::EPOLLOUT,
                // Of a pipe an error is told in any case: that nobody reads it.
                STDIN if !self.is_terminal => EpollFlags::EPOLLERR,
                STDIN => EpollFlags::empty(),
                _ if has_room && self.granted[stream] > 0 => EpollFlags::EPOLLIN,
                _ => EpollFlags::empty(),
            };
            // What is not watched must not be registered: the end of a stream would be told again and again.
            let mut event = EpollEvent::new(wanted, token | stream as u64);
            match (self.watched[stream].is_empty(), wanted.is_empty()) {
                (true, false) => epoll.add(end, event)?,
                (false, true) => epoll.delete(end)?,
                _ if wanted != self.watched[stream] => epoll.modify(end, &mut event)?,
                _ => {}
            }
            self.watched[stream] = wanted;
        }
        Ok(())
    }
}

/// Whether somebody can still read what is written into a pipe.
fn is_read(pipe: &File) -> bool {
    let mut poll = libc::pollfd { fd: pipe.as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: one pollfd, which is valid for the time of the call.
    unsafe { libc::poll(&mut poll, 1, 0) <= 0 || poll.revents & libc::POLLERR == 0 }
}

type Ends = ([Option<File>; STREAMS], [OwnedFd; STREAMS]);

fn open_pipes() -> nix::Result<Ends> {
    let (stdin, stdin_end) = pipe2(OFlag::O_CLOEXEC)?;
    let (stdout_end, stdout) = pipe2(OFlag::O_CLOEXEC)?;
    let (stderr_end, stderr) = pipe2(OFlag::O_CLOEXEC)?;
    for end in [&stdin_end, &stdout_end, &stderr_end] {
        fcntl(end.as_raw_fd(), FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    }
    Ok(([stdin_end, stdout_end, stderr_end].map(|end| Some(end.into())), [stdin, stdout, stderr]))
}

/// A pseudo-terminal of the node: both sides of it are reached without a path, as the agent is outside the node.
fn open_terminal(node: &Handle, size: Size) -> IoResult<Ends> {
    let path = format!("/proc/{}/root/dev/pts/ptmx", node.init);
    let flags = libc::O_NOCTTY | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let master = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
    let unlocked: libc::c_int = 0;
    // SAFETY: the argument is a readable integer.
    Errno::result(unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCSPTLCK, &unlocked) })?;
    set_size(&master, size)?;
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: the argument is a number.
    let slave = Errno::result(unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCGPTPEER, flags) })?;
    // SAFETY: the descriptor was just made and has no other owner.
    let slave = unsafe { OwnedFd::from_raw_fd(slave) };
    let streams = [slave.try_clone()?, slave.try_clone()?, slave];
    Ok(([Some(master.try_clone()?), Some(master), None], streams))
}

fn set_size(master: &File, [rows, columns]: Size) -> IoResult<()> {
    let clamp = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
    let size = libc::winsize { ws_row: clamp(rows), ws_col: clamp(columns), ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the argument is a readable structure of the kind that the call wants.
    Errno::result(unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCSWINSZ, &size) })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_where_and_with_what_terminal() {
        let request = Request::parse(b"h1\x0024 80\0root\0/\x001\0sh\0").unwrap();
        assert_eq!((request.node.as_str(), request.terminal), ("h1", Some([24, 80])));
        assert_eq!(request.program, b"root\0/\x001\0sh\0");
        assert_eq!(Request::parse(b"h1\0\0x").unwrap().terminal, None);
        assert!(Request::parse(b"h1\0wide\0x").is_err());
    }
}
