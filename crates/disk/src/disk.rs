//! A disk: any of the models, and the requests in flight.

use virtual_time::VirtualInstant;

use crate::fixed::Fixed;
use crate::flash::Flash;
use crate::mechanical::Mechanical;
use crate::parameters::{word, FixedParameters, FlashParameters, MechanicalParameters, ParameterError};
use crate::request::{Completions, Request};

// There is no heap to put the larger ones on.
#[allow(clippy::large_enum_variant)]
enum Model {
    Fixed(Fixed),
    Flash(Flash),
    Mechanical(Mechanical),
}

/// A disk under load. Instants must not go back from one call to the next.
pub struct Disk {
    model: Model,
    completions: Completions,
    /// Nothing is answered before.
    stalled_until_ns: u64,
}

impl Disk {
    /// The disk that a text describes, idle: `model=fixed`, `flash` or `mechanical`, and its parameters.
    ///
    /// # Errors
    /// A parameter is missing or makes no sense.
    pub fn parse(text: &str) -> Result<Self, ParameterError> {
        let model = match word(text, "model") {
            Some("fixed") => Model::Fixed(Fixed::new(FixedParameters::parse(text)?)),
            Some("flash") => Model::Flash(Flash::new(FlashParameters::parse(text)?)),
            Some("mechanical") => Model::Mechanical(Mechanical::new(MechanicalParameters::parse(text)?)),
            _ => return Err(ParameterError("model")),
        };
        Ok(Self { model, completions: Completions::default(), stalled_until_ns: 0 })
    }

    /// Gives it a request. `tag` comes back when it is done.
    ///
    /// # Panics
    /// There are [`REQUESTS_MAX`] in flight already.
    pub fn submit(&mut self, now: VirtualInstant, tag: u64, request: Request) {
        let now_ns = now.as_ns();
        match &mut self.model {
            Model::Fixed(fixed) => self.completions.add(fixed.serve(now_ns, request), tag),
            Model::Flash(flash) => self.completions.add(flash.serve(now_ns, request), tag),
            Model::Mechanical(drive) => drive.submit(now_ns, tag, request, &mut self.completions),
        }
    }

    /// When to look again: at the end of a request, or at an instant that may bring one nearer; never, if none is in flight.
    #[must_use]
    pub fn next(&self) -> VirtualInstant {
        let known_ns = self.completions.first_ns();
        let next_ns = match &self.model {
            Model::Mechanical(drive) => known_ns.min(drive.next_ns()),
            Model::Fixed(_) | Model::Flash(_) => known_ns,
        };
        VirtualInstant::from_ns(next_ns.max(self.stalled_until_ns))
    }

    /// The request of this tag, which comes next, takes so much longer than the model says.
    pub fn delay(&mut self, tag: u64, delay_ns: u64) {
        self.completions.delay(tag, delay_ns);
    }

    /// Nothing is answered before this instant, whatever is done by then, in place of what was said of that before.
    pub fn stall(&mut self, until: VirtualInstant) {
        self.stalled_until_ns = until.as_ns();
    }

    /// Whether a request is done of which nobody has heard.
    pub fn is_ready(&mut self, now: VirtualInstant) -> bool {
        self.advance(now);
        self.completions.first_ns() <= now.as_ns() && !self.is_stalled(now)
    }

    /// Takes out a request that is done: when it was, and its tag. The earliest comes first.
    pub fn take_completed(&mut self, now: VirtualInstant) -> Option<(VirtualInstant, u64)> {
        self.advance(now);
        if self.is_stalled(now) {
            return None;
        }
        self.completions.take(now.as_ns()).map(|(at_ns, tag)| (VirtualInstant::from_ns(at_ns), tag))
    }

    /// Lets it take no time from now on, whatever is in flight.
    pub fn hurry(&mut self, now: VirtualInstant) {
        const AT_ONCE: FixedParameters =
            FixedParameters { read_latency_ns: 0, write_latency_ns: 0, requests_per_s: 0, bytes_per_s: 0 };
        self.give_up(now);
        self.model = Model::Fixed(Fixed::new(AT_ONCE));
    }

    /// Takes its power: what is in flight is over, and so is a stall.
    pub fn give_up(&mut self, now: VirtualInstant) {
        self.stalled_until_ns = 0;
        self.advance(now);
        if let Model::Mechanical(drive) = &mut self.model {
            drive.give_up(&mut self.completions);
        }
        self.completions.bring_forward(now.as_ns());
    }

    /// Answers a request at once, as one without power whose driver is to go on.
    pub fn refuse(&mut self, now: VirtualInstant, tag: u64) {
        self.completions.add(now.as_ns(), tag);
    }

    fn is_stalled(&self, now: VirtualInstant) -> bool {
        now.as_ns() < self.stalled_until_ns
    }

    fn advance(&mut self, now: VirtualInstant) {
        if let Model::Mechanical(drive) = &mut self.model {
            drive.advance(now.as_ns(), &mut self.completions);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::request::{Operation, SECTOR_BYTES};
    use proptest::prelude::*;
    use std::string::String;
    use std::vec::Vec;

    pub const FIXED: &str =
        "model=fixed read_latency_ns=100000 write_latency_ns=30000 requests_per_s=5000 bytes_per_s=100000000";
    pub const FLASH: &str = "model=flash channels=8 dies=64 page_bytes=16384 read_page_ns=40000 \
        program_page_ns=2000000 channel_bytes_per_s=400000000 link_bytes_per_s=550000000 command_ns=12000 \
        overhead_ns=5000 write_cache_bytes=16777216 flush_drains=1 clean_bytes=67108864 \
        write_amplification_permille=3000";
    pub const MECHANICAL: &str = "model=mechanical revolution_ns=8333333 cylinders=200000 heads=4 \
        outer_track_sectors=2000 inner_track_sectors=1000 seek_single_ns=800000 seek_mean_ns=8500000 \
        seek_full_ns=17000000 write_settle_ns=1000000 track_switch_ns=900000 command_ns=100000 \
        link_bytes_per_s=300000000 read_ahead_bytes=1048576 write_cache_bytes=16777216";

    pub fn read(offset_bytes: u64, length_bytes: u64) -> Request {
        Request { operation: Operation::Read, offset_bytes, length_bytes }
    }

    pub fn write(offset_bytes: u64, length_bytes: u64) -> Request {
        Request { operation: Operation::Write, offset_bytes, length_bytes }
    }

    pub const FLUSH: Request = Request { operation: Operation::Flush, offset_bytes: 0, length_bytes: 0 };

    /// Does `requests` with `depth` of them in flight from the instant `begin_ns` on, as fio does; the latency of each in
    /// order of their ends, and the instant at which the last was done.
    pub fn latencies(
        disk: &mut Disk,
        begin_ns: u64,
        depth: usize,
        requests: impl IntoIterator<Item = Request>,
    ) -> (Vec<u64>, u64) {
        let (mut begun, mut latencies, mut now_ns) = (Vec::new(), Vec::new(), begin_ns);
        let mut requests = requests.into_iter();
        let mut in_flight = 0;
        loop {
            while in_flight < depth {
                let Some(request) = requests.next() else { break };
                disk.submit(VirtualInstant::from_ns(now_ns), begun.len() as u64, request);
                begun.push(now_ns);
                in_flight += 1;
            }
            if in_flight == 0 {
                return (latencies, now_ns);
            }
            now_ns = disk.next().as_ns();
            while let Some((at, tag)) = disk.take_completed(VirtualInstant::from_ns(now_ns)) {
                latencies.push(at.as_ns() - begun[tag as usize]);
                in_flight -= 1;
            }
        }
    }

    /// Requests of `bytes` at random places of the first `size_bytes`, the same for the same seed.
    pub fn random_reads(count: usize, bytes: u64, size_bytes: u64, mut seed: u64) -> Vec<Request> {
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % (size_bytes / bytes)
        };
        (0..count).map(|_| read(next() * bytes, bytes)).collect()
    }

    pub fn mean(values: &[u64]) -> f64 {
        values.iter().sum::<u64>() as f64 / values.len() as f64
    }

    fn any_request() -> impl Strategy<Value = (u64, Request)> {
        let place = (0..1_000_000_u64, 1..256_u64, 0..11_u8, 0..20_000_000_u64);
        place.prop_map(|(sector, sectors, kind, gap_ns)| {
            let (offset, length) = (sector * SECTOR_BYTES * 100, sectors * SECTOR_BYTES);
            let request = match kind {
                0..=4 => read(offset, length),
                5..=8 => write(offset, length),
                9 => FLUSH,
                _ => Request { operation: Operation::Discard, ..write(offset, length) },
            };
            (gap_ns / u64::from(kind + 1).pow(3), request)
        })
    }

    /// Gives the disk requests at instants of their own, looks only when it says that it is worth looking, and returns when
    /// each was done.
    fn ends(text: &str, load: &[(u64, Request)]) -> Vec<(u64, u64)> {
        let mut disk = Disk::parse(text).unwrap();
        let (mut ends, mut now_ns) = (Vec::new(), 0);
        for (tag, &(gap_ns, request)) in load.iter().enumerate() {
            now_ns += gap_ns;
            while disk.next().as_ns() <= now_ns {
                let next = disk.next();
                while let Some((at, tag)) = disk.take_completed(next) {
                    ends.push((at.as_ns(), tag));
                }
            }
            disk.submit(VirtualInstant::from_ns(now_ns), tag as u64, request);
        }
        while disk.next() != VirtualInstant::NEVER {
            let next = disk.next();
            while let Some((at, tag)) = disk.take_completed(next) {
                ends.push((at.as_ns(), tag));
            }
        }
        ends
    }

    proptest! {
        #[test]
        fn every_request_is_done_once_after_its_beginning_and_in_the_order_of_ends(
            load in proptest::collection::vec(any_request(), 1..100),
            text in prop_oneof![Just(FIXED), Just(FLASH), Just(MECHANICAL)],
        ) {
            let ends = ends(text, &load);
            let mut tags: Vec<u64> = ends.iter().map(|&(_, tag)| tag).collect();
            tags.sort_unstable();
            prop_assert_eq!(tags, (0..load.len() as u64).collect::<Vec<_>>());
            prop_assert!(ends.windows(2).all(|pair| pair[0].0 <= pair[1].0));
            let mut begin_ns = Vec::new();
            for (gap_ns, _) in &load {
                begin_ns.push(begin_ns.last().unwrap_or(&0) + gap_ns);
            }
            prop_assert!(ends.iter().all(|&(at_ns, tag)| at_ns >= begin_ns[tag as usize]));
        }
    }

    #[test]
    fn a_disk_in_a_hurry_ends_all_at_once() {
        for text in [FIXED, FLASH, MECHANICAL] {
            let mut disk = Disk::parse(text).unwrap();
            let now = VirtualInstant::from_ns(5);
            for (tag, request) in
                [read(0, 4096), write(1 << 30, 1 << 20), FLUSH, read(1 << 33, 512)].into_iter().enumerate()
            {
                disk.submit(now, tag as u64, request);
            }
            disk.hurry(now);
            disk.submit(now, 4, FLUSH);
            let mut tags: Vec<u64> = core::iter::from_fn(|| disk.take_completed(now)).map(|(_, tag)| tag).collect();
            tags.sort_unstable();
            assert_eq!(tags, [0, 1, 2, 3, 4]);
        }
    }

    #[test]
    fn a_delay_is_added_to_what_the_model_says() {
        for text in [FIXED, FLASH, MECHANICAL] {
            for request in [read(1 << 30, 4096), write(1 << 20, 4096), FLUSH] {
                let end_ns = |delay_ns: Option<u64>| {
                    let mut disk = Disk::parse(text).unwrap();
                    if let Some(delay_ns) = delay_ns {
                        disk.delay(0, delay_ns);
                    }
                    latencies(&mut disk, 7, 1, [request]).1
                };
                assert_eq!(end_ns(Some(5_000_000)), end_ns(None) + 5_000_000);
            }
        }
    }

    #[test]
    fn a_stalled_disk_answers_at_the_end_of_the_stall_what_was_done_meanwhile() {
        for text in [FIXED, FLASH, MECHANICAL] {
            let mut disk = Disk::parse(text).unwrap();
            let end = VirtualInstant::from_ns(1_000_000_000);
            disk.stall(end);
            assert_eq!(disk.next(), VirtualInstant::NEVER);
            disk.submit(VirtualInstant::from_ns(5), 0, write(0, 4096));
            disk.submit(VirtualInstant::from_ns(6), 1, read(1 << 30, 4096));
            assert_eq!(disk.next(), end);
            let before = VirtualInstant::from_ns(999_999_999);
            assert!(!disk.is_ready(before) && disk.take_completed(before).is_none());
            assert!(disk.is_ready(end));
            assert_eq!(core::iter::from_fn(|| disk.take_completed(end)).count(), 2);
        }
    }

    #[test]
    fn a_text_without_a_model_is_no_disk() {
        assert_eq!(Disk::parse("").err(), Some(ParameterError("model")));
        let text = String::from(FLASH).replace("channels=8", "channels=0");
        assert_eq!(Disk::parse(&text).err(), Some(ParameterError("channels")));
    }
}
