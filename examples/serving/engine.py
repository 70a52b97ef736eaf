"""Discrete-event loop, and the prefill and decode instances that it drives over a network."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, Protocol

import clearway
from cluster import MAX_BATCH, MAX_PREFILL_TOKENS, Cluster


@dataclass(eq=False)
class Request:
    """A request, and the times at which its tokens were there."""

    number: int
    arrival: int
    prompt: int
    output: int
    tokens: list[int] = field(default_factory=list)
    cache_sent: int = 0
    cache_received: int = 0

    @property
    def peak(self) -> int:
        """Tokens in the cache at the end."""
        return self.prompt + self.output

    @property
    def context(self) -> int:
        """Tokens in the cache now: the prompt, and each token that has been an input."""
        return self.prompt + len(self.tokens) - 1


class Network(Protocol):
    """What the loop needs of a network. ``wait`` returns tags of messages with the times at which their receivers have all bytes, in
    order of time."""

    @property
    def now(self) -> int: ...
    @property
    def under_way(self) -> int: ...
    def post(self, src: int, dst: int, bytes: int, tag: Any) -> None: ...
    def wait(self, limit: int | None) -> list[tuple[int, Any]]: ...


class SimulatedNetwork:
    """The network of a scenario, packet by packet."""

    def __init__(self, sim: clearway.Simulation) -> None:
        self.sim = sim
        self.under_way = 0

    @property
    def now(self) -> int:
        return self.sim.now_ps

    def post(self, src: int, dst: int, bytes: int, tag: Any) -> None:
        self.sim.post(src, dst, bytes, tag)
        self.under_way += 1

    def wait(self, limit: int | None) -> list[tuple[int, Any]]:
        """Advances to the next delivery, or to the limit if that is earlier."""
        if self.under_way == 0 and limit is not None:
            self.sim.run_until(limit)
            return []
        messages = self.sim.run_until_completion(limit)
        if not messages and limit is None:
            raise clearway.ScenarioError(
                "the run is over, and messages are under way\n  fix: raise `stop.at-most`, or repair the link that loses them"
            )
        self.under_way -= len(messages)
        # `received_ps` of a completed message is not None.
        return [(message.received_ps or 0, message.tag) for message in messages]


class IdleNetwork:
    """The same fabric, on which every message is alone: in the closed form of ``ideal_fct_ps``, without packets."""

    def __init__(self, open_simulation: Callable[[], clearway.Simulation]) -> None:
        self._open = open_simulation
        self._times: dict[tuple[int, int, int], int] = {}
        self._returns: dict[tuple[int, int], int] = {}
        self._heap: list[tuple[int, int, Any]] = []
        self._order = count()
        self.now = 0

    @property
    def under_way(self) -> int:
        return len(self._heap)

    def post(self, src: int, dst: int, bytes: int, tag: Any) -> None:
        heapq.heappush(self._heap, (self.now + self.time(src, dst, bytes), next(self._order), tag))

    def wait(self, limit: int | None) -> list[tuple[int, Any]]:
        if not self._heap or (limit is not None and self._heap[0][0] >= limit):
            self.now = self.now if limit is None else limit
            return []
        self.now, _, tag = heapq.heappop(self._heap)
        return [(self.now, tag)]

    def time(self, src: int, dst: int, bytes: int) -> int:
        """Time from posting to the last byte at the receiver: the ideal completion time without the return of the acknowledgement."""
        key = (src, dst, bytes)
        if key not in self._times:
            with self._open() as sim:
                sim.post(src, dst, bytes)
                (flow,) = sim.finish().flows
            self._times[key] = flow["ideal_fct_ps"] - self._return(src, dst)
        return self._times[key]

    def _return(self, src: int, dst: int) -> int:
        """Time of the acknowledgement from the receiver to the sender. It does not depend on the size of the message."""
        if (src, dst) not in self._returns:
            with self._open() as sim:
                message = sim.post(src, dst, 1)
                sim.finish(to_the_end=True)
            if message.acknowledged_ps is None or message.received_ps is None:
                raise clearway.ScenarioError(
                    f"a message from host {src} to host {dst} is not acknowledged\n  fix: repair the links between them"
                )
            self._returns[src, dst] = message.acknowledged_ps - message.received_ps
        return self._returns[src, dst]


@dataclass
class Transfer:
    """Messages that are sent together, and the continuation when all have arrived."""

    left: int
    then: Callable[[int], None]


class Loop:
    """A discrete-event loop: the next event is the end of a computation, or the arrival of a message at its receiver.

    A computation that an arrival begins starts at the time of the arrival. A message that an arrival causes starts at the time at which
    the network stands, later than the arrival by at most the shortest delay of a link.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self._heap: list[tuple[int, int, Callable[[int], None]]] = []
        self._order = count()

    def at(self, time: int, action: Callable[[int], None]) -> None:
        heapq.heappush(self._heap, (time, next(self._order), action))

    def send(self, messages: Sequence[tuple[int, int, int]], then: Callable[[int], None]) -> None:
        """Posts messages now, and calls ``then`` with the time at which the last one has arrived."""
        transfer = Transfer(len(messages), then)
        for src, dst, size in messages:
            self.network.post(src, dst, size, transfer)

    def run(self) -> None:
        while self._heap or self.network.under_way:
            # A computation may have begun and ended between the last arrival and the time at which the network stands.
            limit = max(self._heap[0][0], self.network.now) if self._heap else None
            for time, transfer in self.network.wait(limit):
                transfer.left -= 1
                if transfer.left == 0:
                    transfer.then(time)
            while self._heap and self._heap[0][0] <= self.network.now:
                time, _, action = heapq.heappop(self._heap)
                action(time)


@dataclass(frozen=True)
class Place:
    """Place of an instance: its first host, and the latency between its two nodes, if there are two."""

    loop: Loop
    cluster: Cluster
    first_host: int
    swap_latency: int


class Instance:
    """GPUs that run iterations one after another."""

    def __init__(self, place: Place) -> None:
        self.loop = place.loop
        self.cluster = place.cluster
        self.hosts = range(place.first_host, place.first_host + place.cluster.gpus)
        self.swap_latency = place.swap_latency
        self.is_busy = False

    def iterate(self, now: int, tokens: int, compute: int, then: Callable[[int], None]) -> None:
        """Runs an iteration: computation, and exchanges between two nodes, if there are two. All-reduces are hierarchical: reduced to
        shards over NVLink, then GPU i of a node swaps its shard with GPU i of the other, then gathered over NVLink.

        ``per_layer`` sends the shards of each all-reduce. Otherwise the swaps of an iteration are one swap of all bytes at its end, and
        the latency of the others is part of the computation.
        """
        self.is_busy = True
        cluster = self.cluster
        if cluster.nodes == 1:
            self.loop.at(now + compute, then)
            return
        rounds = cluster.all_reduces if cluster.per_layer else 1
        shard = -(-cluster.activations(tokens) // cluster.gpus_per_node) * cluster.all_reduces // rounds
        compute += (cluster.all_reduces - rounds) * self.swap_latency
        one, other = self.hosts[: cluster.gpus_per_node], self.hosts[cluster.gpus_per_node :]
        swap = [(src, dst, shard) for pair in zip(one, other) for src, dst in (pair, pair[::-1])]

        def round_(left: int, time: int) -> None:
            if left == 0:
                then(time)
            else:
                self.loop.at(time + compute // rounds, lambda _: self.loop.send(swap, lambda end: round_(left - 1, end)))

        round_(rounds, now)


class Prefill(Instance):
    """Prefill instance: waiting prompts in order of arrival, in batches of at most ``MAX_PREFILL_TOKENS``."""

    def __init__(self, place: Place, hand_over: Callable[[int, Request, Prefill], None]) -> None:
        super().__init__(place)
        self.hand_over = hand_over
        self.waiting: deque[Request] = deque()
        self.load = 0

    def accept(self, now: int, request: Request) -> None:
        self.waiting.append(request)
        self.load += request.prompt
        if not self.is_busy:
            self.start(now)

    def start(self, now: int) -> None:
        batch = [self.waiting.popleft()]
        tokens = batch[0].prompt
        while self.waiting and tokens + self.waiting[0].prompt <= MAX_PREFILL_TOKENS:
            batch.append(self.waiting.popleft())
            tokens += batch[-1].prompt
        # A token attends to itself and to those before it.
        pairs = sum(request.prompt * (request.prompt + 1) // 2 for request in batch)
        self.iterate(now, tokens, self.cluster.compute(tokens, pairs, tokens), lambda end: self.complete(end, batch))

    def complete(self, now: int, batch: Iterable[Request]) -> None:
        self.is_busy = False
        for request in batch:
            self.load -= request.prompt
            request.tokens.append(now)
            if request.output > 1:
                self.hand_over(now, request, self)
        if self.waiting:
            self.start(now)


class Decode(Instance):
    """Decode instance: continuous batching, so that a request joins or leaves between two iterations."""

    def __init__(self, place: Place, on_room: Callable[[int], None]) -> None:
        super().__init__(place)
        self.on_room = on_room
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.reserved = 0

    def accept(self, now: int, request: Request) -> None:
        self.waiting.append(request)
        if not self.is_busy:
            self.start(now)

    def start(self, now: int) -> None:
        while self.waiting and len(self.running) < MAX_BATCH:
            self.running.append(self.waiting.popleft())
        batch = len(self.running)
        contexts = sum(request.context for request in self.running)
        self.iterate(now, batch, self.cluster.compute(batch, contexts + batch, contexts), self.complete)

    def complete(self, now: int) -> None:
        self.is_busy = False
        for request in self.running:
            request.tokens.append(now)
        ended = [request for request in self.running if len(request.tokens) == request.output]
        self.running = [request for request in self.running if len(request.tokens) < request.output]
        if ended:
            self.reserved -= sum(request.peak for request in ended)
            self.on_room(now)
        if self.running or self.waiting:
            self.start(now)


def serve(requests: Sequence[Request], cluster: Cluster, network: Network, idle: IdleNetwork) -> None:
    """Serves all requests over ``network``, and notes the times of their tokens in them."""
    loop = Loop(network)
    without_room: deque[tuple[Request, Prefill]] = deque()

    def hand_over(now: int, request: Request, sender: Prefill) -> None:
        without_room.append((request, sender))
        move(now)

    def move(now: int) -> None:
        """Sends caches, in order, to the decode instance with the fewest reserved tokens, as long as it has room for them."""
        while without_room:
            request, sender = without_room[0]
            receiver = min(decoders, key=lambda one: one.reserved)
            if receiver.reserved + request.peak > cluster.room:
                return
            without_room.popleft()
            receiver.reserved += request.peak
            request.cache_sent = now
            transfer(request, sender, receiver)

    def transfer(request: Request, sender: Prefill, receiver: Decode) -> None:
        def arrived(now: int) -> None:
            request.cache_received = now
            receiver.accept(now, request)

        loop.send(cluster.cache_parts(request.prompt, sender.hosts, receiver.hosts), arrived)

    def dispatch(request: Request, now: int) -> None:
        """Gives a request to the prefill instance with the fewest tokens in its queue."""
        min(prefillers, key=lambda one: one.load).accept(now, request)

    def place(first: int) -> Place:
        return Place(loop, cluster, first, idle.time(first, first + cluster.gpus_per_node, 1) if cluster.nodes == 2 else 0)

    starts = range(0, cluster.hosts, cluster.gpus)
    prefillers = [Prefill(place(first), hand_over) for first in starts[: cluster.prefill]]
    decoders = [Decode(place(first), move) for first in starts[cluster.prefill :]]
    for request in requests:
        loop.at(request.arrival, partial(dispatch, request))
    loop.run()
