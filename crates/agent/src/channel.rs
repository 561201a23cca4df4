//! The byte pipe to the host: `/dev/ttyS0` in raw mode, one JSON object a line.

pub mod protocol;

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::sys::termios::{cfmakeraw, tcgetattr, tcsetattr, SetArg};

use crate::channel::protocol::{FromAgent, FromHost};
use crate::error::{Doing, Error, Result};

/// The longest line in bytes.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// The agent's end of the channel.
pub struct Channel {
    tty: File,
    received: Vec<u8>,
}

impl Channel {
    /// Opens the serial line at `path`.
    ///
    /// # Errors
    /// The line does not exist or is no terminal.
    pub fn open(path: &str) -> Result<Self> {
        let tty = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOCTTY | libc::O_CLOEXEC)
            .open(path)
            .doing(|| format!("open {path}"))?;
        let mut settings = tcgetattr(&tty).doing(|| format!("read the settings of {path}"))?;
        cfmakeraw(&mut settings);
        tcsetattr(&tty, SetArg::TCSANOW, &settings).doing(|| format!("make {path} raw"))?;
        Ok(Self { tty, received: Vec::new() })
    }

    /// Sends one message.
    ///
    /// # Errors
    /// The host is gone.
    pub fn send(&mut self, message: &FromAgent<'_>) -> Result<()> {
        let mut line = serde_json::to_vec(message).doing(|| "write a message".to_owned())?;
        line.push(b'\n');
        self.tty.write_all(&line).doing(|| "send to the host".to_owned())
    }

    /// Waits for the next message.
    ///
    /// # Errors
    /// The host is gone, or it sent what is no message.
    pub fn receive(&mut self) -> Result<FromHost> {
        loop {
            if let Some(message) = self.next_message()? {
                return Ok(message);
            }
            self.fill()?;
        }
    }

    /// Reads what is there, waiting only if there is nothing.
    ///
    /// # Errors
    /// The host is gone.
    pub fn fill(&mut self) -> Result<()> {
        let mut bytes = [0; 4096];
        let count = self.tty.read(&mut bytes).doing(|| "receive from the host".to_owned())?;
        if count == 0 {
            return Err(Error::new("receive from the host: the channel was closed"));
        }
        self.received.extend_from_slice(&bytes[..count]);
        Ok(())
    }

    /// Takes one message from what was read, if a whole one is there.
    ///
    /// # Errors
    /// The line is no message, or too long.
    pub fn next_message(&mut self) -> Result<Option<FromHost>> {
        take_line(&mut self.received)?
            .map(|line| {
                serde_json::from_slice(&line)
                    .doing(|| format!("message {} from the host", String::from_utf8_lossy(&line)))
            })
            .transpose()
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tty.as_fd()
    }
}

/// Removes the first whole line from `received`.
fn take_line(received: &mut Vec<u8>) -> Result<Option<Vec<u8>>> {
    match received.iter().position(|&byte| byte == b'\n') {
        Some(end) => Ok(Some(received.drain(..=end).take(end).collect())),
        None if received.len() > LINE_BYTES_MAX => {
            Err(Error::new(format!("a message from the host is longer than {LINE_BYTES_MAX} bytes")))
        }
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_out_whole_and_in_order_however_they_arrived() {
        let mut received = b"one\ntw".to_vec();
        assert_eq!(take_line(&mut received).unwrap().unwrap(), b"one");
        assert_eq!(take_line(&mut received).unwrap(), None);
        received.extend_from_slice(b"o\n");
        assert_eq!(take_line(&mut received).unwrap().unwrap(), b"two");
        assert!(received.is_empty());
    }

    #[test]
    fn a_line_without_end_is_an_error() {
        assert!(take_line(&mut vec![b'x'; LINE_BYTES_MAX + 1]).is_err());
    }
}
