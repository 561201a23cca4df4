"""Programs of this machine are found where Debian has them."""

from __future__ import annotations

import pytest

from dilaton.host import files
from dilaton.host.errors import HostLacksError


def test_a_program_is_found_that_an_ordinary_user_has_no_path_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert files.program("ldconfig", "libc-bin").name == "ldconfig"
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(HostLacksError, match="sudo apt-get install nothing"):
        files.program("no-such-program", "nothing")
