"""With TEMPER_PREFIX, a folder that `cmake --install` filled, the wheel has its programs and configurations as well."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Programs(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        prefix = os.environ.get("TEMPER_PREFIX")
        if not prefix or self.target_name != "wheel" or version == "editable":
            return
        programs = sorted((Path(prefix) / "bin").iterdir())
        if not programs:
            raise RuntimeError(f"TEMPER_PREFIX={prefix}: no programs in its bin/; cmake --install BUILD --prefix {prefix}")
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["shared_scripts"] = {str(p): p.name for p in programs}
        build_data["shared_data"] = {str(Path(prefix) / "share/temper"): "share/temper"}
