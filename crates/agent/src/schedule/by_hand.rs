//! Faults that somebody asks for while the run goes on, or wants undone.
//!
//! They are entries like those of the plan: begun at the instant at which the guest hears of them, or later, and undone by
//! this schedule alone, whatever has become of who asked. What cannot be is refused as a whole and harms nothing, where a
//! fault of the plan would fail the run; one that is for later and cannot be then is skipped, and harms nothing either.

use super::moments::{Awaited, Place};
use super::timed::{begins_now, State, Timed};
use super::{Phase, Schedule};
use crate::plan::{self, FaultUpdate, When};

impl Schedule {
    /// Why faults cannot begin, or be undone, now; `None`: they can.
    pub fn why_not_by_hand(&self, update: &FaultUpdate) -> Option<String> {
        if self.phase != Phase::Running {
            return Some("the run has not begun, or is being stopped".to_owned());
        }
        let begin = update.begin.iter().filter_map(|fault| {
            let reason = match (self.awaited_by(fault), begins_now(fault, self.now_ns)) {
                (Err(reason), _) => reason,
                (Ok(_), true) => self.why_not(fault)?,
                (Ok(_), false) => return None,
            };
            Some(format!("{}: {reason}", fault.what))
        });
        let undo = update.undo.iter().filter_map(|name| Some(format!("{name}: {}", self.why_not_undone(name)?)));
        begin.chain(undo).next()
    }

    fn why_not_undone(&self, name: &str) -> Option<String> {
        let is_there = |entry: &Timed| entry.has_begun() || entry.is_yet_to_come_by_hand();
        let found = self.course.iter().any(|entry| entry.plan.name == name && is_there(entry));
        (!found).then(|| "it does not last now".to_owned())
    }

    /// What a fault waits for.
    fn awaited_by(&self, fault: &plan::Timed) -> Result<Option<Awaited>, String> {
        let When::After { awaited, .. } = &fault.when else { return Ok(None) };
        let process = self.entries.iter().position(|entry| entry.process.name == awaited.name).map(Place::Process);
        let timed = || self.course.iter().position(|entry| entry.plan.name == awaited.name).map(Place::Timed);
        let unknown =
            || format!("{} is a fault by hand of another guest, which this one does not hear of", awaited.name);
        Ok(Some(Awaited { entry: process.or_else(timed).ok_or_else(unknown)?, moment: awaited.moment }))
    }

    /// Takes over what can be; what begins now does so at the next [`super::Input::Tick`].
    pub fn take_over(&mut self, now_ns: i64, update: FaultUpdate) {
        self.now_ns = now_ns;
        for link in update.links {
            self.replan_link(&link.link, link.course);
        }
        for again in update.again {
            let is_same = |entry: &&mut Timed| entry.plan.name == again.name && entry.state != State::Ended;
            if let Some(entry) = self.course.iter_mut().find(is_same) {
                entry.plan.effect = again.effect;
            }
        }
        self.undo_where(|entry| entry.has_begun() && update.undo.contains(&entry.plan.name));
        for number in 0..self.course.len() {
            let entry = &self.course[number];
            if entry.is_yet_to_come_by_hand() && update.undo.contains(&entry.plan.name) {
                self.skip_timed(number, "it was taken back before it began".to_owned(), false);
            }
        }
        for fault in update.begin {
            let after = self.awaited_by(&fault).ok().flatten();
            let is_here = |node: &str| !self.nodes_elsewhere.contains(node);
            let entry = Timed::by_hand(fault, after, now_ns, is_here);
            self.course.push(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{json, Value};

    use super::super::tests::{awaited, does, process, schedule_with, started, S};
    use super::*;
    use crate::channel::protocol::EventKind;
    use crate::schedule::{Action, Input};

    fn pause(name: &str, for_ns: Option<i64>) -> Value {
        json!({"name": name, "what": "pause a", "when": {"kind": "at", "at_ns": 0}, "for_ns": for_ns,
               "effect": {"kind": "pause", "node": "a", "process": null}})
    }

    fn update(begin: &[Value], undo: &[&str]) -> FaultUpdate {
        let update =
            json!({"is_question": false, "links": [], "modules": [], "again": [], "begin": begin, "undo": undo});
        serde_json::from_value(update).expect("an update")
    }

    fn running() -> Schedule {
        let mut run = schedule_with(None, &[process("p", &json!({}))], &[pause("planned", Some(S))]);
        does(&mut run, 0, Input::Tick);
        does(&mut run, 0, started(0));
        run
    }

    fn takes(run: &mut Schedule, now_ns: i64, update: FaultUpdate) -> Vec<Action> {
        assert_eq!(run.why_not_by_hand(&update), None);
        run.take_over(now_ns, update);
        does(run, now_ns, Input::Tick)
    }

    fn report(entry: usize, kind: EventKind) -> Action {
        Action::Report { entry: Place::Timed(entry), kind }
    }

    fn undone(entry: usize) -> [Action; 2] {
        [Action::Undo { entry }, report(entry, EventKind::Undone { what: "pause a".to_owned(), load: None })]
    }

    #[test]
    fn a_fault_by_hand_begins_when_it_is_heard_of_and_is_undone_so_long_after_that() {
        let mut run = running();
        does(&mut run, S, Input::Tick);
        let begun = takes(&mut run, 3 * S, update(&[pause("hand1", Some(S))], &[]));
        let what = "pause a".to_owned();
        assert_eq!(begun, [Action::Begin { entry: 1 }, report(1, EventKind::Began { what })]);
        assert_eq!(run.next_deadline_ns(), Some(4 * S));
        assert_eq!(does(&mut run, 4 * S, Input::Tick), undone(1));
    }

    #[test]
    fn one_for_later_begins_at_its_instant_or_so_long_after_a_moment_and_can_be_taken_back() {
        let mut run = running();
        let what = "pause a".to_owned();
        let mut later = pause("hand1", Some(S));
        later["when"]["at_ns"] = (3 * S).into();
        let mut after = pause("hand2", None);
        after["when"] = json!({"kind": "after", "awaited": awaited(&json!("hand1.end")), "wait_ns": S});
        let mut never = later.clone();
        never["name"] = "hand3".into();
        does(&mut run, S, Input::Tick);
        assert_eq!(takes(&mut run, 2 * S, update(&[later, never], &[])), []);
        assert_eq!(takes(&mut run, 2 * S, update(&[after], &[])), []);
        assert_eq!(run.next_deadline_ns(), Some(3 * S));
        let reason = "it was taken back before it began".to_owned();
        assert_eq!(takes(&mut run, 2 * S, update(&[], &["hand3"])), [report(2, EventKind::Skipped { reason })]);
        let begun = does(&mut run, 3 * S, Input::Tick);
        assert_eq!(begun, [Action::Begin { entry: 1 }, report(1, EventKind::Began { what: what.clone() })]);
        assert_eq!(does(&mut run, 4 * S, Input::Tick), undone(1));
        let begun = does(&mut run, 5 * S, Input::Tick);
        assert_eq!(begun, [Action::Begin { entry: 3 }, report(3, EventKind::Began { what })]);
    }

    #[test]
    fn one_for_later_that_cannot_be_then_is_skipped_and_the_run_is_unharmed() {
        let mut run = running();
        does(&mut run, S, Input::Tick);
        let mut later = pause("hand1", None);
        later["when"]["at_ns"] = (3 * S).into();
        takes(&mut run, 2 * S, update(&[later], &[]));
        takes(&mut run, 2 * S, update(&[pause("hand2", None)], &[]));
        let reason = "hand2 has paused that already".to_owned();
        assert_eq!(does(&mut run, 3 * S, Input::Tick), [report(1, EventKind::Skipped { reason })]);
        assert_eq!(run.failure, None);
    }

    #[test]
    fn one_that_waits_for_what_this_guest_does_not_know_is_refused() {
        let run = running();
        let mut after = pause("hand2", None);
        after["when"] = json!({"kind": "after", "awaited": awaited(&json!("hand1.end")), "wait_ns": 0});
        let refused = run.why_not_by_hand(&update(&[after], &[]));
        let words = "pause a: hand1 is a fault by hand of another guest, which this one does not hear of";
        assert_eq!(refused.as_deref(), Some(words));
    }

    #[test]
    fn one_that_meets_another_is_refused_and_the_run_is_unharmed() {
        let mut run = running();
        let refused = run.why_not_by_hand(&update(&[pause("hand1", None)], &[]));
        assert_eq!(refused.as_deref(), Some("pause a: planned has paused that already"));
        assert_eq!(does(&mut run, S, Input::Tick), undone(0));
        assert_eq!(run.failure, None);
    }

    #[test]
    fn a_death_for_good_is_over_at_once_and_keeps_nothing_from_being_undone() {
        let mut run = running();
        let kill = json!({"name": "hand1", "what": "kill a/p", "when": {"kind": "at", "at_ns": 0}, "for_ns": null,
                          "effect": {"kind": "kill", "node": "a", "process": "p"}});
        takes(&mut run, S / 2, update(&[kill], &[]));
        let refused = run.why_not_by_hand(&update(&[], &["hand1"]));
        assert_eq!(refused.as_deref(), Some("hand1: it does not last now"));
        assert_eq!(takes(&mut run, S / 2, update(&[], &["planned"])), undone(0));
    }

    #[test]
    fn jumps_of_a_clock_that_last_together_keep_within_the_dates_of_a_kernel() {
        let year_ns: i64 = 365 * 86_400 * S;
        let jump = |name: &str, years: i64| {
            json!({"name": name, "what": "clock a", "when": {"kind": "at", "at_ns": 0}, "for_ns": null,
                   "effect": {"kind": "set-clock", "node": "a", "by_ns": years * year_ns}})
        };
        let mut run = running();
        takes(&mut run, S / 2, update(&[jump("hand1", 30)], &[]));
        let refused = run.why_not_by_hand(&update(&[jump("hand2", 30)], &[]));
        let words = "clock a: with the others that last, the clock of a would be off by more than 50 years";
        assert_eq!(refused.as_deref(), Some(words));
        assert_eq!(run.why_not_by_hand(&update(&[jump("hand2", -50)], &[])), None);
    }

    #[test]
    fn what_lasts_is_undone_by_hand_once_also_what_the_plan_has_begun() {
        let mut run = running();
        assert_eq!(takes(&mut run, S / 2, update(&[], &["planned"])), undone(0));
        assert_eq!(run.next_deadline_ns(), None);
        let again = run.why_not_by_hand(&update(&[], &["planned"]));
        assert_eq!(again.as_deref(), Some("planned: it does not last now"));
    }
}
