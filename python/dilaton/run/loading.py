"""`dilaton.load`: a run directory as tables.

What is in a run directory was partly written by programs in guests, so nothing there is believed: files are opened as
plain files inside the directory, and what is damaged is told, not guessed. A run that failed or was killed gives what
there is; `Run.missing` says what is not.
"""

from __future__ import annotations

import gzip
import html
import io
import json
import os
import stat
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from pydantic import ValidationError

from dilaton.host.messages import Event
from dilaton.host.port import LEFT_OUT_FILE
from dilaton.measure.numbers import counted
from dilaton.plan.common import FORMAT
from dilaton.plan.model import Plan
from dilaton.run.adaptive.epoch import COLUMNS
from dilaton.run.files.directory import PLAN_FILE, replace_file
from dilaton.run.files.outputs import read_output
from dilaton.run.record import record as records
from dilaton.run.record.events import event_of
from dilaton.run.record.model import Record
from dilaton.run.record.record import RecordError
from dilaton.run.record.states import FINAL_STATES

if TYPE_CHECKING:
    import pandas as pd

    from dilaton.measure.packets.table import Packets

Result = TypeVar("Result")

REPORT = "report.html"
"""The run's report, a page without scripts."""


def load(path: str | Path) -> Run:
    """Loads a run.

    Args:
        path: Its run directory.

    Raises:
        RecordError: it is no run directory, its record or plan is damaged, or another version wrote it.
    """
    return Run(Path(path))


class Run:
    """A run that has been, or still is: its record, and its tables as pandas DataFrames, read when they are first used.

    Every table has `t_ns` and `t_s`, or is of instants in virtual time since the run's virtual 0; `docs/python.md` has
    all columns with their units.
    """

    def __init__(self, path: Path) -> None:
        """Reads record and plan; see `load`."""
        self.path = path
        self.record: Record = records.load(path)
        self.missing: list[str] = []
        """What this run does not have though it should, a sentence each; tables add to it as they are read."""
        if self.record.state not in FINAL_STATES:
            self.missing.append(f"the run is not over, or was killed: its record says {self.record.state}")
        elif self.record.state != "finished":
            self.missing.append(f"the run {self.record.state}: {self.record.reason}")
        if self.record.left_out:
            self.missing.append(
                f"{self.record.left_out} of the files of guests on other machines; {LEFT_OUT_FILE} names them"
            )
        self._captures: dict[str, Packets] = {}

    def __repr__(self) -> str:
        """As `<run dumbbell: finished, 5.743 s>`."""
        return f"<run {self.record.lab}: {self.record.state}, {self.record.time.virtual_s:.3f} s>"

    def _repr_html_(self) -> str:
        """What notebooks show: the report with its tables and figures, or how to have one made.

        It is shown in a frame that executes nothing, as a program in a guest may have written it.
        """
        if page := read_output(self.path / REPORT):
            style = "width: 100%; height: 50em; border: 0"
            return f'<iframe sandbox srcdoc="{html.escape(page)}" style="{style}"></iframe>'
        command = html.escape(f"dilaton report {self.path}")
        return f"{html.escape(repr(self))}: <code>{command}</code> makes its report"

    @cached_property
    def plan(self) -> Plan | None:
        """The plan of the run; None, with a word in `missing`, when it was never written.

        Raises:
            RecordError: it is damaged, or another version of Dilaton wrote it.
        """
        path = self.path / PLAN_FILE
        text = read_output(path)
        if not text:
            self.missing.append(f"{PLAN_FILE}: the run ended before it was written")
            return None
        try:
            return Plan.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            what = f"damaged: {field}: {first['msg']}"
            if field == "format":
                what = f"format {first['input']}; this version of Dilaton reads format {FORMAT}"
            raise RecordError(f"{path}: {what}") from error

    @cached_property
    def interfaces(self) -> pd.DataFrame:
        """Counters, queues and rates of interfaces, a row a sample."""
        return self._samples("interfaces")

    @cached_property
    def tcp(self) -> pd.DataFrame:
        """The inside of TCP connections, a row a sample."""
        return self._samples("tcp")

    @cached_property
    def nodes(self) -> pd.DataFrame:
        """CPU, memory and disk of nodes, a row a sample."""
        return self._samples("nodes")

    @cached_property
    def outputs(self) -> pd.DataFrame:
        """How long the outputs of processes were from when on, a row each time that one had grown."""
        return self._samples("outputs")

    @cached_property
    def processes(self) -> pd.DataFrame:
        """What became of each process, a row each, in the order of the lab."""
        import pandas as pd

        from dilaton.run.record.model import ProcessRecord

        rows = [process.model_dump() for process in self.record.processes]
        return pd.DataFrame(rows, columns=list(ProcessRecord.model_fields))

    @cached_property
    def checks(self) -> pd.DataFrame:
        """The expectations of the lab: `text`, `passed`, `value`."""
        import pandas as pd

        from dilaton.run.record.model import CheckRecord

        return pd.DataFrame(
            [check.model_dump() for check in self.record.checks], columns=list(CheckRecord.model_fields)
        )

    @cached_property
    def events(self) -> pd.DataFrame:
        """What happened, as in `events.jsonl`: `t_ns`, `t_s`, `kind`, `node`, `process`, what belongs to the kind."""
        import pandas as pd

        rows = [event.record() for event in self.happened]
        table = pd.DataFrame(rows, columns=None if rows else ["t_ns", "kind", "node", "process"])
        table.insert(1, "t_s", table["t_ns"] / 1e9)
        return table

    @cached_property
    def happened(self) -> list[Event]:
        """What happened, as values with types; `events` is a table of them."""
        lines = read_output(self.path / "events.jsonl").splitlines(keepends=True)
        found = []
        for number, line in enumerate(lines, 1):
            if not line.endswith("\n"):
                self.missing.append("events.jsonl: its last line breaks off")
                break
            try:
                found.append(event_of(json.loads(line)))
            except (ValueError, RecursionError) as error:
                raise RecordError(f"{self.path / 'events.jsonl'}:{number}: damaged: {error}") from error
        return found

    @cached_property
    def clock(self) -> pd.DataFrame:
        """Both clocks, a row every 0.1 s of host time: `host_s` since the release, `virtual_s`, `tdf`."""
        return self._numbers("clock.csv", "host_s,virtual_s,tdf")

    @cached_property
    def epochs(self) -> pd.DataFrame:
        """What each epoch of a run that was watched showed: `begin_s`, `end_s`, `tdf`, `busy`, `late_us`, `timers`,
        `share_lost`, `in_bounds`; no rows of others."""
        return self._numbers("epochs.csv", COLUMNS)

    @property
    def captures(self) -> list[str]:
        """The interfaces with a capture, as `node:interface`."""
        names = [path.name.removesuffix(".pcapng") for path in (self.path / "captures").glob("*.pcapng")]
        return sorted(":".join(name.rsplit(".", 1)) for name in names)

    def packets(self, interface: str) -> pd.DataFrame:
        """The packets that were captured on an interface, a row each.

        Args:
            interface: As `a:eth0`.

        Raises:
            RecordError: there is no such capture, or it is damaged.
        """
        return self.capture(interface).table

    def capture(self, interface: str) -> Packets:
        """As `packets`, with selective acknowledgements and what the capturer counted."""
        if interface not in self._captures:
            self._captures[interface] = self._read_capture(interface)
        return self._captures[interface]

    def forget_packets(self) -> None:
        """Gives up the captures that have been read, of which each may be half a gigabyte."""
        self._captures.clear()

    @cached_property
    def flows(self) -> pd.DataFrame:
        """The flows in all captures, with the column names of ns-3's FlowMonitor."""
        from dilaton.measure.packets.flows import monitor_flows

        nodes = self.plan.nodes if self.plan else []
        owners = {
            address.partition("/")[0]: node.name
            for node in nodes
            for interface in node.interfaces
            for address in interface.addresses
        }
        return monitor_flows(((name.partition(":")[0], self.packets(name)) for name in self.captures), owners)

    def to_flent(self, path: str | Path | None = None) -> Path:
        """Writes the run as a data file of Flent, with its TCP samples and its first ping; returns the file's path.

        Args:
            path: `<lab>.flent.gz` in the run directory by default.

        Raises:
            ValueError: the run has neither, or the name does not end in `.flent.gz`.
        """
        from dilaton.measure.flent import flent_document, tcp_series

        path = Path(path or self.path / f"{self.record.lab}.flent.gz")
        if not path.name.endswith(".flent.gz"):
            raise ValueError(f"{path}: Flent knows its files by their ending: .flent.gz")
        series = tcp_series(self.tcp)
        for process in self.record.processes:
            result = process.result or {}
            if result.get("requests") and process.start_s is not None and process.end_s is not None:
                step_s = (process.end_s - process.start_s) / result["sent"]
                instants = [process.start_s + number * step_s for number in result["requests"]]
                series["Ping (ms) ICMP"] = (instants, [1e3 * sample for sample in result["samples"]])
                break
        if not series:
            raise ValueError(f"{self.path}: has no TCP samples and no ping, of which Flent's file would be")
        document = flent_document(self.record.lab, self.record.time.virtual_s, series)
        replace_file(path, gzip.compress(json.dumps(document).encode(), mtime=0))
        return path

    def output(self, process: str, stream: str = "stdout") -> str:
        """What a process wrote to `stdout` or `stderr`."""
        node = next((each.node for each in self.record.processes if each.name == process), None)
        if node is None:
            known = ", ".join(each.name for each in self.record.processes) or "none"
            raise KeyError(f"{process}: no such process in this run; there is {known}")
        return read_output(self.path / "nodes" / node / f"{process}.{stream}")

    def _numbers(self, name: str, columns: str) -> pd.DataFrame:
        """A table of numbers in the run directory, up to its last whole line; no rows when there is no such file."""
        import pandas as pd

        text = self._open(path, _text) if (path := self.path / name).exists() else ""
        whole = text[: text.rfind("\n") + 1] or f"{columns}\n"
        try:
            return pd.read_csv(io.StringIO(whole), dtype="float64")
        except ValueError as error:
            raise RecordError(f"{path}: damaged: {error}") from error

    def _samples(self, name: str) -> pd.DataFrame:
        from dilaton.measure.layouts import LAYOUTS
        from dilaton.measure.tables import TableError, read_samples

        texts = []
        for path in sorted(self.path.glob(f"measure/*/{name}.csv")):
            texts.append(self._open(path, _text))
            if texts[-1] and not texts[-1].endswith("\n"):
                self.missing.append(f"{path.relative_to(self.path)}: its last line breaks off")
        try:
            return read_samples(LAYOUTS[name], texts)
        except TableError as error:
            raise RecordError(f"{self.path}: measure/*/{name}.csv: damaged: {error}") from error

    def _read_capture(self, interface: str) -> Packets:
        from dilaton.measure.packets.pcapng import CaptureError
        from dilaton.measure.packets.table import read_packets

        path = self.path / "captures" / f"{interface.replace(':', '.')}.pcapng"
        try:
            packets = self._open(path, read_packets)
        except FileNotFoundError as error:
            there = ", ".join(self.captures) or "none"
            raise RecordError(f"{interface}: no capture in {self.path}; there is {there}") from error
        except CaptureError as error:
            raise RecordError(f"{path}: {error}") from error
        if not packets.is_whole:
            self.missing.append(f"captures/{path.name}: it breaks off behind {counted(len(packets.table), 'packet')}")
        return packets

    def _open(self, path: Path, read: Callable[[BinaryIO], Result]) -> Result:
        """Reads a plain file inside the run directory."""
        inside = self.path.resolve()
        if not path.parent.resolve().is_relative_to(inside):
            raise RecordError(f"{path}: leads out of the run directory")
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise RecordError(f"{path}: cannot be read: {error.strerror}") from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise RecordError(f"{path}: not a plain file")
        with open(descriptor, "rb") as file:
            return read(file)


def _text(file: BinaryIO) -> str:
    return file.read().decode(errors="replace")
