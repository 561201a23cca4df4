//! The loss of certain packets: every n-th, or those in a list, counted where they leave the node.
//!
//! This is the repeatable loss of the Dummynet of Gupta et al., NSDI'06: it depends on nothing but the order of packets.
//! netem cannot count, so a BPF program does.

use std::os::fd::OwnedFd;

use crate::bpf::{Code, Map, Op, When, DROP, PASS, R};
use crate::error::Result;
use crate::queues::Drops;

/// Loads the program that drops these packets; it counts from now on.
///
/// # Errors
/// The kernel refuses it.
pub fn program(drops: &Drops) -> Result<OwnedFd> {
    let count = Map::array(1, 1)?;
    let mut code = Code::default();
    code.with(Op::Mov, R::R6, 0).element(&count, R::R6, "pass");
    // R7: the number of this packet, from 1.
    code.load(R::R7, R::R0, 0).with(Op::Add, R::R7, 1).store(R::R0, 0, R::R7);
    let listed;
    match drops {
        Drops::Every { period } => {
            code.constant(R::R6, *period).by(Op::Mod, R::R7, R::R6).jump(When::Equal, R::R7, 0, "drop");
        }
        Drops::Packets { numbers } => {
            listed = Map::set(numbers)?;
            code.store(R::R10, -16, R::R7).look_up(&listed, -16).jump(When::Greater, R::R0, 0, "drop");
        }
    }
    code.label("pass").end(PASS).label("drop").end(DROP);
    code.load_program("drops")
}
