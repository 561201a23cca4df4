"""Disks of nodes: a known one by its name, or a full description.

The parameters of each model are explained in `docs/disks.md`; what a model makes of them is in `crates/disk`. Known
disks are descriptions in `known_disks/`, in the words that users write too.
"""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, InstanceOf, ValidationInfo, field_validator, model_validator

from dilaton.lab.parts.impairments import count, duration
from dilaton.lab.text import syntax, units
from dilaton.lab.text.document import read_document
from dilaton.lab.text.part import Part

KNOWN = Path(__file__).parent / "known_disks"

SECTOR_BYTES = 512
SIZE_DEFAULT = 16 * 10**9
SIZE_MIN, SIZE_MAX = 2**20, 2**44
KINDS = ("fixed", "flash", "mechanical")
CACHES = ("kept", "volatile", "torn")
ZONES = 16
"""How many zones a drive with platters has (crates/disk/src/geometry.rs)."""


CACHE_DEFAULT, CACHE_MAX = 2**24, 2**26
"""Bytes of a volatile cache where the model has none, and the most: the guest's process keeps what they replace."""


OWN_TREES = ("/dev", "/proc", "/run", "/sys")
"""Trees of which each node has its own, in memory."""


@cache
def known_disks() -> Mapping[str, Mapping[str, Any]]:
    """The descriptions of known disks by name."""
    return {path.stem: read_document(path.read_text(), path.name).data for path in sorted(KNOWN.glob("*.yaml"))}


def _size(what: str, least: int = 0, most: int = SIZE_MAX) -> Callable[[object], int]:
    def parse(value: object) -> int:
        size = value if type(value) is int else units.parse_size(value, what)
        if not least <= size <= most:
            low, high = units.format_size(least), units.format_size(most)
            raise ValueError(f"{units.format_size(size)}: {what} must be from {low} to {high}")
        return size

    return parse


def _page(value: object) -> int:
    size = _size("a page", SECTOR_BYTES, 2**20)(value)
    if size % SECTOR_BYTES:
        raise ValueError(f"{units.format_size(size)}: a page is a multiple of {SECTOR_BYTES}B")
    return size


def _bandwidth(value: object) -> int:
    """Reads bytes a second: `500MB/s`."""
    if type(value) is int:
        return value
    text = units.shown(value)
    return units.parse_size(text.removesuffix("/s"), "a bandwidth")


def _amplification(value: object) -> Fraction:
    factor = value if isinstance(value, Fraction) else units.parse_factor(value, "a write amplification")
    if not 1 <= factor <= 100:
        raise ValueError(f"{units.shown(value)}: a write amplification is from 1 to 100")
    return factor


Bandwidth = Annotated[int, BeforeValidator(_bandwidth), Field(gt=0)]
Duration = Annotated[int, duration("a duration")]


class Fixed(Part):
    """A disk that takes a fixed time."""

    read_latency_ns: Annotated[int, duration("a latency")] = Field(validation_alias="read_latency")
    write_latency_ns: Annotated[int, duration("a latency")] = Field(validation_alias="write_latency")
    requests_per_s: Annotated[int, count("a number of requests", 1, 10**9)] | None = Field(
        default=None, validation_alias="iops"
    )
    """None: any number."""
    bytes_per_s: Bandwidth | None = Field(default=None, validation_alias="bandwidth")
    """None: any number."""

    def parameters(self) -> dict[str, int]:
        """As the model takes them."""
        return {name: value or 0 for name, value in self}


class Flash(Part):
    """A solid-state disk."""

    channels: Annotated[int, count("a number of channels", 1, 64)]
    dies: Annotated[int, count("a number of dies", 1, 512)]
    page_bytes: Annotated[int, BeforeValidator(_page)] = Field(validation_alias="page")
    read_page_ns: Duration = Field(validation_alias="read_page")
    program_page_ns: Duration = Field(validation_alias="program_page", gt=0)
    channel_bytes_per_s: Bandwidth = Field(validation_alias="channel_bandwidth")
    link_bytes_per_s: Bandwidth = Field(validation_alias="link_bandwidth")
    command_ns: Duration = Field(default=0, validation_alias="command")
    overhead_ns: Duration = Field(default=0, validation_alias="overhead")
    write_cache_bytes: Annotated[int, BeforeValidator(_size("a write cache", 2**20))] = Field(
        default=2**24, validation_alias="write_cache"
    )
    flush_drains: Annotated[bool, BeforeValidator(syntax.parse_flag)] = True
    """Whether a flush waits until the cache is empty; else it survives a loss of power."""
    clean_bytes: Annotated[int, BeforeValidator(_size("what is clean"))] = Field(default=0, validation_alias="clean")
    write_amplification: Annotated[InstanceOf[Fraction], BeforeValidator(_amplification)] = Fraction(1)

    @model_validator(mode="after")
    def _agree(self) -> Flash:
        if self.dies < self.channels:
            raise ValueError(f"{self.dies} dies on {self.channels} channels: each channel has a die or more")
        return self

    def parameters(self) -> dict[str, int]:
        """As the model takes them."""
        own = {name: int(value) for name, value in self if name != "write_amplification"}
        return own | {"write_amplification_permille": round(self.write_amplification * 1000)}


class Mechanical(Part):
    """A drive with platters."""

    rpm: Annotated[int, count("a number of revolutions a minute", 1000, 100_000)]
    cylinders: Annotated[int, count("a number of cylinders", 4 * ZONES, 10**7)]
    heads: Annotated[int, count("a number of heads", 1, 64)]
    outer_track_sectors: Annotated[int, count("a number of sectors", 1, 100_000)] = Field(
        validation_alias="outer_track"
    )
    inner_track_sectors: Annotated[int, count("a number of sectors", 1, 100_000)] = Field(
        validation_alias="inner_track"
    )
    seek_single_ns: Duration = Field(validation_alias="seek_single")
    seek_mean_ns: Duration = Field(validation_alias="seek_mean")
    seek_full_ns: Duration = Field(validation_alias="seek_full")
    write_settle_ns: Duration = Field(default=0, validation_alias="write_settle")
    track_switch_ns: Duration = Field(validation_alias="track_switch")
    command_ns: Duration = Field(default=0, validation_alias="command")
    link_bytes_per_s: Bandwidth = Field(validation_alias="link_bandwidth")
    read_ahead_bytes: Annotated[int, BeforeValidator(_size("a read-ahead"))] = Field(
        default=0, validation_alias="read_ahead"
    )
    write_cache_bytes: Annotated[int, BeforeValidator(_size("a write cache"))] = Field(
        default=0, validation_alias="write_cache"
    )

    @model_validator(mode="after")
    def _agree(self) -> Mechanical:
        if self.inner_track_sectors > self.outer_track_sectors:
            raise ValueError("inner_track: inner tracks are shorter, and have no more sectors than outer_track")
        if self.seek_single_ns > self.seek_full_ns:
            single, full = units.format_duration(self.seek_single_ns), units.format_duration(self.seek_full_ns)
            raise ValueError(f"seek_single: {single}: a seek over one cylinder takes no longer than seek_full, {full}")
        if self.track_switch_ns >= self.revolution_ns:
            switch, revolution = units.format_duration(self.track_switch_ns), units.format_duration(self.revolution_ns)
            raise ValueError(f"track_switch: {switch}: must be less than a revolution, {revolution} at {self.rpm} rpm")
        rise, span = self.seek_mean_ns - self.seek_single_ns, self.seek_full_ns - self.seek_single_ns
        # The joint of the seek curve, by which the mean is right, is between the two (crates/disk/src/geometry.rs).
        if not span * 20 <= rise * 135 <= span * 108:
            low, high = (self.seek_single_ns + span * part // 135 for part in (20, 108))
            raise ValueError(
                f"seek_mean: {units.format_duration(self.seek_mean_ns)} cannot be the mean of seeks from "
                f"{units.format_duration(self.seek_single_ns)} to {units.format_duration(self.seek_full_ns)}; "
                f"use {units.format_duration(low)} to {units.format_duration(high)}"
            )
        return self

    @property
    def revolution_ns(self) -> int:
        """How long the platters take to turn once."""
        return round(60e9 / self.rpm)

    @property
    def capacity_bytes(self) -> int:
        """What it holds: zones of equally many cylinders, the sectors of their tracks falling evenly."""
        outer, inner = self.outer_track_sectors, self.inner_track_sectors
        tracks = [outer - (outer - inner) * zone // (ZONES - 1) for zone in range(ZONES)]
        return sum(tracks) * (self.cylinders // ZONES) * self.heads * SECTOR_BYTES

    def parameters(self) -> dict[str, int]:
        """As the model takes them."""
        return {name: value for name, value in self if name != "rpm"} | {"revolution_ns": self.revolution_ns}


def _parse_mount(value: object) -> str | None:
    if value is None or value == "none":
        return None
    path = posixpath.normpath(syntax.parse_path(value))
    if own := next((name for name in OWN_TREES if path == name or path.startswith(f"{name}/")), None):
        raise ValueError(f"{path}: {own} is the node's own, whatever disk it has; use another path")
    return path


def _parse_cache(value: object) -> str:
    return syntax.parse_choice(value, "what becomes of a cache", CACHES)


class Disk(Part):
    """A node's disk: what it is, how large, where the node finds it, and what keeps its contents."""

    model: str | None = None
    """The known disk that it is, or that it differs from; None: it is described."""
    fixed: Fixed | None = None
    flash: Flash | None = None
    mechanical: Mechanical | None = None
    size_bytes: Annotated[int | None, BeforeValidator(_size("a size", SIZE_MIN))] = Field(
        default=None, validation_alias="size", validate_default=False
    )
    mount: Annotated[str | None, BeforeValidator(_parse_mount)] = "/"
    """Where its file system is in the node, `/` being all that the node writes; None: it has none."""
    image: str | None = None
    """The file of this machine that keeps its contents, absolute; None: they go with the run."""
    cache: Annotated[Literal["kept", "volatile", "torn"], BeforeValidator(_parse_cache)] = "kept"
    """What becomes at a crash of what was written and not flushed: it is kept, or lost, or some of it is lost."""

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, data: Any) -> Any:
        """Puts what is known of a model below what is written."""
        if not isinstance(data, dict) or "model" not in data:
            return data
        name = syntax.parse_choice(data["model"], "a disk", ["ram", *known_disks()])
        if name == "ram":
            raise ValueError("ram: memory is no disk that could be described; write disk: ram, or leave it out")
        known = known_disks()[name]
        kind = next(kind for kind in KINDS if kind in known)
        if other := next((other for other in KINDS if other != kind and other in data), None):
            raise ValueError(f"{name} is described by {kind}:, not {other}:; leave one of them out")
        written = data.get(kind)
        layer = {**known[kind], **written} if isinstance(written, dict) else known[kind]
        return {"size": known["size"], **data, kind: layer}

    @field_validator("image", mode="before")
    @classmethod
    def _find_image(cls, value: object, info: ValidationInfo) -> str | None:
        """The path of an image starts at the lab's directory."""
        if value is None:
            return None
        name = syntax.parse_text(value)
        path = os.path.abspath(os.path.join((info.context or {}).get("directory", "."), name))
        try:
            status = os.stat(path)
        except OSError as error:
            hint = f"; make one with truncate -s 10G {name}"
            raise ValueError(f"{path}: cannot be read: {error.strerror}{hint}") from error
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"{path}: is no file; an image of a disk is one")
        if not os.access(path, os.R_OK | os.W_OK):
            raise ValueError(f"{path}: you may not read and write it; its contents are the disk's, so a run has to")
        return path

    @model_validator(mode="after")
    def _agree(self) -> Disk:
        kinds = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(kinds) != 1:
            raise ValueError(f"needs a model ({', '.join(known_disks())}) or one description: fixed, flash, mechanical")
        if self.mechanical is not None and self.size > self.mechanical.capacity_bytes:
            capacity = units.format_size(self.mechanical.capacity_bytes)
            raise ValueError(f"size: {units.format_size(self.size)}: the drive that is described holds {capacity}")
        if self.cache != "kept" and self.mechanical is not None and self.mechanical.write_cache_bytes < SECTOR_BYTES:
            raise ValueError(
                f"cache: {self.cache}: the drive has no write cache to lose; "
                "give it one, mechanical: {write_cache: 16MiB}"
            )
        if self.image is not None and os.path.getsize(self.image) < self.size:
            has, wanted = units.format_size(os.path.getsize(self.image)), units.format_size(self.size)
            raise ValueError(
                f"image: {self.image} has {has}, and the disk {wanted}; enlarge it, or give the disk a size"
            )
        return self

    @property
    def kind(self) -> Literal["fixed", "flash", "mechanical"]:
        """The kind of its model."""
        return "fixed" if self.fixed else "flash" if self.flash else "mechanical"

    @property
    def size(self) -> int:
        """Its size in bytes: as written, else that of the image, else all that the drive holds."""
        if self.size_bytes is not None:
            size = self.size_bytes
        elif self.image is not None:
            size = os.path.getsize(self.image)
        else:
            size = self.mechanical.capacity_bytes if self.mechanical else SIZE_DEFAULT
        return size // SECTOR_BYTES * SECTOR_BYTES

    @property
    def volatile_bytes(self) -> int | None:
        """What its cache may lose at a crash; None: nothing."""
        if self.cache == "kept":
            return None
        model = self.flash or self.mechanical
        return CACHE_DEFAULT if model is None else min(model.write_cache_bytes, CACHE_MAX)

    def parameters(self) -> dict[str, int]:
        """The parameters of its model, as crates/disk/src/parameters.rs names them."""
        model = self.fixed or self.flash or self.mechanical
        assert model is not None, "exactly one of them is there"
        # No capacitors keep a cache that is volatile, so a flush has to wait for it.
        drains = {"flush_drains": 1} if self.flash is not None and self.cache != "kept" else {}
        return model.parameters() | drains


def parse_disk(value: object) -> object:
    """Reads a disk: a known one's name, `ram` for none, or a mapping."""
    if value is None or value == "ram":
        return None
    return {"model": value} if isinstance(value, str) else value
