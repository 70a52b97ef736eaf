"""Congestion controllers written in Python."""

from __future__ import annotations

import sys
import weakref
from typing import Any, Protocol

from . import _clearway
from ._errors import ScenarioError
from ._scenario import threads_of, toml_value


class Controller(Protocol):
    """What a congestion controller has; a class need not derive from this one.

    The class is called with a :class:`clearway.Network` for each flow, and some times more: those objects are only asked for their
    attributes. After each call of a method its attributes say what the flow may
    do from then on:

    * ``window``: payload bytes that may be in flight;
    * ``rate_bps``: pacing rate, or None; may be left out;
    * ``deadline_ps``: instant at which ``on_deadline`` is to be called, or None; may be left out;
    * ``largest_window``: the largest window that it will ever allow, a packet at least; set in ``__init__``, four bandwidth-delay
      products without it;
    * ``uses_telemetry``: True if switches are to write telemetry (INT) onto packets, which ``ack.hops`` then has.

    ``on_loss(loss)``, ``on_notification(now_ps)``, ``on_sent(now_ps, wire_bytes)``, ``on_restart(now_ps)`` and
    ``on_deadline(now_ps)`` are called if the class has them.

    Each call takes some microseconds, and the interpreter's lock: this is for small studies. What is worth keeping is a file of Rust.
    """

    window: float

    def on_ack(self, ack: _clearway.Ack) -> None:
        """An acknowledgement has come."""


# Classes that were given to runs, by module and qualified name: those of one factory share a name.
_GIVEN: dict[str, weakref.WeakSet[type]] = {}


def controller_of(
    controller: Any, threads: int | None
) -> tuple[list[str], int | None, tuple[str, Any] | None]:
    """``KEY=VALUE`` by which a scenario names this class as its controller, worker threads, and the class with its name, if there is one."""
    if controller is None:
        return [], threads_of(threads), None
    if not isinstance(controller, type) or not callable(getattr(controller, "on_ack", None)):
        raise ScenarioError(
            f"controller={controller!r}: no class with a method `on_ack`\n  fix: give a class; see clearway.Controller"
        )
    if threads not in (None, 1):
        raise ScenarioError(f"threads={threads}: a controller in Python runs on one thread\n  fix: leave `threads` out")
    name = f"{controller.__module__}.{controller.__qualname__}"
    _GIVEN.setdefault(name, weakref.WeakSet()).add(controller)
    return ['transport.controller="python"', f"transport.python-class={toml_value(name)}"], 1, (name, controller)


def class_named(name: str) -> Any:
    """The class that a scenario names and a run was not given: that of the module, or the one that an earlier run was given."""
    found = [class_ for class_ in [_loaded(name)] if class_ is not None] or list(_GIVEN.get(name, ()))
    if len(found) == 1:
        return found[0]
    what = f"there are {len(found)} classes `{name}`" if found else f"there is no controller `{name}`"
    raise ScenarioError(f"{what}\n  fix: give its class to `clearway.run` or `clearway.Simulation` as `controller`")


def _loaded(name: str) -> Any:
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        found: Any = sys.modules.get(".".join(parts[:end]))
        for part in parts[end:]:
            found = getattr(found, part, None)
        if isinstance(found, type) and hasattr(found, "on_ack"):
            return found
    return None
