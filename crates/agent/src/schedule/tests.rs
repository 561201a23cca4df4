//! The schedule by numbers: what comes out for what goes in, and when it wants to be asked again.

use serde_json::{json, Value};

use super::*;
use crate::clock::SECOND_NS;

pub const S: i64 = SECOND_NS;

pub fn process(name: &str, fields: &Value) -> Value {
    let mut process = json!({
        "name": name, "node": "a", "argv": ["true"], "env": {}, "cwd": "/", "user": "root", "stdin": "/dev/null",
        "start_ns": 0, "after": [], "ready": null, "ready_timeout_ns": 10 * S, "background": false, "stop_ns": null,
        "timeout_ns": null, "expect_exit": 0, "restart": null, "boot": false, "stdout": "out", "stderr": "err"
    });
    process.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let after: Vec<Value> = process["after"].as_array().unwrap().iter().map(awaited).collect();
    process["after"] = after.into();
    process
}

/// What the lab writes as `NAME`, `NAME.begin` or `NAME.end`.
pub fn awaited(written: &Value) -> Value {
    let (name, moment) = written.as_str().unwrap().split_once('.').unwrap_or((written.as_str().unwrap(), "milestone"));
    json!({"name": name, "moment": moment})
}

fn schedule(stop_after_ns: Option<i64>, processes: &[Value]) -> Schedule {
    schedule_with(stop_after_ns, processes, &[])
}

pub fn schedule_with(stop_after_ns: Option<i64>, processes: &[Value], course: &[Value]) -> Schedule {
    let plan = json!({
        "format": 8, "lab": "x", "seed": 1, "time": {"drive": "event"}, "stop_after_ns": stop_after_ns, "grace_ns": 5 * S,
        "guests": [], "nodes": [], "links": [], "wires": [], "tables": {}, "traces": {}, "course": course,
        "hosts": [], "processes": processes, "results": {}, "checks": [],
        "measure": {"interfaces_period_ns": null, "tcp_period_ns": null, "nodes_period_ns": null, "outputs": false, "captures": []}
    });
    Schedule::new(&serde_json::from_value(plan).unwrap(), "guest0").unwrap()
}

pub fn started(process: usize) -> Input {
    Input::Started { process, pid: 2 }
}

pub fn ended(process: usize, status: i32) -> Input {
    Input::Ended { process, end: End::Status(status) }
}

pub fn finish(outcome: Outcome, reason: &str) -> Action {
    Action::Finish { outcome, reason: reason.to_owned() }
}

fn exited(process: usize, status: i32, expected: bool, timed_out: bool, stopped: bool) -> Action {
    let kind = EventKind::Exited { end: End::Status(status), expected, timed_out, stopped };
    Action::Report { entry: Place::Process(process), kind }
}

/// Feeds `input` and gives what is to be done beside reporting that a process started. Before, another kernel goes on with the
/// schedule (`run/handover.rs`): it is one and the same to all these tests.
pub fn does(schedule: &mut Schedule, now_ns: i64, input: Input) -> Vec<Action> {
    *schedule = serde_json::from_str(&serde_json::to_string(schedule).unwrap()).unwrap();
    let is_start = |action: &Action| matches!(action, Action::Report { kind: EventKind::Started { .. }, .. });
    schedule.handle(now_ns, input).into_iter().filter(|action| !is_start(action)).collect()
}

#[test]
fn nothing_starts_before_virtual_zero() {
    let mut run = schedule(None, &[process("p", &json!({}))]);
    assert_eq!(run.next_deadline_ns(), Some(0));
    assert_eq!(does(&mut run, -1, Input::Tick), []);
    assert_eq!(does(&mut run, 0, Input::Tick), [Action::Start { process: 0 }]);
}

#[test]
fn a_run_that_stays_goes_on_until_it_is_stopped() {
    let mut run = schedule(None, &[process("p", &json!({}))]);
    run.stays = true;
    does(&mut run, 0, Input::Tick);
    does(&mut run, 0, started(0));
    assert_eq!(does(&mut run, S, ended(0, 0)), [exited(0, 0, true, false, false)]);
    let stop = Input::Stop { reason: "interrupted".to_owned() };
    assert_eq!(does(&mut run, 2 * S, stop), [finish(Outcome::Stopped, "interrupted")]);
}

#[test]
fn an_empty_plan_is_done_at_once() {
    assert_eq!(does(&mut schedule(None, &[]), 0, Input::Tick), [finish(Outcome::Done, "")]);
}

#[test]
fn without_foreground_processes_stop_after_ends_the_run() {
    let mut run = schedule(Some(3 * S), &[process("p", &json!({"background": true}))]);
    assert_eq!(does(&mut run, 0, Input::Tick), [Action::Start { process: 0 }]);
    assert_eq!(does(&mut run, 1, started(0)), []);
    assert_eq!(run.next_deadline_ns(), Some(3 * S));
    assert_eq!(does(&mut run, 3 * S, Input::Tick), [Action::Terminate { process: 0 }]);
    let actions = does(&mut run, 3 * S + 1, ended(0, 143));
    let reason = "stop_after of 3 s was reached";
    assert_eq!(actions, [exited(0, 143, true, false, true), finish(Outcome::Stopped, reason)]);
}

#[test]
fn a_process_starts_at_its_instant_or_when_the_other_ended_whichever_is_later() {
    for (start_ns, end_ns, expected_ns) in [(5 * S, 2 * S, 5 * S), (S, 2 * S, 2 * S)] {
        let second = process("q", &json!({"start_ns": start_ns, "after": ["p"]}));
        let mut run = schedule(None, &[process("p", &json!({})), second]);
        does(&mut run, 0, Input::Tick);
        does(&mut run, 0, started(0));
        let at_end = does(&mut run, end_ns, ended(0, 0));
        let start = Action::Start { process: 1 };
        assert_eq!(at_end.contains(&start), expected_ns == end_ns);
        if expected_ns > end_ns {
            assert_eq!(run.next_deadline_ns(), Some(expected_ns));
            assert_eq!(does(&mut run, expected_ns, Input::Tick), [start]);
        }
    }
}

#[test]
fn a_background_process_is_waited_for_until_it_starts_and_stopped_when_the_others_ended() {
    let server = process("server", &json!({"background": true}));
    let mut run = schedule(None, &[server, process("client", &json!({"after": ["server"]}))]);
    assert_eq!(does(&mut run, 0, Input::Tick), [Action::Start { process: 0 }]);
    assert_eq!(does(&mut run, 1, started(0)), [Action::Start { process: 1 }]);
    does(&mut run, 2, started(1));
    assert_eq!(does(&mut run, S, ended(1, 0)), [exited(1, 0, true, false, false), Action::Terminate { process: 0 }]);
    assert_eq!(run.next_deadline_ns(), Some(6 * S), "SIGKILL is due after the grace");
    assert_eq!(does(&mut run, 6 * S, Input::Tick), [Action::Kill { process: 0 }]);
    let killed = Input::Ended { process: 0, end: End::Signal(9) };
    assert_eq!(does(&mut run, 6 * S, killed).last(), Some(&finish(Outcome::Done, "")));
}

#[test]
fn readiness_by_delay_comes_at_its_instant() {
    let server = process("server", &json!({"background": true, "ready": {"kind": "delay", "delay_ns": S}}));
    let mut run = schedule(None, &[server, process("client", &json!({"after": ["server"]}))]);
    does(&mut run, 0, Input::Tick);
    assert_eq!(does(&mut run, 7, started(0)), []);
    assert_eq!(run.next_deadline_ns(), Some(S + 7));
    let ready = Action::Report { entry: Place::Process(0), kind: EventKind::Ready };
    assert_eq!(does(&mut run, S + 7, Input::Tick), [ready, Action::Start { process: 1 }]);
}

#[test]
fn readiness_is_looked_for_from_the_start_until_it_came() {
    let mut run = schedule(None, &[process("server", &json!({"ready": {"kind": "tcp", "port": 5201}}))]);
    does(&mut run, 0, Input::Tick);
    assert_eq!(run.awaited().count(), 0);
    does(&mut run, 1, started(0));
    assert_eq!(run.awaited().collect::<Vec<_>>(), [0]);
    does(&mut run, 2, Input::Ready { process: 0 });
    assert_eq!(run.awaited().count(), 0);
}

#[test]
fn a_readiness_that_never_comes_skips_all_that_wait_and_fails_the_run() {
    let server = process("server", &json!({"background": true, "ready": {"kind": "tcp", "port": 80}}));
    let client = process("client", &json!({"after": ["server"]}));
    let mut run = schedule(None, &[process("last", &json!({"after": ["client"]})), server, client]);
    does(&mut run, 0, Input::Tick);
    does(&mut run, 0, started(1));
    let actions = does(&mut run, 10 * S, Input::Tick);
    let reason = "it did not listen on TCP port 80 within 10 s".to_owned();
    let skip = |process, reason: &str| Action::Report {
        entry: Place::Process(process),
        kind: EventKind::Skipped { reason: reason.to_owned() },
    };
    assert_eq!(
        actions,
        [
            Action::Report { entry: Place::Process(1), kind: EventKind::ReadyTimeout { reason } },
            skip(2, "it waits for server, which did not become ready"),
            skip(0, "it waits for client, which was skipped"),
            Action::Terminate { process: 1 },
        ]
    );
    let reason = "process server on a was not ready: it did not listen on TCP port 80 within 10 s";
    assert_eq!(does(&mut run, 11 * S, ended(1, 0)).last(), Some(&finish(Outcome::Failed, reason)));
}

#[test]
fn a_process_that_ends_before_it_is_ready_fails_the_run() {
    let server = process("server", &json!({"ready": {"kind": "output", "regex": "up"}}));
    let mut run = schedule(None, &[server]);
    does(&mut run, 0, Input::Tick);
    does(&mut run, 0, started(0));
    let reason = "process server on a ended before it was ready";
    assert_eq!(does(&mut run, S, ended(0, 0)).last(), Some(&finish(Outcome::Failed, reason)));
}

#[test]
fn an_unexpected_exit_lets_the_others_finish_and_names_the_first_bad_process() {
    let mut run = schedule(None, &[process("p", &json!({})), process("q", &json!({}))]);
    does(&mut run, 0, Input::Tick);
    does(&mut run, 0, started(0));
    does(&mut run, 0, started(1));
    assert_eq!(does(&mut run, S, ended(1, 1)), [exited(1, 1, false, false, false)]);
    let reason = "process q on a exited with status 1, expected 0";
    assert_eq!(does(&mut run, 2 * S, ended(0, 2)).last(), Some(&finish(Outcome::Failed, reason)));
}

#[test]
fn the_status_that_the_plan_expects_counts_as_success_and_none_accepts_every_end() {
    for (expect_exit, end, outcome) in [
        (json!(3), End::Status(3), Outcome::Done),
        (json!(3), End::Status(0), Outcome::Failed),
        (json!(0), End::Signal(11), Outcome::Failed),
        (json!(null), End::Status(7), Outcome::Done),
        (json!(null), End::Signal(11), Outcome::Done),
    ] {
        let mut run = schedule(None, &[process("p", &json!({"expect_exit": expect_exit}))]);
        does(&mut run, 0, Input::Tick);
        does(&mut run, 0, started(0));
        let actions = does(&mut run, S, Input::Ended { process: 0, end });
        assert!(matches!(actions.last(), Some(Action::Finish { outcome: found, .. }) if *found == outcome));
    }
}

#[test]
fn a_timeout_ends_a_process_and_fails_the_run() {
    let mut run = schedule(None, &[process("p", &json!({"timeout_ns": 2 * S, "expect_exit": null}))]);
    does(&mut run, 0, Input::Tick);
    does(&mut run, S, started(0));
    assert_eq!(run.next_deadline_ns(), Some(3 * S));
    assert_eq!(does(&mut run, 3 * S, Input::Tick), [Action::Terminate { process: 0 }]);
    let reason = "process p on a ran longer than its timeout of 2 s";
    let actions = does(&mut run, 4 * S, ended(0, 0));
    assert_eq!(actions, [exited(0, 0, false, true, true), finish(Outcome::Failed, reason)]);
}

#[test]
fn a_death_by_its_own_stop_is_expected_and_lets_others_start() {
    let mut run = schedule(None, &[process("p", &json!({"stop_ns": 4 * S})), process("q", &json!({"after": ["p"]}))]);
    does(&mut run, 0, Input::Tick);
    does(&mut run, 0, started(0));
    assert_eq!(run.next_deadline_ns(), Some(4 * S));
    assert_eq!(does(&mut run, 4 * S, Input::Tick), [Action::Terminate { process: 0 }]);
    let actions = does(&mut run, 4 * S + 1, ended(0, 130));
    assert_eq!(actions, [exited(0, 130, true, false, true), Action::Start { process: 1 }]);
}

#[test]
fn a_program_that_cannot_be_executed_fails_the_run_and_those_that_wait_for_it() {
    let server = process("server", &json!({"background": true}));
    let mut run = schedule(None, &[server, process("client", &json!({"after": ["server"]}))]);
    does(&mut run, 0, Input::Tick);
    let reason = "exec /no/such: No such file or directory".to_owned();
    let actions = does(&mut run, 1, Input::StartFailed { process: 0, reason });
    let reason = "process server on a could not start: exec /no/such: No such file or directory";
    assert!(matches!(actions[1], Action::Report { entry: Place::Process(1), kind: EventKind::Skipped { .. } }));
    assert_eq!(actions.last(), Some(&finish(Outcome::Failed, reason)));
}

#[test]
fn a_stop_from_outside_ends_also_what_is_just_being_started() {
    let mut run = schedule(None, &[process("p", &json!({})), process("q", &json!({"start_ns": S}))]);
    does(&mut run, 0, Input::Tick);
    assert_eq!(does(&mut run, 1, Input::Stop { reason: "interrupted".into() }), []);
    assert_eq!(does(&mut run, 2, started(0)), [Action::Terminate { process: 0 }]);
    assert_eq!(does(&mut run, 3, ended(0, 143)).last(), Some(&finish(Outcome::Stopped, "interrupted")));
}

#[test]
fn a_stop_before_virtual_zero_ends_the_run_with_nothing_started() {
    let mut run = schedule(None, &[process("p", &json!({}))]);
    let actions = does(&mut run, -5, Input::Stop { reason: "interrupted".into() });
    assert_eq!(actions, [finish(Outcome::Stopped, "interrupted")]);
}

#[test]
fn a_deadline_that_passed_while_an_older_event_was_on_its_way_is_still_wanted() {
    let processes = [process("p", &json!({})), process("q", &json!({"start_ns": 100}))];
    let mut run = schedule(None, &processes);
    does(&mut run, 0, Input::Tick);
    does(&mut run, 99, started(0));
    assert_eq!(run.next_deadline_ns(), Some(100));
}

#[test]
fn a_deadline_of_an_event_that_was_told_late_is_still_wanted_though_later_ones_were_met() {
    let server = process("server", &json!({"background": true, "ready": {"kind": "delay", "delay_ns": 10}}));
    let mut run = schedule(None, &[server, process("q", &json!({"start_ns": 100}))]);
    does(&mut run, 0, Input::Tick);
    does(&mut run, 100, Input::Tick);
    assert_eq!(does(&mut run, 50, started(0)), []);
    assert_eq!(run.next_deadline_ns(), Some(60));
    let ready = Action::Report { entry: Place::Process(0), kind: EventKind::Ready };
    assert_eq!(does(&mut run, 101, Input::Tick), [ready]);
    assert_eq!(run.next_deadline_ns(), None);
}

#[test]
fn an_after_that_names_nothing_is_refused() {
    let plan = json!({
        "format": 8, "lab": "x", "seed": 1, "time": {"drive": "event"}, "stop_after_ns": null, "grace_ns": 0, "guests": [],
        "nodes": [], "links": [], "wires": [], "tables": {}, "traces": {}, "course": [],
        "hosts": [], "processes": [process("p", &json!({"after": ["ghost"]}))], "results": {}, "checks": [],
        "measure": {"interfaces_period_ns": null, "tcp_period_ns": null, "nodes_period_ns": null, "outputs": false, "captures": []}
    });
    assert_eq!(Schedule::new(&serde_json::from_value(plan).unwrap(), "guest0").unwrap_err(), "ghost");
}

/// The schedule of guest g of two, which holds node a; node b is in the other.
fn schedule_of_two(processes: &[Value]) -> Schedule {
    let rate = json!({"numerator": 1, "denominator": 1});
    let guest = |name| json!({"name": name, "memory_bytes": 1, "tdf": {}, "machine": null, "clock_rate": rate, "modules": [], "sysctls": {}});
    let node = |name, guest| {
        json!({"name": name, "guest": guest, "image": {"kind": "host"}, "interfaces": [], "bridge": null,
               "loopback": [], "files": [], "binds": [], "volumes": [], "routes": [], "cpu": null, "sysctls": {},
               "memory_bytes": null, "disk": null, "kind": "host", "position": null, "written": null})
    };
    let end = |guest| json!({"guest": guest, "device": "vec0"});
    let wire = json!({
        "link": null, "ends": [end("g"), end("h")], "delays_ns": [1, 1], "mtu": 1500, "ring_bytes": [1, 1]
    });
    let plan = json!({
        "format": 8, "lab": "x", "seed": 1, "time": {"drive": "event"}, "stop_after_ns": null, "grace_ns": 5 * S,
        "guests": [guest("g"), guest("h")], "nodes": [node("a", "g"), node("b", "h")], "links": [], "wires": [wire],
        "tables": {}, "traces": {}, "course": [], "hosts": [], "processes": processes, "results": {}, "checks": [],
        "measure": {"interfaces_period_ns": null, "tcp_period_ns": null, "nodes_period_ns": null, "outputs": false, "captures": []}
    });
    Schedule::new(&serde_json::from_value(plan).unwrap(), "g").unwrap()
}

fn moments(begin: Outlook, milestone: Outlook, end: Outlook) -> Moments {
    Moments { begin, milestone, end }
}

fn told(process: usize, moments: Moments) -> Input {
    Input::Told { entry: Place::Process(process), moments }
}

#[test]
fn a_process_starts_when_what_it_waits_for_in_another_guest_is_told() {
    let server = process("server", &json!({"node": "b", "background": true, "ready": {"kind": "tcp", "port": 1}}));
    let mut run = schedule_of_two(&[server, process("client", &json!({"after": ["server"]}))]);
    assert_eq!(does(&mut run, 0, Input::Tick), []);
    assert_eq!(run.next_deadline_ns(), None);
    let ready = moments(Outlook::Reached, Outlook::Reached, Outlook::Pending);
    assert_eq!(does(&mut run, S, told(0, ready)), [Action::Start { process: 1 }]);
}

#[test]
fn others_are_told_of_every_change_that_matters_to_them_and_of_no_other() {
    let mut run = schedule_of_two(&[process("p", &json!({})), process("q", &json!({"node": "b"}))]);
    assert_eq!(does(&mut run, 0, Input::Tick), [Action::Start { process: 0 }]);
    let running = moments(Outlook::Reached, Outlook::Pending, Outlook::Pending);
    assert_eq!(does(&mut run, 1, started(0)), [Action::Tell { entry: Place::Process(0), moments: running }]);
    assert_eq!(does(&mut run, 2, Input::Tick), [], "nothing has changed for them");
    let done = Moments::all(Outlook::Reached);
    assert_eq!(does(&mut run, 3, ended(0, 0))[1], Action::Tell { entry: Place::Process(0), moments: done });
}

#[test]
fn a_run_goes_on_until_the_foreground_of_all_guests_has_ended() {
    let router = process("router", &json!({"background": true}));
    let mut run = schedule_of_two(&[router, process("client", &json!({"node": "b"}))]);
    does(&mut run, 0, Input::Tick);
    does(&mut run, 1, started(0));
    let done = Moments::all(Outlook::Reached);
    assert_eq!(does(&mut run, S, told(1, done)), [Action::Terminate { process: 0 }]);
}

#[test]
fn a_failure_elsewhere_skips_those_that_wait_for_it_and_is_told_there() {
    let mut run = schedule_of_two(&[process("p", &json!({"after": ["q"]})), process("q", &json!({"node": "b"}))]);
    does(&mut run, 0, Input::Tick);
    let actions = does(&mut run, S, told(1, Moments::all(Outlook::Missed)));
    let reason = "it waits for q, which never began".to_owned();
    let skipped = Moments::all(Outlook::Missed);
    let expected = [
        Action::Report { entry: Place::Process(0), kind: EventKind::Skipped { reason } },
        Action::Tell { entry: Place::Process(0), moments: skipped },
        finish(Outcome::Done, ""),
    ];
    assert_eq!(actions, expected);
}

fn restart(on_failure: bool) -> Value {
    json!({"restart": {"on_failure": on_failure, "delay_ns": S, "delay_max_ns": 3 * S, "reset_ns": 100 * S}})
}

#[test]
fn a_process_that_fails_is_started_again_later_each_time_until_it_succeeds() {
    let mut run = schedule(None, &[process("p", &restart(true))]);
    does(&mut run, 0, Input::Tick);
    let mut now_ns = 0;
    for delay in [1, 2, 3, 3] {
        does(&mut run, now_ns, started(0));
        assert_eq!(does(&mut run, now_ns, ended(0, 7)), [exited(0, 7, true, false, false)]);
        now_ns += delay * S;
        assert_eq!(run.next_deadline_ns(), Some(now_ns));
        assert_eq!(does(&mut run, now_ns, Input::Tick), [Action::Start { process: 0 }]);
    }
    does(&mut run, now_ns, started(0));
    let actions = does(&mut run, now_ns, ended(0, 0));
    assert_eq!(actions, [exited(0, 0, true, false, false), finish(Outcome::Done, "")]);
}

#[test]
fn one_that_has_lived_for_long_is_started_again_as_after_its_first_end() {
    let mut run = schedule(Some(500 * S), &[process("p", &restart(false))]);
    does(&mut run, 0, Input::Tick);
    for (life, delay) in [(1, 1), (1, 2), (100, 1)] {
        let now_ns = run.now_ns;
        does(&mut run, now_ns, started(0));
        does(&mut run, now_ns + life * S, ended(0, 0));
        assert_eq!(run.next_deadline_ns(), Some(now_ns + (life + delay) * S));
        does(&mut run, now_ns + (life + delay) * S, Input::Tick);
    }
}

#[test]
fn a_stop_ends_what_waits_to_be_started_again() {
    let mut run = schedule(None, &[process("p", &restart(false))]);
    does(&mut run, 0, Input::Tick);
    does(&mut run, 0, started(0));
    does(&mut run, S, ended(0, 0));
    let stop = Input::Stop { reason: "interrupted".to_owned() };
    assert_eq!(does(&mut run, S + 5, stop), [finish(Outcome::Stopped, "interrupted")]);
}
