"""The report is one page that needs nothing else, is the same each time, and believes nothing that a guest wrote."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import jinja2
import pytest

import dilaton
from dilaton.report import page
from dilaton.report.page import EVENTS_MAX, write_report
from dilaton.run.adaptive.epoch import COLUMNS, Epoch
from dilaton.run.record.model import Adaptation, ClockChange, Fidelity, LatenessRecord, OutOfBounds, SharesRecord
from tests.unit.measure import made

LATE = Fidelity(
    lateness_us=LatenessRecord(p50=0.1, p99=900.0, p999=900.0, max=900.0),
    timers=1100,
    reads=1,
    lateness_ns_counts=[1000, *[0] * 19, 100],
    busy=0.4,
)


class Page(HTMLParser):
    """What is in a page: its tags with their attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(path: Path) -> Page:
    return Page(write_report(dilaton.load(path)).read_text())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run that has everything."""
    return write_report(dilaton.load(made.run_dir(tmp_path_factory.mktemp("whole"), fidelity=LATE)))


def test_the_page_says_what_measuring_took_and_how_much_work_could_not_be_charged_to_nodes(tmp_path: Path) -> None:
    shares = SharesRecord(charged_s=3.0, uncharged_s=1.0, busy_s=9.0, lost_s=1.0)
    fidelity = LATE.model_copy(update={"shares": shares, "measuring_share": 0.004})
    text = page_of(made.run_dir(tmp_path, fidelity=fidelity)).text
    assert "Measuring took 0.4 % of the guests' work" in text
    assert "Of 4 s that guests worked" in text
    assert "25 % could not be charged to any" in text
    assert "Nodes missed 10 % of what their CPUs had to do" in text


def test_the_page_says_how_the_tdf_followed_the_load_and_marks_in_every_series_what_was_out_of_bounds(
    tmp_path: Path,
) -> None:
    adaptation = Adaptation(
        policy="lateness",
        epochs=2,
        tdf_mean=3.0,
        out_of_bounds_share=0.5,
        out_of_bounds=[OutOfBounds(begin_s=0.0, end_s=1.0, what="the guest's CPU was busy 99 % of the time")],
    )
    trace = [ClockChange(virtual_s=1.0, host_s=2.0, tdf=4.0, reason="TDF 4: busy 99%")]
    path = made.run_dir(tmp_path, fidelity=LATE.model_copy(update={"adaptation": adaptation, "tdf_trace": trace}))
    epochs = [Epoch(n * 10**9, (n + 1) * 10**9, Fraction(2 * n + 2), 0.99 - 0.3 * n, [[500]]) for n in range(2)]
    rows = [epoch.row(in_bounds=epoch.busy < 0.9) for epoch in epochs]
    (path / "epochs.csv").write_text("".join([COLUMNS + "\n", *rows]))
    html = write_report(dilaton.load(path)).read_text()
    text = " ".join(Page(html).text.split())
    assert "2 epochs, by the policy lateness, at a TDF of 3 in the mean; 50 % of virtual time was out of bounds" in text
    assert "<b>3</b><span>TDF in the mean, work drive" in html
    assert "was out of bounds; a TDF of 50 would be enough" in text and "raise tdf to 50" in text
    assert "TDF 4: busy 99%" in text and "busy 99 % of the time" in text
    captions = dict(re.findall(r'<figure id="figure-([^"]+)">.*?<figcaption>(.*?)</figcaption>', html, re.DOTALL))
    marked = {
        name
        for name, caption in captions.items()
        if "red along the bottom: fidelity was out of bounds" in caption.lower()
    }
    assert marked >= {"interfaces", "tcp", "nodes", "adaptation"}


def test_the_page_has_summary_checks_verdict_figures_processes_and_events(whole: Path) -> None:
    page = Page(whole.read_text())
    figures = [attributes["id"] for tag, attributes in page.tags if tag == "figure"]
    assert figures == [
        "figure-topology",
        "figure-programs-rtt",
        "figure-interfaces",
        "figure-tcp",
        "figure-nodes",
        "figure-sequence-a-eth0-1",
        "figure-gaps-a-eth0",
        "figure-lateness",
    ]
    parts = [
        page.text.index(each) for each in ("Checks", "Programs and their results", "Can it be trusted?", "Network")
    ]
    assert parts == sorted(parts), "what was measured comes first, then whether to believe it"
    for expected in ("ping.rtt.avg within 1% of 20ms", "20.2ms", "Suspect:", "raise tdf to", "3 of them sent again"):
        assert expected in page.text
    for expected in ("1 link as at the start", "100 Mbit/s, 10 ms one way", "10 % of its rate"):
        assert expected in page.text
    links = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    assert "nodes/a/ping.stdout" in links
    assert all((whole.parent / str(link)).is_file() for link in links)


def test_the_page_needs_no_network_and_no_script(whole: Path) -> None:
    page = Page(whole.read_text())
    fetched = [
        value
        for tag, attributes in page.tags
        for name, value in attributes.items()
        if name in {"src", "href", "xlink:href", "data"}
        and tag not in {"a"}
        and value
        and not value.startswith(("#", "data:"))
    ]
    assert fetched == []
    assert not [tag for tag, _ in page.tags if tag == "script"]
    assert not re.search(r"url\((?!#)|@import", whole.read_text())


def test_every_id_is_there_once_and_every_figure_is_whole_on_wide_and_on_narrow_screens(whole: Path) -> None:
    text = whole.read_text()
    pictures = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(pictures) == 2 * 8
    for picture in pictures:
        ET.fromstring(picture)
    clips = re.findall(r'<clipPath id="([^"]+)"', text)
    assert len(clips) == len(set(clips))


def test_the_same_run_gives_the_same_page(whole: Path) -> None:
    before = whole.read_text()
    assert write_report(dilaton.load(whole.parent)).read_text() == before


def test_what_a_program_printed_is_text_and_no_markup(tmp_path: Path) -> None:
    lab = made.LAB.replace("name: made", "name: made\nstop_after: 2s").replace(
        "exec: ping -c 3 b", "name: ping, exec: [ping, '<script>alert(1)</script>', b]"
    )
    page = page_of(made.run_dir(tmp_path, lab, state="failed", reason="<img src=x onerror=alert(1)>"))
    assert not [tag for tag, _ in page.tags if tag in {"script", "img"}]
    assert "<script>alert(1)</script>" in page.text


def test_a_page_without_figures_has_all_else_and_imports_nothing_that_draws(tmp_path: Path) -> None:
    path = made.run_dir(tmp_path)
    code = f"import sys, dilaton; from dilaton.report.page import write_report as w; w(dilaton.load({str(path)!r}), with_figures=False)"
    code += "; print({'pandas', 'numpy', 'matplotlib'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
    page = Page((path / "report.html").read_text())
    assert "figure" not in [tag for tag, _ in page.tags]
    for expected in (
        "no figures, as nothing was measured",
        "ping.rtt.avg within 1% of 20ms",
        "100 Mbit/s, 10 ms one way",
    ):
        assert expected in page.text
    (path / "events.jsonl").write_text("torn\n")
    write_report(dilaton.load(path), with_figures=False)
    assert "events.jsonl:1: damaged" in (path / "report.html").read_text()


def test_the_page_lists_faults_with_what_they_did_and_from_when_to_when(tmp_path: Path) -> None:
    cut = {"fault": "cut", "what": "link a--b down"}
    events = [
        {"t_ns": 100_000_000, "kind": "began", **cut},
        {"t_ns": 300_000_000, "kind": "undone", **cut},
        {"t_ns": 500_000_000, "kind": "began", "fault": "dead", "what": "crash b"},
    ]
    path = made.run_dir(tmp_path)
    (path / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    text = page_of(path).text
    assert re.search(
        r"2 faults.*cut\s*link a--b down\s*0\.100000 s\s*0\.300000 s\s*dead\s*crash b\s*0\.500000 s\s*the end",
        text,
        re.S,
    )


def test_a_run_that_failed_has_a_page_of_what_there_is(tmp_path: Path) -> None:
    path = made.run_dir(tmp_path, state="failed", reason="the guest died")
    (path / "measure/g0/interfaces.csv").write_text("not,a,table\n1,2,3\n")
    (path / "captures/a.eth0.pcapng").write_bytes(b"no")
    page = page_of(path)
    for expected in ("the guest died", "There is no verdict", "interfaces.csv: damaged", "a.eth0.pcapng: not a pcapng"):
        assert expected in page.text
    assert "figure-topology" in [attributes.get("id") for _, attributes in page.tags]


def test_a_run_that_never_booted_has_a_page(tmp_path: Path) -> None:
    path = made.run_dir(tmp_path, state="failed", reason="no memory", events=[], virtual_s=0.0, host_s=0.0)
    for file in [*path.glob("measure/*/*"), *path.glob("captures/*"), path / "events.jsonl", path / "plan.json"]:
        file.unlink()
    page = page_of(path)
    assert "no memory" in page.text
    assert "plan.json: the run ended before it was written" in page.text


def test_the_page_is_not_written_through_a_link_that_a_guest_left(tmp_path: Path) -> None:
    path = made.run_dir(tmp_path / "run")
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (path / "report.html").symlink_to(victim)
    (path / ".report.html.part").symlink_to(victim)
    for file in path.glob("captures/*"):
        file.unlink()
    write_report(dilaton.load(path))
    assert victim.read_text() == "mine"
    assert not (path / "report.html").is_symlink()


def test_only_outputs_that_are_there_are_linked(whole: Path) -> None:
    links = [str(attributes["href"]) for tag, attributes in Page(whole.read_text()).tags if tag == "a"]
    assert [link for link in links if link.startswith("nodes/")] == ["nodes/a/ping.stdout"]


def test_templates_are_compiled_once_and_again_where_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = dilaton.load(made.run_dir(tmp_path / "run"))
    html = page.render(run, None)
    compiled = tmp_path / "compiled"
    monkeypatch.setattr(page, "_COMPILED", compiled)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert page.render(run, None) == html
    assert not compiled.exists()
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert page.render(run, None) == html
    kept = {path: path.read_bytes() for path in compiled.iterdir()}
    assert len(kept) == 2  # the page, and its style
    with monkeypatch.context() as without:
        without.setattr(jinja2.Environment, "compile", None)
        assert page.render(run, None) == html
    for path, contents in kept.items():
        for damaged in (b"", contents[:30], contents[:-20], b"nonsense"):
            path.write_bytes(damaged)
            assert page.render(run, None) == html
            assert path.read_bytes() == contents
    # Where the package may not be written it is as without: a file is in the directory's place.
    monkeypatch.setattr(page, "_COMPILED", next(iter(kept)))
    assert page.render(run, None) == html


def test_of_many_events_the_page_says_how_many_it_shows(tmp_path: Path) -> None:
    path = made.run_dir(tmp_path)
    event = json.dumps({"t_ns": 0, "kind": "started", "process": "ping", "node": "a"}) + "\n"
    (path / "events.jsonl").write_text(event * (EVENTS_MAX + 1))
    text = Page(write_report(dilaton.load(path)).read_text()).text
    assert f"{EVENTS_MAX + 1} events, the first {EVENTS_MAX} of them" in text
