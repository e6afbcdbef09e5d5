"""Modules of a GPU are compiled side by side, and waited for where they are needed."""

import threading
from types import SimpleNamespace

import pytest

from sharnir.core import types


class Module:
    """A module whose compile ends when all of them have begun."""

    def __init__(self, name, meeting, error=None):
        self.name, self.options, self.meeting, self.error, self.compiled = name, {"block_dim": 256}, meeting, error, 0

    def get_module_identifier(self, block_dim):
        return f"wp_{self.name}_{block_dim}"


def compile_module(module, device):
    module.meeting.wait(20)
    if module.error is not None:
        raise module.error
    module.compiled += 1


@pytest.fixture
def gpu(monkeypatch):
    device = SimpleNamespace(is_cpu=False, alias="cuda:0")
    monkeypatch.setattr(types.wp, "get_device", lambda name: device)
    monkeypatch.setattr(types.wp, "compile_aot_module", compile_module)
    monkeypatch.setattr(types.wp, "force_load", lambda *given, **more: None)
    return "cuda:0"


def test_modules_of_a_gpu_are_compiled_side_by_side(gpu):
    meeting = threading.Barrier(2)
    first, second = Module("first", meeting), Module("second", meeting)
    types.begin_modules([first], gpu)
    types.begin_modules([second], gpu)
    types.begin_modules([first], gpu)  # has begun
    types.load_modules([first, second], gpu)
    assert first.compiled == second.compiled == 1


def test_a_compile_that_fails_is_told_where_its_module_is_needed(gpu):
    module = Module("full", threading.Barrier(1), OSError("no space left"))
    types.begin_modules([module], gpu)
    with pytest.raises(types.SimulationError, match="no space left"):
        types.load_modules([module], gpu)
