"""A run over several machines, behind the same port as one over this machine (`host/port.py`).

```text
who conducts the run                     each machine
  machine.py, guests.py  ── relay hub ═══ relay ── agent.py ── host/here: guests
        engines/ ─── starts and ends ──────────────┘
```

An **engine** finds machines, starts a host agent on each and ends them all; `engines/local.py` makes machines of this
one, `engines/hosts.py` reaches others by ssh, once it is known that they have what a run needs (`engines/having.py`),
and `engines/slurm.py` and `engines/ray.py` have Slurm and Ray reserve them; Ray is started by `own.py`.
Which machine holds which guest is in `division/`. The **host agent** (`host_agent.py`, `agent.py`) boots the guests of
its machine as `host/here` does for a run on one, and does what it is asked. Everything between machines, frames,
instants and what is asked alike, goes over one encrypted connection of each machine's relay to the hub (crates/relay),
which nobody joins who does not have the run's key. So do the streams of programs that somebody starts in nodes
(`sessions.py`).

**What ends ends all.** A machine that is not heard of for four seconds of the host (`beats.py`) is gone, and a run
without one of its machines is worth nothing: it fails, and names the machine and the virtual instant. An agent that
hears no more of the run ends its guests and goes, whatever was the cause. So nobody would have to clean up after
another.

**What is read without waiting**, such as counters, is a copy: agents send what they see a few times a second, and with
each answer, so that what is read after something was asked for is not older than that.
"""
