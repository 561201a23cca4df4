//! How guests agree, in memory of their own.

use super::*;
use crate::testing::laid_out;
use crate::Received;

fn part(bytes: &mut [u8]) -> [libc::iovec; 1] {
    [libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() }]
}

#[test]
fn who_is_woken_has_told_from_where_it_goes_on_before_others_can_ask() {
    let wire = laid_out(2, &[(0, 1, 5), (1, 0, 5)], 4096);
    let [idles, runs] = [0, 1].map(|number| Guest::new(wire.clone(), number).unwrap());
    assert!(!idles.pass(50));
    assert_eq!(runs.tell(2), 12);
    assert_eq!(idles.go_back(0), 7);
    assert_eq!(runs.tell(11), 12, "not 21, as what it was told before would let it");
    assert_eq!(idles.next_ns(), 7);
}

#[test]
fn who_is_woken_before_it_went_on_comes_no_further_than_to_answers() {
    let wire = laid_out(2, &[(0, 1, 5), (1, 0, 5)], 4096);
    let [wakes, answers] = [0, 1].map(|number| Guest::new(wire.clone(), number).unwrap());
    assert!(!answers.pass(90) && wakes.pass(50));
    assert_eq!(wakes.horizon_ns(), 60, "as nothing was to happen before 50");
    assert!(wakes.go_back(20) == 20 && wakes.pass(20));
    assert_eq!(wakes.horizon_ns(), 30);
}

#[test]
fn who_stands_comes_no_further_than_if_all_stood_there_until_it_is_released() {
    let wire = laid_out(2, &[(0, 1, 5), (1, 0, 5)], 4096);
    let [first, second] = [0, 1].map(|number| Guest::new(wire.clone(), number).unwrap());
    assert!(!first.pass(50));
    assert!(second.pass(50));
    assert!(first.may_run());
    for guest in [&first, &second] {
        assert_eq!(guest.horizon_ns(), 55);
        guest.stands(20);
        assert_eq!(guest.horizon_ns(), 25);
    }
    assert_eq!(first.go_back(20), 20, "not 50, from which the others' horizons would have it go on");
    second.stands(NEVER);
    assert!(!second.pass(50));
    assert_eq!(second.horizon_ns(), 25, "as the first may be woken where it stands");
}

#[test]
fn who_goes_on_where_it_was_to_stand_comes_as_far_as_the_others_let_it() {
    let wire = laid_out(2, &[(0, 1, 5), (1, 0, 5)], 4096);
    let [works, stands] = [0, 1].map(|number| Guest::new(wire.clone(), number).unwrap());
    for guest in [&works, &stands] {
        guest.stands(20);
    }
    assert!(!stands.pass(20));
    works.tell(20);
    assert!(!works.go_on(25), "the other one may be woken at 20");
    stands.stands(50);
    assert!(!stands.pass(50));
    assert!(works.may_run());
    assert_eq!(works.horizon_ns(), 30, "as if the other one stood where this one has come to");
}

#[test]
fn who_has_left_keeps_nobody_from_going_on_where_it_is() {
    let wire = laid_out(2, &[(0, 1, 5), (1, 0, 5)], 4096);
    let [stays, leaves] = [0, 1].map(|number| Guest::new(wire.clone(), number).unwrap());
    assert!(!stays.pass(50));
    assert!(leaves.pass(50));
    leaves.leave();
    assert_eq!(stays.go_back(20), 20);
}

#[test]
fn others_come_as_far_as_a_guest_lets_them_that_is_away_and_on_when_another_kernel_goes_on() {
    let wire = laid_out(2, &[(0, 1, 5), (1, 0, 5)], 4096);
    let [stays, before] = [0, 1].map(|number| Guest::new(wire.clone(), number).unwrap());
    before.tell(7);
    before.hand_over(20);
    assert!(!before.takes_part());
    assert_eq!(stays.tell(20), 25);
    let mut bytes = [1; 20];
    // SAFETY: the parts are ours, and each way is used by its two guests.
    unsafe { stays.send(wire.way(0), 20, &part(&mut bytes)).unwrap() };
    assert!(!stays.pass(30));

    let after = Guest::new(wire.clone(), 1).unwrap();
    // SAFETY: as above.
    unsafe { after.send(wire.way(1), 20, &part(&mut bytes)).unwrap() };
    assert_eq!((wire.way(1).frames_not_sent.load(Relaxed), after.next_ns()), (1, 20));
    // As the host does.
    wire.member(1).state.store(RUNNING, SeqCst);
    assert!(after.takes_part());
    after.tell(24);
    assert!(!stays.may_run());
    // SAFETY: as above.
    let received = unsafe { wire.receive(wire.way(0), 25, &part(&mut bytes)) };
    assert_eq!(received, Received::Frame { length: 20, arrival_ns: 25 });
    after.tell(26);
    assert!(stays.may_run());
    assert_eq!(stays.horizon_ns(), 31);
}

#[test]
fn what_has_come_and_is_not_read_keeps_nobody_from_going_on() {
    let wire = laid_out(2, &[(0, 1, 5), (1, 0, 5)], 4096);
    let [idles, sends] = [0, 1].map(|number| Guest::new(wire.clone(), number).unwrap());
    let mut bytes = [1; 20];
    // SAFETY: the part is ours, and the way is the sender's.
    unsafe { sends.send(wire.way(1), 2, &part(&mut bytes)).unwrap() };
    assert!(!sends.pass(30) && idles.pass(20));
    assert_eq!(idles.next_ns(), 7, "it reads what arrives then");
    assert!(!sends.may_run());
    // Its kernel has been told of that, and does nothing before its timer.
    assert!(idles.pass_reading(20, |_| false));
    assert_eq!(idles.next_ns(), 20);
    assert!(!idles.pass_reading(40, |_| false), "and not as if it might go on from the arrival");
    assert!(sends.may_run());
    assert_eq!(sends.horizon_ns(), 40);
}
