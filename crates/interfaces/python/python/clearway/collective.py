"""Collectives between processes: all-reduce, all-gather, reduce-scatter and all-to-all of 32-bit floats over STrack on UDP.

>>> from clearway.collective import Group
>>> with Group(rank=0, hosts=["192.0.2.1", "192.0.2.2"], key=key) as group:   # the same on the other host, with rank=1
...     group.all_reduce(gradients)                                           # a numpy array of float32, in place

Buffers are objects with the buffer protocol that hold 32-bit floats side by side: arrays of numpy, ``array.array("f")``,
``tensor.numpy()`` of PyTorch. The interpreter's lock is released while a collective runs. All ranks call the same collectives in the
same order.
"""

from __future__ import annotations

import os
import pathlib
import sys
from types import TracebackType
from typing import Any

from ._clearway import NativeGroup, new_key
from ._errors import CollectiveError, ScenarioError

__all__ = ["CollectiveError", "Group", "new_key"]

_NATIVE = ("f", "@f", "=f", "<f" if sys.byteorder == "little" else ">f")


def _view(buffer: Any, name: str, writable: bool) -> memoryview:
    """The bytes of a buffer of floats."""
    try:
        view = memoryview(buffer)
    except TypeError as error:
        raise ScenarioError(f"{name} is a {type(buffer).__name__}, no buffer\n  fix: give an array of 32-bit floats") from error
    if view.format not in _NATIVE:
        raise ScenarioError(
            f"{name} has elements of the format {view.format!r}\n  fix: give 32-bit floats, such as array.astype(numpy.float32)"
        )
    if not view.c_contiguous:
        raise ScenarioError(f"the elements of {name} do not lie side by side\n  fix: give numpy.ascontiguousarray(array)")
    if writable and view.readonly:
        raise ScenarioError(f"{name} cannot be written\n  fix: give an array that can")
    # A view without elements cannot be cast.
    return view.cast("B") if view.nbytes else memoryview(bytearray())


class Group:
    """A rank that is connected to others, which come up at the same time.

    ``hosts`` has the address of each rank, with a port if it is not 4794, in the same order at all ranks; this one listens at its own.
    ``key`` is the key of all: 64 hexadecimal digits as :func:`new_key` makes them, or the path of a file with them. With
    ``insecure=True`` there is none, and nothing is encrypted. ``idle`` is the time in seconds after which a silent rank is lost,
    ``wait`` that for which ranks wait for each other in the beginning, ``paths`` the number of paths of a connection.

    A group that is left by :meth:`leave`, or at the good end of a ``with`` statement, waits until the others have what they need. An
    exception in the ``with`` statement ends it for all.
    """

    def __init__(
        self,
        rank: int,
        hosts: list[str],
        key: str | os.PathLike[str] | None = None,
        *,
        insecure: bool = False,
        idle: float = 5.0,
        wait: float = 30.0,
        paths: int = 8,
    ) -> None:
        if (key is None) != insecure:
            raise ScenarioError("there is no key\n  fix: give all ranks the same key, or insecure=True")
        text = pathlib.Path(key).read_text() if isinstance(key, os.PathLike) else key
        self._native = NativeGroup(rank, hosts, text, float(idle), float(wait), paths)
        self._rank = rank
        self._ranks = len(hosts)

    @property
    def rank(self) -> int:
        """Number of this rank."""
        return self._rank

    @property
    def ranks(self) -> int:
        """Number of all ranks."""
        return self._ranks

    def block(self, count: int, rank: int | None = None) -> slice:
        """Elements of the block of a rank, this one by default, in a buffer of ``count``: parts differ by one element at most."""
        return slice(*self._native.block(self._rank if rank is None else rank, count))

    def all_reduce(self, buffer: Any, algorithm: str | None = None) -> None:
        """Replaces ``buffer`` by the sum of the buffers of all ranks; all get the same bits.

        ``algorithm`` is "ring", "tree", "halving-doubling" or "direct"; the ring by default.
        """
        view = _view(buffer, "the buffer", writable=True)
        self._carry_out("all-reduce", algorithm, view.nbytes // 4, view, view)

    def all_gather(self, send: Any, receive: Any) -> None:
        """Puts the blocks of all ranks into ``receive``; ``send`` is this rank's :meth:`block` of it."""
        own, all_of_them = _view(send, "the buffer to send", False), _view(receive, "the buffer to receive", True)
        self._fits(own, all_of_them.nbytes // 4, "the buffer to send")
        self._carry_out("all-gather", None, all_of_them.nbytes // 4, own, all_of_them)

    def reduce_scatter(self, send: Any, receive: Any) -> None:
        """Puts this rank's :meth:`block` of the sum of all ``send`` into ``receive``."""
        all_of_them, own = _view(send, "the buffer to send", False), _view(receive, "the buffer to receive", True)
        self._fits(own, all_of_them.nbytes // 4, "the buffer to receive")
        self._carry_out("reduce-scatter", None, all_of_them.nbytes // 4, all_of_them, own)

    def all_to_all(self, send: Any, receive: Any) -> None:
        """Sends block r of ``send`` to rank r; ``receive`` gets this rank's :meth:`block` of each rank in turn."""
        given, got = _view(send, "the buffer to send", False), _view(receive, "the buffer to receive", True)
        self._fits(got, given.nbytes // 4, "the buffer to receive", self._ranks)
        self._carry_out("all-to-all", None, given.nbytes // 4, given, got)

    def leave(self) -> None:
        """Leaves the group, once the others have what this rank has sent. A group that was left stays so."""
        self._native.leave()

    def _fits(self, view: memoryview, count: int, name: str, times: int = 1) -> None:
        own = self.block(count)
        wanted, given = (own.stop - own.start) * times, view.nbytes // 4
        if wanted != given:
            raise ScenarioError(f"{name} has {given} elements, and the collective {wanted}\n  fix: see Group.block({count})")

    def _carry_out(self, operation: str, algorithm: str | None, count: int, send: memoryview, receive: memoryview) -> None:
        receive[:] = self._native.carry_out(operation, algorithm, count, bytes(send))

    def __enter__(self) -> Group:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.leave()
        else:
            self._native.abandon()

    def __repr__(self) -> str:
        return f"Group(rank {self._rank} of {self._ranks})"
