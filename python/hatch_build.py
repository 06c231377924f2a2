"""Generates the modules before an archive is packed: see generate.py."""

import importlib.util
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        place = Path(self.root) / "generate.py"
        spec = importlib.util.spec_from_file_location("session_agent_generate", place)
        assert spec is not None and spec.loader is not None
        generate = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(generate)
        generate.main(Path(self.root))
