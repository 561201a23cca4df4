//! Waiting for the other end in beats, not in seconds.
//!
//! Each end says something in every beat, and whoever listens counts those in which nothing came. They are beats of its own:
//! where a machine has no time for it, or somebody has stopped it, they are longer or there are none, and what was said
//! meanwhile is there when it looks. A limit in seconds would give up a machine for what this one did not find time to hear.

use std::io::{self, ErrorKind, Read};
use std::time::Duration;

/// How often an end says something, and how long whoever listens waits at a time.
pub const BEAT: Duration = Duration::from_millis(100);

/// In so many beats something comes from an end that is there: a stall of three seconds is none of its faults.
pub const SILENT_BEATS_MAX: u32 = 35;

/// How long that is where there is time for it.
pub fn silence_max() -> Duration {
    BEAT * SILENT_BEATS_MAX
}

/// A stream of which a read comes back without anything after a beat.
pub struct Patient<Stream>(pub Stream);

impl<Stream: Read> Read for Patient<Stream> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        for _ in 0..SILENT_BEATS_MAX {
            match self.0.read(bytes) {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                result => return result,
            }
        }
        let what = format!("nothing was heard for {} seconds", silence_max().as_secs_f64());
        Err(io::Error::new(ErrorKind::TimedOut, what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream on which nothing comes for so many beats, and then a byte, again and again.
    struct Slow {
        beats: u32,
        passed: u32,
    }

    impl Read for Slow {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            if self.passed < self.beats {
                self.passed += 1;
                return Err(ErrorKind::WouldBlock.into());
            }
            self.passed = 0;
            bytes[0] = 7;
            Ok(1)
        }
    }

    #[test]
    fn who_says_something_in_one_of_all_beats_is_heard_and_who_does_not_is_given_up_in_words() {
        let mut heard = [0; 20];
        Patient(Slow { beats: SILENT_BEATS_MAX - 1, passed: 0 }).read_exact(&mut heard).unwrap();
        assert_eq!(heard, [7; 20]);
        let error = Patient(Slow { beats: SILENT_BEATS_MAX, passed: 0 }).read_exact(&mut heard).unwrap_err();
        assert_eq!(error.to_string(), "nothing was heard for 3.5 seconds");
    }

    #[test]
    fn a_stall_of_three_seconds_is_shorter_than_any_limit_by_several_beats() {
        assert!(Duration::from_secs(3) + 4 * BEAT < silence_max());
    }
}
