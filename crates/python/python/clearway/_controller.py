"""Congestion controllers written in Python."""

from __future__ import annotations

from typing import Any, Protocol

from . import _clearway
from ._errors import ScenarioError


class Controller(Protocol):
    """What a congestion controller has; a class need not derive from this one.

    The class is called with a :class:`clearway.Network` for each flow. After each call of a method its attributes say what the flow may
    do from then on:

    * ``window``: payload bytes that may be in flight;
    * ``rate_bps``: pacing rate, or None; may be left out;
    * ``deadline_ps``: instant at which ``on_deadline`` is to be called, or None; may be left out;
    * ``largest_window``: the largest window that it will ever allow; set in ``__init__``, four bandwidth-delay products without it;
    * ``uses_telemetry``: True if switches are to write telemetry (INT) onto packets, which ``ack.hops`` then has.

    ``on_loss(loss)``, ``on_notification(now_ps)``, ``on_sent(now_ps, wire_bytes)``, ``on_restart(now_ps)`` and
    ``on_deadline(now_ps)`` are called if the class has them.

    Each call takes some microseconds, and the interpreter's lock: this is for small studies. What is worth keeping is a file of Rust.
    """

    window: float

    def on_ack(self, ack: _clearway.Ack) -> None:
        """An acknowledgement has come."""


def controller_keys(controller: Any, threads: int) -> list[str]:
    """``KEY=VALUE`` by which a scenario has this class as its controller; none without one."""
    if controller is None:
        return []
    if not callable(controller) or not callable(getattr(controller, "on_ack", None)):
        raise ScenarioError(
            f"controller={controller!r}: no class with a method `on_ack`\n  fix: give a class; see clearway.Controller"
        )
    if threads != 1:
        raise ScenarioError(f"threads={threads}: a controller in Python runs on one thread\n  fix: leave `threads` out")
    name = f"{controller.__module__}.{controller.__qualname__}"
    _clearway.register_controller(name, controller)
    return ['transport.controller="python"', f'transport.python-class="{name}"']
