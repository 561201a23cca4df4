"""Disks: known ones and descriptions mean what they say, and each mistake gets its one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from dilaton.lab import LabError, loads
from dilaton.lab.parts.disks import Disk, known_disks
from dilaton.plan.compile import compile as compile_plan

HEAD = "name: x\nnodes:\n"

MECHANICAL = (
    "rpm: 6000, cylinders: 1600, heads: 2, outer_track: 200, inner_track: 100, seek_single: 1ms, seek_mean: 5ms, "
    "seek_full: 10ms, track_switch: 1ms, link_bandwidth: 100MB/s"
)


def disk(text: str) -> Disk:
    found = loads(f"{HEAD}  a: {{disk: {text}}}\n", "lab.yaml").nodes["a"].disk
    assert found is not None
    return found


def test_memory_is_no_disk() -> None:
    lab = loads(HEAD + "  a: {disk: ram}\n  b: {}\n", "lab.yaml")
    assert lab.nodes["a"].disk is lab.nodes["b"].disk is None


def test_known_disks_have_a_size_and_a_file_system_for_all_that_a_node_writes() -> None:
    assert list(known_disks()) == ["hdd-15k", "hdd-7200", "nvme", "ssd-sata"]
    for name in known_disks():
        known = disk(name)
        assert known.size >= 300 * 10**9
        assert (known.mount, known.image) == ("/", None)


def test_a_drive_holds_what_its_tracks_hold() -> None:
    # 16 zones of 100 cylinders, 2 heads, and 200 down to 100 sectors.
    sectors = sum(200 - 100 * zone // 15 for zone in range(16))
    assert disk(f"{{mechanical: {{{MECHANICAL}}}}}").size == sectors * 100 * 2 * 512


def test_a_description_may_say_only_what_differs_from_a_known_disk() -> None:
    faster = disk("{model: hdd-7200, size: 10GB, mechanical: {seek_mean: 7ms}}").parameters()
    changed = {name for name, value in disk("hdd-7200").parameters().items() if faster[name] != value}
    assert changed == {"seek_mean_ns"}


def test_parameters_are_named_and_counted_as_the_models_want_them() -> None:
    fixed = disk("{fixed: {read_latency: 1ms, write_latency: 20us, iops: 5000, bandwidth: 100MB/s}}")
    expected = {"read_latency_ns": 10**6, "write_latency_ns": 20000, "requests_per_s": 5000, "bytes_per_s": 10**8}
    assert fixed.parameters() == expected
    assert disk("nvme").parameters()["write_amplification_permille"] == 5150
    assert disk("hdd-15k").parameters()["revolution_ns"] == 4_000_000


def test_a_volatile_cache_is_as_large_as_the_model_says_within_limits() -> None:
    assert disk("hdd-7200").volatile_bytes is None
    assert disk("{model: hdd-7200, cache: volatile}").volatile_bytes == 16 << 20
    assert disk("{model: nvme, cache: torn}").volatile_bytes == 64 << 20
    assert disk("{fixed: {read_latency: 0s, write_latency: 0s}, cache: volatile}").volatile_bytes == 16 << 20


def test_flushes_of_a_volatile_cache_wait_until_it_is_empty_whatever_capacitors_the_disk_has() -> None:
    assert disk("nvme").parameters()["flush_drains"] == 0
    assert disk("{model: nvme, cache: volatile}").parameters()["flush_drains"] == 1


def test_what_is_torn_is_drawn_from_the_seed_for_each_node() -> None:
    lab = HEAD + "  a: {disk: {model: nvme, cache: torn}}\n  b: {disk: {model: nvme, cache: torn}}\n"
    seeds = [
        node.disk.volatile_cache.torn_seed
        for text in (lab, lab + "seed: 2\n", lab)
        for node in compile_plan(loads(text, "lab.yaml")).nodes
        if node.disk is not None and node.disk.volatile_cache is not None
    ]
    assert len(set(seeds)) == 4 and seeds[:2] == seeds[4:]


def test_disks_of_a_guest_are_numbered(tmp_path: Path) -> None:
    lab = loads(
        HEAD + "  a: {disk: nvme}\n  b: {}\n  c: {disk: {model: nvme, mount: none}, memory: 64MB}\n", "lab.yaml"
    )
    a, b, c = compile_plan(lab).nodes
    assert a.disk is not None and c.disk is not None
    assert (a.disk.number, b.disk, c.disk.number) == (0, None, 1)
    assert (c.disk.mount, c.memory_bytes) == (None, 64 * 10**6)


MISTAKES = [
    (
        "an unknown disk",
        "  a: {disk: hdd-7400}\n",
        "lab.yaml:3:13: nodes.a.disk: hdd-7400: not a disk; did you mean hdd-7200?",
    ),
    (
        "a disk without a model",
        "  a: {disk: {size: 1GB}}\n",
        "lab.yaml:3:13: nodes.a.disk: needs a model (hdd-15k, hdd-7200, nvme, ssd-sata) or one description: fixed, flash, mechanical",
    ),
    (
        "a known disk described by another model",
        "  a: {disk: {model: nvme, fixed: {read_latency: 1ms, write_latency: 1ms}}}\n",
        "lab.yaml:3:13: nodes.a.disk: nvme is described by flash:, not fixed:; leave one of them out",
    ),
    (
        "more than the drive holds",
        "  a: {disk: {model: hdd-7200, size: 2000GB}}\n",
        "lab.yaml:3:13: nodes.a.disk: size: 2000GB: the drive that is described holds 1003.665408GB",
    ),
    (
        "seeks that contradict each other",
        "  a: {disk: {model: hdd-7200, mechanical: {seek_mean: 20ms}}}\n",
        "lab.yaml:3:43: nodes.a.disk.mechanical: seek_mean: 20ms cannot be the mean of seeks from 800us to 17ms; use 3.2ms to 13.76ms",
    ),
    (
        "inner tracks that are longer",
        "  a: {disk: {model: hdd-7200, mechanical: {inner_track: 5000}}}\n",
        "lab.yaml:3:43: nodes.a.disk.mechanical: inner_track: inner tracks are shorter, and have no more sectors than outer_track",
    ),
    (
        "fewer dies than channels",
        "  a: {disk: {model: nvme, flash: {dies: 4}}}\n",
        "lab.yaml:3:34: nodes.a.disk.flash: 4 dies on 18 channels: each channel has a die or more",
    ),
    (
        "a latency without a unit",
        "  a: {disk: {fixed: {read_latency: 5, write_latency: 1ms}}}\n",
        "lab.yaml:3:36: nodes.a.disk.fixed.read_latency: 5: a latency needs a unit: write 5ms (or ns, us, s, min, h)",
    ),
    (
        "an image that is missing",
        "  a: {disk: {model: nvme, image: /nowhere/x.img}}\n",
        "lab.yaml:3:34: nodes.a.disk.image: /nowhere/x.img: cannot be read: No such file or directory; make one with truncate -s 10G /nowhere/x.img",
    ),
    (
        "a bandwidth of nothing",
        "  a: {disk: {fixed: {read_latency: 1ms, write_latency: 1ms, bandwidth: 0B/s}}}\n",
        "lab.yaml:3:72: nodes.a.disk.fixed.bandwidth: must be more than 0",
    ),
    (
        "a description that lacks something",
        "  a: {disk: {fixed: {read_latency: 1ms}}}\n",
        "lab.yaml:3:21: nodes.a.disk.fixed.write_latency: missing; write for example disk: {fixed: {read_latency: 500us, write_latency: 800us}}",
    ),
    (
        "a cache of an unknown kind",
        "  a: {disk: {model: nvme, cache: volatil}}\n",
        "lab.yaml:3:34: nodes.a.disk.cache: volatil: not what becomes of a cache; did you mean volatile?",
    ),
    (
        "a cache that is not there and may be lost",
        "  a: {disk: {model: hdd-15k, cache: volatile}}\n",
        "lab.yaml:3:13: nodes.a.disk: cache: volatile: the drive has no write cache to lose; give it one, mechanical: {write_cache: 16MiB}",
    ),
    (
        "pages that are no whole sectors",
        "  a: {disk: {model: nvme, flash: {page: 5000B}}}\n",
        "lab.yaml:3:41: nodes.a.disk.flash.page: 5KB: a page is a multiple of 512B",
    ),
    (
        "a short seek that takes longer than a long one",
        "  a: {disk: {model: hdd-7200, mechanical: {seek_single: 20ms}}}\n",
        "lab.yaml:3:43: nodes.a.disk.mechanical: seek_single: 20ms: a seek over one cylinder takes no longer than seek_full, 17ms",
    ),
    (
        "a switch of tracks that takes longer than a revolution",
        "  a: {disk: {model: hdd-15k, mechanical: {track_switch: 4ms}}}\n",
        "lab.yaml:3:42: nodes.a.disk.mechanical: track_switch: 4ms: must be less than a revolution, 4ms at 15000 rpm",
    ),
    (
        "a mount where the node has its own file system",
        "  a: {disk: {model: nvme, mount: /srv/../dev/shm}}\n",
        "lab.yaml:3:34: nodes.a.disk.mount: /dev/shm: /dev is the node's own, whatever disk it has; use another path",
    ),
    (
        "too little memory",
        "  a: {memory: 5KB}\n",
        "lab.yaml:3:15: nodes.a.memory: 5KB: the memory of a node must be at least 1MiB",
    ),
]


@pytest.mark.parametrize(("nodes", "line"), [pytest.param(*rest, id=name) for name, *rest in MISTAKES])
def test_a_mistake_is_named_with_its_place_and_its_remedy(nodes: str, line: str) -> None:
    with pytest.raises(LabError) as caught:
        loads(HEAD + nodes, "lab.yaml")
    assert str(caught.value).splitlines() == [line]


def test_an_image_that_is_too_small_is_refused(tmp_path: Path) -> None:
    image = tmp_path / "x.img"
    image.write_bytes(bytes(1 << 20))
    with pytest.raises(LabError, match=r"x.img has 1MiB, and the disk 1000GB; enlarge it, or give the disk a size"):
        loads(HEAD + f"  a: {{disk: {{model: hdd-7200, size: 1000GB, image: {image}}}}}\n", "lab.yaml")
    assert disk(f"{{fixed: {{read_latency: 1ms, write_latency: 1ms}}, image: {image}}}").size == 1 << 20


def test_what_takes_the_plan_to_see_is_refused_too(tmp_path: Path) -> None:
    many = "".join(f"  n{number}: {{disk: nvme}}\n" for number in range(17))
    with pytest.raises(LabError, match="guest guest0 has 16 disks already, and a kernel no more"):
        compile_plan(loads(HEAD + many, "lab.yaml"))
    image = tmp_path / "x.img"
    image.write_bytes(bytes(1 << 20))
    fixed = f"{{fixed: {{read_latency: 1ms, write_latency: 1ms}}, image: {image}}}"
    with pytest.raises(LabError, match="is the disk of a already"):
        compile_plan(loads(HEAD + f"  a: {{disk: {fixed}}}\n  b: {{disk: {fixed}}}\n", "lab.yaml"))
