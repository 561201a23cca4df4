"""A server: what the service can do, for people who are not at this terminal. ARCHITECTURE.md has the map ("Server").

**Problem.** The service does for whoever calls it what the account can do under which it runs. A server calls it for
others: for a browser that also shows pages of strangers, for programs with a token, for people who may do one thing and
not another. And it is ended, upgraded and killed while what it has begun goes on. So two things may never happen: that
something is done for somebody who may not have it done, and that what was asked for, or what came of it, is lost or
doubled.

**Rule of access.** Nothing is reached but through an *endpoint*, and no endpoint can be made without the rule that
guards it (`api/endpoints.py`): public, for whoever is logged in, or a permission `Object.Action` on the path of what
is asked about. The rule is checked before the endpoint's own code runs, and stands in the OpenAPI description, from
which a test makes every combination of endpoint, role and ownership. What people may do is data, decided in one pure
function (`access/rules.py`): the deepest rule on the way to a path counts, a denial before a permission, and nothing is
allowed that no rule allows. Who may not even read a thing is told that there is none.

**Rule of truth.** The database knows what was asked and by whom. What a run *is*, its process and its directory know:
it is found by its journal, on which its process holds a lock as long as it lives, by its control socket and by its
record. A run is written down before it is launched; and of one that is written down, but left no word of a process,
nothing ever began (`runs/keeper.py`). So it does not matter at which instruction a server ends.

**One action, one transaction** (`database/actions.py`): the change, who did it (audit) and what others are told of it
(event) are committed together. Events are numbered, so that who lost a connection goes on where they were.

**What comes from others is not parsed here.** Labs are read in a worker with limits of CPU and memory, in a jail
(`labs/checking.py`); images, captures and programs only by runs. Files of a run, which guests may have written, are
sent as bytes that a browser saves, never through links.

```text
cli: dilaton serve ═► serve ─► app: endpoints ─► access (may they?) ─► labs, runs ─► service ─► processes of runs
                                      └────────────── database: tables, actions, events ◄──── runs/keeper
```
"""
