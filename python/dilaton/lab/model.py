"""What a lab means: the fields that users write, with every value normalised.

A field's validation alias is the name that users write (`rate: 10Gbit`); the attribute carries the unit
(`rate_bit_per_s`). Text is read by `units` and `syntax`; numbers given from Python are taken as already normalised.
What one field alone can get wrong is refused here; what takes the whole lab to see is refused by `checks`.

`docs/lab-language.md` is the reference for users.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, InstanceOf, ValidationInfo, model_validator

from dilaton.lab.beside.configs import find_beside
from dilaton.lab.faults.drawing import Scene, Service, drawn
from dilaton.lab.faults.fault import Fault, name_faults
from dilaton.lab.images.find import Image
from dilaton.lab.inheritance import inherit
from dilaton.lab.kinds import SWITCHES
from dilaton.lab.parts.addressing import Addressing
from dilaton.lab.parts.expect import Expectation, parse_expectation
from dilaton.lab.parts.fidelity import Fidelity
from dilaton.lab.parts.impairments import count, duration, short_form
from dilaton.lab.parts.links import Change, Endpoint, Link
from dilaton.lab.parts.measure import Measure
from dilaton.lab.parts.nodes import Node
from dilaton.lab.parts.own_metrics import OwnMetric, parse_own_name
from dilaton.lab.parts.routing import Routing
from dilaton.lab.text import syntax, units
from dilaton.lab.text.part import Flag, Part, Text
from dilaton.lab.topology import Topology, parse_topology

READY_TIMEOUT_NS = 30 * 10**9

Path = Annotated[str, BeforeValidator(syntax.parse_path)]


class Auto(Part):
    """How a TDF that follows the load does so."""

    min: Annotated[InstanceOf[Fraction] | None, BeforeValidator(syntax.parse_auto_tdf)] = None
    """None: 1, on the wall drive 1/10."""
    max: Annotated[InstanceOf[Fraction], BeforeValidator(units.parse_tdf)] = Fraction(100)
    start: Annotated[InstanceOf[Fraction] | None, BeforeValidator(syntax.parse_auto_tdf)] = None
    """None: what the links of the lab will need on an ordinary host."""
    target: Annotated[float, BeforeValidator(syntax.parse_target)] = 0.8
    """The busy fraction to aim at."""
    epoch_ns: Annotated[int, duration("an epoch")] = Field(default=100_000_000, validation_alias="epoch")
    policy: Annotated[Literal["lateness", "pads15"], BeforeValidator(syntax.parse_policy)] = "lateness"


class Time(Part):
    """What drives virtual time, the dilation factor (host seconds per virtual second), exact, and a highest speed."""

    drive: Annotated[Literal["wall", "work", "event"], BeforeValidator(syntax.parse_drive)] = "work"
    tdf: Annotated[InstanceOf[Fraction] | Literal["auto"], BeforeValidator(syntax.parse_tdf)] = Fraction(1)
    """`auto`: it follows the load."""
    auto: Auto = Auto.model_construct()
    clocks: Annotated[Literal["together", "apart"], BeforeValidator(syntax.parse_clocks)] = "together"
    """Whether guests with a TDF of their own read clocks of their own, on the wall drive."""
    on_violation: Annotated[
        Literal["continue", "hold", "fail", "retry"], BeforeValidator(syntax.parse_on_violation)
    ] = "continue"
    """What follows when fidelity is out of bounds while the lab runs."""
    max_speed: Annotated[InstanceOf[Fraction] | None, BeforeValidator(syntax.parse_max_speed)] = None
    """Virtual seconds per host second that are not exceeded, idle time included; None: no bound."""


def _name_interfaces(links: list[Link]) -> list[Link]:
    """Gives every endpoint without an interface the next free eth0, eth1, … of its node, in the order of links."""
    taken = {(end.node, end.interface) for link in links for end in link.endpoints}
    numbers: dict[str, int] = {}

    def named(end: Endpoint) -> Endpoint:
        interface = end.interface
        while not interface:
            number = numbers.get(end.node, 0)
            numbers[end.node] = number + 1
            if (end.node, f"eth{number}") not in taken:
                interface = f"eth{number}"
        return end.model_copy(update={"interface": interface})

    return [link.model_copy(update={"endpoints": tuple(named(end) for end in link.endpoints)}) for link in links]


class Ready(Part):
    """When a process counts as ready: exactly one of `tcp`, `output`, `delay_ns`."""

    tcp: Annotated[int, count("a TCP port", 1, 65535)] | None = None
    """The node listens on this port."""
    output: Annotated[str, BeforeValidator(syntax.parse_regex)] | None = None
    """A line of its output matches this regular expression."""
    delay_ns: Annotated[int, duration("a delay")] | None = Field(default=None, validation_alias="delay")
    """This long after its start."""
    timeout_ns: Annotated[int, duration("a timeout")] = Field(default=READY_TIMEOUT_NS, validation_alias="timeout")
    """The run fails if it is not ready this long after its start."""

    @model_validator(mode="after")
    def _one_condition(self) -> Ready:
        given = [name for name in ("tcp", "output", "delay_ns") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError("needs exactly one of tcp, output and delay, such as {tcp: 5201}")
        return self


class Restart(Part):
    """How a process is started again when it has ended."""

    when: Annotated[Literal["always", "on-failure"], BeforeValidator(syntax.parse_restart)] = "on-failure"
    delay_ns: Annotated[int, duration("a delay")] = Field(default=100_000_000, validation_alias="delay")
    """After its end, the first time; each further time it is twice as long."""
    max_ns: Annotated[int, duration("a delay")] = Field(default=60_000_000_000, validation_alias="max")
    """The longest delay."""

    _from_text = model_validator(mode="before")(classmethod(short_form("when")))  # type: ignore[arg-type]


def _default_name(data: dict[str, Any]) -> str:
    argv: list[str] = data.get("argv") or [""]
    return posixpath.basename(argv[0])


class Process(Part):
    """A program to run in a node."""

    on: Text
    """The node."""
    argv: Annotated[list[Text], BeforeValidator(syntax.parse_exec)] = Field(validation_alias="exec")
    name: Text = Field(default_factory=_default_name)
    """The program's base name unless written."""
    env: dict[Annotated[str, BeforeValidator(syntax.parse_variable)], Text] = Field(default_factory=dict)
    cwd: Path = "/"
    user: Text = "root"
    """A name or number."""
    stdin: Path = "/dev/null"
    after: Annotated[list[Text], BeforeValidator(syntax.parse_names)] = Field(default_factory=list)
    """What it waits for: processes and faults, or moments of them (`lab/text/moments.py`)."""
    start_ns: Annotated[int, duration("a start")] = Field(default=0, validation_alias="start")
    """Earliest instant, in virtual time."""
    ready: Ready | None = None
    background: Flag = False
    """Stopped with the run; the run does not wait for it."""
    stop_ns: Annotated[int, duration("a stop")] | None = Field(default=None, validation_alias="stop")
    """Virtual instant of SIGTERM."""
    timeout_ns: Annotated[int, duration("a timeout")] | None = Field(default=None, validation_alias="timeout")
    """It fails when it runs longer than this."""
    expect_exit: Annotated[int | None, BeforeValidator(syntax.parse_exit)] = 0
    """The exit status that counts as success; None: any."""
    restart: Restart | None = None
    """None: when it has ended, it has."""
    boot: Flag | None = None
    """Whether it is started again when its node boots; None: if it is in the background, or has `restart`."""
    results: dict[Annotated[str, BeforeValidator(parse_own_name)], OwnMetric] = Field(default_factory=dict)
    """Metrics of its own, which are read from its standard output."""

    @property
    def boots(self) -> bool:
        """Whether it is started again when its node boots: a service is, what is done once is not."""
        return self.background or self.restart is not None if self.boot is None else self.boot


class Guest(Part):
    """What is particular about a guest that nodes name."""

    tdf: Annotated[InstanceOf[Fraction] | None, BeforeValidator(syntax.parse_guest_tdf)] = None
    """The TDF of its clock; None: that of the lab."""
    memory_bytes: Annotated[int | None, BeforeValidator(syntax.parse_memory)] = Field(
        default=None, validation_alias="memory"
    )
    """None: by what is in it."""

    @model_validator(mode="before")
    @classmethod
    def _from_nothing(cls, data: Any) -> Any:
        return {} if data is None else data


GuestName = Annotated[str, BeforeValidator(syntax.parse_guest_name)]
NodeName = Annotated[str, BeforeValidator(syntax.parse_node_name)]


def _make_topology(value: object, info: ValidationInfo) -> Topology:
    """The context says which directory the paths in a lab start at; without one it is the present directory."""
    return parse_topology(value, info.data.get("seed", 1), (info.context or {}).get("directory", "."))


def _find_files(value: object, info: ValidationInfo) -> object:
    return find_beside(value, (info.context or {}).get("directory", "."))


def _complete_nodes(written: dict[str, Node], info: ValidationInfo) -> dict[str, Node]:
    """The nodes of the topology and those that are written, each with what it inherits."""
    topology: Topology | None = info.data.get("topology")
    made = topology.nodes if topology else {}
    layers = [info.data.get(name, empty) for name, empty in (("defaults", Node()), ("kinds", {}), ("groups", {}))]
    names = dict.fromkeys([*made, *written])
    return {name: inherit(written.get(name, Node()), made.get(name), *layers) for name in names}


def _complete_run(written: list[Process], info: ValidationInfo) -> list[Process]:
    """The programs that are written, and what the images of nodes run on which nothing is."""
    nodes: dict[str, Node] = info.data.get("nodes", {})
    busy = {process.on for process in written}
    taken = {process.name for process in written}
    own = [
        Process(on=name, name=f"{name}-image" if name in taken else name, argv=list(node.image.argv), background=True)
        for name, node in nodes.items()
        if isinstance(node.image, Image) and node.image.argv and name not in busy
    ]
    return [*written, *own]


def _complete_links(written: list[Link], info: ValidationInfo) -> list[Link]:
    topology: Topology | None = info.data.get("topology")
    return [*(topology.links if topology else ()), *written]


def _draw_faults(written: list[Fault], info: ValidationInfo) -> list[Fault]:
    known = info.data
    if not written or not known.keys() >= OF_SCENES:
        # What is wrong with those is told first.
        return written
    return drawn(written, _scene(known))


OF_SCENES = frozenset({"seed", "nodes", "groups", "links", "run", "stop_after_ns"})
"""The fields of a lab that faults can be about."""


def _scene(known: Mapping[str, Any]) -> Scene:
    nodes: dict[str, Node] = known["nodes"]
    services = [Service(process.on, process.name, process.background) for process in known["run"]]
    switches = frozenset(name for name, node in nodes.items() if node.kind in SWITCHES)
    return Scene(nodes, known["groups"], known["links"], services, switches, known["seed"], known["stop_after_ns"])


def scene_of(lab: Lab) -> Scene:
    """What faults of a lab can be about."""
    return _scene({name: getattr(lab, name) for name in OF_SCENES})


class Lab(Part):
    """All that a user wrote. `guests:` is written either as a number or word, or as a mapping of guests by name."""

    name: Annotated[str, BeforeValidator(syntax.parse_lab_name)]
    seed: Annotated[int, BeforeValidator(syntax.parse_seed)] = 1
    time: Time = Time.model_construct()
    topology: Annotated[InstanceOf[Topology], BeforeValidator(_make_topology)] | None = None
    """What `nodes` and `links` begin with."""
    defaults: Node = Node.model_construct()
    kinds: dict[Text, Node] = Field(default_factory=dict)
    groups: dict[Text, Node] = Field(default_factory=dict)
    nodes: Annotated[dict[NodeName, Node], AfterValidator(_complete_nodes), Field(validate_default=True)] = Field(
        default_factory=dict
    )
    """All nodes, with all that they inherit."""
    links: Annotated[
        list[Link], AfterValidator(_complete_links), AfterValidator(_name_interfaces), Field(validate_default=True)
    ] = Field(default_factory=list)
    """All links: those of the topology, then those that are written."""
    changes: list[Change] = Field(default_factory=list)
    """What links become while the lab runs, at exact instants."""
    split: Annotated[syntax.Split, BeforeValidator(syntax.parse_split)] = Field(default=1, validation_alias="guests")
    """Over how many guests the nodes that name none are divided."""
    guests: Annotated[dict[GuestName, Guest], BeforeValidator(syntax.parse_named)] = Field(default_factory=dict)
    """Guests that nodes name, where something is particular about them."""
    placement: dict[Text, Annotated[int, BeforeValidator(syntax.parse_machine)]] = Field(default_factory=dict)
    """The machine, by its number, of nodes, groups and patterns (`lab/pins.py`); it says nothing where there is one."""
    routing: Routing = Routing.model_construct()
    addressing: Addressing = Addressing.model_construct()
    files: Annotated[tuple[str, ...], BeforeValidator(_find_files)] = ()
    """Directories of this machine that nodes see at the same place, and whose first is where programs start."""
    run: Annotated[list[Process], AfterValidator(_complete_run), Field(validate_default=True)] = Field(
        default_factory=list
    )
    """All programs: those of images last, where nothing else runs on their nodes."""
    stop_after_ns: Annotated[int, duration("a duration")] | None = Field(default=None, validation_alias="stop_after")
    """Virtual time at which the run ends, whatever still runs."""
    faults: Annotated[list[Fault], AfterValidator(name_faults), AfterValidator(_draw_faults)] = Field(
        default_factory=list
    )
    """What is broken on purpose while the lab runs: each fault of one thing, also those that were drawn."""
    measure: Measure = Measure.model_construct()
    fidelity: Fidelity = Fidelity.model_construct()
    expect: list[Annotated[InstanceOf[Expectation], BeforeValidator(parse_expectation)]] = Field(default_factory=list)
