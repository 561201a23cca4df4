//! The frames of the stream line, as `PROTOCOL.md` defines them: their form, and nothing about what they cause.

use crate::error::{Error, Result};

/// Bytes of a frame before its payload.
const HEADER_BYTES: usize = 12;
/// The longest payload in bytes: a request holds a command line and an environment, which the kernel bounds too.
const PAYLOAD_BYTES_MAX: usize = 4 << 20;

/// What a frame is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Host: begin a session; the payload is its request.
    Open = 1,
    /// Bytes of a stream.
    Data = 2,
    /// So many more bytes of a stream are welcome.
    Grant = 3,
    /// No more bytes of a stream come, or are welcome.
    Close = 4,
    /// Host: send a signal to the session.
    Signal = 5,
    /// Host: the terminal has a new size.
    Size = 6,
    /// Agent: the program could not be executed.
    Failed = 7,
    /// Agent: the program ended, and all its output is sent.
    Exited = 8,
}

impl Kind {
    const ALL: [Self; 8] =
        [Self::Open, Self::Data, Self::Grant, Self::Close, Self::Signal, Self::Size, Self::Failed, Self::Exited];
}

/// One frame.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    /// Which session it belongs to.
    pub session: u32,
    /// What it is about.
    pub kind: Kind,
    /// 0: standard input, 1: output, 2: error; 0 where no stream is meant.
    pub stream: u8,
    /// What there is to say.
    pub payload: Vec<u8>,
}

impl Frame {
    /// The payload as 32 bit numbers, if it is so many of them.
    ///
    /// # Errors
    /// It is not.
    pub fn numbers<const COUNT: usize>(&self) -> Result<[u32; COUNT]> {
        let mut numbers = [0; COUNT];
        if self.payload.len() != 4 * COUNT {
            return Err(Error::new(format!("a frame of kind {:?} has {} bytes", self.kind, self.payload.len())));
        }
        for (number, bytes) in numbers.iter_mut().zip(self.payload.chunks_exact(4)) {
            *number = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        Ok(numbers)
    }
}

/// Appends a frame to what is to be sent.
pub fn put(out: &mut Vec<u8>, session: u32, kind: Kind, stream: u8, payload: &[u8]) {
    out.extend_from_slice(&session.to_le_bytes());
    out.extend_from_slice(&[kind as u8, stream, 0, 0]);
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    out.extend_from_slice(payload);
}

/// Takes the first whole frame from what was received.
///
/// # Errors
/// What is there is no frame.
pub fn take(received: &mut Vec<u8>) -> Result<Option<Frame>> {
    let Some(&[s0, s1, s2, s3, kind, stream, 0, 0, l0, l1, l2, l3]) = received.get(..HEADER_BYTES) else {
        return if received.len() < HEADER_BYTES { Ok(None) } else { Err(Error::new("the stream line is garbled")) };
    };
    let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
    let kind = Kind::ALL.into_iter().find(|known| *known as u8 == kind);
    let (Some(kind), true) = (kind, length <= PAYLOAD_BYTES_MAX) else {
        return Err(Error::new("the stream line is garbled"));
    };
    if received.len() < HEADER_BYTES + length {
        return Ok(None);
    }
    let payload = received.drain(..HEADER_BYTES + length).skip(HEADER_BYTES).collect();
    Ok(Some(Frame { session: u32::from_le_bytes([s0, s1, s2, s3]), kind, stream, payload }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_whole_and_in_order_however_they_arrived() {
        let mut line = Vec::new();
        put(&mut line, 7, Kind::Data, 1, b"bytes");
        put(&mut line, 8, Kind::Close, 2, b"");
        let rest = line.split_off(14);
        assert_eq!(take(&mut line).unwrap(), None);
        line.extend_from_slice(&rest);
        let first = Frame { session: 7, kind: Kind::Data, stream: 1, payload: b"bytes".to_vec() };
        assert_eq!(take(&mut line).unwrap(), Some(first));
        let second = Frame { session: 8, kind: Kind::Close, stream: 2, payload: Vec::new() };
        assert_eq!(take(&mut line).unwrap(), Some(second));
        assert!(line.is_empty());
    }

    #[test]
    fn what_is_no_frame_is_an_error() {
        assert!(take(&mut vec![0; HEADER_BYTES]).is_err());
        let mut long = Vec::new();
        put(&mut long, 0, Kind::Data, 0, b"");
        long[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(take(&mut long).is_err());
    }

    #[test]
    fn numbers_are_read_only_where_exactly_so_many_are() {
        let mut line = Vec::new();
        put(&mut line, 1, Kind::Size, 0, &[24, 0, 0, 0, 80, 0, 0, 0]);
        let frame = take(&mut line).unwrap().unwrap();
        assert_eq!(frame.numbers::<2>().unwrap(), [24, 80]);
        assert!(frame.numbers::<1>().is_err());
    }
}
