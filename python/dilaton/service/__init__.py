"""What every face can do with labs and runs: prepare, launch, follow, steer, sweep, scale, confirm, list.

**Problem.** A person at a terminal, a program in Python and a server ask for the same things. If the command line did
them, the others would have to speak its language: spell flags, start it as a process, and read what it prints to
people. Each new face would then have rules of its own about what a mistake is, when a run counts as begun, and what is
left when somebody gives up.

**Rule.** A face parses what it was given, calls one function here, and shows what that yields. What it asks for is a
value with types (`request.py`); what goes wrong is one of a closed set of errors, each with what a face needs to say it
in its own words: `LabError` with file, line and column, `RequestError` with the field of the request, `HostLacksError`
with a fix, `ControlError` of a run that cannot do it. Nothing here prints, reads a terminal, or knows how a face spells
a field.

**A run is a process of its own**, which is its `conduct.py`: from a request to the report, with all that may happen on
the way told to whoever watches. `dilaton run` is that process itself, so that it starts no slower than the run does.
Everybody else launches one (`launch.py`): `runner.py` takes the request as JSON from its standard input and says by
tidings (`tidings.py`) whether it has begun. From then on it is found by its control socket, by whoever launched it as
by anybody else, and lost without harm: no face holds anything that a run needs.

**Async first.** What waits is a coroutine, so that a server can wait for a thousand runs. `portal.py` gives the same to
programs without an event loop, and in notebooks, whose loop always runs: its loop has a thread of its own.

```text
request ──► prepare ──► conduct (execute, confirm, report)        one process, that of the run
   └──────► launch ──► runner ═╝      └─► live (steer, follow, wait)   any other process
sweep, scale ──► launch               catalogue: the runs that go on
```
"""
