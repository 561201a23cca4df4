//! What waits to be sent to a machine. Whoever puts something in never waits, and there is an end to how much there may be.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::time::Duration;

/// Where messages are put in, each of a kind and with its bytes.
pub struct Outbox<Kind> {
    sender: Sender<(Kind, Vec<u8>)>,
    waiting: Arc<AtomicUsize>,
    bytes_max: usize,
}

/// Where they come out.
pub struct Outgoing<Kind> {
    messages: Receiver<(Kind, Vec<u8>)>,
    waiting: Arc<AtomicUsize>,
}

/// Why nothing is sent any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// So many bytes wait already.
    Full(usize),
    /// Nobody takes them out.
    Ended,
}

impl<Kind> Outbox<Kind> {
    /// One in which about so many bytes may wait.
    pub fn new(bytes_max: usize) -> (Self, Outgoing<Kind>) {
        let (sender, messages) = channel();
        let waiting = Arc::default();
        (Self { sender, waiting: Arc::clone(&waiting), bytes_max }, Outgoing { messages, waiting })
    }

    /// Puts a message in.
    ///
    /// # Errors
    /// It is not sent.
    pub fn send(&self, message: (Kind, Vec<u8>)) -> Result<(), Refusal> {
        let length = message.1.len();
        let waiting = self.waiting.fetch_add(length, Relaxed);
        // What is larger than all that may wait goes, too, if it is alone.
        if waiting > 0 && waiting + length > self.bytes_max {
            self.waiting.fetch_sub(length, Relaxed);
            return Err(Refusal::Full(waiting));
        }
        self.sender.send(message).map_err(|_| Refusal::Ended)
    }
}

impl<Kind> Outgoing<Kind> {
    /// The next message, if one comes in time.
    ///
    /// # Errors
    /// None has come, or none ever will.
    pub fn next(&self, patience: Duration) -> Result<(Kind, Vec<u8>), RecvTimeoutError> {
        let message = self.messages.recv_timeout(patience)?;
        self.waiting.fetch_sub(message.1.len(), Relaxed);
        Ok(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_nothing_is_sent_no_more_than_may_wait_and_who_takes_it_is_sent_all() {
        let (outbox, outgoing) = Outbox::new(100);
        let send = |length| outbox.send(((), vec![0; length]));
        assert_eq!(send(400), Ok(()), "alone");
        assert_eq!(send(1), Err(Refusal::Full(400)));
        for _ in 0..1000 {
            outgoing.next(Duration::ZERO).unwrap();
            assert_eq!(send(60), Ok(()));
        }
        assert_eq!((send(40), send(1)), (Ok(()), Err(Refusal::Full(100))));
        let (outbox, outgoing) = Outbox::new(1);
        drop(outgoing);
        assert_eq!(outbox.send(((), vec![])), Err(Refusal::Ended));
    }
}
