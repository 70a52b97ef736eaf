"""Congestion controllers written in Python."""

import clearway
import pytest

SMALL = {"topology": {"hosts": 16}, "workload": {"kind": "permutation", "message": "200kB"}}


class Fixed:
    """A window that stays as it is."""

    def __init__(self, network):
        self.network = network
        self.window = network.bdp

    def on_ack(self, ack):
        pass


class Aimd(Fixed):
    """Additive increase, multiplicative decrease at marks."""

    def __init__(self, network):
        super().__init__(network)
        self.largest_window = 4.0 * network.bdp

    def on_ack(self, ack):
        if ack.ecn:
            self.window = max(self.network.payload, self.window * 0.8)
        else:
            self.window = min(self.largest_window, self.window + self.network.payload * ack.acked / self.window)


def test_a_fixed_window_is_that_of_the_built_in_controller():
    mine = clearway.run(SMALL, controller=Fixed)
    built_in = clearway.run(SMALL, overrides={"transport.controller": "constant", "transport.window": "1bdp"})
    assert mine.digest == built_in.digest
    assert 'controller = "python"' in mine.scenario
    assert "Fixed" in mine.scenario


def test_windows_follow_what_the_class_says():
    incast = {"topology": {"hosts": 16}, "workload": {"kind": "incast", "senders": 8, "message": "1MB"}}
    fixed, aimd = (clearway.run(incast, controller=one) for one in (Fixed, Aimd))
    assert aimd.summary.packets.marked < fixed.summary.packets.marked
    assert clearway.run(incast, controller=Aimd).digest == aimd.digest
    assert clearway.run(aimd.scenario).digest == aimd.digest


def test_comparisons_run_scenarios_with_a_controller():
    compared = clearway.compare({"Aimd": (SMALL, Aimd), "STrack": SMALL}, seeds=2)
    assert [result.summary.scenario.seed for result in compared.results["Aimd"]] == [1, 2]
    assert all('controller = "python"' in result.scenario for result in compared.results["Aimd"])
    assert compared.results["Aimd"][1].digest == clearway.run(SMALL, seed=2, controller=Aimd).digest
    assert all('controller = "strack"' in result.scenario for result in compared.results["STrack"])
    with pytest.raises(clearway.ScenarioError, match="no class"):
        clearway.compare({"a": (SMALL, 7)})


def test_all_calls_reach_the_object():
    calls = {}

    class Nosy(Fixed):
        uses_telemetry = True
        deadline_ps = None

        def note(self, name, *values):
            calls.setdefault(name, values)

        def on_ack(self, ack):
            self.note("ack", ack.now_ps, ack.rtt_ps, ack.acked, ack.in_flight, ack.delivered, ack.hops)
            if self.deadline_ps is None:
                self.deadline_ps = ack.now_ps + 1_000_000

        def on_sent(self, now_ps, wire_bytes):
            self.note("sent", now_ps, wire_bytes)

        def on_deadline(self, now_ps):
            self.note("deadline", now_ps)
            self.deadline_ps = now_ps + 10**12

        def on_loss(self, loss):
            self.note("loss", loss.now_ps, loss.cause, loss.lost)

    lossy = {**SMALL, "topology": {"hosts": 16, "bit-error-rate": 1e-7}, "workload": {"kind": "permutation", "message": "2MB"}}
    result = clearway.run(lossy, controller=Nosy)
    assert result.status == "complete"
    assert set(calls) == {"ack", "sent", "deadline", "loss"}
    now, rtt, acked, in_flight, delivered, hops = calls["ack"]
    assert 0 < rtt <= now and acked > 0 and delivered >= acked and in_flight >= 0
    assert 1 <= len(hops) <= 5 and all(rate > 0 for _, rate, _, _ in hops)
    assert calls["loss"][1] in ("out of order", "probe", "timeout", "go back")


def test_rates_pace():
    class Slow(Fixed):
        rate_bps = 1e9

    message = {"topology": {"hosts": 16}, "workload": {"kind": "flows", "flows": ["0->9 1MB"]}}
    fct = clearway.run(message, controller=Slow).summary.fct_us.max
    assert 8000 < fct < 9000


def test_what_a_controller_raises_ends_the_run():
    class Broken(Fixed):
        def on_ack(self, ack):
            raise RuntimeError("no idea")

    class Unmade(Fixed):
        def __init__(self, network):
            raise RuntimeError("not even made")

    class Endless(Fixed):
        def on_ack(self, ack):
            self.window *= 2

    class Nothing(Fixed):
        def on_ack(self, ack):
            self.window = 0

    for broken, text in [(Broken, "no idea"), (Unmade, "not even made")]:
        with pytest.raises(RuntimeError, match=text):
            clearway.run(SMALL, controller=broken)
    for broken, text in [(Endless, "largest_window"), (Nothing, "above zero")]:
        with pytest.raises(ValueError, match=text):
            clearway.run(SMALL, controller=broken)
    with pytest.raises(RuntimeError, match="no idea"):
        sim = clearway.Simulation({"topology": {"hosts": 16}}, controller=Broken)
        sim.post(0, 9, "1MB")
        sim.run_until("1ms")
    # What failed is forgotten.
    assert clearway.run(SMALL, controller=Fixed).status == "complete"


def test_only_classes_on_one_thread_are_controllers():
    for given, text in [({"controller": 7}, "no class"), ({"controller": Fixed, "threads": 2}, "one thread")]:
        with pytest.raises(clearway.ScenarioError, match=text):
            clearway.run(SMALL, **given)
    with pytest.raises(ValueError, match="there is no controller `Unknown`"):
        clearway.run(SMALL, overrides={"transport.controller": "python", "transport.python-class": "Unknown"})


def test_a_simulation_in_steps_has_it_too():
    with clearway.Simulation({"topology": {"hosts": 16}}, controller=Aimd) as sim:
        message = sim.post(0, 9, "1MB")
        assert sim.run_until_completion() == [message]
