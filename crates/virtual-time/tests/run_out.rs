//! A clock that stands, at a kernel that switches itself off and waits for its timers.

use virtual_time::{Clock, Drive, DriveInstant, HostInstant, Now, Orders, Pace, Tdf, VirtualInstant};

fn now(ns: u64) -> Now {
    Now { host: HostInstant::from_ns(ns), drive: DriveInstant::from_ns(ns) }
}

#[test]
fn only_a_clock_that_stands_runs_out_and_it_never_goes_back() {
    let (at, instant) = (DriveInstant::from_ns, VirtualInstant::from_ns);
    for drive in [Drive::Wall, Drive::Work, Drive::Event] {
        let orders =
            Orders { drive, pace: Pace::Running(Tdf::ONE), end: Some(instant(100)), ceiling: None, since: None };
        let runs = Clock::HELD_AT_ZERO.obey(now(0), at(0), orders);
        assert_eq!(runs.run_out(at(10), instant(500)), runs);
        let stands = runs.obey(now(10), at(10), Orders { pace: Pace::Held, ..orders });
        let later = stands.run_out(at(20), instant(500));
        assert_eq!(later.virtual_at(at(900)), instant(500));
        assert_eq!(later.run_out(at(950), instant(300)).virtual_at(at(950)), instant(500));
    }
}
