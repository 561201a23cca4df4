"""Which Debian packages `scripts/debian.sh` asks for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

DEBIAN_SH = Path(__file__).resolve().parents[4] / "scripts" / "debian.sh"


@pytest.mark.parametrize(
    ("os_release", "asks"),
    [
        ("ID=debian\n", True),
        ("ID=ubuntu\nID_LIKE=debian\n", False),
        ('ID=linuxmint\nID_LIKE="ubuntu debian"\n', False),
        (None, True),
    ],
)
def test_the_stock_kernel_is_asked_for_where_the_distribution_has_it(
    tmp_path: Path, os_release: str | None, asks: bool
) -> None:
    file = tmp_path / "os-release"
    if os_release is not None:
        file.write_text(os_release)
    script = 'set -eu; state=none; . "$1"; os_release=$2 PATH=$3; missing_for run'
    done = subprocess.run(
        ["/bin/bash", "-c", script, "bash", DEBIAN_SH, file, tmp_path], capture_output=True, text=True, check=True
    )
    assert ("user-mode-linux" in done.stdout.split()) == asks
    assert "bubblewrap" in done.stdout.split()
