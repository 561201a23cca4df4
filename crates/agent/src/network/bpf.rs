//! BPF without a compiler: instructions, maps and programs, as far as the agent's few small programs need them.
//!
//! The layouts are those of `linux/bpf.h`. A program runs for each packet that leaves by an interface, before its queue
//! disciplines, or arrives by one, and what it remembers is in maps.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::errno::Errno;

use crate::error::{Doing, Result};

const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;
const MAP_UPDATE_BATCH: libc::c_int = 26;
const MAP_TYPE_HASH: u32 = 1;
const MAP_TYPE_ARRAY: u32 = 2;
const PROG_TYPE_SCHED_CLS: u32 = 3;
const ATTRIBUTE_BYTES: usize = 128;
const LOG_BYTES: usize = 64 * 1024;

/// `BPF_FUNC_map_lookup_elem`.
pub const MAP_LOOKUP: i32 = 1;
/// `BPF_FUNC_ktime_get_ns`.
pub const KTIME_GET_NS: i32 = 5;
/// `BPF_FUNC_skb_load_bytes`.
pub const SKB_LOAD_BYTES: i32 = 26;
/// `TC_ACT_UNSPEC`: let the next program decide, and send the packet after the last.
pub const PASS: i32 = -1;
/// `TC_ACT_STOLEN`: the packet is gone, and its sender thinks that it was sent, as on a wire. (`TC_ACT_SHOT` would tell
/// the sender, whose TCP then slows down without a loss, and whose ping tries again.)
pub const DROP: i32 = 4;

/// A register. `R10` is the frame pointer; `R1`-`R5` do not outlive a call.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum R {
    R0,
    R1,
    R2,
    R3,
    R4,
    R6 = 6,
    R7,
    R8,
    R9,
    R10,
}

/// An operation on 64 bits.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Op {
    Add = 0x00,
    Sub = 0x10,
    Mul = 0x20,
    Div = 0x30,
    Shr = 0x70,
    Mod = 0x90,
    Mov = 0xb0,
}

/// When a jump is taken: an unsigned comparison.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum When {
    Equal = 0x10,
    Greater = 0x20,
    AtLeast = 0x30,
    Less = 0xa0,
}

/// Instructions under construction. Jumps go forward, to labels that are placed later.
#[derive(Default)]
pub struct Code {
    instructions: Vec<u64>,
    jumps: Vec<(usize, &'static str)>,
    labels: Vec<(&'static str, usize)>,
}

impl Code {
    fn push(&mut self, code: u8, to: u8, from: u8, offset: i16, value: i32) -> &mut Self {
        let registers = u64::from(to | from << 4);
        let offset = u64::from(offset as u16);
        self.instructions.push(u64::from(code) | registers << 8 | offset << 16 | u64::from(value as u32) << 32);
        self
    }

    /// `to = to op value`.
    pub fn with(&mut self, op: Op, to: R, value: i32) -> &mut Self {
        self.push(op as u8 | 0x07, to as u8, 0, 0, value)
    }

    /// `to = to op from`.
    pub fn by(&mut self, op: Op, to: R, from: R) -> &mut Self {
        self.push(op as u8 | 0x0f, to as u8, from as u8, 0, 0)
    }

    /// `to = value`, of 64 bits.
    pub fn constant(&mut self, to: R, value: u64) -> &mut Self {
        self.push(0x18, to as u8, 0, 0, value as i32).push(0, 0, 0, 0, (value >> 32) as i32)
    }

    /// `to = *(u64 *)(from + offset)`.
    pub fn load(&mut self, to: R, from: R, offset: i16) -> &mut Self {
        self.push(0x79, to as u8, from as u8, offset, 0)
    }

    /// `to = *(u32 *)(from + offset)`.
    pub fn load_32(&mut self, to: R, from: R, offset: i16) -> &mut Self {
        self.push(0x61, to as u8, from as u8, offset, 0)
    }

    /// `*(u64 *)(to + offset) = from`.
    pub fn store(&mut self, to: R, offset: i16, from: R) -> &mut Self {
        self.push(0x7b, to as u8, from as u8, offset, 0)
    }

    /// `*(u32 *)(to + offset) = from`.
    pub fn store_32(&mut self, to: R, offset: i16, from: R) -> &mut Self {
        self.push(0x63, to as u8, from as u8, offset, 0)
    }

    /// Goes to `label` when `left` compares so with a value.
    pub fn jump(&mut self, when: When, left: R, value: i32, label: &'static str) -> &mut Self {
        self.jumps.push((self.instructions.len(), label));
        self.push(when as u8 | 0x05, left as u8, 0, 0, value)
    }

    /// Goes to `label` when `left` compares so with `right`.
    pub fn jump_by(&mut self, when: When, left: R, right: R, label: &'static str) -> &mut Self {
        self.jumps.push((self.instructions.len(), label));
        self.push(when as u8 | 0x0d, left as u8, right as u8, 0, 0)
    }

    /// Places a label before the next instruction.
    pub fn label(&mut self, name: &'static str) -> &mut Self {
        self.labels.push((name, self.instructions.len()));
        self
    }

    /// Calls a helper.
    pub fn call(&mut self, helper: i32) -> &mut Self {
        self.push(0x85, 0, 0, 0, helper)
    }

    /// Looks the key of `bytes` bytes up that is at the frame pointer plus `at`: `R0` points to its value or is 0.
    pub fn look_up(&mut self, map: &Map, at: i16) -> &mut Self {
        // A map is named by its descriptor, marked as such in the place of the source register.
        self.push(0x18, R::R1 as u8, 1, 0, map.0.as_raw_fd()).push(0, 0, 0, 0, 0);
        self.by(Op::Mov, R::R2, R::R10).with(Op::Add, R::R2, i32::from(at)).call(MAP_LOOKUP)
    }

    /// Looks up the element of an array whose number is in `number`, as [`Code::look_up`] does; goes to `missing` if there is none.
    pub fn element(&mut self, map: &Map, number: R, missing: &'static str) -> &mut Self {
        self.store_32(R::R10, -4, number).look_up(map, -4).jump(When::Equal, R::R0, 0, missing)
    }

    /// Ends the program with a verdict.
    pub fn end(&mut self, verdict: i32) -> &mut Self {
        self.with(Op::Mov, R::R0, verdict).push(0x95, 0, 0, 0, 0)
    }

    /// The instructions, with every jump leading to its label.
    fn finish(&self) -> Vec<u64> {
        let mut instructions = self.instructions.clone();
        for (from, label) in &self.jumps {
            let (_, to) = self.labels.iter().find(|(name, _)| name == label).expect("a jump leads to a label");
            instructions[*from] |= u64::from((to - from - 1) as u16) << 16;
        }
        instructions
    }

    /// Loads the program into the kernel.
    ///
    /// # Errors
    /// The kernel refuses it: with the verifier's last words.
    pub fn load_program(&self, name: &str) -> Result<OwnedFd> {
        let instructions = self.finish();
        let mut log = vec![0_u8; LOG_BYTES];
        let mut attribute = [0; ATTRIBUTE_BYTES];
        put(&mut attribute, 0, &PROG_TYPE_SCHED_CLS.to_ne_bytes());
        put(&mut attribute, 4, &(instructions.len() as u32).to_ne_bytes());
        put(&mut attribute, 8, &address(&instructions));
        put(&mut attribute, 16, &address(b"GPL\0"));
        put(&mut attribute, 24, &1_u32.to_ne_bytes());
        put(&mut attribute, 28, &(LOG_BYTES as u32).to_ne_bytes());
        put(&mut attribute, 32, &(log.as_mut_ptr() as u64).to_ne_bytes());
        let loaded = call(PROG_LOAD, &mut attribute);
        let text = || String::from_utf8_lossy(&log).trim_end_matches('\0').trim().to_owned();
        loaded.doing(|| format!("load BPF program {name} ({})", text().lines().rev().nth(1).unwrap_or_default()))
    }
}

/// A map: an array of 64 bit words, or a set of them. Both have values of whole 64 bit words.
pub struct Map(OwnedFd);

impl Map {
    /// An array of `entries` elements of `words` words.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn array(words: u32, entries: u32) -> Result<Self> {
        Self::new(MAP_TYPE_ARRAY, 4, words * 8, entries)
    }

    /// A set of the numbers in `members`.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn set(members: &[u64]) -> Result<Self> {
        let map = Self::new(MAP_TYPE_HASH, 8, 8, members.len().max(1) as u32)?;
        for member in members {
            map.update(&member.to_ne_bytes(), &1_u64.to_ne_bytes())?;
        }
        Ok(map)
    }

    /// A set of these keys of 16 bytes.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn keys(members: &[[u8; 16]]) -> Result<Self> {
        let map = Self::new(MAP_TYPE_HASH, 16, 8, members.len().max(1) as u32)?;
        members.iter().try_for_each(|member| map.update(member, &1_u64.to_ne_bytes()))?;
        Ok(map)
    }

    /// An array of the numbers in `values`.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn numbers(values: &[u64]) -> Result<Self> {
        let map = Self::array(1, values.len() as u32)?;
        let keys: Vec<u32> = (0..values.len() as u32).collect();
        let mut attribute = [0; ATTRIBUTE_BYTES];
        put(&mut attribute, 16, &address(&keys));
        put(&mut attribute, 24, &address(values));
        put(&mut attribute, 32, &(values.len() as u32).to_ne_bytes());
        put(&mut attribute, 36, &map.0.as_raw_fd().to_ne_bytes());
        call_for(MAP_UPDATE_BATCH, &mut attribute).doing(|| "fill a BPF map".to_owned())?;
        Ok(map)
    }

    fn new(kind: u32, key_bytes: u32, value_bytes: u32, entries: u32) -> Result<Self> {
        let mut attribute = [0; ATTRIBUTE_BYTES];
        for (position, value) in [kind, key_bytes, value_bytes, entries].into_iter().enumerate() {
            put(&mut attribute, 4 * position, &value.to_ne_bytes());
        }
        call(MAP_CREATE, &mut attribute).doing(|| format!("make a BPF map of {entries} entries")).map(Self)
    }

    /// Sets the words of the element with number `number`.
    ///
    /// # Errors
    /// There is no such element.
    pub fn set_element(&self, number: u32, words: &[u64]) -> Result<()> {
        let value: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.update(&number.to_ne_bytes(), &value)
    }

    fn update(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut attribute = [0; ATTRIBUTE_BYTES];
        put(&mut attribute, 0, &self.0.as_raw_fd().to_ne_bytes());
        put(&mut attribute, 8, &address(key));
        put(&mut attribute, 16, &address(value));
        call_for(MAP_UPDATE_ELEM, &mut attribute).doing(|| "write into a BPF map".to_owned())
    }
}

fn put(attribute: &mut [u8; ATTRIBUTE_BYTES], at: usize, bytes: &[u8]) {
    attribute[at..at + bytes.len()].copy_from_slice(bytes);
}

fn address<T>(values: &[T]) -> [u8; 8] {
    (values.as_ptr() as u64).to_ne_bytes()
}

/// A bpf(2) command that gives a descriptor.
fn call(command: libc::c_int, attribute: &mut [u8; ATTRIBUTE_BYTES]) -> nix::Result<OwnedFd> {
    let descriptor = system_call(command, attribute)?;
    // SAFETY: the kernel has just given this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// A bpf(2) command that gives nothing.
fn call_for(command: libc::c_int, attribute: &mut [u8; ATTRIBUTE_BYTES]) -> nix::Result<()> {
    system_call(command, attribute).map(|_| ())
}

fn system_call(command: libc::c_int, attribute: &mut [u8; ATTRIBUTE_BYTES]) -> nix::Result<libc::c_int> {
    // SAFETY: the attribute is as long as is said, and the addresses in it are of memory that the callers of this
    // module hold for the duration of the call, of the lengths that they give.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attribute.as_mut_ptr(), ATTRIBUTE_BYTES) };
    Errno::result(result).map(|value| value as libc::c_int)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_have_the_kernels_layout_and_jumps_lead_to_their_labels() {
        let mut code = Code::default();
        code.jump(When::Equal, R::R6, 7, "out").with(Op::Mov, R::R0, -1).label("out").by(Op::Add, R::R9, R::R10);
        assert_eq!(code.finish(), [0x0000_0007_0001_0615, 0xffff_ffff_0000_00b7, 0x0000_0000_0000_a90f]);
    }
}
