"""Collectives between processes: a rank in each thread, and one in another process that is killed."""

import array
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import clearway
import pytest
from clearway.collective import Group, new_key

#: Addresses of this process alone, so that ports are free.
NETWORK = f"127.{1 + (os.getpid() >> 8) % 200}.{os.getpid() % 256}"
_used = iter(range(1, 250))


def hosts(ranks):
    return [f"{NETWORK}.{next(_used)}" for _ in range(ranks)]


def each(ranks, task, **settings):
    """Does the same at all ranks; returns their results."""
    addresses, key = hosts(ranks), new_key()

    def run(rank):
        with Group(rank, addresses, key, paths=2, **settings) as group:
            return task(group)

    with ThreadPoolExecutor(ranks) as pool:
        return list(pool.map(run, range(ranks), timeout=60))


def floats(values):
    return array.array("f", values)


@pytest.mark.parametrize("algorithm", [None, "ring", "tree", "halving-doubling", "direct"])
def test_sums(algorithm):
    def task(group):
        assert repr(group) == f"Group(rank {group.rank} of 3)"
        buffer = floats(at * 10 + group.rank for at in range(1000))
        group.all_reduce(buffer, algorithm)
        return buffer

    for result in each(3, task):
        assert result == floats(at * 30 + 3 for at in range(1000))


def test_blocks():
    def task(group):
        own = group.block(10)
        gathered, part = floats([0] * 10), floats([0] * (own.stop - own.start))
        group.all_gather(floats(range(own.start, own.stop)), gathered)
        group.reduce_scatter(floats(range(10)), part)
        received = floats([0] * (3 * (own.stop - own.start)))
        group.all_to_all(floats(group.rank * 100 + at for at in range(10)), received)
        empty = floats([])
        group.all_reduce(empty)
        return own, gathered, part, received

    for own, gathered, part, received in each(3, task):
        assert gathered == floats(range(10))
        assert part == floats(3 * at for at in range(own.start, own.stop))
        assert received == floats(100 * rank + at for rank in range(3) for at in range(own.start, own.stop))


def test_arrays_of_numpy():
    numpy = pytest.importorskip("numpy")

    def task(group):
        matrix = numpy.full((30, 40), group.rank + 1, dtype=numpy.float32)
        group.all_reduce(matrix)
        return matrix

    for result in each(2, task):
        assert (result == 3).all() and result.shape == (30, 40)


def test_buffers_that_do_not_fit():
    def task(group):
        wrong = [
            (group.all_reduce, [array.array("d", [1.0])], "32-bit floats"),
            (group.all_reduce, [[1.0, 2.0]], "list, no buffer"),
            (group.all_reduce, [memoryview(floats(range(4)))[::2]], "side by side"),
            (group.all_reduce, [memoryview(floats(range(4))).toreadonly()], "cannot be written"),
            (group.all_reduce, [floats(range(4)), "rings"], "no algorithm `rings`"),
            (group.all_gather, [floats(range(4)), floats(range(4))], "has 4 elements"),
            (group.reduce_scatter, [floats(range(4)), floats(range(4))], "has 4 elements"),
            (group.all_to_all, [floats(range(4)), floats(range(3))], "has 3 elements"),
        ]
        for call, arguments, message in wrong:
            with pytest.raises(clearway.ScenarioError, match=message):
                call(*arguments)
        # The group goes on.
        buffer = floats([1])
        group.all_reduce(buffer)
        return buffer

    assert each(2, task) == [floats([2])] * 2


def test_what_cannot_be_joined():
    key = new_key()
    assert len(key) == 64
    for arguments, settings, message in [
        ((0, ["127.0.0.1"], "short"), {}, "this is not a key"),
        ((2, ["127.0.0.1"], key), {}, "no rank 2 among 1"),
        ((0, ["127.0.0.1"]), {}, "there is no key"),
        ((0, ["no-such-host.invalid"], key), {}, "no host"),
        ((0, ["127.0.0.1"], key), {"idle": 0}, "0.05 to 3600"),
        ((0, ["127.0.0.1"], key), {"paths": 0}, "1 to 64"),
    ]:
        with pytest.raises(ValueError, match=message):
            Group(*arguments, **settings)
    first, second = hosts(2)
    with pytest.raises(clearway.CollectiveError, match=f"rank 1 at {second}:4794 has not come up within 300ms"):
        Group(0, [first, second], key, wait=0.3)


def test_a_rank_that_fails_ends_the_others():
    addresses, key = hosts(3), new_key()

    def run(rank):
        # Another rank may still be meeting others when it hears of the failure.
        error, told = (KeyError, "mine") if rank == 1 else (clearway.CollectiveError, "rank 1 has ended the group: it has failed")
        with pytest.raises(error, match=told), Group(rank, addresses, key, paths=2) as group:
            if rank == 1:
                raise KeyError("mine")
            group.all_reduce(floats([1]))

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(run, range(3), timeout=60))


def test_a_rank_that_is_killed_is_named():
    addresses, key = hosts(2), new_key()
    program = "import sys, time; from clearway.collective import Group; group = Group(1, sys.argv[2:], sys.argv[1]); time.sleep(60)"
    other = subprocess.Popen([sys.executable, "-c", program, key, *addresses])
    try:
        group = Group(0, addresses, key, idle=0.5)
        killer = threading.Timer(0.3, other.kill)
        killer.start()
        with pytest.raises(clearway.CollectiveError, match=f"rank 1 at {addresses[1]}:4794 is lost: the other end has been silent"):
            group.all_reduce(floats([1]))
        killer.join()
        with pytest.raises(ConnectionError, match="is lost"):
            group.all_reduce(floats([1]))
    finally:
        other.kill()
        other.wait()
