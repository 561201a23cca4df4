"""Makes the documents a site, in target/site: `./dev docs`.

Pages link to each other, and to examples, papers and sources, by their places in the repository. So the site is made
from a copy of all of these with the same places: every link that works for readers of a clone works in the site, and
one that does not is an error.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STAGE = ROOT / "target/site-source"
PAGES = ["*.md", "docs/**/*", "examples/**/*", "papers/**/*"]
LINK = re.compile(r"\]\(<?([^)#>\s]+)")


def pages() -> list[Path]:
    """The files that are documents, or stand beside them."""
    found = {path for pattern in PAGES for path in ROOT.glob(pattern)}
    return sorted(path for path in found if path.is_file() and "__pycache__" not in path.parts)


def linked(page: Path) -> list[Path]:
    """The files of the repository that a page links to."""
    targets = ((page.parent / target).resolve() for target in LINK.findall(page.read_text()))
    return [path for path in targets if path.is_file() and path.is_relative_to(ROOT)]


def stage() -> None:
    """Copies what the site is made of."""
    shutil.rmtree(STAGE, ignore_errors=True)
    documents = pages()
    sources = {path for page in documents if page.suffix == ".md" for path in linked(page)}
    for path in {*documents, *sources}:
        copy = STAGE / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def build(config: Path = ROOT / "mkdocs.yml") -> int:
    """Makes the site from the copy.

    Returns:
        The exit status: 0 if every page and every link, with the heading that it leads to, is good.
    """
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "--config-file", str(config)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    # It ends with a traceback of its own after what it has found.
    print(made.stdout + made.stderr.partition("Traceback")[0], end="")
    return made.returncode


if __name__ == "__main__":
    stage()
    sys.exit(build())
