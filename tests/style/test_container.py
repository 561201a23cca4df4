"""The container file has what the tried systems have, and says of itself what the documents rely on."""

from __future__ import annotations

import json
import re

from tests.style.tree import ROOT


def steps() -> list[tuple[str, str]]:
    """Its instructions with their arguments, lines that go on joined."""
    lines = [line for line in (ROOT / "Containerfile").read_text().splitlines() if not line.startswith("#")]
    whole = "\n".join(lines).replace("\\\n", "").splitlines()
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in whole)]


def test_it_takes_the_wheel_alone_onto_a_system_on_which_that_is_tried() -> None:
    assert steps()[0][1].rpartition(":")[2] in system("suites=\\((.*)\\)").split()
    copied = [rest.split()[:-1] for word, rest in steps() if word == "COPY"]
    assert copied == [["target/wheel/dilaton-*.whl"]]
    assert (ROOT / ".dockerignore").read_text().splitlines()[1:] == ["*", "!target/wheel/*.whl"]


def test_it_has_the_packages_of_the_systems_on_which_the_wheel_is_tried() -> None:
    installs = next(rest for word, rest in steps() if word == "RUN" and "apt-get install" in rest)
    installed = re.search(r"--no-install-recommends ([^&]*)&&", installs)
    assert installed is not None
    assert set(system("system_packages=(.*)").split(",")) <= set(installed[1].split())


def test_it_serves_as_an_ordinary_user_by_the_command_that_was_installed() -> None:
    found = dict(steps())
    assert found["USER"] == "dilaton"
    assert json.loads(found["ENTRYPOINT"]) == ["/opt/dilaton/bin/dilaton"]
    assert json.loads(found["CMD"])[:2] == ["serve", "--config"]
    page = (ROOT / "docs/server.md").read_text()
    for said in (found["VOLUME"], json.loads(found["CMD"])[2].rpartition("/")[0], f":{found['EXPOSE']}"):
        assert said in page, f"docs/server.md does not name {said}"


def system(pattern: str) -> str:
    """What scripts/systems.sh has for a variable."""
    found = re.search(f"^{pattern}$", (ROOT / "scripts/systems.sh").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]
