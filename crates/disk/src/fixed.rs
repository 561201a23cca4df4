//! A disk that takes a fixed time: a latency, and limits of requests and of bytes a second, as clouds sell them.
//!
//! Requests start one after the other, each as long after the one before as the limits say; a request that has started
//! takes the latency and its transfer, whatever starts meanwhile. So with one request in flight each takes exactly the
//! latency and the transfer, unless that is more often than the limit allows.

use crate::parameters::FixedParameters;
use crate::request::{transfer_ns, Operation, Request};

pub struct Fixed {
    parameters: FixedParameters,
    /// When the next request may start.
    free_ns: u64,
    /// The latest end of a request so far.
    last_ns: u64,
}

impl Fixed {
    pub fn new(parameters: FixedParameters) -> Self {
        Self { parameters, free_ns: 0, last_ns: 0 }
    }

    /// The end of a request that comes at `now_ns`. Nothing is cached: a flush waits for what is in flight, and costs nothing.
    pub fn serve(&mut self, now_ns: u64, request: Request) -> u64 {
        let parameters = &self.parameters;
        let latency_ns = match request.operation {
            Operation::Read => parameters.read_latency_ns,
            Operation::Write | Operation::Discard => parameters.write_latency_ns,
            Operation::Flush => return now_ns.max(self.last_ns),
        };
        let moves_data = request.operation != Operation::Discard;
        let transfer_ns = limit_ns(if moves_data { request.length_bytes } else { 0 }, parameters.bytes_per_s);
        let start_ns = now_ns.max(self.free_ns);
        self.free_ns = start_ns + transfer_ns.max(limit_ns(1, parameters.requests_per_s));
        let end_ns = start_ns + latency_ns + transfer_ns;
        self.last_ns = self.last_ns.max(end_ns);
        end_ns
    }
}

/// How long `count` take where so many a second are allowed; 0: any number.
fn limit_ns(count: u64, per_s: u64) -> u64 {
    if per_s == 0 {
        0
    } else {
        transfer_ns(count, per_s)
    }
}

#[cfg(test)]
mod tests {
    use crate::disk::tests::{latencies, read, write, FIXED, FLUSH};
    use crate::disk::Disk;

    fn disk(limits: &str) -> Disk {
        Disk::parse(&std::format!("model=fixed read_latency_ns=100000 write_latency_ns=30000 {limits}")).unwrap()
    }

    #[test]
    fn one_request_at_a_time_takes_exactly_latency_and_transfer() {
        let mut disk = disk("requests_per_s=0 bytes_per_s=100000000");
        let (found, _) = latencies(&mut disk, 7, 1, [read(0, 4096), write(1 << 30, 4096), read(0, 1 << 20)]);
        assert_eq!(found, [140_960, 70_960, 10_585_760]);
    }

    #[test]
    fn requests_a_second_are_limited_at_any_depth() {
        for depth in [1, 32] {
            let mut disk = disk("requests_per_s=5000 bytes_per_s=0");
            let (_, end_ns) = latencies(&mut disk, 0, depth, (0..1001).map(|place| read(place * 4096, 4096)));
            // The last one starts after 1,000 intervals.
            assert_eq!(end_ns, 200_100_000);
        }
    }

    #[test]
    fn bytes_a_second_are_limited_at_any_depth() {
        let mut disk = disk("requests_per_s=0 bytes_per_s=100000000");
        let (_, end_ns) = latencies(&mut disk, 0, 16, (0..100).map(|place| write(place << 20, 1 << 20)));
        assert_eq!(end_ns, 100 * 10_485_760 + 30_000);
    }

    #[test]
    fn a_flush_waits_for_what_was_written() {
        let mut disk = Disk::parse(FIXED).unwrap();
        let (found, _) = latencies(&mut disk, 0, 2, [write(0, 1 << 20), FLUSH]);
        assert_eq!(found, [10_515_760, 10_515_760]);
    }
}
