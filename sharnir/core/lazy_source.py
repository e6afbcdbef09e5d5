"""Lets Warp read the source of our functions when a kernel needs them, instead of all of it at every import.

Warp 1.19 parses a device function, and looks for all that it calls, where it is declared: 1.5 ms for each of 1400, of which a
scene needs a tenth. What its signature says is enough until a kernel that calls it is hashed or built. A version of Warp that has
no such functions is left alone.
"""

from __future__ import annotations

import threading
from typing import Any

import warp as wp

OURS = "sharnir."
UNUSUAL = (
    "source", "overload_annotations", "transformers", "custom_reverse_mode", "skip_forward_codegen", "skip_reverse_codegen",
)  # fmt: skip


def parse_when_needed() -> None:
    """Have Warp do so from now on."""
    inner: Any = getattr(wp, "_src", None)
    codegen, context = getattr(inner, "codegen", None), getattr(inner, "context", None)
    adjoint, signature = getattr(codegen, "Adjoint", None), getattr(codegen, "get_full_arg_spec", None)
    module: Any = getattr(context, "Module", None)
    look = getattr(module, "_find_references", None)
    if adjoint is None or signature is None or look is None or hasattr(adjoint, "__getattr__"):
        return
    read, lock = adjoint.__init__, threading.RLock()

    def begin(self: Any, func: Any, *given: Any, **more: Any) -> None:
        code: Any = getattr(func, "__code__", None)
        ours = str(getattr(func, "__module__", "")).startswith(OURS) and code is not None and not given
        if not ours or not more.get("is_user_function") or any(more.get(name) for name in UNUSUAL) or "static" in code.co_names:
            read(self, func, *given, **more)
            return
        found = signature(func)
        if len(found.annotations) < len(found.args):  # it tells what is missing
            read(self, func, **more)
            return
        self.func = func
        self.arg_types = {name: kind for name, kind in found.annotations.items() if not (name == "return" and kind is None)}
        self.has_unresolved_static_expressions = False
        self._later = func, more

    def find(self: Any, name: str) -> Any:
        """An attribute that is not there yet."""
        with lock:
            later = self.__dict__.get("_later")
            if later is not None:
                self._later = None
                read(self, later[0], **later[1])
        if name in self.__dict__:
            return self.__dict__[name]
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    def look_elsewhere(self: Any, adj: Any) -> None:
        """Which modules are to be built anew where a function is declared again, which none of ours is."""
        if not str(self.name).startswith(OURS):
            look(self, adj)

    adjoint.__init__, adjoint.__getattr__, module._find_references = begin, find, look_elsewhere
