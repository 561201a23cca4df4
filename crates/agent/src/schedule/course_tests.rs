//! Entries that are no processes, by numbers.

use std::collections::BTreeMap;

use serde_json::{json, Value};

use super::super::tests::{awaited, does, ended, finish, process, schedule_with, started, S};
use super::*;
use crate::channel::protocol::{End, Outcome};
use crate::schedule::Input;

/// A pause of node a, or of its process, at an instant or `(after, wait)`.
fn pause(name: &str, process: Option<&str>, when: &Value, for_ns: Option<i64>) -> Value {
    json!({"name": name, "what": "pause", "when": when, "for_ns": for_ns,
           "effect": {"kind": "pause", "node": "a", "process": process}})
}

fn at(at_ns: i64) -> Value {
    json!({"kind": "at", "at_ns": at_ns})
}

fn after(written: &str, wait_ns: i64) -> Value {
    json!({"kind": "after", "awaited": awaited(&written.into()), "wait_ns": wait_ns})
}

fn report(entry: usize, kind: EventKind) -> Action {
    Action::Report { entry: Place::Timed(entry), kind }
}

fn begins(entry: usize) -> [Action; 2] {
    [Action::Begin { entry }, report(entry, EventKind::Began { what: "pause".to_owned() })]
}

fn is_undone(entry: usize) -> [Action; 2] {
    [Action::Undo { entry }, report(entry, EventKind::Undone { what: "pause".to_owned(), load: None })]
}

/// One process of node a that runs, and this course.
fn running(course: &[Value]) -> Schedule {
    let mut run = schedule_with(None, &[process("p", &json!({}))], course);
    does(&mut run, 0, Input::Tick);
    does(&mut run, 0, started(0));
    run
}

#[test]
fn an_effect_begins_at_its_instant_and_is_undone_so_long_after_it() {
    let mut run = running(&[pause("x", None, &at(2 * S), Some(S))]);
    assert_eq!(run.next_deadline_ns(), Some(2 * S));
    assert_eq!(does(&mut run, 2 * S + 5, Input::Tick), begins(0), "a busy CPU gets to it later");
    assert_eq!(run.next_deadline_ns(), Some(3 * S), "it lasts from its instant on");
    assert_eq!(does(&mut run, 3 * S, Input::Tick), is_undone(0));
    assert_eq!(run.next_deadline_ns(), None);
}

#[test]
fn an_effect_waits_for_a_moment_of_a_process_and_so_long_after_it() {
    for (written, begin_ns) in [("p.begin", S), ("p.end", 3 * S), ("p", 3 * S)] {
        let mut run = schedule_with(
            None,
            &[process("p", &json!({})), process("q", &json!({"start_ns": 9 * S}))],
            &[pause("x", None, &after(written, S), None)],
        );
        does(&mut run, 0, Input::Tick);
        does(&mut run, 0, started(0));
        does(&mut run, 2 * S, ended(0, 0));
        let actions =
            if begin_ns == S { does(&mut run, 2 * S, Input::Tick) } else { does(&mut run, 3 * S, Input::Tick) };
        let began_before = matches!(run.course[0].state, TimedState::Begun { .. }) && actions.is_empty();
        assert!(began_before || actions == begins(0), "{written}");
    }
}

#[test]
fn a_process_and_another_effect_wait_for_the_end_of_an_effect() {
    let course = [pause("x", None, &at(S), Some(S)), pause("y", None, &after("x.end", 0), Some(S))];
    let late = process("late", &json!({"after": ["y.end"]}));
    let mut run = schedule_with(None, &[process("p", &json!({})), late], &course);
    does(&mut run, 0, Input::Tick);
    does(&mut run, 0, started(0));
    assert_eq!(does(&mut run, S, Input::Tick), begins(0));
    assert_eq!(does(&mut run, 2 * S, Input::Tick), [is_undone(0), begins(1)].concat());
    let last = does(&mut run, 3 * S, Input::Tick);
    assert_eq!(last, [&is_undone(1)[..], &[Action::Start { process: 1 }]].concat());
}

#[test]
fn an_effect_is_undone_though_what_it_waited_for_has_failed_since() {
    let other = process("q", &json!({"start_ns": 9 * S}));
    let mut run =
        schedule_with(None, &[process("p", &json!({})), other], &[pause("x", None, &after("p.begin", 0), Some(5 * S))]);
    does(&mut run, 0, Input::Tick);
    assert_eq!(does(&mut run, S, started(0)), begins(0));
    does(&mut run, 2 * S, Input::Ended { process: 0, end: End::Signal(9) });
    assert_eq!(run.next_deadline_ns(), Some(6 * S));
    assert_eq!(does(&mut run, 6 * S, Input::Tick), is_undone(0));
}

#[test]
fn a_run_that_is_stopped_undoes_everything_before_it_ends_programs() {
    let mut run = running(&[pause("x", None, &at(S), None), pause("y", None, &at(3 * S), None)]);
    does(&mut run, S, Input::Tick);
    let actions = does(&mut run, 2 * S, Input::Stop { reason: "interrupted".to_owned() });
    assert_eq!(actions, [&is_undone(0)[..], &[Action::Terminate { process: 0 }]].concat());
    assert_eq!(does(&mut run, 3 * S, Input::Tick), [Action::Kill { process: 0 }; 0], "nothing begins any more");
}

#[test]
fn an_effect_on_what_is_not_there_is_the_failure_of_the_run() {
    let mut run =
        schedule_with(None, &[process("p", &json!({"start_ns": 2 * S}))], &[pause("x", Some("p"), &at(S), Some(S))]);
    does(&mut run, 0, Input::Tick);
    let reason = "process p on a is not running".to_owned();
    assert_eq!(does(&mut run, S, Input::Tick), [report(0, EventKind::Skipped { reason })]);
    does(&mut run, 2 * S, Input::Tick);
    does(&mut run, 2 * S, started(0));
    let last = does(&mut run, 3 * S, ended(0, 0));
    assert_eq!(last.last(), Some(&finish(Outcome::Failed, "x was skipped: process p on a is not running")));
}

#[test]
fn a_disk_has_one_fault_at_a_time() {
    let broken = |name: &str, at_ns: i64| {
        let wrong = json!({"errors": 0.5, "corrupt": 0.0, "delay_ns": 0, "stall_ns": 0, "refuses": null, "seed": 1});
        let effect = json!({"kind": "break-disk", "node": "a", "number": 0, "wrong": wrong});
        json!({"name": name, "what": name, "when": at(at_ns), "for_ns": 2 * S, "effect": effect})
    };
    let mut run = running(&[broken("x", S), broken("y", 2 * S), broken("z", 3 * S)]);
    does(&mut run, S, Input::Tick);
    assert_eq!(run.began_ns(0), S);
    let reason = "x has broken that already".to_owned();
    assert_eq!(does(&mut run, 2 * S, Input::Tick), [report(1, EventKind::Skipped { reason })]);
    let done = does(&mut run, 3 * S, Input::Tick);
    assert!(done.contains(&Action::Undo { entry: 0 }) && done.contains(&Action::Begin { entry: 2 }));
}

#[test]
fn what_is_paused_is_not_paused_again_until_that_is_undone() {
    let again = [
        pause("x", Some("p"), &at(S), Some(2 * S)),
        pause("y", None, &at(2 * S), Some(S)),
        pause("z", None, &at(3 * S), Some(S)),
    ];
    let mut run = running(&again);
    does(&mut run, S, Input::Tick);
    let reason = "x has paused that already".to_owned();
    assert_eq!(does(&mut run, 2 * S, Input::Tick), [report(1, EventKind::Skipped { reason })]);
    assert_eq!(does(&mut run, 3 * S, Input::Tick), [is_undone(0), begins(2)].concat());
}

#[test]
fn a_clock_that_drifts_is_moved_after_each_of_its_steps_and_what_was_done_is_counted() {
    let drift = json!({"name": "x", "what": "pause", "when": at(S), "for_ns": 5 * S, "effect": {
        "kind": "set-clock", "node": "a", "by_ns": 5, "every_ns": 2 * S}});
    let mut run = running(&[drift]);
    assert_eq!(does(&mut run, S, Input::Tick), begins(0)[1..], "nothing has drifted yet");
    for step in [3 * S, 5 * S] {
        assert_eq!(run.next_deadline_ns(), Some(step));
        assert_eq!(does(&mut run, step, Input::Tick), begins(0)[..1]);
    }
    assert_eq!(does(&mut run, 6 * S, Input::Tick), is_undone(0));
    assert_eq!(run.times(0), 2);
}

#[test]
fn an_effect_that_flaps_comes_and_goes_from_its_begin_on_and_is_gone_at_its_end() {
    let flap = json!({"name": "x", "what": "pause", "when": at(S), "for_ns": 5 * S, "effect": {
        "kind": "impair-link", "links": ["a--b"], "beside": {}, "flap": {"down_ns": S, "up_ns": 2 * S},
        "ends": [{"node": "a", "interface": "eth0", "up": false, "egress": {"drops": null, "delivery": null, "qdiscs": []}}]}});
    let mut run = running(&[flap]);
    assert_eq!(does(&mut run, S, Input::Tick), begins(0));
    for (instant, turn) in
        [(2, Action::Undo { entry: 0 }), (4, Action::Begin { entry: 0 }), (5, Action::Undo { entry: 0 })]
    {
        assert_eq!(run.next_deadline_ns(), Some(instant * S));
        assert_eq!(does(&mut run, instant * S + 3, Input::Tick), [turn], "late, and not later for it");
    }
    assert_eq!(does(&mut run, 6 * S, Input::Tick), is_undone(0));
    assert_eq!(run.next_deadline_ns(), None);
}

#[test]
fn a_link_has_those_faults_at_a_time_for_which_it_is_planned() {
    let impair = |name: &str, link: &str, begin: i64, beside: &[&str]| {
        let beside: BTreeMap<&str, Vec<()>> = beside.iter().map(|key| (*key, Vec::new())).collect();
        json!({"name": name, "what": "pause", "when": at(begin), "for_ns": 2 * S, "effect": {
            "kind": "impair-link", "links": [link], "flap": null, "beside": beside,
            "ends": [{"node": "a", "interface": link, "up": true, "egress": {"drops": null, "delivery": null, "qdiscs": []}}]}})
    };
    let mut run = running(&[
        impair("x", "l", S, &["w+x"]),
        impair("y", "l", 2 * S, &[]),
        impair("z", "m", 2 * S, &[]),
        impair("w", "l", 2 * S, &["w+x"]),
        impair("v", "l", 2 * S, &["v+x", "v+w"]),
    ]);
    does(&mut run, S, Input::Tick);
    let skips = |number, others: &str| {
        report(number, EventKind::Skipped { reason: format!("{others} has a hold of that link already") })
    };
    let actions = does(&mut run, 2 * S, Input::Tick);
    assert_eq!(actions, [&[skips(1, "x")], &begins(2)[..], &begins(3)[..], &[skips(4, "w+x")]].concat());
}

#[test]
fn an_effect_that_waits_for_what_never_comes_is_skipped_with_those_that_wait_for_it() {
    let course = [pause("x", None, &after("q", 0), None), pause("y", None, &after("x", 0), None)];
    let mut run = schedule_with(None, &[process("p", &json!({})), process("q", &json!({}))], &course);
    does(&mut run, 0, Input::Tick);
    does(&mut run, 0, started(0));
    let failed = Input::StartFailed { process: 1, reason: "no".to_owned() };
    let actions = does(&mut run, S, failed);
    let skipped = |entry, reason: &str| report(entry, EventKind::Skipped { reason: reason.to_owned() });
    assert_eq!(
        actions[1..],
        [skipped(0, "it waits for q, which failed"), skipped(1, "it waits for x, which never began")]
    );
}

#[test]
fn what_a_link_becomes_is_replaced_from_now_on() {
    let change = |at_ns: i64| {
        let ends = json!([{"node": "a", "interface": "eth0", "up": true, "egress": {"drops": null, "delivery": null, "qdiscs": []}}]);
        json!({"name": "", "what": "rate 1Mbit", "when": at(at_ns), "for_ns": null,
               "effect": {"kind": "change-link", "link": "a--b", "ends": ends, "under": {}}})
    };
    let mut run = running(&[change(S), change(5 * S)]);
    assert_eq!(
        does(&mut run, S, Input::Tick),
        [Action::Begin { entry: 0 }, report(0, EventKind::LinkChanged { at_ns: S })]
    );
    let later = [change(0), change(7 * S)].map(|entry| serde_json::from_value(entry).unwrap());
    run.replan_link("a--b", later.to_vec());
    assert_eq!(
        does(&mut run, 2 * S, Input::Tick),
        [Action::Begin { entry: 2 }, report(2, EventKind::LinkChanged { at_ns: 0 })]
    );
    assert_eq!(run.next_deadline_ns(), Some(7 * S), "what was planned before is no more");
}

fn kill(for_ns: Option<i64>) -> Value {
    json!({"name": "x", "what": "pause", "when": at(S), "for_ns": for_ns,
           "effect": {"kind": "kill", "node": "a", "process": "p"}})
}

fn killed() -> Input {
    Input::Ended { process: 0, end: End::Signal(9) }
}

#[test]
fn what_a_fault_kills_has_not_failed_and_is_started_again_at_the_faults_end() {
    let mut run = running(&[kill(Some(2 * S))]);
    assert_eq!(does(&mut run, S, Input::Tick), begins(0));
    let actions = does(&mut run, S, killed());
    let exit = EventKind::Exited { end: End::Signal(9), expected: true, timed_out: false, stopped: false };
    assert_eq!(actions, [Action::Report { entry: Place::Process(0), kind: exit }], "the run waits for it");
    assert_eq!(run.next_deadline_ns(), Some(3 * S));
    assert_eq!(does(&mut run, 3 * S, Input::Tick), [&is_undone(0)[..], &[Action::Start { process: 0 }]].concat());
    does(&mut run, 3 * S, started(0));
    assert_eq!(does(&mut run, 4 * S, ended(0, 0)).last(), Some(&finish(Outcome::Done, "")));
}

#[test]
fn what_is_gone_only_after_the_faults_end_is_started_again_then() {
    let mut run = running(&[kill(Some(5))]);
    does(&mut run, S, Input::Tick);
    assert_eq!(does(&mut run, S + 5, Input::Tick), is_undone(0));
    assert_eq!(does(&mut run, S + 9, killed()).last(), Some(&Action::Start { process: 0 }));
}

#[test]
fn what_is_killed_for_good_skips_those_that_wait_for_what_it_is_there_for() {
    let others =
        [process("p", &json!({})), process("q", &json!({"after": ["p"]})), process("r", &json!({"after": ["p.end"]}))];
    let mut run = schedule_with(None, &others, &[kill(None)]);
    does(&mut run, 0, Input::Tick);
    does(&mut run, 0, started(0));
    does(&mut run, S, Input::Tick);
    let actions = does(&mut run, S, killed());
    let reason = "it waits for p, which failed".to_owned();
    assert!(actions.contains(&Action::Report { entry: Place::Process(1), kind: EventKind::Skipped { reason } }));
    assert!(actions.contains(&Action::Start { process: 2 }));
}
