//! A run on the event drive that is held goes on as one that is not.

use proptest::prelude::*;
use virtual_time::{Clock, Drive, DriveInstant, HostInstant, Now, Orders, Pace, Sleep, Tdf, VirtualInstant};

fn instant(ns: u64) -> VirtualInstant {
    VirtualInstant::from_ns(ns)
}

fn at(steps: u64) -> DriveInstant {
    DriveInstant::from_ns(steps)
}

fn now(steps: u64) -> Now {
    Now { host: HostInstant::from_ns(0), drive: at(steps) }
}

fn orders(tdf: Tdf, end: Option<u64>) -> Orders {
    Orders { drive: Drive::Event, pace: Pace::Running(tdf), end: end.map(instant), ceiling: None, since: None }
}

/// What a guest does, and what it sees of its clock.
#[derive(Clone, Copy, Debug)]
enum Deed {
    /// A step of so many nanoseconds, by a guest that is busy, or not.
    Step(u64, bool),
    /// It idles until its next timer, so much later.
    Idle(u64),
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        4 => (prop_oneof![Just(1), Just(100), Just(1000)], any::<bool>()).prop_map(|(ns, busy)| Deed::Step(ns, busy)),
        1 => (1_u64..5_000).prop_map(Deed::Idle),
    ]
}

/// What a guest sees that does `deeds`, whose run is held at those `ends`, one after the other, and then released.
fn seen(deeds: &[Deed], tdf: Tdf, ends: &[u64]) -> Vec<u64> {
    let mut ends = ends.iter().copied();
    let mut steps = 0;
    let mut clock = Clock::HELD_AT_ZERO.obey(now(0), at(0), orders(tdf, ends.next()));
    let mut go_on = |clock: Clock, steps| clock.obey(now(steps), at(steps), orders(tdf, ends.next()));
    let mut shown = vec![];
    for &deed in deeds {
        match deed {
            Deed::Step(ns, is_busy) => {
                while is_busy && clock.steps_beyond(at(steps), ns) {
                    clock = clock.ended();
                    assert!(clock.virtual_at(at(steps)) >= clock.end(), "the host sees that it stands");
                    clock = go_on(clock, steps);
                }
                steps += ns;
            }
            Deed::Idle(after) => {
                let deadline = instant(shown.last().copied().unwrap_or(0) + after);
                loop {
                    let (idled, sleep) = clock.idle(now(steps), Some(deadline));
                    clock = idled;
                    if sleep == Sleep::No {
                        break;
                    }
                    assert!(clock.virtual_at(at(steps)) >= clock.end());
                    let input = clock.virtual_at(at(steps + 777));
                    assert_eq!(input, clock.virtual_at(at(steps)), "what the host has it do takes no time");
                    clock = go_on(clock, steps);
                }
            }
        }
        shown.push(clock.virtual_at(at(steps)).as_ns());
    }
    shown
}

proptest! {
    #[test]
    fn what_a_guest_sees_does_not_depend_on_where_its_run_is_held(
        deeds in prop::collection::vec(deed(), 1..60),
        mut ends in prop::collection::vec(0_u64..20_000, 0..6),
        host in 1_u64..40,
        guest in 1_u64..40,
    ) {
        let tdf = Tdf::new(host, guest).unwrap();
        ends.sort_unstable();
        prop_assert_eq!(seen(&deeds, tdf, &ends), seen(&deeds, tdf, &[]));
    }
}

#[test]
fn a_busy_guest_stands_before_the_step_that_would_bring_it_beyond_the_end() {
    let clock = Clock::HELD_AT_ZERO.obey(now(0), at(0), orders(Tdf::ONE, Some(250)));
    assert!(!clock.steps_beyond(at(150), 100));
    assert!(clock.steps_beyond(at(151), 100));
    let held = clock.ended().obey(now(200), at(200), Orders { pace: Pace::Held, ..orders(Tdf::ONE, None) });
    assert_eq!(held.virtual_at(at(200)), instant(250));
    let on = held.obey(now(200), at(200), orders(Tdf::ONE, None));
    assert_eq!(on.virtual_at(at(300)), instant(300));
}

#[test]
fn one_that_the_host_has_something_for_goes_on_in_no_time() {
    let clock = Clock::HELD_AT_ZERO.obey(now(0), at(0), orders(Tdf::ONE, Some(250)));
    let stood = clock.ended().stood(at(200));
    assert!(!stood.steps_beyond(at(200), 1000));
    assert_eq!(stood.virtual_at(at(5000)), instant(250));
}
