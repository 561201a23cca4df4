//! Nodes that go off and boot, by numbers.

use serde_json::{json, Value};

use super::super::tests::{does, ended, finish, process, schedule_with, started, S};
use super::*;
use crate::channel::protocol::{End, Outcome};
use crate::schedule::Input;

/// Node a goes off so at an instant.
fn off(how: &str, at_ns: i64, for_ns: Option<i64>) -> Value {
    timed("off", at_ns, for_ns, &json!({"kind": "power-off", "node": "a", "how": how}))
}

fn on(at_ns: i64) -> Value {
    timed("on", at_ns, None, &json!({"kind": "power-on", "node": "a"}))
}

fn timed(name: &str, at_ns: i64, for_ns: Option<i64>, effect: &Value) -> Value {
    json!({"name": name, "what": name, "when": {"kind": "at", "at_ns": at_ns}, "for_ns": for_ns, "effect": effect})
}

/// A service of node a, and something of node b that goes on.
fn running(course: &[Value], service: &Value) -> Schedule {
    let service = process("service", service);
    let mut run = schedule_with(None, &[service, process("other", &json!({"node": "b"}))], course);
    does(&mut run, 0, Input::Tick);
    does(&mut run, 0, started(0));
    does(&mut run, 0, started(1));
    run
}

/// What is to be done, without what is only told.
fn deeds(run: &mut Schedule, now_ns: i64, input: Input) -> Vec<Action> {
    let is_deed = |action: &Action| !matches!(action, Action::Report { .. });
    does(run, now_ns, input).into_iter().filter(is_deed).collect()
}

fn killed(process: usize) -> Input {
    Input::Ended { process, end: End::Signal(9) }
}

#[test]
fn what_boots_with_its_node_starts_again_when_the_crash_is_over() {
    let mut run = running(&[off("crash", S, Some(S))], &json!({"background": true, "boot": true}));
    assert_eq!(deeds(&mut run, S, Input::Tick), [Action::Begin { entry: 0 }]);
    assert_eq!(deeds(&mut run, S, killed(0)), []);
    let boot = [Action::Undo { entry: 0 }, Action::Start { process: 0 }];
    assert_eq!(deeds(&mut run, 2 * S, Input::Tick), boot);
    does(&mut run, 2 * S, started(0));
    assert_eq!(deeds(&mut run, 3 * S, ended(1, 0)), [Action::Terminate { process: 0 }]);
    assert_eq!(deeds(&mut run, 3 * S, ended(0, 0)), [finish(Outcome::Done, "")]);
}

#[test]
fn what_does_not_boot_has_ended_with_the_crash_and_fails_nothing() {
    let restart = json!({"on_failure": false, "delay_ns": 1, "delay_max_ns": 1, "reset_ns": 1});
    for fields in [json!({}), json!({"restart": restart})] {
        let mut run = running(&[off("crash", S, Some(S))], &fields);
        does(&mut run, S, Input::Tick);
        does(&mut run, S, killed(0));
        assert_eq!(deeds(&mut run, 2 * S, Input::Tick), [Action::Undo { entry: 0 }]);
        assert_eq!(deeds(&mut run, 3 * S, ended(1, 0)), [finish(Outcome::Done, "")]);
    }
}

#[test]
fn a_process_that_is_due_while_its_node_is_off_starts_when_that_boots() {
    let mut run = running(&[off("crash", S, Some(2 * S))], &json!({}));
    run.entries[1].process.node = "a".to_owned();
    run.entries[1].state = State::Waiting;
    run.entries[1].process.start_ns = 2 * S;
    does(&mut run, S, Input::Tick);
    does(&mut run, S, killed(0));
    assert_eq!(deeds(&mut run, 2 * S, Input::Tick), []);
    assert_eq!(deeds(&mut run, 3 * S, Input::Tick), [Action::Undo { entry: 0 }, Action::Start { process: 1 }]);
}

#[test]
fn a_node_that_stays_off_keeps_no_run_waiting() {
    let mut run = running(&[off("crash", S, None)], &json!({"boot": true}));
    does(&mut run, S, Input::Tick);
    does(&mut run, S, killed(0));
    assert_eq!(deeds(&mut run, 2 * S, ended(1, 0)), [finish(Outcome::Done, "")]);
}

#[test]
fn a_start_has_a_node_boot_that_is_off_for_good() {
    let mut run = running(&[off("crash", S, None), on(2 * S)], &json!({"boot": true}));
    does(&mut run, S, Input::Tick);
    does(&mut run, S, killed(0));
    let actions = deeds(&mut run, 2 * S, Input::Tick);
    assert_eq!(actions, [Action::Undo { entry: 0 }, Action::Begin { entry: 1 }, Action::Start { process: 0 }]);
}

#[test]
fn what_boots_starts_again_with_a_node_that_was_off_for_good_until_somebody_undoes_it_by_hand() {
    let mut run = running(&[off("crash", S, None)], &json!({"boot": true}));
    run.entries[1].process.node = "a".to_owned();
    run.entries[1].state = State::Waiting;
    run.entries[1].process.start_ns = 3 * S;
    does(&mut run, S, Input::Tick);
    does(&mut run, S, killed(0));
    let update = json!({"is_question": false, "links": [], "modules": [], "again": [], "begin": [], "undo": ["off"]});
    run.take_over(2 * S, serde_json::from_value(update).unwrap());
    let boot = [Action::Undo { entry: 0 }, Action::Start { process: 0 }];
    assert_eq!(deeds(&mut run, 2 * S, Input::Tick), boot);
    does(&mut run, 2 * S, started(0));
    assert_eq!(deeds(&mut run, 3 * S, Input::Tick), [Action::Start { process: 1 }]);
}

#[test]
fn what_is_to_start_on_a_node_that_is_off_for_good_is_skipped_when_it_is_due() {
    let mut run = running(&[off("crash", S, None)], &json!({"boot": true}));
    run.entries[1].process.node = "a".to_owned();
    run.entries[1].state = State::Waiting;
    run.entries[1].process.start_ns = 3 * S;
    does(&mut run, S, Input::Tick);
    assert_eq!(deeds(&mut run, S, killed(0)), []);
    let last = deeds(&mut run, 3 * S, Input::Tick);
    assert_eq!(last, [finish(Outcome::Failed, "process other on a was skipped: node a is off")]);
}

#[test]
fn a_start_of_a_node_that_is_on_fails_the_run() {
    let mut run = running(&[on(S)], &json!({}));
    assert_eq!(deeds(&mut run, S, Input::Tick), []);
    does(&mut run, 2 * S, ended(0, 0));
    let last = deeds(&mut run, 2 * S, ended(1, 0));
    assert_eq!(last, [finish(Outcome::Failed, "on was skipped: node a is on")]);
}

#[test]
fn a_node_that_is_stopped_is_off_when_its_processes_have_ended() {
    let mut run = running(&[off("stop", S, Some(3 * S))], &json!({"boot": true}));
    assert_eq!(deeds(&mut run, S, Input::Tick), [Action::Terminate { process: 0 }]);
    assert_eq!(deeds(&mut run, 2 * S, ended(0, 5)), [Action::Begin { entry: 0 }]);
    assert_eq!(deeds(&mut run, 4 * S, Input::Tick), [Action::Undo { entry: 0 }, Action::Start { process: 0 }]);
}

#[test]
fn a_process_that_does_not_end_is_killed_after_the_grace_or_when_its_node_boots() {
    let mut run = running(&[off("stop", S, Some(9 * S))], &json!({}));
    does(&mut run, S, Input::Tick);
    assert_eq!(run.next_deadline_ns(), Some(6 * S));
    assert_eq!(deeds(&mut run, 6 * S, Input::Tick), [Action::Kill { process: 0 }]);
    assert_eq!(deeds(&mut run, 6 * S, killed(0)), [Action::Begin { entry: 0 }]);

    let mut run = running(&[off("stop", S, Some(S))], &json!({"boot": true}));
    does(&mut run, S, Input::Tick);
    assert_eq!(deeds(&mut run, 2 * S, Input::Tick), [Action::Begin { entry: 0 }, Action::Undo { entry: 0 }]);
    assert_eq!(deeds(&mut run, 2 * S, killed(0)), [Action::Start { process: 0 }]);
}

#[test]
fn a_reboot_ends_as_soon_as_the_node_is_off() {
    let mut run = running(&[off("reboot", S, None)], &json!({"boot": true}));
    assert_eq!(deeds(&mut run, S, Input::Tick), [Action::Terminate { process: 0 }]);
    let actions = deeds(&mut run, 2 * S, ended(0, 0));
    assert_eq!(actions, [Action::Begin { entry: 0 }, Action::Undo { entry: 0 }, Action::Start { process: 0 }]);
}

#[test]
fn a_node_that_is_off_at_the_end_stays_off() {
    let mut run = running(&[off("crash", S, Some(9 * S))], &json!({"boot": true}));
    does(&mut run, S, Input::Tick);
    does(&mut run, S, killed(0));
    assert_eq!(deeds(&mut run, 2 * S, Input::Stop { reason: String::new() }), [Action::Terminate { process: 1 }]);
}
