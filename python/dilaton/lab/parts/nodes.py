"""What a lab says of a node: its kind, and the machine that it is."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, InstanceOf, ValidationInfo, model_validator

from dilaton.lab.beside.configs import DirectoryTexts, FileText, read_beside
from dilaton.lab.beside.contents import Given, Place
from dilaton.lab.images.find import Image, find_image, find_recipe, tree_of
from dilaton.lab.parts.cpus import parse_cpu
from dilaton.lab.parts.disks import Disk, parse_disk
from dilaton.lab.parts.impairments import count
from dilaton.lab.text import syntax
from dilaton.lab.text.part import Flag, Part, Text

AS_MAX = 2**32 - 2
"""The largest number of an autonomous system (RFC 7300)."""


@dataclass(frozen=True)
class Controller:
    """Where an OpenFlow controller listens."""

    node: str
    port: int


def _parse_controller(value: object) -> object:
    if value is None or isinstance(value, Controller):
        return value
    return Controller(*syntax.parse_controller(value))


def _read_config(value: object, info: ValidationInfo) -> FileText | DirectoryTexts:
    if isinstance(value, FileText | DirectoryTexts):
        return value
    return read_beside(value, (info.context or {}).get("directory", "."))


class Startup(Part):
    """A configuration with which a node runs FRR or BIRD: exactly one of the two."""

    frr: Annotated[InstanceOf[FileText] | InstanceOf[DirectoryTexts], BeforeValidator(_read_config)] | None = None
    """The text of frr.conf; or the files of FRR's directory, of which `daemons` says which daemons run."""
    bird: Annotated[InstanceOf[FileText] | InstanceOf[DirectoryTexts], BeforeValidator(_read_config)] | None = None
    """The text of bird.conf."""

    @model_validator(mode="after")
    def _one(self) -> Startup:
        if (self.frr is None) == (self.bird is None):
            raise ValueError("needs the path of one configuration, as in {frr: frr.conf} or {bird: bird.conf}")
        if isinstance(self.bird, DirectoryTexts):
            raise ValueError("bird: a directory; write the path of a file, such as bird.conf")
        return self


def _read_image(value: object, info: ValidationInfo) -> object:
    """Where a node's file tree comes from, looked up in the store of images unless it is this machine's own."""
    if value == "host" or isinstance(value, Image):
        return value
    directory = (info.context or {}).get("directory", ".")
    recipe = value if isinstance(value, dict) else tree_of(syntax.parse_text(value))
    if recipe is not None:
        # Here, since labs without recipes need none of it.
        from dilaton.lab.images.recipe import parse_recipe

        return find_recipe(parse_recipe(recipe, directory), directory)
    return find_image(syntax.parse_text(value), directory)


class Node(Part):
    """An emulated machine. `sysctls` has keys with slashes, as the plan wants them."""

    kind: Annotated[str | None, BeforeValidator(syntax.parse_kind_name)] = None
    """`host`, `router`, `switch`, `ovs`, `controller` or `nat`. None: a host, which forwards packets if it has two
    links or more."""
    group: Text | None = None
    """Whose settings it inherits."""
    config: Annotated[InstanceOf[FileText] | InstanceOf[DirectoryTexts], BeforeValidator(_read_config)] | None = None
    """The configuration of a router with a routing daemon, instead of the generated one, written as a file's path; or
    the path of a directory of FRR's own configuration, with which a router runs FRR whatever the routing is."""
    startup: Startup | None = None
    """All that a router's routing daemons do, whatever the routing is."""
    as_number: Annotated[int, count("the number of an autonomous system", 1, AS_MAX)] | None = Field(
        default=None, validation_alias="as"
    )
    """The autonomous system of a router with BGP; None: a private one."""
    controller: Annotated[InstanceOf[Controller], BeforeValidator(_parse_controller)] | None = None
    """The controller of an Open vSwitch; None: it is a switch that learns by itself."""
    outside: Annotated[str, BeforeValidator(syntax.parse_interface)] | None = None
    """The interface whose address a NAT shows."""
    stp: Flag = False
    """Whether a switch runs the spanning tree protocol."""
    image: Annotated[Literal["host"] | InstanceOf[Image], BeforeValidator(_read_image)] = "host"
    """`host`: this machine's own file tree."""
    files: dict[Place, Given] = Field(default_factory=dict)
    """Files and directories that it has beside those, by their paths (`lab/beside/contents.py`)."""
    volumes: dict[Place, Annotated[str, BeforeValidator(syntax.parse_volume_name)]] = Field(default_factory=dict)
    """Directories that it shares with all nodes that have a volume of that name, by their paths."""
    sysctls: dict[Annotated[str, BeforeValidator(syntax.parse_sysctl_key)], Text] = Field(default_factory=dict)
    guest: Annotated[str | None, BeforeValidator(syntax.parse_guest_name)] = None
    """The guest that holds it; None: one that `guests` gives it."""
    cpu: Annotated[InstanceOf[Fraction] | None, BeforeValidator(parse_cpu)] = None
    """Speed of its CPU, that of a core of the host being 1; None: what the TDF makes of it."""
    memory_bytes: Annotated[int | None, BeforeValidator(syntax.parse_node_memory)] = Field(
        default=None, validation_alias="memory"
    )
    """What its programs may take, the files that it has in memory included; None: no limit of its own."""
    disk: Annotated[Disk | None, BeforeValidator(parse_disk)] = None
    """None: what it writes is in memory."""

    @model_validator(mode="before")
    @classmethod
    def _from_nothing(cls, data: Any) -> Any:
        return {} if data is None else data

    @model_validator(mode="after")
    def _one_configuration(self) -> Node:
        if self.startup is not None and self.config is not None:
            raise ValueError("startup: is all that its daemons do, and so is config:; leave one of them out")
        return self

    @property
    def has_own_routing(self) -> bool:
        """Whether it runs routing daemons as it says itself, whatever the lab's routing is."""
        return self.startup is not None or isinstance(self.config, DirectoryTexts)
