//! Losses that are the same in every run: every n-th packet, those in a list, or those that a seeded stream of random
//! numbers says, counted where packets leave the node.
//!
//! This is the repeatable loss of the Dummynet of Gupta et al., NSDI'06: it depends on nothing but the order of packets.
//! netem cannot count, and that of Debian's kernel has no seed, so a BPF program does both. Its random numbers are the
//! upper halves of a linear congruential generator of 64 bits (Knuth, MMIX), one for each decision.

use std::os::fd::OwnedFd;

use crate::error::Result;
use crate::network::bpf::{Code, Map, Op, When, DROP, PASS, R};
use crate::plan::queues::Drops;

const MULTIPLIER: u64 = 6_364_136_223_846_793_005;
const INCREMENT: u64 = 1_442_695_040_888_963_407;

// The state, in words: the counter or the generator, then whether the model is in its bad state.
const FIRST: i16 = 0;
const BAD: i16 = 8;
const STATE_WORDS: u32 = 2;

/// Loads the program that drops these packets; it counts, and draws, from now on.
///
/// # Errors
/// The kernel refuses it.
pub fn program(drops: &Drops) -> Result<OwnedFd> {
    let state = Map::array(STATE_WORDS, 1)?;
    let mut code = Code::default();
    code.with(Op::Mov, R::R6, 0).element(&state, R::R6, "pass");
    let listed;
    match drops {
        Drops::Every { period } => {
            number_packet(&mut code).constant(R::R6, *period).by(Op::Mod, R::R7, R::R6);
            code.jump(When::Equal, R::R7, 0, "drop");
        }
        Drops::Packets { numbers } => {
            listed = Map::set(numbers)?;
            number_packet(&mut code).store(R::R10, -16, R::R7);
            code.look_up(&listed, -16).jump(When::Greater, R::R0, 0, "drop");
        }
        Drops::Random { probability, seed } => {
            state.set_element(0, &[*seed, 0])?;
            draw_below(&mut code, *probability, "drop");
        }
        Drops::Gemodel { p, r, loss_bad, loss_good, seed } => {
            state.set_element(0, &[*seed, 0])?;
            code.load(R::R6, R::R0, BAD).jump(When::Equal, R::R6, 0, "good");
            draw_below(&mut code, 1.0 - r, "still bad");
            code.with(Op::Mov, R::R6, 0).store(R::R0, BAD, R::R6).label("still bad");
            draw_below(&mut code, *loss_bad, "drop");
            code.end(PASS).label("good");
            draw_below(&mut code, 1.0 - p, "still good");
            code.with(Op::Mov, R::R6, 1).store(R::R0, BAD, R::R6).label("still good");
            draw_below(&mut code, *loss_good, "drop");
        }
    }
    code.label("pass").end(PASS).label("drop").end(DROP);
    code.load_program("drops")
}

/// R7: the number of this packet, from 1. R0 points to the state.
fn number_packet(code: &mut Code) -> &mut Code {
    code.load(R::R7, R::R0, FIRST).with(Op::Add, R::R7, 1).store(R::R0, FIRST, R::R7)
}

/// Draws once, and goes to `label` with this probability. R0 points to the state.
fn draw_below(code: &mut Code, probability: f64, label: &'static str) {
    code.load(R::R7, R::R0, FIRST).constant(R::R8, MULTIPLIER).by(Op::Mul, R::R7, R::R8);
    code.constant(R::R8, INCREMENT).by(Op::Add, R::R7, R::R8).store(R::R0, FIRST, R::R7);
    // 2^32 of 2^32 is always.
    let threshold = (probability * f64::from(u32::MAX) + probability).round() as u64;
    code.with(Op::Shr, R::R7, 32).constant(R::R8, threshold).jump_by(When::Less, R::R7, R::R8, label);
}
