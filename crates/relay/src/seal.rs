//! What frames carry, sealed from the machine that sends them to the one that gets them.
//!
//! The line to the hub encrypts whatever goes over it, and so does the one from there. For what frames carry, which is most
//! of all and nothing to the hub, that would be twice the work: what is carried between machines costs little else. So it
//! goes past the lines' own encryption, as one that the hub only passes on. Each pair of machines has a key of its own, of
//! the run's key (HKDF, RFC 5869), and each block the next number as its nonce, so that one that is missing, comes twice, or
//! was changed is noticed, also one with another head: what is known of its frames is authenticated with it.

use std::collections::HashMap;

use ring::aead::{Aad, LessSafeKey, Nonce, UnboundKey, AES_256_GCM};
use ring::hkdf::{Salt, HKDF_SHA256};

use crate::line::Key;

/// What is added to a block.
pub const TAG_BYTES: usize = 16;

/// A block that was not sealed for here, or not as the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forged;

/// The keys of a machine.
pub struct Seals {
    key: Key,
    own: usize,
    /// Of blocks from one machine to another: the key, and the number of the next.
    pairs: HashMap<(usize, usize), (LessSafeKey, u64)>,
}

impl Seals {
    /// Those of machine `own`.
    pub fn new(key: Key, own: usize) -> Self {
        Self { key, own, pairs: HashMap::new() }
    }

    fn next(&mut self, from: usize, to: usize) -> (&LessSafeKey, Nonce) {
        let (key, number) = self.pairs.entry((from, to)).or_insert_with(|| (of_pair(&self.key, from, to), 0));
        let mut nonce = [0; 12];
        nonce[4..].copy_from_slice(&number.to_be_bytes());
        *number += 1;
        (key, Nonce::assume_unique_for_key(nonce))
    }

    /// Seals what frames carry, whose block has that head, for another machine.
    pub fn seal(&mut self, to: usize, head: &[u8], carried: &mut Vec<u8>) {
        let (key, nonce) = self.next(self.own, to);
        key.seal_in_place_append_tag(nonce, Aad::from(head), carried).expect("shorter than what a key may seal");
    }

    /// Opens what was sealed for this machine by another one; what is left of it is at the begin.
    ///
    /// # Errors
    /// It was not, or is not the next of that machine.
    pub fn open<'a>(&mut self, from: usize, head: &[u8], sealed: &'a mut [u8]) -> Result<&'a [u8], Forged> {
        let (key, nonce) = self.next(from, self.own);
        key.open_in_place(nonce, Aad::from(head), sealed).map(|carried| &*carried).map_err(|_| Forged)
    }
}

fn of_pair(key: &Key, from: usize, to: usize) -> LessSafeKey {
    let pair = [from as u64, to as u64].map(u64::to_be_bytes).concat();
    let prk = Salt::new(HKDF_SHA256, b"dilaton frames").extract(key);
    let made = prk.expand(&[&pair], &AES_256_GCM).map(UnboundKey::from);
    LessSafeKey::new(made.expect("a key of 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sealed_is_opened_once_in_its_order_by_whom_it_is_for_and_as_it_was() {
        let mut sender = Seals::new([7; 32], 0);
        let mut sealed = |to| {
            let mut carried = b"carried".to_vec();
            sender.seal(to, b"head", &mut carried);
            assert_eq!(carried.len(), 7 + TAG_BYTES);
            carried
        };
        let (first, second, third, other) = (sealed(1), sealed(1), sealed(1), sealed(2));
        let mut receiver = Seals::new([7; 32], 1);
        let mut open = |sealed: &[u8], head: &[u8]| receiver.open(0, head, &mut sealed.to_vec()).map(<[u8]>::to_vec);
        assert_eq!(open(&first, b"head"), Ok(b"carried".to_vec()));
        assert_eq!(open(&first, b"head"), Err(Forged), "it comes twice, in place of the second");
        assert_eq!(open(&third, b"head"), Ok(b"carried".to_vec()));
        assert_eq!(open(&second, b"head"), Err(Forged));
        for (key, own, from, sealed, head) in [
            ([7; 32], 1, 0, &other, b"head"),
            ([7; 32], 1, 2, &first, b"head"),
            ([7; 32], 1, 0, &first, b"Head"),
            ([8; 32], 1, 0, &first, b"head"),
            ([7; 32], 2, 0, &first, b"head"),
        ] {
            assert_eq!(Seals::new(key, own).open(from, head, &mut sealed.clone()), Err(Forged));
        }
        let mut changed = first;
        changed[3] ^= 1;
        assert_eq!(Seals::new([7; 32], 1).open(0, b"head", &mut changed), Err(Forged));
        assert_eq!(Seals::new([7; 32], 1).open(0, b"head", &mut [0; 3]), Err(Forged));
    }
}
