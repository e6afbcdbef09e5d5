"""Puts compiled kernels into a wheel where SHARNIR_KERNELS=1 asks for it (`make dist`): then it is one for this platform."""

import os
import subprocess
import sys
import tempfile
from importlib.metadata import distribution
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelsHook(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles the kernels of the tree that is built, and adds them as `sharnir/kernels`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before the wheel is written."""
        if version == "editable" or os.environ.get("SHARNIR_KERNELS") != "1":
            return
        self.folder = tempfile.TemporaryDirectory()
        code = "import sys; from sharnir.cli.warmup import pack_all; pack_all(sys.argv[1])"
        environ = os.environ | {
            "PYTHONPATH": self.root,
            "SHARNIR_PACKING": "1",
            "PYTHONHASHSEED": "0",
        }  # the same bytes each time
        subprocess.run([sys.executable, "-c", code, self.folder.name], check=True, cwd=self.root, env=environ)
        if not os.listdir(self.folder.name):
            return
        build_data["force_include"][self.folder.name] = "sharnir/kernels"
        build_data["pure_python"] = False
        tags = (distribution("warp-lang").read_text("WHEEL") or "").split("Tag: ")[1:]  # where Warp runs, so do they
        build_data["tag"] = tags[0].split()[0]

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """After the wheel is written."""
        if hasattr(self, "folder"):
            self.folder.cleanup()
