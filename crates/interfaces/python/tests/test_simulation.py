"""Simulations that a program drives in steps."""

import os
import signal
import threading
import time

import clearway
import pytest

FABRIC = {"topology": {"kind": "leaf-spine", "hosts": 8, "hosts-per-leaf": 4}}


def test_a_schedule_is_the_run_of_the_scenario_that_it_leaves():
    for step, threads in [("1us", 1), ("700ns", 2), ("1ms", 1)]:
        sim = clearway.Simulation(FABRIC, threads=threads)
        sim.post(0, 5, "1MB", tag="a")
        sim.post(1, 5, 300_000)
        while sim.now_ps < 7_000_000:
            sim.run_until(min(7_000_000, sim.now_ps + clearway._clearway.picoseconds(step)))
        late = sim.post(2, 5, 50_000, tag=("any", "thing"))
        assert (late.posted_ps, late.tag) == (7_000_000, ("any", "thing"))
        result = sim.finish(to_the_end=True)
        assert result.status == "complete"
        assert result.flows.to_pydict()["bytes"] == [1_000_000, 300_000, 50_000]
        assert clearway.run(result.scenario).digest == result.digest
        listed = {**FABRIC, "workload": clearway.messages([
            dict(src=0, dst=5, bytes="1MB"), dict(src=1, dst=5, bytes=300_000), dict(src=2, dst=5, bytes=50_000, start="7us"),
        ])}
        assert clearway.run(listed).digest == result.digest
        assert "1000000" in result.report_html()


def test_messages_answer_others():
    with clearway.Simulation(FABRIC) as sim:
        sim.post(0, 5, "100kB", tag=0)
        hops = []
        while len(hops) < 5:
            for message in sim.run_until_completion():
                hops.append(message)
                sim.post(message.dst, message.src, message.bytes, tag=message.tag + 1)
        assert [message.tag for message in hops] == [0, 1, 2, 3, 4]
        assert all(first.received_ps <= then.posted_ps for first, then in zip(hops, hops[1:]))
        assert len(sim.messages) == 6
        assert "6 messages" in repr(sim)
    assert sim.is_over


def test_completion_is_what_one_asks_for():
    at = {}
    for completion in ("received", "acknowledged"):
        sim = clearway.Simulation(FABRIC, completion=completion)
        message = sim.post(0, 5, 1000)
        assert sim.run_until_completion() == [message]
        at[completion] = message.received_ps if completion == "received" else message.acknowledged_ps
        assert sim.run_until_completion() == []
        assert sim.run_until_completion("1ms") == []
    assert at["received"] < at["acknowledged"]
    nothing = clearway.Simulation(FABRIC)
    nothing.post(0, 5, "10MB")
    assert nothing.run_until_completion("5us") == []
    assert nothing.now_us == 5


def test_the_scenario_s_own_traffic_is_not_among_the_messages():
    given = {**FABRIC, "workload": {"kind": "permutation", "message": "200kB"}}
    sim = clearway.Simulation(given, own_traffic=True)
    message = sim.post(0, 1, 5000)
    assert sim.run_until("1ms") == [message]
    result = sim.finish()
    assert (len(result.flows), result.status) == (9, "complete")
    assert clearway.run(result.scenario).digest == result.digest


def test_messages_of_a_higher_priority_overtake():
    """The run of the listed flows with these priorities; by strict priority the short message passes the long ones."""
    strict = {**FABRIC, "switch": {"strict-priority": True}}
    messages = [(host, 5, 2_000_000, None) for host in (0, 1, 2)] + [(3, 5, 20_000, 3)]

    def run(priorities):
        sim = clearway.Simulation(strict, priorities=priorities)
        for src, dst, size, priority in messages:
            sim.post(src, dst, size, priority=priority if priorities else None)
        return sim, sim.finish(to_the_end=True)

    sim, result = run([3, 1])
    assert [message.priority for message in sim.messages] == [None, None, None, 3]
    assert clearway.run(result.scenario).digest == result.digest
    listed = {**strict, "workload": {"kind": "flows", "flows": [
        f"{src}->{dst} {size}B" + (f" priority {priority}" if priority else "") for src, dst, size, priority in messages
    ]}}
    assert clearway.run(listed).digest == result.digest
    plain, other = run([])
    assert other.digest != result.digest
    assert sim.messages[3].received_ps < plain.messages[3].received_ps


def test_the_resolution_limits_how_late_an_answer_starts():
    late = {}
    for resolution in (None, "20ns", 5_000):
        sim = clearway.Simulation(FABRIC, resolution=resolution)
        sim.post(0, 5, 10_000)
        gaps = []
        while len(gaps) < 20:
            for message in sim.run_until_completion():
                gaps.append(sim.now_ps - message.received_ps)
                sim.post(message.dst, message.src, 10_000)
        late[resolution] = max(gaps)
        result = sim.finish(to_the_end=True)
        assert clearway.run(result.scenario).digest == result.digest
    assert 0 < late[5_000] <= 5_000 < late["20ns"] <= 20_000 < late[None] <= 1_000_000


def test_the_next_event_is_known():
    sim = clearway.Simulation(FABRIC)
    assert sim.next_event_ps is None
    sim.run_until("2us")
    message = sim.post(0, 5, 1000)
    assert sim.next_event_ps == sim.now_ps == 2_000_000
    times = []
    while (following := sim.next_event_ps) is not None:
        times.append(following)
        sim.run_until(following + 1)
    assert times == sorted(set(times))
    assert message.received_ps in times and message.acknowledged_ps in times
    over = clearway.Simulation(FABRIC, overrides={"stop.at-most": "1us"})
    over.post(0, 5, "1MB")
    over.run_until("2us")
    assert over.is_over and over.next_event_ps is None


def test_what_cannot_be_meant_is_refused():
    sim = clearway.Simulation(FABRIC)
    sim.run_until("3us")
    for call, text in [
        (lambda: sim.post(0, 8, 1), "there is no host 8"),
        (lambda: sim.post(0, -1, 1), "`dst` is -1"),
        (lambda: sim.post(0, 1, "2 parsecs"), "not a size"),
        (lambda: sim.run_until("2us"), "is past"),
        (lambda: sim.run_until(3.5), "is not a time"),
        (lambda: sim.run_until("soon"), "is not a time"),
        (lambda: sim.run_until(-1), "is not a time"),
        (lambda: sim.run_until(2**64), "is not a time"),
        (lambda: sim.post(2**32, 1, 1), "`src` is 4294967296"),
        (lambda: sim.post(0, 1, 2**64), "`bytes` is 18446744073709551616"),
        (lambda: sim.post(0, 1, 1, priority=3), "a message of priority 3, for which switches reserve nothing"),
        (lambda: sim.post(0, 1, 1, priority=0), "0 is not a priority"),
        (lambda: clearway.Simulation(FABRIC, priorities=[1, 8]), "8 is not a priority"),
        (lambda: clearway.Simulation(FABRIC, priorities=["high"]), "'high' is not a priority"),
        (lambda: clearway.Simulation(FABRIC, resolution=0), "a resolution of no time"),
        (lambda: clearway.Simulation(FABRIC, resolution="often"), "not a time"),
        (lambda: clearway.Simulation(FABRIC, completion="sent"), "completion='sent'"),
        (lambda: clearway.Simulation("nvlink-64"), "scale-up"),
        (lambda: clearway.Simulation(FABRIC, overrides={"observe.series.every": "1us"}), "has no samples"),
    ]:
        with pytest.raises(clearway.ScenarioError, match=f"{text}(.|\n)*fix: "):
            call()
    sim.finish()
    with pytest.raises(clearway.ScenarioError, match="has ended"):
        sim.post(0, 1, 1)


@pytest.mark.parametrize("call", [lambda sim: sim.run_until("1s"), lambda sim: sim.finish(to_the_end=True)])
def test_an_interrupt_ends_a_simulation_and_the_rest_is_kept(call):
    sim = clearway.Simulation({"topology": {"hosts": 128}})
    short = sim.post(0, 1, "1kB")
    for host in range(128):
        sim.post(host, (host + 64) % 128, "1TB")
    threading.Timer(0.7, os.kill, [os.getpid(), signal.SIGINT]).start()
    with pytest.raises(clearway.Interrupted) as caught:
        call(sim)
    assert sim.is_over
    result = caught.value.result
    assert (result.status, len(result.flows)) == ("interrupted", 129)
    assert result.flows.to_pylist(0, 1)[0]["finish_ps"] is not None
    assert short.received_ps is not None
    assert sim.finish() is result


def test_messages_know_when_they_arrived_in_the_last_stretch():
    sim = clearway.Simulation(FABRIC)
    message = sim.post(0, 5, "1MB")
    result = sim.finish(to_the_end=True)
    assert message.acknowledged_ps == result.flows.to_pydict()["finish_ps"][0]
    assert 0 < message.received_ps < message.acknowledged_ps


@pytest.mark.parametrize(
    "workload",
    [
        {"kind": "ring-all-reduce", "size": "1MB", "iterations": 1},
        {"kind": "poisson", "load": 0.3, "duration": "20us"},
        [{"kind": "poisson", "load": 0.3, "duration": "20us"}, {"kind": "ring-all-reduce", "size": "100kB", "iterations": 2}],
    ],
)
def test_what_runs_beside_jobs_and_arrivals_is_the_same_run_again(workload):
    given = {"topology": {"hosts": 16}, "workload": workload}
    sim = clearway.Simulation(given, own_traffic=True)
    message = sim.post(0, 9, "100kB")
    sim.run_until("7us")
    sim.post(3, 9, "100kB")
    result = sim.finish(to_the_end=True)
    again = clearway.run(result.scenario)
    assert again.digest == result.digest
    assert again.scenario == result.scenario
    assert again.flows.to_pydict()["src"] == result.flows.to_pydict()["src"]
    assert again.flows.to_pylist()[message.number]["bytes"] == 100_000
    nothing = clearway.Simulation(given, own_traffic=True).finish(to_the_end=True)
    assert clearway.run(nothing.scenario).digest == nothing.digest == clearway.run(given).digest


def test_nothing_posted_is_nothing_again():
    result = clearway.Simulation(FABRIC).finish()
    again = clearway.run(result.scenario)
    assert (again.digest, len(again.flows)) == (result.digest, 0)


def ping_pong(sim, steps):
    """Processor time of messages of which each answers the one before."""
    started = time.process_time()
    for _ in range(steps):
        (message,) = sim.run_until_completion()
        sim.post(message.dst, message.src, 64)
    return time.process_time() - started


def test_steps_cost_the_same_however_many_messages_there_were():
    def begin():
        sim = clearway.Simulation(FABRIC)
        sim.post(0, 5, 64)
        return sim

    old = begin()
    ping_pong(old, 5000)
    # In turns with new ones, as the machine may become slower at any moment: the ratio of one pair that nothing disturbs is enough.
    ratios = [ping_pong(old, 200) / ping_pong(begin(), 200) for _ in range(8)]
    assert min(ratios) < 3, ratios


def test_a_simulation_is_for_one_thread_at_a_time():
    sim = clearway.Simulation({"topology": {"hosts": 128}})
    for host in range(128):
        sim.post(host, (host + 64) % 128, "100MB")
    thread = threading.Thread(target=sim.run_until, args=["5ms"])
    thread.start()
    refused = 0
    while thread.is_alive():
        try:
            sim.now_ps
        except clearway.ScenarioError as error:
            assert "another thread" in str(error)
            refused += 1
    thread.join()
    assert refused > 0
