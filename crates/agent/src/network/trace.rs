//! Delivery traces as mm-link(1) plays them: a trace lists the milliseconds at each of which 1500 bytes may leave.
//!
//! # Why this is exact
//!
//! Packets leave in the order in which they come, and an opportunity carries the bytes of whatever waits when it comes:
//! the end of one packet and the beginning of the next. So when the last byte of a packet will leave is known when it
//! arrives. Let all opportunities be laid end to end, 1500 bytes each, the trace repeated without end. A packet begins
//! where the one before it ends, but not before the first opportunity that is yet to come; an opportunity that nothing
//! waits for is lost. The one that holds its last byte is its departure. That is arithmetic on one number, the position:
//! no timer ticks through the trace, and nothing can drift.
//!
//! A BPF program does it for each packet as it leaves the node and writes the departure into the packet; the `fq`
//! discipline keeps the packet until then. With a `limit` of packets, a packet finds the queue full if the one that is
//! `limit` before it has not departed yet; so the departures of the last `limit` packets are kept in a ring. A packet
//! that is dropped must not take opportunities, which is why the program decides that and not the discipline.
//!
//! The wire's delay comes after the program (see `plan/links/disciplines.py`), so it reckons with the instant at which the packet
//! will be at the queue: now and the delay. Sizes are those of IP packets, as mahimahi's are.

use std::os::fd::OwnedFd;

use crate::error::Result;
use crate::network::bpf::{Code, Map, Op, When, DROP, KTIME_GET_NS, PASS, R};

const OPPORTUNITY_BYTES: i32 = 1500;
const ETHERNET_HEADER_BYTES: i32 = 14;

// Fields of `struct __sk_buff`.
const SKB_LEN: i16 = 0;
const SKB_PRIORITY: i16 = 32;
const SKB_DEPARTURE: i16 = 152;

// The state, in words.
const POSITION: i16 = 0;
const ACCEPTED: i16 = 8;
/// The clock at virtual 0; 0: the run has not begun.
const ZERO: i16 = 16;
const STATE_WORDS: u32 = 3;

// What the program keeps on its stack.
const CONTEXT: i16 = -16;
const END: i16 = -24;
const SLOT: i16 = -32;

/// A trace that is being played on an interface.
pub struct Player {
    state: Map,
    departures: Map,
    limit_packets: u32,
    period_ns: i64,
}

impl Player {
    /// Loads the program for a trace: ascending milliseconds, the last one its period, each so long on the guest's clock.
    /// In place of the one of `before` it goes on where that is; a limit that differs counts what comes from then on.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn load(
        trace_ms: &[u64],
        millisecond_ns: u64,
        delay_ns: u64,
        limit_packets: u32,
        before: Option<Self>,
    ) -> Result<(Self, OwnedFd)> {
        let (state, departures) = match before {
            None => (Map::array(STATE_WORDS, 1)?, None),
            Some(before) => (before.state, Some(before.departures).filter(|_| before.limit_packets == limit_packets)),
        };
        let departures = departures.map_or_else(|| Map::array(1, limit_packets), Ok)?;
        let times = Map::numbers(trace_ms)?;
        let first = Map::numbers(&first_after(trace_ms))?;
        let period_ms = trace_ms[trace_ms.len() - 1] as i32;
        let constants = [period_ms, trace_ms.len() as i32, limit_packets as i32, millisecond_ns as i32];
        let program = code(&state, &departures, &times, &first, constants, delay_ns).load_program("delivery")?;
        let period_ns = i64::from(period_ms) * millisecond_ns as i64;
        Ok((Self { state, departures, limit_packets, period_ns }, program))
    }

    /// Starts the trace at `zero_ns` of the guest's clock; until then packets pass without delay. Below 0, as of a kernel that
    /// began later, it starts where it would be by then.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn start(&self, zero_ns: i64) -> Result<()> {
        let zero_ns = if zero_ns > 0 { zero_ns } else { self.period_ns - (-zero_ns).rem_euclid(self.period_ns) };
        self.state.set_element(0, &[0, 0, zero_ns as u64])
    }
}

/// For each whole millisecond of a period, the first opportunity that is later than it.
fn first_after(trace_ms: &[u64]) -> Vec<u64> {
    let period = trace_ms[trace_ms.len() - 1];
    let mut next = 0;
    (0..period)
        .map(|instant| {
            while trace_ms[next] <= instant {
                next += 1;
            }
            next as u64
        })
        .collect()
}

fn code(state: &Map, departures: &Map, times: &Map, first: &Map, constants: [i32; 4], delay_ns: u64) -> Code {
    let [period_ms, count, limit, millisecond_ns] = constants;
    let mut code = Code::default();
    code.store(R::R10, CONTEXT, R::R1).call(KTIME_GET_NS).by(Op::Mov, R::R6, R::R0);
    code.with(Op::Mov, R::R7, 0).element(state, R::R7, "pass").by(Op::Mov, R::R9, R::R0);
    // R6: nanoseconds from virtual 0 to the arrival at the queue.
    code.constant(R::R7, delay_ns).by(Op::Add, R::R6, R::R7);
    code.load(R::R7, R::R9, ZERO).jump(When::Equal, R::R7, 0, "pass").jump_by(When::Less, R::R6, R::R7, "pass");
    code.by(Op::Sub, R::R6, R::R7);

    // Full? Look at the departure of the packet that is `limit` before this one.
    code.load(R::R7, R::R9, ACCEPTED).with(Op::Mod, R::R7, limit).element(departures, R::R7, "pass");
    code.store(R::R10, SLOT, R::R0).load(R::R8, R::R0, 0).jump_by(When::Greater, R::R8, R::R6, "drop");

    // R8: the position of the first opportunity to come, in opportunities.
    code.with(Op::Div, R::R6, millisecond_ns).by(Op::Mov, R::R7, R::R6);
    code.with(Op::Div, R::R6, period_ms).with(Op::Mod, R::R7, period_ms);
    code.element(first, R::R7, "pass").load(R::R8, R::R0, 0).with(Op::Mul, R::R6, count).by(Op::Add, R::R8, R::R6);
    // Where this packet begins and, with its bytes, ends.
    code.with(Op::Mul, R::R8, OPPORTUNITY_BYTES).load(R::R7, R::R9, POSITION);
    code.jump_by(When::AtLeast, R::R8, R::R7, "begin").by(Op::Mov, R::R8, R::R7).label("begin");
    code.load(R::R6, R::R10, CONTEXT).load_32(R::R7, R::R6, SKB_LEN).with(Op::Sub, R::R7, ETHERNET_HEADER_BYTES);
    code.by(Op::Add, R::R8, R::R7).store(R::R10, END, R::R8);

    // R8: when the opportunity with its last byte comes.
    code.with(Op::Sub, R::R8, 1).with(Op::Div, R::R8, OPPORTUNITY_BYTES).by(Op::Mov, R::R7, R::R8);
    code.with(Op::Div, R::R8, count).with(Op::Mod, R::R7, count).element(times, R::R7, "pass");
    code.load(R::R7, R::R0, 0).with(Op::Mul, R::R8, period_ms).by(Op::Add, R::R8, R::R7);
    code.with(Op::Mul, R::R8, millisecond_ns);

    // Remember all of it, and write the departure into the packet.
    code.load(R::R7, R::R10, SLOT).store(R::R7, 0, R::R8);
    code.load(R::R7, R::R10, END).store(R::R9, POSITION, R::R7);
    code.load(R::R7, R::R9, ACCEPTED).with(Op::Add, R::R7, 1).store(R::R9, ACCEPTED, R::R7);
    code.load(R::R7, R::R9, ZERO).by(Op::Add, R::R8, R::R7).store(R::R6, SKB_DEPARTURE, R::R8);
    // fq lets control packets pass at once; here all packets wait in one line.
    code.with(Op::Mov, R::R7, 0).store_32(R::R6, SKB_PRIORITY, R::R7);
    code.label("pass").end(PASS).label("drop").end(DROP);
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_opportunity_of_each_millisecond_is_strictly_later() {
        assert_eq!(first_after(&[1, 1, 3]), [0, 2, 2]);
        assert_eq!(first_after(&[0, 2]), [1, 1]);
    }
}
