"""Simulations that a program drives in steps."""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, NoReturn, Union

from . import _clearway
from ._controller import controller_of
from ._errors import Interrupted, ScenarioError
from ._result import Result
from ._scenario import Overrides, Scenario, overrides_of, source_of

Time = Union[str, int]
"""A text such as ``"5us"``, or a number of picoseconds."""

Completion = Literal["received", "acknowledged"]


@dataclass(eq=False)
class Message:
    """A message that was posted, and what became of it. Times are in picoseconds."""

    number: int
    """Number of its flow, as in ``result.flows``."""
    src: int
    dst: int
    bytes: int
    tag: Any
    """Whatever it was posted with."""
    posted_ps: int
    received_ps: int | None = None
    """When the receiver had all bytes."""
    acknowledged_ps: int | None = None
    """When the sender had every acknowledgement."""
    priority: int | None = None
    """Priority of its packets, if it was posted with one."""


class Simulation:
    """A simulated network that stands still until it is told to go on.

    A schedule of one's own (of a collective library, of a scheduler, of another simulator) posts messages and sees when they are there:

    >>> with clearway.Simulation({"topology": {"hosts": 16}}) as sim:
    ...     sim.post(0, 5, "1MB", tag="first")
    ...     for message in sim.run_until_completion():
    ...         sim.post(message.dst, message.src, message.bytes, tag="answer")
    ...     result = sim.finish(to_the_end=True)

    It is deterministic: the same messages at the same times have the same digest, whatever the steps and the number of threads.
    ``result.scenario`` lists what was posted, and running it is the same run again, unless this one was ended early.

    :param scenario: as for :func:`clearway.run`: fabric, switches and transport.
    :param own_traffic: the workload of the scenario runs, too, beside what is posted.
    :param priorities: the priorities that messages may have, each from 1 to 7; switches reserve buffers and queues for them. Without any, all
        messages have priority 1.
    :param resolution: the most by which :meth:`run_until_completion` passes a completion, such as ``"50ns"``; otherwise the shortest delay
        of a link. A message that answers another one starts at most so much later. A smaller resolution costs more time.
    :param completion: whether a message is complete when it is ``"received"`` or when it is ``"acknowledged"``.
    :param controller: a class of your own as congestion controller; see :class:`clearway.Controller`.
    :raises ScenarioError: if something cannot be meant.

    Samples and captures are not for runs in steps. A simulation is used from one thread at a time.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        seed: int | None = None,
        threads: int | None = None,
        overrides: Overrides = None,
        own_traffic: bool = False,
        priorities: Iterable[int] = (),
        resolution: Time | None = None,
        completion: Completion = "received",
        controller: Any = None,
    ) -> None:
        if completion not in ("received", "acknowledged"):
            raise ScenarioError(
                f'completion={completion!r}: a message is complete when it is "received" or "acknowledged"\n  fix: give one of these'
            )
        keys, threads, named = controller_of(controller, threads)
        given = overrides_of(overrides, seed) + keys
        source = source_of(scenario)
        classes = sorted({_priority(one) for one in priorities})
        traffic = (own_traffic, classes, None if resolution is None else _picoseconds(resolution))
        self._native = _clearway.NativeSimulation(source, given, threads, traffic, "clearway.Simulation", named)
        self._at_acknowledgement = completion == "acknowledged"
        self._messages: dict[int, Message] = {}
        self._under_way = 0
        # Of a simulation that an exception has ended.
        self._result: Result | None = None
        _OPEN.add(self)

    def __enter__(self) -> Simulation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._native.close()

    def __repr__(self) -> str:
        if self.is_over:
            return f"<clearway.Simulation: over, {len(self._messages)} messages>"
        return f"<clearway.Simulation at {self.now_us:g} us, {len(self._messages)} messages>"

    @property
    def now_ps(self) -> int:
        """Simulated time in picoseconds: all events before it have happened."""
        return self._native.now()

    @property
    def now_us(self) -> float:
        """Simulated time in microseconds."""
        return self.now_ps / 1e6

    @property
    def is_over(self) -> bool:
        """True if nothing more can happen: it has ended, reached ``stop.at-most``, or was interrupted."""
        return self._native.is_over()

    @property
    def next_event_ps(self) -> int | None:
        """Earliest time in picoseconds at which anything may happen; ``None`` if nothing is left, or the simulation is over.

        Events of packets and timers of transports count, so the next completion may be later.
        """
        return self._native.next_event()

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return self._native.hosts()

    @property
    def warnings(self) -> list[str]:
        """Warnings about the scenario."""
        return self._native.warnings()

    @property
    def messages(self) -> list[Message]:
        """All messages, in the order in which they were posted."""
        return list(self._messages.values())

    def post(self, src: int, dst: int, bytes: int | str, tag: Any = None, *, priority: int | None = None) -> Message:
        """Posts a message that is ready now.

        :param bytes: a number, or a text such as ``"2MB"``.
        :param tag: whatever the message is to be known by.
        :param priority: of its packets, one of the ``priorities`` of the simulation; 1 unless given.
        :raises ScenarioError: if there is no such host, the message is empty or goes to its sender, or its priority was not declared.
        """
        size = _clearway.length(bytes) if isinstance(bytes, str) else bytes
        for name, value, limit in (("src", src, 2**32), ("dst", dst, 2**32), ("bytes", size, 2**64)):
            if not 0 <= value < limit:
                raise ScenarioError(f"`{name}` is {value}\n  fix: give a whole number from 0 to {limit - 1}")
        given = None if priority is None else _priority(priority)
        # Labels are unique: tags need not be numbers.
        number = self._native.post(src, dst, size, len(self._messages) + 1, given)
        message = Message(number, src, dst, size, tag, self.now_ps, priority=given)
        self._messages[number] = message
        self._under_way += 1
        return message

    def run_until(self, time: Time) -> list[Message]:
        """Simulates all events before ``time``. Returns the messages that were completed, in the order of their completion.

        :raises ScenarioError: if the time is past, or the simulation is over.
        :raises Interrupted: at Ctrl-C, which ends the simulation; its ``result`` has what was simulated until then.
        """
        return self._advance(time, False)

    def run_until_completion(self, limit: Time | None = None) -> list[Message]:
        """Simulates until a message is completed, and returns it, with others that were at about the same time; nothing if none is
        before ``limit``, or none is under way.

        Time then stands at most as long after the completion as the shortest delay of a link, or the ``resolution`` if that is less.
        """
        if limit is None:
            limit = 2**63
        goal = _picoseconds(limit)
        while self._under_way:
            completed = self._advance(goal, True)
            if completed or self.is_over or self.now_ps >= goal:
                return completed
        return []

    def finish(self, *, to_the_end: bool = False) -> Result:
        """Ends the simulation: where it stands, or when nothing is left to happen.

        :raises Interrupted: at Ctrl-C; its ``result`` has what was simulated until then, and is what another call returns.
        """
        if self._result is not None:
            return self._result
        native, events, exception = self._native.finish(to_the_end)
        self._note(events)
        result = Result(native, None)
        if exception is not None:
            self._end(result, exception)
        return result

    def _advance(self, time: Time, until_event: bool) -> list[Message]:
        events, exception = self._native.advance(_picoseconds(time), until_event)
        completed = self._note(events)
        if exception is not None:
            native, events, _ = self._native.finish(False)
            self._note(events)
            self._end(Result(native, None), exception)
        return completed

    def _note(self, events: list[tuple[int, int, bool]]) -> list[Message]:
        """Notes what has become of messages, and returns those that are complete now."""
        completed = []
        for at, number, is_acknowledged in events:
            message = self._messages.get(number)
            if message is None:
                # Of the scenario's own traffic.
                continue
            if is_acknowledged:
                message.acknowledged_ps = at
            else:
                message.received_ps = at
            if is_acknowledged == self._at_acknowledgement:
                self._under_way -= 1
                completed.append(message)
        return completed

    def _end(self, result: Result, exception: BaseException) -> NoReturn:
        self._result = result
        if isinstance(exception, KeyboardInterrupt):
            raise Interrupted(result) from exception
        raise exception


_OPEN: weakref.WeakSet[Simulation] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Ends the threads of simulations while there is an interpreter that their controllers can wait for."""
    for simulation in list(_OPEN):
        try:
            simulation._native.close()
        except ScenarioError:
            # Another thread is using it.
            pass


def _priority(value: int) -> int:
    if not hasattr(value, "__index__") or not 1 <= value <= 7:
        raise ScenarioError(f"{value!r} is not a priority\n  fix: give a whole number from 1 to 7")
    return int(value)


def _picoseconds(time: Time) -> int:
    if isinstance(time, str):
        return _clearway.picoseconds(time)
    if not hasattr(time, "__index__") or not 0 <= time < 2**64:
        raise ScenarioError(
            f'{time!r} is not a time\n  fix: write it as "5us", or give a whole number of picoseconds from 0 to {2**64 - 1}'
        )
    return time
