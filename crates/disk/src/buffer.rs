//! What a drive has read ahead.
//!
//! After a read the head goes on reading where it is until something else needs it. The sectors that it has passed are in
//! a segment of the buffer; the drive keeps some segments, so that a few readers which take turns all profit.

use arrayvec::ArrayVec;

const SEGMENTS: usize = 16;

/// Sectors in the buffer. Where `grows` says since when, the head reads on from `end`.
#[derive(Clone, Copy)]
struct Segment {
    first: u64,
    end: u64,
    grows: Option<Growth>,
}

#[derive(Clone, Copy)]
struct Growth {
    since_ns: u64,
    /// How long a sector takes, in 2^-16 ns.
    sector_ns_shifted: u64,
}

#[derive(Default)]
pub struct Buffer {
    segments: ArrayVec<Segment, SEGMENTS>,
    /// How many sectors are read ahead at most.
    ahead_max: u64,
}

impl Buffer {
    pub fn new(ahead_max: u64) -> Self {
        Self { segments: ArrayVec::new(), ahead_max }
    }

    /// The head has read the sectors from `first` to `end` at `now_ns`, and reads on.
    pub fn read(&mut self, now_ns: u64, first: u64, end: u64, sector_ns_shifted: u64) {
        self.stop(now_ns);
        let mut first = first;
        self.segments.retain(|segment| {
            let continues = segment.first <= first && first <= segment.end;
            if continues {
                first = segment.first.max(end.saturating_sub(self.ahead_max));
            }
            !continues
        });
        if self.segments.is_full() {
            self.segments.remove(0);
        }
        let grows = Some(Growth { since_ns: now_ns, sector_ns_shifted });
        self.segments.push(Segment { first, end, grows });
    }

    /// The head is needed elsewhere from `now_ns` on.
    pub fn stop(&mut self, now_ns: u64) {
        let ahead_max = self.ahead_max;
        if let Some(last) = self.segments.last_mut() {
            last.end = last.reached(now_ns, ahead_max);
            last.grows = None;
        }
    }

    /// Whether sectors are in the buffer at `now_ns`.
    pub fn holds(&self, now_ns: u64, first: u64, end: u64) -> bool {
        let reached = |segment: &Segment| segment.reached(now_ns, self.ahead_max);
        self.segments.iter().any(|segment| segment.first <= first && end <= reached(segment))
    }

    /// When the head, reading on, will have passed `end`, if `first` is what it has passed or comes to next.
    pub fn passes_ns(&self, now_ns: u64, first: u64, end: u64) -> Option<u64> {
        let segment = self.segments.last()?;
        let growth = segment.grows?;
        let follows = segment.first <= first && first <= segment.reached(now_ns, self.ahead_max);
        let in_ns = u128::from(end.saturating_sub(segment.end)) * u128::from(growth.sector_ns_shifted);
        follows.then(|| now_ns.max(growth.since_ns + (in_ns >> 16) as u64))
    }
}

impl Segment {
    /// Up to where it is filled at `now_ns`.
    fn reached(&self, now_ns: u64, ahead_max: u64) -> u64 {
        let passed = self.grows.map_or(0, |growth| {
            let shifted = u128::from(now_ns.saturating_sub(growth.since_ns)) << 16;
            (shifted / u128::from(growth.sector_ns_shifted)) as u64
        });
        self.end + passed.min(ahead_max)
    }
}
