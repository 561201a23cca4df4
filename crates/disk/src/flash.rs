//! A solid-state disk: a controller, channels, dies, a write cache, and the collecting of garbage.
//!
//! **Reads** go to the die that holds a page: pages are spread over the dies by turns, a die reads one at a time, a channel
//! carries the bytes of one die at a time, and the link to the host those of one channel. So requests at random places go
//! on side by side, and their number a second grows with the depth of the queue until the controller, a die, a channel or
//! the link is busy all the time.
//!
//! **Writes** are done when they are in the cache, which the dies empty as fast as they can program pages. Which die does
//! when is not followed up: the cache is a tank with a drain. A read of a die that programs suspends it (which current dies
//! can do), and does not wait.
//!
//! **Garbage.** A page cannot be overwritten: new data go to clean pages, and old ones have to be erased by the block, after
//! what is still valid in it has been moved. As long as there are clean pages in reserve the drain runs at its full rate.
//! Once they are used up, every byte that is written at a random place costs as many bytes of programming as the write
//! amplification says: the knee in every curve of random writes. Data that continue an earlier write leave whole blocks
//! without anything valid, and cost only themselves. When the disk has nothing to write, it makes clean pages at the rate
//! that is left for them, until the reserve is full again. For uniformly random writes, and a share s of spare room, greedy
//! collecting has an amplification of about (1 + s) / 2 s.

use crate::parameters::FlashParameters;
use crate::request::{transfer_ns, Operation, Request};

/// Channels and dies at most.
const CHANNELS_MAX: usize = 64;
const DIES_MAX: usize = 512;

/// Ends of earlier writes that a write may continue.
const STREAMS: usize = 16;

/// Bytes are kept in parts of 10^9, so that a rate in bytes a second times nanoseconds is exact.
const PARTS: u128 = 1_000_000_000;

pub struct Flash {
    parameters: FlashParameters,
    /// When each may begin something else.
    controller_free_ns: u64,
    link_free_ns: u64,
    channel_free_ns: [u64; CHANNELS_MAX],
    die_free_ns: [u64; DIES_MAX],
    cache: Cache,
}

impl Flash {
    /// More channels or dies than there is room for count as that many.
    pub fn new(mut parameters: FlashParameters) -> Self {
        parameters.channels = parameters.channels.min(CHANNELS_MAX as u64);
        parameters.dies = parameters.dies.min(DIES_MAX as u64);
        Self {
            parameters,
            controller_free_ns: 0,
            link_free_ns: 0,
            channel_free_ns: [0; CHANNELS_MAX],
            die_free_ns: [0; DIES_MAX],
            cache: Cache::new(&parameters),
        }
    }

    /// The end of a request that comes at `now_ns`.
    pub fn serve(&mut self, now_ns: u64, request: Request) -> u64 {
        self.controller_free_ns = self.controller_free_ns.max(now_ns) + self.parameters.command_ns;
        let known_ns = self.controller_free_ns + self.parameters.overhead_ns;
        match request.operation {
            Operation::Read => self.read(known_ns, request),
            Operation::Write => {
                let here_ns = self.transfer(known_ns, request.length_bytes);
                self.cache.write(here_ns, request)
            }
            Operation::Discard => known_ns,
            Operation::Flush if self.parameters.flush_drains == 0 => known_ns,
            Operation::Flush => self.cache.empty_ns(known_ns),
        }
    }

    fn read(&mut self, known_ns: u64, request: Request) -> u64 {
        let FlashParameters { page_bytes, channels, dies, .. } = self.parameters;
        let (mut at, mut end_ns) = (request.offset_bytes, known_ns);
        while at < request.end_bytes() {
            let page = at / page_bytes;
            let bytes = ((page + 1) * page_bytes).min(request.end_bytes()) - at;
            let die = (page % dies) as usize;
            let channel = (page % channels) as usize;
            let read_ns = self.die_free_ns[die].max(known_ns) + self.parameters.read_page_ns;
            let carried_ns =
                self.channel_free_ns[channel].max(read_ns) + transfer_ns(bytes, self.parameters.channel_bytes_per_s);
            self.channel_free_ns[channel] = carried_ns;
            self.die_free_ns[die] = carried_ns;
            end_ns = self.transfer(carried_ns, bytes);
            at += bytes;
        }
        end_ns
    }

    /// When `bytes` that are ready at `ready_ns` have come over the link.
    fn transfer(&mut self, ready_ns: u64, bytes: u64) -> u64 {
        self.link_free_ns = self.link_free_ns.max(ready_ns) + transfer_ns(bytes, self.parameters.link_bytes_per_s);
        self.link_free_ns
    }
}

/// What has been written and not yet programmed, as parts of bytes, which cost more when they have to make room.
struct Cache {
    size: u128,
    /// The speed of the drain, bytes a second.
    drain_per_s: u128,
    amplification_permille: u128,
    clean_max: u128,
    /// What programming is left to do.
    due: u128,
    /// What of that takes room in the cache.
    held: u128,
    clean: u128,
    at_ns: u64,
    /// Ends of writes, the latest at `latest`.
    streams: [u64; STREAMS],
    latest: usize,
}

impl Cache {
    fn new(parameters: &FlashParameters) -> Self {
        let page_rate = parameters.page_bytes * 1_000_000_000 / parameters.program_page_ns;
        let channels_rate = u128::from(parameters.channels) * u128::from(parameters.channel_bytes_per_s);
        let clean_max = u128::from(parameters.clean_bytes) * PARTS;
        Self {
            size: u128::from(parameters.write_cache_bytes) * PARTS,
            drain_per_s: (u128::from(parameters.dies) * u128::from(page_rate)).min(channels_rate).max(1),
            amplification_permille: u128::from(parameters.write_amplification_permille).max(1000),
            clean_max,
            due: 0,
            held: 0,
            clean: clean_max,
            at_ns: 0,
            streams: [0; STREAMS],
            latest: 0,
        }
    }

    /// Lets the drain run until `now_ns`; in what time it leaves it makes room.
    fn advance(&mut self, now_ns: u64) {
        let done = u128::from(now_ns.saturating_sub(self.at_ns)) * self.drain_per_s;
        self.at_ns = self.at_ns.max(now_ns);
        if done < self.due {
            self.held -= self.held * done / self.due;
            self.due -= done;
        } else {
            let spare = done - self.due;
            (self.held, self.due) = (0, 0);
            self.clean = (self.clean + spare * 1000 / self.amplification_permille).min(self.clean_max);
        }
    }

    /// When a write that has come at `here_ns` has found room.
    fn write(&mut self, here_ns: u64, request: Request) -> u64 {
        self.advance(here_ns);
        let bytes = u128::from(request.length_bytes) * PARTS;
        let continues = self.continues(request);
        let from_clean = bytes.min(self.clean);
        self.clean -= from_clean;
        let rest = bytes - from_clean;
        let amplification_permille = if continues { 1000 } else { self.amplification_permille };
        let room = self.size.saturating_sub(bytes);
        let begin_ns = self.at_ns;
        if self.held > room {
            // The tank drains evenly: so much of what is due until so much of what is held has gone.
            let until = (self.due * (self.held - room)).div_ceil(self.held);
            self.advance(begin_ns + until.div_ceil(self.drain_per_s) as u64);
        }
        self.due += from_clean + rest * amplification_permille / 1000;
        self.held += bytes;
        self.at_ns
    }

    /// Whether a write continues an earlier one; it is remembered.
    fn continues(&mut self, request: Request) -> bool {
        if let Some(stream) = self.streams.iter_mut().find(|end| **end == request.offset_bytes && **end > 0) {
            *stream = request.end_bytes();
            return true;
        }
        self.latest = (self.latest + 1) % STREAMS;
        self.streams[self.latest] = request.end_bytes();
        false
    }

    /// When all is programmed that is here at `now_ns`.
    fn empty_ns(&mut self, now_ns: u64) -> u64 {
        self.advance(now_ns);
        self.at_ns + self.due.div_ceil(self.drain_per_s) as u64
    }
}

#[cfg(test)]
mod tests {
    use crate::disk::tests::{latencies, mean, random_reads, read, write, FLASH, FLUSH};
    use crate::disk::Disk;
    use crate::request::{Operation, Request};
    use std::vec::Vec;

    const GB: u64 = 1_000_000_000;

    fn disk() -> Disk {
        Disk::parse(FLASH).unwrap()
    }

    fn random_writes(count: usize, seed: u64) -> Vec<Request> {
        let operation = Operation::Write;
        random_reads(count, 4096, 100 * GB, seed).into_iter().map(|read| Request { operation, ..read }).collect()
    }

    #[test]
    fn a_read_alone_takes_controller_die_channel_and_link_one_after_the_other() {
        let (found, _) = latencies(&mut disk(), 0, 1, [read(0, 4096)]);
        // 12 us and 5 us, 40 us, 10.24 us, 7.448 us.
        assert_eq!(found, [12_000 + 5_000 + 40_000 + 10_240 + 7_448]);
    }

    #[test]
    fn random_reads_a_second_grow_with_the_depth_until_the_controller_is_busy_all_the_time() {
        let rate = |depth| {
            let (_, end_ns) = latencies(&mut disk(), 0, depth, random_reads(20_000, 4096, 100 * GB, 1));
            20_000.0 / (end_ns as f64 / 1e9)
        };
        assert!((rate(1) / 13_391.0 - 1.0).abs() < 0.01, "{}", rate(1));
        assert!(rate(4) > 3.2 * rate(1), "{}", rate(4));
        // 1 / 12 us
        assert!((rate(32) / 83_333.0 - 1.0).abs() < 0.02, "{}", rate(32));
    }

    #[test]
    fn long_reads_come_at_the_rate_of_the_link() {
        let (_, end_ns) = latencies(&mut disk(), 0, 4, (0..500).map(|place| read(place << 20, 1 << 20)));
        let rate = (500 << 20) as f64 / (end_ns as f64 / 1e9);
        assert!((rate / 550e6 - 1.0).abs() < 0.01, "{rate}");
    }

    #[test]
    fn writes_are_done_when_they_are_in_the_cache_until_it_is_full() {
        let mut disk = disk();
        let (found, _) = latencies(&mut disk, 0, 1, random_writes(100, 2));
        assert_eq!(found, [12_000 + 5_000 + 7_448; 100]);
        let (found, _) = latencies(&mut disk, GB, 32, (0..400).map(|place| write(place << 20, 1 << 20)));
        // 64 dies of 16 KiB in 2 ms are 524 MB/s.
        assert!((mean(&found[300..]) / (32.0 * 2e6) - 1.0).abs() < 0.02, "{}", mean(&found[300..]));
    }

    #[test]
    fn random_writes_slow_down_by_the_amplification_once_the_clean_pages_are_used_up() {
        let mut disk = Disk::parse(&FLASH.replace("command_ns=12000", "command_ns=1000")).unwrap();
        let rate = |disk: &mut Disk, begin_ns, count, seed| {
            let (_, end_ns) = latencies(disk, begin_ns, 32, random_writes(count, seed));
            (count as f64 * 4096.0 / ((end_ns - begin_ns) as f64 / 1e9), end_ns)
        };
        // 64 MiB are clean, 16 MiB more are in the cache at last; then 524 MB/s / 3.
        let (before, end_ns) = rate(&mut disk, 0, 10_000, 3);
        let (_, end_ns) = rate(&mut disk, end_ns, 20_000, 4);
        let (after, end_ns) = rate(&mut disk, end_ns, 20_000, 5);
        assert!(before > 450e6, "{before}");
        assert!((after / (524.288e6 / 3.0) - 1.0).abs() < 0.02, "{after}");
        // In a second of rest it makes clean what it has room for.
        let (again, _) = rate(&mut disk, end_ns + GB, 10_000, 6);
        assert!((again / before - 1.0).abs() < 0.02, "{again}");
    }

    #[test]
    fn writes_that_continue_others_need_no_room_made_for_them() {
        let mut disk = disk();
        let (_, middle_ns) = latencies(&mut disk, 0, 8, (1..800).map(|place| write(place << 20, 1 << 20)));
        let (_, end_ns) = latencies(&mut disk, middle_ns, 8, (800..1000).map(|place| write(place << 20, 1 << 20)));
        let rate = (200 << 20) as f64 / ((end_ns - middle_ns) as f64 / 1e9);
        assert!((rate / 524.288e6 - 1.0).abs() < 0.02, "{rate}");
    }

    #[test]
    fn a_flush_empties_the_cache_unless_it_survives_a_loss_of_power() {
        let requests = || [write(0, 1 << 20), FLUSH];
        // 1 MiB over the link, at 550 MB/s, and to the dies, at 524.288 MB/s.
        let (found, _) = latencies(&mut disk(), 0, 1, requests());
        assert!((1_950_000..2_050_000).contains(&found[1]), "{found:?}");
        let mut protected = Disk::parse(&FLASH.replace("flush_drains=1", "flush_drains=0")).unwrap();
        let (found, _) = latencies(&mut protected, 0, 1, requests());
        assert_eq!(found[1], 17_000);
    }
}
