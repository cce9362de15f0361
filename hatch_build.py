"""Puts the program into the wheel as one private package, `opsagent_cli/_app`.

The checkout keeps its own top-level names (`core`, `guard`, `agent` …); in somebody's site-packages these would meet
other distributions' packages of the same name. Only a standard wheel is filled: an editable install imports the
checkout itself and must not leave a stale copy behind.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGES = ("acting", "agent", "capabilities", "cli", "dialogue", "fleet", "guard", "mcp_wire", "runbooks", "runtimes")
MODULES = ("core.py", "execution.py", "mcp_server.py")


def app_files(root: Path) -> dict[str, str]:
    """Absolute source → place in the wheel, for every file of the program; compiled files stay out."""
    files = [root / name for name in MODULES]
    for package in PACKAGES:
        files += sorted((root / package).rglob("*"))
    return {
        str(file): f"opsagent_cli/_app/{file.relative_to(root)}"
        for file in files
        if file.is_file() and "__pycache__" not in file.parts
    }


class AppHook(BuildHookInterface):  # type: ignore[type-arg]
    """Hatchling calls `initialize` once per wheel, `version` being "standard" or "editable"."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the program's files to a standard wheel."""
        if version == "standard":
            build_data["force_include"].update(app_files(Path(self.root)))
