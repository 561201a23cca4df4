//! A drive with platters: what its one head does, one thing after the other.
//!
//! Which request is next is decided when the head is free, among those that are there then: the one that it can begin first,
//! by seek and rotation (shortest positioning time first, which native command queuing does too). So what comes later may
//! overtake, and when a request is done is not known when it comes. The drive is therefore a small simulation of its own:
//! [`Mechanical::advance`] goes from end to end of what the head does, at exact instants, whenever it is looked at.
//!
//! **Reads** that the buffer holds (`buffer.rs`) do not need the head. After the others it reads on.
//!
//! **Writes** are done when they are in the write cache, if the drive has one. Writes next to each other become one extent
//! there, which the head writes in one go. Reads come first; what is in the cache is written while no read waits, or as
//! soon as something waits for it: a write that has found no room, or a flush. A flush is done when all is on the platter
//! that was in the cache when it came.

use arrayvec::ArrayVec;

use crate::buffer::Buffer;
use crate::geometry::Geometry;
use crate::parameters::MechanicalParameters;
use crate::request::{transfer_ns, Completions, Operation, Request, REQUESTS_MAX, SECTOR_BYTES};

/// Extents in the write cache at most; as many are there to choose from.
const EXTENTS_MAX: usize = 128;

/// What is written of an extent before something else may come in between.
const WRITTEN_AT_ONCE_SECTORS: u64 = 2048;

/// A request that waits for the head, for room in the write cache, or for the cache to be written.
#[derive(Clone, Copy)]
struct Waiting {
    tag: u64,
    number: u64,
    /// When the controller has understood it.
    known_ns: u64,
    request: Request,
}

/// Sectors to be written.
#[derive(Clone, Copy)]
struct Extent {
    first: u64,
    end: u64,
    /// The number of its oldest write.
    number: u64,
}

/// What the head does, until `end_ns`.
#[derive(Clone, Copy)]
enum Doing {
    Read { tag: u64, first: u64, end: u64 },
    Write { tag: u64 },
    Destage { number: u64, sectors: u64 },
}

pub struct Mechanical {
    parameters: MechanicalParameters,
    geometry: Geometry,
    buffer: Buffer,
    waiting: ArrayVec<Waiting, REQUESTS_MAX>,
    dirty: ArrayVec<Extent, EXTENTS_MAX>,
    dirty_sectors: u64,
    /// Requests so far.
    count: u64,
    doing: Option<(u64, Doing)>,
    /// Where the head is, and since when it has nothing to do.
    at: (u64, u64),
    free_ns: u64,
    link_free_ns: u64,
}

impl Mechanical {
    pub fn new(parameters: MechanicalParameters) -> Self {
        Self {
            parameters,
            geometry: Geometry::new(parameters),
            buffer: Buffer::new(parameters.read_ahead_bytes / SECTOR_BYTES),
            waiting: ArrayVec::new(),
            dirty: ArrayVec::new(),
            dirty_sectors: 0,
            count: 0,
            doing: None,
            at: (0, 0),
            free_ns: 0,
            link_free_ns: 0,
        }
    }

    /// The end of what the head does, if a request waits for that.
    pub fn next_ns(&self) -> u64 {
        let is_awaited = !self.waiting.is_empty() || !matches!(self.doing, None | Some((_, Doing::Destage { .. })));
        self.doing.filter(|_| is_awaited).map_or(u64::MAX, |(end_ns, _)| end_ns)
    }

    pub fn submit(&mut self, now_ns: u64, tag: u64, request: Request, completions: &mut Completions) {
        self.advance(now_ns, completions);
        self.free_ns = self.free_ns.max(now_ns);
        self.count += 1;
        let known_ns = now_ns + self.parameters.command_ns;
        self.waiting.push(Waiting { tag, number: self.count, known_ns, request });
        self.settle(now_ns, completions);
        self.begin(completions);
    }

    /// Ends all requests that are in flight, at no instant.
    pub fn give_up(&mut self, completions: &mut Completions) {
        self.waiting.drain(..).for_each(|waiting| completions.add(0, waiting.tag));
        if let Some((_, Doing::Read { tag, .. } | Doing::Write { tag })) = self.doing.take() {
            completions.add(0, tag);
        }
    }

    /// Does all that the head has done by `now_ns`.
    pub fn advance(&mut self, now_ns: u64, completions: &mut Completions) {
        while let Some((end_ns, doing)) = self.doing.filter(|&(end_ns, _)| end_ns <= now_ns) {
            self.doing = None;
            self.free_ns = end_ns;
            match doing {
                Doing::Read { tag, first, end } => {
                    completions.add(end_ns, tag);
                    let sector_ns = self.geometry.sector_ns_shifted(self.geometry.place(end - 1));
                    self.buffer.read(end_ns, first, end, sector_ns);
                }
                Doing::Write { tag } => completions.add(end_ns, tag),
                Doing::Destage { sectors, .. } => self.dirty_sectors -= sectors,
            }
            self.settle(end_ns, completions);
            self.begin(completions);
        }
    }

    /// Ends what waits for nothing any more: writes for which there is room, flushes of what is written.
    fn settle(&mut self, now_ns: u64, completions: &mut Completions) {
        let mut place = 0;
        while let Some(&waiting) = self.waiting.get(place) {
            let Waiting { tag, number, known_ns, request } = waiting;
            let at_ns = known_ns.max(now_ns);
            let done_ns = match request.operation {
                Operation::Write if self.cache(number, request) => Some(self.transfer(at_ns, request.length_bytes)),
                Operation::Flush if !self.is_dirty_before(number) => Some(at_ns),
                Operation::Discard => Some(at_ns),
                _ => None,
            };
            match done_ns {
                Some(done_ns) => {
                    completions.add(done_ns, tag);
                    self.waiting.remove(place);
                }
                None => place += 1,
            }
        }
    }

    /// Whether something is not on the platter that was written before request `number`.
    fn is_dirty_before(&self, number: u64) -> bool {
        let is_before = |other: u64| other < number;
        let is_being_written = matches!(self.doing, Some((_, Doing::Destage { number, .. })) if is_before(number));
        let waits = |waiting: &Waiting| waiting.request.operation == Operation::Write && is_before(waiting.number);
        is_being_written
            || matches!(self.doing, Some((_, Doing::Write { .. })))
            || self.dirty.iter().any(|extent| is_before(extent.number))
            || self.waiting.iter().any(waits)
    }

    /// Puts a write into the cache; false if there is no room.
    fn cache(&mut self, number: u64, request: Request) -> bool {
        let (first, end) = sectors(request);
        let size = self.parameters.write_cache_bytes / SECTOR_BYTES;
        // One that is larger than the cache goes through it when that is empty.
        if size == 0 || (self.dirty_sectors > 0 && self.dirty_sectors + (end - first) > size) {
            return false;
        }
        if let Some(extent) = self.dirty.iter_mut().find(|extent| extent.first <= first && first <= extent.end) {
            self.dirty_sectors += end.saturating_sub(extent.end);
            extent.end = extent.end.max(end);
            return true;
        }
        let has_room = !self.dirty.is_full();
        if has_room {
            self.dirty.push(Extent { first, end, number });
            self.dirty_sectors += end - first;
        }
        has_room
    }

    fn transfer(&mut self, ready_ns: u64, bytes: u64) -> u64 {
        self.link_free_ns = self.link_free_ns.max(ready_ns) + transfer_ns(bytes, self.parameters.link_bytes_per_s);
        self.link_free_ns
    }

    /// Gives the head something to do from `free_ns` on, if there is something and it is free.
    fn begin(&mut self, completions: &mut Completions) {
        if self.doing.is_some() {
            return;
        }
        self.end_buffered(completions);
        let reads_or_writes = |waiting: &&Waiting| self.needs_head(waiting.request);
        let begin_ns = |waiting: &Waiting| self.begin_ns(waiting);
        let next = self.waiting.iter().filter(reads_or_writes).min_by_key(|waiting| begin_ns(waiting)).copied();
        let is_pressed = self.waiting.iter().any(|waiting| !self.needs_head(waiting.request));
        let extent_ns = |extent: &Extent| self.arrival_ns(self.free_ns, extent.first, true);
        let places = 0..self.dirty.len();
        let extent = places.filter(|_| next.is_none() || is_pressed).min_by_key(|&at| extent_ns(&self.dirty[at]));
        match (next, extent) {
            (Some(next), Some(at)) if begin_ns(&next) <= extent_ns(&self.dirty[at]) => self.serve(next),
            (_, Some(at)) => self.destage(at),
            (Some(next), None) => self.serve(next),
            (None, None) => {}
        }
    }

    /// Ends reads of what the buffer or the write cache holds.
    fn end_buffered(&mut self, completions: &mut Completions) {
        let mut place = 0;
        while let Some(&Waiting { tag, known_ns, request, .. }) = self.waiting.get(place) {
            let (first, end) = sectors(request);
            let is_cached = |extent: &Extent| extent.first <= first && end <= extent.end;
            let is_here = request.operation == Operation::Read
                && (self.buffer.holds(self.free_ns, first, end) || self.dirty.iter().any(is_cached));
            if is_here {
                let done_ns = self.transfer(known_ns.max(self.free_ns), request.length_bytes);
                completions.add(done_ns, tag);
                self.waiting.remove(place);
            } else {
                place += 1;
            }
        }
    }

    fn needs_head(&self, request: Request) -> bool {
        match request.operation {
            Operation::Read => true,
            Operation::Write => self.parameters.write_cache_bytes == 0,
            Operation::Flush | Operation::Discard => false,
        }
    }

    /// When sector `first` is under the head, which leaves where it is at `from_ns`.
    fn arrival_ns(&self, from_ns: u64, first: u64, writes: bool) -> u64 {
        from_ns + self.geometry.positioning_ns(from_ns, self.at, self.geometry.place(first), writes)
    }

    /// When the head can begin with a request; at once, if it is reading on to there.
    fn begin_ns(&self, waiting: &Waiting) -> u64 {
        let from_ns = self.free_ns.max(waiting.known_ns);
        let (first, end) = sectors(waiting.request);
        if self.passes_ns(waiting, first, end).is_some() {
            return from_ns;
        }
        self.arrival_ns(from_ns, first, waiting.request.operation == Operation::Write)
    }

    fn passes_ns(&self, waiting: &Waiting, first: u64, end: u64) -> Option<u64> {
        let is_read = waiting.request.operation == Operation::Read;
        let passes = |from_ns| self.buffer.passes_ns(from_ns, first, end);
        is_read.then(|| passes(self.free_ns.max(waiting.known_ns))).flatten()
    }

    fn serve(&mut self, waiting: Waiting) {
        let (first, end) = sectors(waiting.request);
        let is_read = waiting.request.operation == Operation::Read;
        let passed_ns = self.passes_ns(&waiting, first, end);
        let begin_ns = self.begin_ns(&waiting);
        let end_ns = passed_ns.unwrap_or(begin_ns + self.geometry.passing_ns(self.geometry.place(first), end - first));
        if passed_ns.is_none() {
            self.buffer.stop(self.free_ns.max(waiting.known_ns));
        }
        let tag = waiting.tag;
        self.waiting.retain(|other| other.number != waiting.number);
        let doing = if is_read { Doing::Read { tag, first, end } } else { Doing::Write { tag } };
        self.begin_doing(end_ns, doing, end);
    }

    /// Writes an extent of the cache, or its beginning.
    fn destage(&mut self, at: usize) {
        let Extent { first, end, number } = self.dirty[at];
        let until = end.min(first + WRITTEN_AT_ONCE_SECTORS);
        let begin_ns = self.arrival_ns(self.free_ns, first, true);
        let end_ns = begin_ns + self.geometry.passing_ns(self.geometry.place(first), until - first);
        self.buffer.stop(self.free_ns);
        if until == end {
            self.dirty.remove(at);
        } else {
            self.dirty[at].first = until;
        }
        self.begin_doing(end_ns, Doing::Destage { number, sectors: until - first }, until);
    }

    fn begin_doing(&mut self, end_ns: u64, doing: Doing, end: u64) {
        let last = self.geometry.place(end - 1);
        self.at = (last.cylinder, last.head);
        self.doing = Some((end_ns, doing));
    }
}

/// The first sector of a request, and that after its last.
fn sectors(request: Request) -> (u64, u64) {
    let first = request.offset_bytes / SECTOR_BYTES;
    (first, request.end_bytes().div_ceil(SECTOR_BYTES).max(first + 1))
}

#[cfg(test)]
mod tests {
    use crate::disk::tests::{latencies, mean, random_reads, read, write, FLUSH, MECHANICAL};
    use crate::disk::Disk;
    use crate::request::{Operation, Request};
    use std::vec::Vec;

    /// 200,000 cylinders of 4 tracks of 1,500 sectors in the mean.
    const CAPACITY_BYTES: u64 = 200_000 * 4 * 1500 * 512;
    const SECOND_NS: u64 = 1_000_000_000;

    fn disk() -> Disk {
        Disk::parse(MECHANICAL).unwrap()
    }

    fn random_writes(count: usize, seed: u64) -> Vec<Request> {
        let operation = Operation::Write;
        random_reads(count, 4096, CAPACITY_BYTES, seed).into_iter().map(|read| Request { operation, ..read }).collect()
    }

    fn rate(bytes: u64, ns: u64) -> f64 {
        bytes as f64 / (ns as f64 / 1e9)
    }

    #[test]
    fn a_random_read_takes_the_mean_seek_half_a_revolution_and_its_transfer() {
        let (found, _) = latencies(&mut disk(), 0, 1, random_reads(5_000, 4096, CAPACITY_BYTES, 1));
        // More sectors are outside, where seeks between them are shorter: by 3 % with a third fewer inside.
        let expected = 100_000.0 + 8_500_000.0 + 4_166_667.0 + 44_000.0;
        assert!((mean(&found) / expected - 0.985).abs() < 0.02, "{}", mean(&found) / expected);
    }

    #[test]
    fn reads_one_after_the_other_come_at_the_rate_of_the_track() {
        // 2,000 sectors a revolution and switch outside, 1,000 inside.
        for (begin, expected) in [(0, 110.9e6), (CAPACITY_BYTES - (1 << 28), 55.45e6)] {
            for depth in [1, 8] {
                let requests = (0..1_000).map(|place| read(begin + (place << 17), 1 << 17));
                let (_, end_ns) = latencies(&mut disk(), 0, depth, requests);
                let found = rate(1_000 << 17, end_ns);
                assert!((found / expected - 1.0).abs() < 0.02, "{found} at depth {depth}");
            }
        }
    }

    #[test]
    fn what_was_read_ahead_comes_at_the_rate_of_the_link() {
        let mut disk = disk();
        let (_, end_ns) = latencies(&mut disk, 0, 1, [read(0, 4096)]);
        // In 20 ms the head has passed 2 MB, of which 1 MiB is kept.
        let (found, _) = latencies(&mut disk, end_ns + SECOND_NS / 50, 1, [read(4096, 131_072)]);
        assert_eq!(found, [100_000 + 436_907]);
    }

    #[test]
    fn what_was_read_ahead_at_one_place_is_kept_while_others_are_read() {
        let (mut disk, mut now_ns) = (disk(), 0);
        for round in 0..2 {
            for place in 0..4 {
                let request = read(place * (CAPACITY_BYTES / 4) + round * 4096, 4096);
                let (found, _) = latencies(&mut disk, now_ns, 1, [request]);
                assert_eq!(found[0] < 200_000, round > 0, "{found:?}");
                now_ns += SECOND_NS / 10;
            }
        }
    }

    #[test]
    fn more_random_reads_are_done_in_a_second_the_more_there_are_to_choose_from() {
        let mut before = 0.0;
        for (depth, at_least) in [(1, 70.0), (4, 100.0), (32, 180.0)] {
            let (_, end_ns) = latencies(&mut disk(), 0, depth, random_reads(3_000, 4096, CAPACITY_BYTES, 2));
            let found = 3_000.0 / (end_ns as f64 / 1e9);
            assert!(found > at_least && found > 1.2 * before, "{found} at depth {depth}");
            before = found;
        }
    }

    #[test]
    fn writes_are_done_when_they_are_in_the_cache_and_a_flush_when_they_are_on_the_platter() {
        let mut disk = disk();
        let (found, end_ns) = latencies(&mut disk, 0, 1, random_writes(20, 3));
        assert_eq!(found, [100_000 + 13_654; 20]);
        let (found, _) = latencies(&mut disk, end_ns, 1, [FLUSH]);
        // 20 places in an order of the drive's choice.
        assert!((20 * 2_000_000..20 * 12_000_000).contains(&found[0]), "{found:?}");
        let (found, _) = latencies(&mut disk, 10 * SECOND_NS, 1, [FLUSH]);
        assert_eq!(found, [100_000]);
    }

    #[test]
    fn writes_wait_for_the_platter_once_the_cache_is_full() {
        let (found, end_ns) = latencies(&mut disk(), 0, 4, (0..1_000).map(|place| write(place << 17, 1 << 17)));
        // 131 MB at the rate of the track, but for 16 MiB that are in the cache at the end.
        let written = rate((1_000 << 17) - (16 << 20), end_ns);
        assert!((written / 110.9e6 - 1.0).abs() < 0.1, "{written}");
        assert!(found[0] < 1_000_000);
    }

    #[test]
    fn without_a_write_cache_a_write_takes_its_seek_settling_and_rotation() {
        let mut disk = Disk::parse(&MECHANICAL.replace("write_cache_bytes=16777216", "write_cache_bytes=0")).unwrap();
        let (found, _) = latencies(&mut disk, 0, 1, random_writes(3_000, 4));
        let expected = 100_000.0 + 9_500_000.0 + 4_166_667.0 + 44_000.0;
        assert!((mean(&found) / expected - 0.985).abs() < 0.02, "{}", mean(&found) / expected);
    }

    #[test]
    fn reads_come_before_what_is_in_the_write_cache() {
        let mut disk = disk();
        let (_, end_ns) = latencies(&mut disk, 0, 1, random_writes(100, 5));
        let (found, _) = latencies(&mut disk, end_ns, 1, random_reads(50, 4096, CAPACITY_BYTES, 6));
        // At most what the head is doing just now is in the way.
        assert!(found.iter().all(|&ns| ns < 2 * 27_000_000), "{found:?}");
        assert!(mean(&found) < 20_000_000.0, "{}", mean(&found));
    }
}
