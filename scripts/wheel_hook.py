"""Makes of the package a wheel for one platform, with what `scripts/wheel.py` has gathered for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Hook(BuildHookInterface):  # type: ignore[type-arg]
    """Read by hatchling, which builds the wheel; its settings are in pyproject.toml."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds what a wheel carries, and says for which machines it is; a wheel for development is left as it is."""
        if version == "editable":
            return
        carried = Path(self.root, "target", "wheel", "carried")
        if not carried.is_dir():
            raise FileNotFoundError(f"there is no {carried}: ./dev wheel builds wheels")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_{self.config['glibc'].replace('.', '_')}_x86_64"
        build_data["force_include"][str(carried)] = "dilaton/carried"
        build_data["shared_data"][str(Path(self.root, "target", "man"))] = "share/man"
