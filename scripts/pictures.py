"""Makes the pictures of docs/page.md anew: `PYTHONPATH=python:. .venv/bin/python scripts/pictures.py`, some minutes.

A server of its own on loopback, with real guests, is looked at by Chromium without a window. Each view becomes one
picture: wide and narrow beside each other, in light, and in dark below.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from PIL import Image

from tests.conftest import ROOT
from tests.unit.server.serving import end_runs, served

PICTURES = ROOT / "docs" / "pictures"
WIDTHS = (1280, 400)
THEMES = ("light", "dark")
SCALE = 0.6
GAP = 20
GROUND = "#868a8e"
QUALITY = 80


def composed(view: str, directory: Path) -> Image.Image:
    """All pictures of a view beside each other."""
    rows = [[Image.open(directory / f"{view}-{width}-{theme}.png") for width in WIDTHS] for theme in THEMES]
    width, height = sum(WIDTHS) + GAP, rows[0][0].height
    whole = Image.new("RGB", (width, 2 * height + GAP), GROUND)
    for number, row in enumerate(rows):
        for left, part in zip((0, WIDTHS[0] + GAP), row, strict=True):
            whole.paste(part, (left, number * (height + GAP)))
    return whole.resize((round(whole.width * SCALE), round(whole.height * SCALE)), Image.Resampling.LANCZOS)


def main() -> None:
    """Makes them all, or says what kept it from that."""
    with tempfile.TemporaryDirectory() as made:
        shots = Path(os.environ.get("SHOTS") or made) / "shots"
        shots.mkdir(parents=True)
        with served(Path(made) / "server") as server:
            cookie = server.client().headers["Cookie"]
            script = ROOT / "web" / "tests" / "journey" / "pictures.mjs"
            chromium = shutil.which("chromium") or "chromium"
            try:
                subprocess.run(
                    ["node", str(script), server.settings.origin, cookie, str(shots)],
                    env=os.environ | {"CHROMIUM": chromium},
                    check=True,
                )
            finally:
                end_runs(server)
        for view in sorted({path.name.split("-")[0] for path in shots.iterdir()}):
            composed(view, shots).save(PICTURES / f"page-{view}.webp", quality=QUALITY, method=6)
            print(PICTURES / f"page-{view}.webp")


if __name__ == "__main__":
    main()
