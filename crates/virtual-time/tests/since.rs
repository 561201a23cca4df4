//! Clocks over one clock of the host that are ordered to run since one moment.

use proptest::prelude::*;
use virtual_time::{Clock, Drive, DriveInstant, HostInstant, Now, Orders, Pace, Sleep, Tdf, VirtualInstant};

fn instant(ns: u64) -> VirtualInstant {
    VirtualInstant::from_ns(ns)
}

fn now(host: u64, drive: u64) -> Now {
    Now { host: HostInstant::from_ns(host), drive: DriveInstant::from_ns(drive) }
}

fn orders(drive: Drive) -> Orders {
    Orders { drive, pace: Pace::Running(Tdf::ONE), end: None, ceiling: None, since: None }
}

fn begun(orders: Orders) -> Clock {
    Clock::HELD_AT_ZERO.obey(now(0, 0), DriveInstant::from_ns(0), orders)
}

proptest! {
    /// Whatever the paces, and however late each guest gets to see them.
    #[test]
    fn clocks_that_are_ordered_to_run_since_one_moment_come_to_one_line(
        steps in prop::collection::vec((1..10_000_000_u64, 0..1_000_000_u64, 1..100_u64, 1..100_u64), 1..20),
    ) {
        let [mut punctual, mut late] = [begun(orders(Drive::Wall)); 2];
        let mut since = 0;
        for (after, delay, host, guest) in steps {
            since += after;
            let pace = Pace::Running(Tdf::new(host, guest).unwrap());
            let orders = Orders { pace, since: Some(HostInstant::from_ns(since)), ..orders(Drive::Wall) };
            punctual = punctual.obey(now(since, since), DriveInstant::from_ns(since), orders);
            let seen = since + delay.min(after - 1);
            let before = late.virtual_at(DriveInstant::from_ns(seen));
            late = late.obey(now(seen, seen), DriveInstant::from_ns(seen), orders);
            prop_assert!(late.virtual_at(DriveInstant::from_ns(seen)) >= before, "it went back");
            // A nanosecond that is begun is lost where a line begins anew.
            let far = DriveInstant::from_ns(1 << 50);
            let apart = punctual.virtual_at(far).as_ns().abs_diff(late.virtual_at(far).as_ns());
            prop_assert!(apart <= 1, "apart by {apart} ns");
            since = seen;
        }
    }
}

#[test]
fn who_sees_a_faster_pace_late_jumps_and_who_sees_a_slower_one_late_stands() {
    let since =
        |tdf| Orders { pace: Pace::Running(tdf), since: Some(HostInstant::from_ns(100)), ..orders(Drive::Wall) };
    let at = DriveInstant::from_ns;
    let clock = begun(orders(Drive::Wall));
    let faster = clock.obey(now(110, 110), at(110), since(Tdf::new(1, 2).unwrap()));
    assert_eq!((faster.virtual_at(at(110)), faster.virtual_at(at(111))), (instant(120), instant(122)));
    let slower = clock.obey(now(110, 110), at(110), since(Tdf::new(2, 1).unwrap()));
    assert_eq!([110, 119, 121, 122].map(|ns| slower.virtual_at(at(ns)).as_ns()), [110, 110, 110, 111]);
    assert_eq!(slower.idle(now(110, 110), Some(instant(111))).1, Sleep::Until(HostInstant::from_ns(122)));
    let held = clock.obey(now(110, 110), at(110), Orders { pace: Pace::Held, ..since(Tdf::ONE) });
    assert_eq!(held.virtual_at(at(500)), instant(110), "to hold is to stop at once");
}
