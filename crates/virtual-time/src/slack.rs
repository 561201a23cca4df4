//! How late the host timer may preempt user code: as late as the preemption itself costs, and arming for the next one. Most
//! programs enter the kernel sooner, which then finds the deadline by itself.

/// What the signal costs, and the switches between stub and kernel.
const SIGNAL_NS: u64 = 10_000;

/// Whatever the host takes.
const USER_SLACK_MAX_NS: u64 = 100_000;

/// The slack, nanoseconds of the host, where an interruption without its signal takes `interruption_ns`.
#[must_use]
pub fn user_slack_ns(interruption_ns: u64) -> u64 {
    interruption_ns.saturating_mul(2).saturating_add(SIGNAL_NS).min(USER_SLACK_MAX_NS)
}

#[cfg(test)]
mod tests {
    use super::user_slack_ns;

    #[test]
    fn the_slack_is_the_signal_and_twice_the_interruption_up_to_its_bound() {
        assert_eq!(
            [0, 3_000, 20_000, 45_000, 45_001, u64::MAX].map(user_slack_ns),
            [10_000, 16_000, 50_000, 100_000, 100_000, 100_000]
        );
    }
}
