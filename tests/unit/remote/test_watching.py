"""Runs of a server are watched, put away, read in order and told apart from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from dilaton.cli.errors import BadInputError
from dilaton.cli.steering.top_there import There
from dilaton.remote import answers
from dilaton.remote.control import WAYS
from dilaton.remote.server import Server
from dilaton.server.api.images import Image
from dilaton.server.api.labs.labs import Lab
from dilaton.server.api.runs.comparisons import Comparison
from dilaton.server.api.runs.runs import File, Run
from dilaton.server.api.runs.saving import Repeated, SavedLabs
from dilaton.server.api.runs.steering import RunStatus
from dilaton.server.api.runs.sweeps import WholeSweep
from dilaton.server.app import ENDPOINTS
from dilaton.server.runs.life import RunState
from tests.unit.remote.test_remote import dilaton
from tests.unit.server.runs.test_comparisons import sweep
from tests.unit.server.serving import ENDLESS, LAB, Served, served, use_stub

HEADER = "t_ns,node,interface,tx_bytes,tx_packets"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as monkeypatch, served(tmp_path_factory.mktemp("server"), at_once=4) as found:
        use_stub(monkeypatch)
        yield found


@pytest.fixture
def there(server: Served, monkeypatch: pytest.MonkeyPatch) -> Server:
    token = server.client().api("POST", "/tokens", {"label": "x", "scopes": ["*"], "days": 1})["secret"]
    monkeypatch.setenv("DILATON_TOKEN", token)
    return Server(server.settings.origin, token)


@pytest.mark.parametrize(
    ("client", "servers"),
    [
        (answers.RunShown, Run),
        (answers.WholeSweep, WholeSweep),
        (answers.LabShown, Lab),
        (answers.FileShown, File),
        (answers.StatusShown, RunStatus),
        (answers.Compared, Comparison),
        (answers.RunState, RunState),
        (answers.ImageShown, Image),
        (answers.SavedLabs, SavedLabs),
        (answers.RepeatedShown, Repeated),
    ],
)
def test_both_ends_say_the_same_of_an_answer(client: object, servers: object) -> None:
    def fields(of: object) -> object:
        schema = TypeAdapter(of).json_schema(mode="serialization")
        kinds = schema.pop("$defs", {})
        return plain(schema, kinds)

    def plain(schema: object, kinds: dict[str, object]) -> object:
        if isinstance(schema, list):
            return [plain(one, kinds) for one in schema]
        if not isinstance(schema, dict):
            return schema
        if "$ref" in schema:
            return plain(kinds[schema["$ref"].rpartition("/")[2]], kinds)
        named = {"title", "description", "default", "minLength", "maxLength", "minItems", "maxItems", "pattern"}
        if "properties" in schema:
            return {name: plain(one, kinds) for name, one in schema["properties"].items()}
        return {name: plain(one, kinds) for name, one in schema.items() if name not in named}

    assert fields(client) == fields(servers)


def test_what_is_asked_of_a_run_is_asked_by_operations_that_there_are() -> None:
    known = {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS}
    assert {(method, f"/api/v1/runs/{{run}}{path}") for method, path in WAYS.values()} <= known


def test_a_run_there_is_watched_and_put_away(server: Served, there: Server, capsys: pytest.CaptureFixture[str]) -> None:
    me = server.client()
    run = me.launch(me.keep(ENDLESS.replace("tiny", "watched")), stays=True)
    me.wait(run, "running")
    guest = There(there.run(run)).guests[0]
    measured = server.state.keeper.run_dir(run) / "measure" / guest
    measured.mkdir(parents=True, exist_ok=True)
    rows = [f"{second}000000000,a,eth0,{second * 1000},{second}" for second in range(1, 9000)]
    (measured / "interfaces.csv").write_text("\n".join([HEADER, *rows, ""]))
    assert (measured / "interfaces.csv").stat().st_size > 1 << 17, "what is read is its beginning and its end"
    assert dilaton(server, "top", "watched", "--once") == 0
    shown = capsys.readouterr().out
    assert "watched  virtual" in shown and "a:eth0" in shown and "8000 bit/s" in shown.replace("8 kbit/s", "8000 bit/s")
    assert "a/endless" in shown and "sampled at 8999.000 s" in shown
    dilaton(server, "suspend", "watched")
    assert "suspended at" in capsys.readouterr().out
    assert there.run(run).status()["suspended"] and me.wait(run, "held")
    with pytest.raises(BadInputError, match="the run is suspended already"):
        dilaton(server, "suspend", "watched")
    with pytest.raises(BadInputError, match="--out"):
        dilaton(server, "resume", "watched", "--at", "1s", "--out", "x")
    dilaton(server, "resume", "watched")
    assert me.wait(run, "running") and not there.run(run).status()["suspended"]
    assert there.run(run).suspend()["virtual_s"] >= 0 and there.run(run).resume()["held"] is False
    done = [one["action"] for one in me.api("GET", "/audit") if one["action"] in ("run.suspend", "run.resume")]
    assert done == ["run.resume", "run.suspend", "run.resume", "run.suspend", "run.suspend"]
    me.api("POST", f"/runs/{run}/stop")
    me.wait(run, "aborted", "finished")
    with pytest.raises(BadInputError, match="names no single run"):
        dilaton(server, "top", "watched", "--once")


def write(server: Served, run: str) -> None:
    """Has a program of a run have written something."""
    output = server.state.keeper.run_dir(run) / "nodes" / "a" / "first.stdout"
    output.parent.mkdir(parents=True)
    output.write_text("something\n")


def test_outputs_there_are_read_in_the_order_in_which_they_came(
    server: Served, there: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    me = server.client()
    run = me.launch(me.keep(LAB), overrides={"settings": ["measure.outputs=true"]})
    me.wait(run, "finished")
    write(server, run)
    assert dilaton(server, "logs", run, "--timeline") == 0
    told = capsys.readouterr().out
    assert "first" in told and "exited" in told, told
    with pytest.raises(BadInputError, match="cannot go on with --follow"):
        dilaton(server, "logs", run, "--timeline", "--follow")
    without = me.launch(me.keep(LAB))
    me.wait(without, "finished")
    write(server, without)
    with pytest.raises(BadInputError, match=r"measure\.outputs"):
        dilaton(server, "logs", without, "--timeline")


def test_runs_of_a_sweep_there_are_compared_by_a_field(
    server: Served, there: Server, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    made = sweep(server, 4)["sweep"]
    assert dilaton(server, "compare", made, "--by", "links.0.delay") == 1
    told = capsys.readouterr().out
    assert "compared with links.0.delay=1ms" in told and "all metrics together: p = " in told and "different in" in told
    assert dilaton(server, "compare", made, "--tolerance", "100%") == 0
    assert "indistinguishable" in capsys.readouterr().out
    with pytest.raises(BadInputError, match=r"by: one of links\.0\.delay"):
        dilaton(server, "compare", made, "--by", "seed")
    with pytest.raises(BadInputError, match="--figure"):
        dilaton(server, "compare", made, "--figure", str(tmp_path / "x.svg"))
    with pytest.raises(BadInputError, match="--by"):
        dilaton(server, "compare", "a", "b", "--by", "seed")
