"""Congestion controllers written in Python."""

import os
import subprocess
import sys
import threading

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


def test_failures_stay_with_their_run():
    class Failing(Fixed):
        calls = 0

        def on_ack(self, ack):
            Failing.calls += 1
            if Failing.calls == 1:
                raise RuntimeError("mine")
            if Failing.calls == 2:
                clearway.run(SMALL, controller=Fixed)

    with pytest.raises(RuntimeError, match="mine"):
        clearway.run(SMALL, controller=Failing)


def test_failures_do_not_cross_threads():
    class Broken(Fixed):
        def on_ack(self, ack):
            if ack.delivered > 100_000:
                raise RuntimeError("broken")

    outcomes = {"broken": [], "sound": [], "built in": []}

    def repeat(name, **given):
        for _ in range(4):
            try:
                outcomes[name].append(clearway.run(SMALL, **given).status)
            except RuntimeError as error:
                outcomes[name].append(str(error))

    given = [("broken", {"controller": Broken}), ("sound", {"controller": Fixed}), ("built in", {})]
    threads = [threading.Thread(target=repeat, args=(name,), kwargs=kwargs) for name, kwargs in given]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == {"broken": ["broken"] * 4, "sound": ["complete"] * 4, "built in": ["complete"] * 4}


def factory(share):
    class Made(Fixed):
        def __init__(self, network):
            self.window = self.largest_window = max(network.payload, share * network.bdp)

    return Made


def test_classes_of_one_name_are_different_classes():
    def incast(simulation):
        for host in range(1, 9):
            simulation.post(host, 0, "200kB")
        return simulation.finish(to_the_end=True)

    def begun(share):
        return clearway.Simulation({"topology": {"hosts": 16}}, controller=factory(share))

    alone = [incast(begun(share)).digest for share in (0.1, 2.0)]
    first, second = begun(0.1), begun(2.0)
    assert [incast(first).digest, incast(second).digest] == alone
    assert alone[0] != alone[1]
    # The name does not depend on what else runs.
    classes = [factory(share) for share in (0.1, 2.0)]
    results = [clearway.run(SMALL, controller=one) for one in classes]
    assert len({result.scenario for result in results}) == 1
    assert 'python-class = "test_controller.factory.<locals>.Made"' in results[0].scenario
    with pytest.raises(clearway.ScenarioError, match="there are . classes(.|\n)*fix: "):
        clearway.run(results[0].scenario)
    assert clearway.run(results[0].scenario, controller=classes[0]).digest == results[0].digest


def test_names_of_classes_are_quoted():
    odd = type('a"b\\', (Fixed,), {})
    assert clearway.run(SMALL, controller=odd).status == "complete"


def test_a_run_whose_controller_fails_is_not_kept(tmp_path):
    class Late(Fixed):
        """Fails with the last acknowledgements."""

        def on_ack(self, ack):
            if ack.delivered >= 200_000:
                raise RuntimeError("late")

    with pytest.raises(RuntimeError, match="late"):
        clearway.run(SMALL, controller=Late, out=tmp_path / "late")
    assert list(tmp_path.iterdir()) == []
    long = {"topology": {"hosts": 16}, "workload": {"kind": "permutation", "message": "1GB"}}
    with pytest.raises(RuntimeError, match="late"):
        clearway.run(long, controller=Late, out=tmp_path / "late")
    sim = clearway.Simulation({"topology": {"hosts": 16}}, controller=Late)
    sim.post(0, 9, "200kB")
    with pytest.raises(RuntimeError, match="late"):
        sim.run_until("1ms")
    with pytest.raises(clearway.ScenarioError, match="has ended"):
        sim.finish()


@pytest.mark.parametrize("largest", [float("nan"), float("inf"), 0.5, -1, 1e300])
def test_the_largest_window_is_a_number_of_bytes(largest):
    class Odd(Fixed):
        def __init__(self, network):
            self.window = 0.1
            self.largest_window = largest

    with pytest.raises(clearway.ScenarioError, match="`largest_window` is .*not from a packet(.|\n)*fix: "):
        clearway.run(SMALL, controller=Odd)


def run_program(program, **options):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, **options)


CELL = """
import clearway
class Fixed:
    def __init__(self, network):
        self.window = network.bdp
    def on_ack(self, ack):
        pass
"""


def test_simulations_can_be_dropped_anywhere():
    done = run_program(CELL + """
for _ in range(40):
    sim = clearway.Simulation({"topology": {"hosts": 16}}, controller=Fixed)
    sim.post(0, 9, "1MB")
sim.run_until("3us")
del sim
# One that is there when the program ends.
left = clearway.Simulation({"topology": {"hosts": 64}}, controller=Fixed)
print("done")
""")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_process_leaves_simulations_alone():
    done = run_program(CELL + """
import os
sim = clearway.Simulation({"topology": {"hosts": 16}}, controller=Fixed)
sim.post(0, 9, "1MB")
sim.run_until("1us")
child = os.fork()
if child == 0:
    try:
        sim.run_until("2us")
    except clearway.ScenarioError as error:
        assert "process" in str(error) and "fix: " in str(error)
        del sim
        os._exit(7)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
print(len(sim.run_until("1ms")))
""")
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
