//! What an instruction of a program was about to do when it faulted: read there, or write.
//!
//! The processor says so in the fault's error code, and the host's kernel tells nobody but the program itself, in the frame
//! of its signal. To ask for it takes a stop of the program more, the dearest there is. Its instruction and registers are
//! known at the fault, and mostly tell as well.
//!
//! **The rule.** An instruction is only spoken for if it is one of those that compilers make for loads and stores, and if its
//! operand is where the fault was. Of all others nothing is said, and the program is asked. An instruction that reads and then
//! writes the same place needs the right to write in any case, which is what processors report of it, too.

/// What the instruction was about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It reads, or the processor fetches it.
    Read,
    /// It writes, perhaps after it has read.
    Write,
}

/// The registers of the program at the fault.
#[derive(Clone, Copy, Debug, Default)]
pub struct Registers {
    /// Those of general purpose, by their numbers in instructions.
    pub general: [u64; 16],
    /// The address of the instruction.
    pub rip: u64,
    /// Where the segments FS and GS begin.
    pub segments: [u64; 2],
}

const RSP: usize = 4;
const RBP: usize = 5;
const RSI: usize = 6;
const RDI: usize = 7;
/// The longest instruction, bytes.
const LENGTH_MAX: usize = 15;
/// The widest operand that is spoken for, bytes.
const WIDTH_MAX: u64 = 64;

/// What the instruction does that faulted at `address`, each byte of which `code` tells by its place; `None` where that is not
/// certain.
pub fn access(registers: &Registers, address: u64, code: impl FnMut(usize) -> u8) -> Option<Access> {
    // A fault within the instruction may be that of fetching it.
    if address.wrapping_sub(registers.rip) < LENGTH_MAX as u64 {
        return None;
    }
    Decoder { registers, code, place: 0, rex: 0, segment: 0, is_short: false, has_f3: false }.access(address)
}

/// An instruction that is being read.
struct Decoder<'a, C> {
    registers: &'a Registers,
    code: C,
    place: usize,
    rex: u8,
    segment: u64,
    is_short: bool,
    has_f3: bool,
}

/// What an instruction with one operand in memory does there, and how many bytes follow the operand.
type Shape = (Access, usize);

impl<C: FnMut(usize) -> u8> Decoder<'_, C> {
    fn next(&mut self) -> u8 {
        let byte = (self.code)(self.place);
        self.place += 1;
        byte
    }

    fn access(mut self, address: u64) -> Option<Access> {
        let opcode = self.after_prefixes()?;
        let at = |register: usize, access| {
            (address.wrapping_sub(self.registers.general[register]) < WIDTH_MAX).then_some(access)
        };
        match opcode {
            // push, call
            0x50..=0x57 | 0x68 | 0x6A | 0xE8 => {
                let below = self.registers.general[RSP].wrapping_sub(address);
                (1..=8).contains(&below).then_some(Access::Write)
            }
            // pop, ret
            0x58..=0x5F | 0xC3 => at(RSP, Access::Read),
            // leave
            0xC9 => at(RBP, Access::Read),
            // stos, which goes up from there
            0xAA | 0xAB => at(RDI, Access::Write),
            // movs, which goes up from both
            0xA4 | 0xA5 => match (at(RSI, Access::Read), at(RDI, Access::Write)) {
                (Some(_), Some(_)) => None,
                (read, write) => read.or(write),
            },
            _ => {
                let is_vex = matches!(opcode, 0xC4 | 0xC5);
                let map_0f = opcode == 0x0F || is_vex && self.after_vex(opcode)?;
                let opcode = if map_0f { self.next() } else { opcode };
                if is_vex && !matches!(opcode, 0x10..=0x17 | 0x28 | 0x29 | 0x60..=0x7F | 0xD0..=0xFF) {
                    return None;
                }
                let mod_rm = self.next();
                let (access, rest) = if map_0f { self.shape_0f(opcode, mod_rm) } else { self.shape(opcode, mod_rm) }?;
                let operand = self.operand(mod_rm, rest)?;
                (address.wrapping_sub(operand) < WIDTH_MAX).then_some(access)
            }
        }
    }

    /// Reads the prefixes, and returns what follows them.
    fn after_prefixes(&mut self) -> Option<u8> {
        for _ in 0..LENGTH_MAX {
            match self.next() {
                0x66 => self.is_short = true,
                0xF3 => self.has_f3 = true,
                0xF0 | 0xF2 => {}
                0x64 => self.segment = self.registers.segments[0],
                0x65 => self.segment = self.registers.segments[1],
                byte @ 0x40..=0x4F => {
                    self.rex = byte;
                    return Some(self.next());
                }
                byte => return Some(byte),
            }
        }
        None
    }

    /// Reads what follows the first byte of a prefix VEX; `None` unless the instruction is one of those with 0F.
    fn after_vex(&mut self, first: u8) -> Option<bool> {
        let mut byte = self.next();
        // The bits are those of REX, inverted.
        self.rex = !byte >> 5 & 4;
        if first == 0xC4 {
            if byte & 0x1F != 1 {
                return None;
            }
            self.rex = !byte >> 5;
            byte = self.next();
        }
        (self.is_short, self.has_f3) = (byte & 3 == 1, byte & 3 == 2);
        Some(true)
    }

    /// What an instruction of one byte does.
    #[allow(clippy::match_same_arms)] // each line is a family
    fn shape(&self, opcode: u8, mod_rm: u8) -> Option<Shape> {
        use Access::{Read, Write};
        let immediate = if self.is_short { 2 } else { 4 };
        Some(match (opcode, mod_rm >> 3 & 7) {
            // add, or, adc, sbb, and, sub, xor to memory; xchg, mov to memory; not, neg, inc, dec
            (0x00..=0x37, _) if opcode & 7 < 2 => (Write, 0),
            (0x86..=0x89, _) | (0xF6 | 0xF7, 2 | 3) | (0xFE | 0xFF, 0 | 1) => (Write, 0),
            // the same from memory, and cmp; movsxd, test, mov from memory; mul, div; jmp
            (0x38 | 0x39, _) => (Read, 0),
            (0x00..=0x3F, _) if opcode & 7 < 4 => (Read, 0),
            (0x63 | 0x84 | 0x85 | 0x8A | 0x8B, _) | (0xF6 | 0xF7, 4..=7) | (0xFF, 4) => (Read, 0),
            // mov of a number
            (0xC6, 0) => (Write, 1),
            (0xC7, 0) => (Write, immediate),
            // cmp with a number, test with one; and, of those above, the others
            (0x80 | 0x83, 7) | (0xF6, 0) => (Read, 1),
            (0x81, 7) | (0xF7, 0) => (Read, immediate),
            (0x80 | 0x83, _) => (Write, 1),
            (0x81, _) => (Write, immediate),
            _ => return None,
        })
    }

    /// What one does whose first byte is 0F.
    #[allow(clippy::match_same_arms)] // each line is a family
    fn shape_0f(&self, opcode: u8, mod_rm: u8) -> Option<Shape> {
        use Access::{Read, Write};
        Some(match opcode {
            // moves to SSE's registers, and from them
            0x10 | 0x12 | 0x16 | 0x28 | 0x6E | 0x6F => (Read, 0),
            0x11 | 0x13 | 0x17 | 0x29 | 0x7F => (Write, 0),
            0x7E if self.has_f3 => (Read, 0),
            0x7E if self.is_short => (Write, 0),
            0xD6 | 0xE7 if self.is_short => (Write, 0),
            // punpck, pcmpeq, pminub, por, pxor, padd and the like
            0x60..=0x6D | 0x74..=0x76 | 0xDA | 0xDB | 0xEB | 0xEF | 0xFA..=0xFE if self.is_short => (Read, 0),
            // cmov, imul, movzx, movsx
            0x40..=0x4F | 0xAF | 0xB6 | 0xB7 | 0xBE | 0xBF => (Read, 0),
            // setcc, cmpxchg, xadd
            0x90..=0x9F | 0xB0 | 0xB1 | 0xC0 | 0xC1 => (Write, 0),
            // cmpxchg8b, cmpxchg16b
            0xC7 if mod_rm >> 3 & 7 == 1 => (Write, 0),
            _ => return None,
        })
    }

    /// Where the operand in memory begins, which `rest` bytes follow; `None` if it is a register.
    fn operand(&mut self, mod_rm: u8, rest: usize) -> Option<u64> {
        let general = |low: u8, high: u8| self.registers.general[usize::from(low & 7 | (self.rex >> high & 1) << 3)];
        let (mode, low) = (mod_rm >> 6, mod_rm & 7);
        if mode == 3 {
            return None;
        }
        let mut is_far = mode == 2;
        let mut place = general(low, 0);
        if low == 4 {
            let (base, index, scale) = {
                let sib = (self.code)(self.place);
                self.place += 1;
                (sib & 7, sib >> 3 & 7, sib >> 6)
            };
            let general = |low: u8, high: u8| self.registers.general[usize::from(low | (self.rex >> high & 1) << 3)];
            place = general(base, 0);
            if mode == 0 && base == 5 {
                (place, is_far) = (0, true);
            }
            if index != 4 || self.rex & 2 != 0 {
                place = place.wrapping_add(general(index, 1) << scale);
            }
        } else if mode == 0 && low == 5 {
            let distance = self.far();
            let end = self.registers.rip.wrapping_add((self.place + rest) as u64);
            return Some(end.wrapping_add(distance).wrapping_add(self.segment));
        }
        if is_far {
            place = place.wrapping_add(self.far());
        } else if mode == 1 {
            place = place.wrapping_add(self.next() as i8 as u64);
        }
        Some(place.wrapping_add(self.segment))
    }

    /// Reads a distance of four bytes.
    fn far(&mut self) -> u64 {
        let bytes = [self.next(), self.next(), self.next(), self.next()];
        i32::from_le_bytes(bytes) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::{access, Access, Registers};

    const RAX: usize = 0;
    const RCX: usize = 1;
    const R12: usize = 12;
    const R13: usize = 13;

    /// What `code` does where `register` is `value`, RIP 0x1000, and the fault at 0x70000.
    fn found(code: &[u8], register: usize, value: u64) -> Option<Access> {
        let mut registers = Registers { rip: 0x1000, segments: [0x60000, 0x50000], ..Registers::default() };
        registers.general[register] = value;
        access(&registers, 0x70000, |place| code.get(place).copied().unwrap_or(0xFF))
    }

    #[test]
    fn loads_and_stores_are_told_apart() {
        let cases: [(&[u8], usize, u64, Access); 29] = [
            (&[0x89, 0x08], RAX, 0x70000, Access::Write),            // mov [rax], ecx
            (&[0x48, 0x8B, 0x08], RAX, 0x70000, Access::Read),       // mov rcx, [rax]
            (&[0x48, 0x8B, 0x48, 0xF8], RAX, 0x70008, Access::Read), // mov rcx, [rax-8]
            (&[0x48, 0x89, 0x88, 0, 1, 0, 0], RAX, 0x6FF00, Access::Write), // mov [rax+256], rcx
            (&[0x49, 0x89, 0x04, 0x24], R12, 0x70000, Access::Write), // mov [r12], rax
            (&[0x49, 0x89, 0x45, 0], R13, 0x70000, Access::Write),   // mov [r13+0], rax
            (&[0x8B, 0x04, 0x8D, 0, 0, 7, 0], RCX, 0, Access::Read), // mov eax, [4*rcx+0x70000]
            (&[0x42, 0x8B, 0x04, 0xA0], R12, 0x1C000, Access::Read), // mov eax, [rax+4*r12]
            (&[0x64, 0x48, 0x8B, 0x04, 0x25, 0, 0, 1, 0], RAX, 9, Access::Read), // mov rax, fs:[0x10000]
            (&[0x65, 0x48, 0x89, 0x08], RAX, 0x20000, Access::Write), // mov gs:[rax], rcx
            (&[0xC6, 0x05, 0xF9, 0xEF, 6, 0, 1], RAX, 0, Access::Write), // mov byte [rip+0x6EFF9], 1
            (&[0x66, 0xC7, 0x05, 0xF7, 0xEF, 6, 0, 1, 0], RAX, 0, Access::Write), // mov word [rip+0x6EFF7], 1
            (&[0x0F, 0x11, 0x00], RAX, 0x70000, Access::Write),      // movups [rax], xmm0
            (&[0xF3, 0x0F, 0x6F, 0x00], RAX, 0x70000, Access::Read), // movdqu xmm0, [rax]
            (&[0x66, 0x0F, 0x74, 0x00], RAX, 0x70000, Access::Read), // pcmpeqb xmm0, [rax]
            (&[0xF0, 0x0F, 0xB1, 0x08], RAX, 0x70000, Access::Write), // lock cmpxchg [rax], ecx
            (&[0x83, 0x38, 5], RAX, 0x70000, Access::Read),          // cmp dword [rax], 5
            (&[0x83, 0x00, 5], RAX, 0x70000, Access::Write),         // add dword [rax], 5
            (&[0x55], super::RSP, 0x70008, Access::Write),           // push rbp
            (&[0xE8, 0, 0, 0, 0], super::RSP, 0x70008, Access::Write), // call
            (&[0xC3], super::RSP, 0x70000, Access::Read),            // ret
            (&[0xF3, 0x48, 0xAB], super::RDI, 0x70000, Access::Write), // rep stosq
            (&[0xF3, 0xA4], super::RDI, 0x70000, Access::Write),     // rep movsb
            (&[0xF3, 0x48, 0xA5], super::RSI, 0x70000, Access::Read), // rep movsq
            (&[0x39, 0x08], RAX, 0x70000, Access::Read),             // cmp [rax], ecx
            (&[0xC5, 0xFE, 0x6F, 0x00], RAX, 0x70000, Access::Read), // vmovdqu ymm0, [rax]
            (&[0xC5, 0xFE, 0x7F, 0x00], RAX, 0x70000, Access::Write), // vmovdqu [rax], ymm0
            (&[0xC4, 0xC1, 0x7E, 0x7F, 0x04, 0x24], R12, 0x70000, Access::Write), // vmovdqu [r12], ymm0
            (&[0x0F, 0xB6, 0x08], RAX, 0x6FFC1, Access::Read),       // movzx ecx, [rax], 63 bytes before
        ];
        for (code, register, value, expected) in cases {
            assert_eq!(found(code, register, value), Some(expected), "{code:02X?}");
        }
    }

    #[test]
    fn what_is_not_certain_is_not_told() {
        // Elsewhere, after and before.
        assert_eq!(found(&[0x89, 0x08], RAX, 0x70001), None);
        assert_eq!(found(&[0x89, 0x08], RAX, 0x70000 - 64), None);
        // A register; no instruction; one that is not known: call by memory, gathers, x87.
        for code in [&[0x89, 0xC8][..], &[0xFF, 0xFF], &[0xFF, 0x10], &[0xC4, 0xE2, 0x71, 0x90, 4, 0x10], &[0xDD, 0]] {
            assert_eq!(found(code, RAX, 0x70000), None, "{code:02X?}");
        }
        // Copied within a place: from, or to.
        let mut registers = Registers { rip: 0x1000, ..Registers::default() };
        (registers.general[super::RSI], registers.general[super::RDI]) = (0x70000, 0x6FFE0);
        assert_eq!(access(&registers, 0x70000, |_| 0xA4), None);
        // Only prefixes.
        assert_eq!(found(&[0x66; 16], RAX, 0x70000), None);
    }

    #[test]
    fn a_fault_within_the_instruction_may_be_that_of_fetching_it() {
        let mut registers = Registers { rip: 0x6FFFE, ..Registers::default() };
        registers.general[RAX] = 0x70000;
        assert_eq!(access(&registers, 0x70000, |place| [0x89, 0x08][place]), None);
    }
}
