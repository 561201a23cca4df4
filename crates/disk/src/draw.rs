//! Random numbers from a seed: splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
//! OOPSLA 2014).

const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// A number that looks like chance, and is the same for the same one.
pub const fn mixed(number: u64) -> u64 {
    let mixed = number.wrapping_add(GAMMA);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Numbers one after the other.
pub struct Stream(u64);

impl Stream {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        let number = mixed(self.0);
        self.0 = self.0.wrapping_add(GAMMA);
        number
    }
}
