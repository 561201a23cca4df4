//! What a relay and whoever started it say to each other, over its standard streams.
//!
//! A message is the number of a machine, or [`NOBODY`], what it is, its length, and its bytes; numbers are of four bytes,
//! the lowest first.

use std::io::{self, Read, Write};

use crate::line::invalid;

/// No machine in particular.
pub const NOBODY: u32 = u32::MAX;

const BYTES_MAX: u32 = 1 << 30;

/// What a message is.
pub mod what {
    /// From or to the other side of the run.
    pub const CONTROL: u32 = 0;
    /// The address at which the hub listens.
    pub const LISTENS: u32 = 1;
    /// A machine has connected.
    pub const JOINED: u32 = 2;
    /// A machine, or the hub, is gone, and why.
    pub const GONE: u32 = 3;
    /// To the hub: the machines of guests and the ends of ways. To a machine: its memory is laid out.
    pub const LAYOUT: u32 = 4;
}

/// A message.
pub struct Message {
    /// Whose it is.
    pub machine: u32,
    /// One of [`what`].
    pub what: u32,
    /// What it says.
    pub bytes: Vec<u8>,
}

/// The next message; `None` at the end.
pub fn read(from: &mut impl Read) -> io::Result<Option<Message>> {
    let mut header = [0; 12];
    match from.read_exact(&mut header) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        result => result?,
    }
    let number = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
    if number(8) > BYTES_MAX {
        return Err(invalid("a message that is too long"));
    }
    let mut bytes = vec![0; number(8) as usize];
    from.read_exact(&mut bytes)?;
    Ok(Some(Message { machine: number(0), what: number(4), bytes }))
}

/// Says something on the standard output.
pub fn say(machine: u32, what: u32, bytes: &[u8]) -> io::Result<()> {
    let mut message = Vec::with_capacity(12 + bytes.len());
    for number in [machine, what, bytes.len() as u32] {
        message.extend_from_slice(&number.to_le_bytes());
    }
    message.extend_from_slice(bytes);
    let mut stdout = io::stdout().lock();
    stdout.write_all(&message)?;
    stdout.flush()
}
