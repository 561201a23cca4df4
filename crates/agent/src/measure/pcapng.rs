//! Captures as files: the blocks of pcapng (draft-ietf-opsawg-pcapng), in the machine's byte order.
//!
//! Instants are virtual time since the run's virtual 0, in nanoseconds. So what readers show as seconds since 1970 is
//! virtual time.

const SECTION: u32 = 0x0A0D_0D0A;
const INTERFACE: u32 = 1;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1A2B_3C4D;
/// Fixed part of a packet block: its kind and two lengths, interface, instant, captured and original length.
const PACKET_BLOCK_BYTES: usize = 32;
/// `LINKTYPE_ETHERNET`.
const ETHERNET: u16 = 1;
/// The resolution of instants: 10 to the minus 9 seconds.
const NANOSECONDS: u8 = 9;

/// What a file ends with.
pub const END_BYTES: usize = 88;
/// Where the values of its counts are in it: packets received, dropped, and written.
const COUNTS_AT: [usize; 3] = [48, 60, 72];

const END: u16 = 0;
const SECTION_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_RESOLUTION: u16 = 9;
const INTERFACE_FILTER: u16 = 11;
const PACKET_FLAGS: u16 = 2;
const STATISTICS_START: u16 = 2;
const STATISTICS_END: u16 = 3;
const STATISTICS_RECEIVED: u16 = 4;
const STATISTICS_DROPPED_BY_SYSTEM: u16 = 7;
const STATISTICS_DELIVERED: u16 = 8;

/// Which way a packet went, as the flags of a packet block say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Direction {
    /// The packet comes to the node.
    In = 1,
    /// The packet leaves the node.
    Out = 2,
}

/// What was counted during a capture.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Packets that met the filter.
    pub received: u64,
    /// Those of them for which there was no room.
    pub dropped: u64,
    /// Those that are in the file.
    pub written: u64,
}

/// Appends what a file begins with: the section, and its only interface.
pub fn begin(file: &mut Vec<u8>, name: &str, snaplen: u32, filter: Option<&str>) {
    block(file, SECTION, |body| {
        body.extend_from_slice(&BYTE_ORDER.to_ne_bytes());
        body.extend_from_slice(&[1, 0, 0, 0]); // version 1.0
        body.extend_from_slice(&u64::MAX.to_ne_bytes()); // the length of the section is not known
        option(body, SECTION_APPLICATION, concat!("Dilaton ", env!("CARGO_PKG_VERSION")).as_bytes());
        option(body, END, &[]);
    });
    block(file, INTERFACE, |body| {
        body.extend_from_slice(&ETHERNET.to_ne_bytes());
        body.extend_from_slice(&[0; 2]);
        body.extend_from_slice(&snaplen.to_ne_bytes());
        option(body, INTERFACE_NAME, name.as_bytes());
        option(body, INTERFACE_RESOLUTION, &[NANOSECONDS]);
        if let Some(filter) = filter {
            // The first byte says that it is a text.
            option(body, INTERFACE_FILTER, &[b"\0", filter.as_bytes()].concat());
        }
        option(body, END, &[]);
    });
}

/// Appends a packet: the captured bytes are `parts`, one after the other, of `length` that it had.
pub fn packet(file: &mut Vec<u8>, t_ns: u64, parts: [&[u8]; 3], length: u32, direction: Direction) {
    let captured: usize = parts.iter().map(|part| part.len()).sum();
    let padding = captured.next_multiple_of(4) - captured;
    let total = (PACKET_BLOCK_BYTES + captured + padding + 12) as u32;
    for word in [PACKET, total, 0, (t_ns >> 32) as u32, t_ns as u32, captured as u32, length] {
        file.extend_from_slice(&word.to_ne_bytes());
    }
    for part in parts {
        file.extend_from_slice(part);
    }
    file.extend_from_slice(&[0; 4][..padding]);
    option(file, PACKET_FLAGS, &(direction as u32).to_ne_bytes());
    option(file, END, &[]);
    file.extend_from_slice(&total.to_ne_bytes());
}

/// Appends what a file ends with: what was counted from `from_ns` to `t_ns` after virtual 0.
pub fn end(file: &mut Vec<u8>, from_ns: u64, t_ns: u64, counts: Counts) {
    let instant = |t_ns: u64| [((t_ns >> 32) as u32).to_ne_bytes(), (t_ns as u32).to_ne_bytes()].concat();
    block(file, STATISTICS, |body| {
        body.extend_from_slice(&[0; 4]);
        body.extend_from_slice(&instant(t_ns));
        option(body, STATISTICS_START, &instant(from_ns));
        option(body, STATISTICS_END, &instant(t_ns));
        option(body, STATISTICS_RECEIVED, &counts.received.to_ne_bytes());
        option(body, STATISTICS_DROPPED_BY_SYSTEM, &counts.dropped.to_ne_bytes());
        option(body, STATISTICS_DELIVERED, &counts.written.to_ne_bytes());
        option(body, END, &[]);
    });
}

/// What was counted, of the end of a file; none if that is no end.
pub fn counted(end: &[u8; END_BYTES]) -> Option<Counts> {
    let begins = [STATISTICS, END_BYTES as u32].iter().flat_map(|word| word.to_ne_bytes()).eq(end[..8].iter().copied());
    let [received, dropped, written] =
        COUNTS_AT.map(|at| end[at..at + 8].iter().rev().fold(0, |count, &byte| count << 8 | u64::from(byte)));
    begins.then_some(Counts { received, dropped, written })
}

fn block(file: &mut Vec<u8>, kind: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = file.len();
    file.extend_from_slice(&kind.to_ne_bytes());
    file.extend_from_slice(&[0; 4]);
    fill(file);
    let length = ((file.len() - start + 4) as u32).to_ne_bytes();
    file[start + 4..start + 8].copy_from_slice(&length);
    file.extend_from_slice(&length);
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    body.extend_from_slice(&code.to_ne_bytes());
    body.extend_from_slice(&(value.len() as u16).to_ne_bytes());
    body.extend_from_slice(value);
    body.resize(body.len() + value.len().next_multiple_of(4) - value.len(), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: String = text.split_whitespace().collect();
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
    }

    #[test]
    fn the_interface_has_name_snaplen_resolution_and_filter() {
        let mut file = Vec::new();
        begin(&mut file, "a:eth0", 96, Some("tcp"));
        let section_bytes = u32::from_ne_bytes(file[4..8].try_into().unwrap()) as usize;
        let section = "0a0d0d0a 34000000 4d3c2b1a 0100 0000 ffffffffffffffff 0400 0d00";
        assert_eq!(file[..28], hex(section));
        let interface = "01000000 34000000 0100 0000 60000000
            0200 0600 613a65746830 0000
            0900 0100 09 000000
            0b00 0400 00 746370
            0000 0000 34000000";
        assert_eq!(file[section_bytes..], hex(interface));
    }

    #[test]
    fn a_packet_is_padded_and_says_which_way_it_went() {
        let mut file = Vec::new();
        packet(&mut file, 0x1_0000_0002, [b"abc", b"", b"de"], 60, Direction::Out);
        let expected = "06000000 34000000 00000000 01000000 02000000 05000000 3c000000
            6162636465 000000
            0200 0400 02000000 0000 0000 34000000";
        assert_eq!(file, hex(expected));
    }

    #[test]
    fn the_statistics_say_what_is_missing() {
        let mut file = Vec::new();
        end(&mut file, 0, 5, Counts { received: 10, dropped: 3, written: 7 });
        let expected = "05000000 58000000 00000000 00000000 05000000
            0200 0800 00000000 00000000
            0300 0800 00000000 05000000
            0400 0800 0a00000000000000
            0700 0800 0300000000000000
            0800 0800 0700000000000000
            0000 0000 58000000";
        assert_eq!(file, hex(expected));
    }

    #[test]
    fn what_was_counted_is_read_off_the_end_and_nothing_else_is_one() {
        let (mut file, counts) = (Vec::new(), Counts { received: 1 << 40, dropped: 3, written: 7 });
        end(&mut file, 0, 5, counts);
        assert_eq!(counted(file.as_slice().try_into().unwrap()), Some(counts));
        assert_eq!(counted(&[0; END_BYTES]), None);
    }
}
