"""The example of a served language model: examples/serving."""

import csv
import random
import re
import sys
from pathlib import Path

import clearway
import pytest

ROOT = Path(__file__).parents[4]
EXAMPLE = ROOT / "examples/serving"
sys.path.insert(0, str(EXAMPLE))

import cluster as hardware  # noqa: E402
import engine  # noqa: E402
import serving  # noqa: E402

US = 10**6
# One GPU for each instance, one spine: all caches share a link.
SMALL = hardware.Cluster(hardware.MODELS["llama-3-8b"], hardware.GPUS["h100"], prefill=2, decode=2, gpus_per_node=1)
FABRIC = {
    "topology": {"kind": "leaf-spine", "hosts": 4, "hosts-per-leaf": 2, "spines": 1, "link-rate": "100Gbps"},
    "stop": {"at-most": "1000s"},
}


def open_fabric(seed=1, with_traffic=False, **changed):
    return clearway.Simulation({**FABRIC, "topology": {**FABRIC["topology"], **changed}}, seed=seed)


def served(requests, cluster=SMALL, **changed):
    """The requests on both networks, and the simulation."""
    outcome = serving.simulate(1, lambda _: [engine.Request(*one) for one in requests], cluster, lambda *_: open_fabric(**changed))
    return outcome.alone, outcome.shared, outcome.result


def test_a_request_alone_has_the_times_of_the_closed_form():
    (alone,), (shared,), _ = served([(0, 5 * US, 300, 4)])
    prefill = SMALL.compute(300, 300 * 301 // 2, 300)
    # The cache: 32 layers, 8 heads of 128, keys and values of 2 bytes.
    size = 300 * 32 * 8 * 128 * 2 * 2
    with open_fabric() as sim:
        sim.post(0, 2, size)
        result = sim.finish(to_the_end=True)
        (message,) = sim.messages
    (ideal,) = result.flows.to_pydict()["ideal_fct_ps"]
    assert alone.cache_received - alone.cache_sent == ideal - (message.acknowledged_ps - message.received_ps)
    token = [SMALL.compute(1, context + 1, context) for context in (300, 301, 302)]
    expected = [5 * US + prefill]
    for iteration in token:
        expected.append((expected[-1] if len(expected) > 1 else alone.cache_received) + iteration)
    assert alone.tokens == expected
    # Nothing is in the way of whole packets.
    assert (shared.cache_received, shared.tokens) == (alone.cache_received, alone.tokens)


def test_the_roofline_is_that_of_the_published_sizes():
    big = hardware.Cluster(hardware.MODELS["llama-3-70b"], hardware.GPUS["h100"])
    assert big.model.kv_per_token == 327_680
    # A token of one request reads 141.2 GB of weights: 8 x 3.35 TB/s x 0.8 take 6.586 ms; NVLink adds 10.2 us.
    assert big.compute(1, 1, 0) / serving.MS == pytest.approx(6.586 + 0.0102, abs=0.001)
    # A prompt of 1000 tokens is bound by 8 x 989 TFLOPS x 0.5: 141.2 TFLOP of weights and 1.312 of attention; NVLink adds 10.2 ms.
    assert big.compute(1000, 500_500, 1000) / serving.MS == pytest.approx(35.692 + 0.332 + 10.194, abs=0.01)
    wide = hardware.Cluster(hardware.MODELS["llama-3-405b"], hardware.GPUS["h100"], nodes=2)
    # 16 GPUs hold 8 heads twice: 0.9 x 1280 GB less 810 GB of weights, at 2 x 516096 B for a token.
    assert wide.room == int((0.9 * 1280e9 - 810e9) / (2 * 516_096))
    parts = wide.cache_parts(100, range(16), range(16, 32))
    assert [(src, dst) for src, dst, _ in parts] == [(gpu, gpu + 16) for gpu in range(16)]
    assert {size for _, _, size in parts} == {100 * 516_096 // 8}


def test_no_message_is_faster_than_alone_and_every_request_gets_its_tokens():
    draws = random.Random(3)
    requests = [(number, number * 1000 * US, draws.randrange(10, 400), draws.randrange(2, 12)) for number in range(20)]
    requests.append((20, 20 * 1000 * US, 50, 1))
    alone, shared, result = served(requests, **{"fabric-link-rate": "25Gbps"})
    for one in [*alone, *shared]:
        assert len(one.tokens) == one.output
        assert one.arrival < one.tokens[0] and all(a < b for a, b in zip(one.tokens, one.tokens[1:]))
        if one.output > 1:
            assert one.tokens[0] <= one.cache_sent < one.cache_received < one.tokens[1]
    # Prefill does not wait for the network.
    assert [one.tokens[0] for one in alone] == [one.tokens[0] for one in shared]
    flows = result.flows.to_pylist()
    assert [flow["bytes"] for flow in flows] == [
        one.prompt * 131_072 for one in sorted(shared, key=lambda one: one.cache_sent) if one.output > 1
    ]
    assert all(flow["fct_ps"] is None or flow["fct_ps"] >= flow["ideal_fct_ps"] for flow in flows)
    waits = [
        (one.cache_received - one.cache_sent) - (idle.cache_received - idle.cache_sent)
        for one, idle in zip(shared, alone)
        if one.output > 1
    ]
    assert min(waits) >= 0
    # Two senders share the link of 25 Gb/s to the spine.
    assert max(waits) > 1000 * US
    values = serving.metrics(shared)
    assert len(values["ITL"]) == sum(one.output - 1 for one in shared)
    assert len(values["TPOT"]) == len(values["TTST"]) == sum(one.output > 1 for one in shared) < len(values["TTFT, prefill"]) == 21


def test_decoding_waits_for_memory():
    tight = hardware.Cluster(SMALL.model, hardware.Gpu(989e12, 3.35e12, 18e9, 450e9), prefill=1, decode=1, gpus_per_node=1)
    assert tight.room == int((0.9 * 18e9 - 2 * 8.03e9) / 131_072) == 1068
    # Both prompts fit, but not their outputs.
    alone, shared, _ = served([(0, 1, 520, 15), (1, 2, 520, 15)], tight)
    for first, second in (alone, shared):
        # The second cache is sent when the first is free, not before.
        assert second.tokens[0] < first.tokens[-1] <= second.cache_sent
    with pytest.raises(clearway.ScenarioError, match="memory for 1068 tokens, and request 1 has 1069(.|\n)*fix: "):
        served([(0, 1, 600, 9), (1, 2, 1000, 69)], tight)
    with pytest.raises(clearway.ScenarioError, match="5 GPUs, and a fabric of 4 hosts(.|\n)*fix: "):
        served([(0, 1, 600, 9)], hardware.Cluster(SMALL.model, SMALL.gpu, prefill=4, decode=1, gpus_per_node=1))
    with pytest.raises(clearway.ScenarioError, match="8 key-value heads(.|\n)*3 GPUs(.|\n)*fix: "):
        served([(0, 1, 600, 9)], hardware.Cluster(SMALL.model, SMALL.gpu, 1, 1, 1, 3), hosts=8)


def test_two_nodes_exchange_the_partial_sums_of_every_layer():
    times = {}
    for per_layer in (False, True):
        wide = hardware.Cluster(SMALL.model, SMALL.gpu, 1, 1, nodes=2, gpus_per_node=1, per_layer=per_layer)
        (alone,), (shared,), result = served([(0, 0, 100, 3)], wide)
        flows = result.flows.to_pydict()
        cache = 2 * [100 * 131_072 // 2]
        layers = 64 if per_layer else 1
        # Of hidden size 4096, two bytes for each of 100, 1 and 1 tokens: after the attention and the feed-forward network of 32 layers.
        swaps = [tokens * 4096 * 2 * 64 // layers for tokens in (100, 1, 1) for _ in range(2 * layers)]
        assert flows["bytes"] == swaps[: 2 * layers] + cache + swaps[2 * layers :]
        pairs = set(zip(flows["src"], flows["dst"]))
        assert pairs == {(0, 1), (1, 0), (2, 3), (3, 2), (0, 2), (1, 3)}
        assert shared.tokens[0] > alone.tokens[0]
        times[per_layer] = alone.tokens
    # One swap and the latencies of the others take as long as all swaps, but for their first packets.
    for once, each in zip(times[False], times[True]):
        assert once == pytest.approx(each, rel=0.02)


def test_the_same_seed_has_the_same_table_and_results(tmp_path, capsys):
    words = "--requests 4 --rate 200 --model llama-3-8b --gpus-per-node 1 --prefill 2 --decode 2 --set topology.hosts-per-leaf=2"
    words += " --set topology.hosts=4 --set topology.spines=1 --set topology.fabric-link-rate=50Gbps --links 2 --seeds 2"
    tables = []
    for folder in ("a", "b"):
        serving.main([*words.split(), "--out", str(tmp_path / folder)])
        tables.append(capsys.readouterr().out)
    assert tables[0] == tables[1]
    assert re.search(r"^KV transfer .* \(\d+\.\d+ to \d+\.\d+\)", tables[0], re.MULTILINE)
    assert re.search(r"^spine0 to leaf1 +\d+\.\d % +\d+ kB$", tables[0], re.MULTILINE)
    rows = list(csv.DictReader((tmp_path / "a/requests.csv").open()))
    assert [row["network"] for row in rows] == 4 * ["alone"] + 4 * ["shared"]
    assert all(len(row["tokens_us"].split()) == int(row["output"]) for row in rows)
    assert (tmp_path / "a/network/summary.json").is_file()


def test_traffic_of_the_scenario_delays_the_shared_network_only(tmp_path, capsys):
    scenario = tmp_path / "busy.toml"
    scenario.write_text(clearway.resolve({**FABRIC, "workload": clearway.messages([{"src": 1, "dst": 3, "bytes": "400MB", "start": "20ms"}])}))
    words = "--model llama-3-8b --gpus-per-node 1 --prefill 2 --decode 2 --requests 1 --rate 1000 --scenario".split()
    words += [str(scenario), "--out"]
    rows = {}
    for name, more in (("quiet", []), ("busy", ["--own-traffic"])):
        serving.main([*words, str(tmp_path / name), *more])
        rows[name] = list(csv.DictReader((tmp_path / name / "requests.csv").open()))
    assert rows["busy"][0] == rows["quiet"][0] and rows["busy"][0]["network"] == "alone"
    quiet, busy = (float(rows[name][1]["cache_received_us"]) for name in ("quiet", "busy"))
    assert busy > quiet


def test_traces_are_read(tmp_path, capsys):
    trace = tmp_path / "trace.csv"
    head = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    trace.write_text(head + "2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n2024-05-10 00:00:00.009930+00:00,9,1\n")
    first, second = serving.read_requests(str(trace), 2, None)
    assert (first.arrival, first.prompt, first.output) == (0, 374, 44)
    assert (second.arrival, second.prompt, second.output) == (4_314_579_000_000, 396, 109)
    assert serving.read_requests(str(trace), 2, 4.0)[1].arrival == serving.SECOND // 4
    assert len(serving.read_requests(str(trace), 9, None)) == 3
    trace.write_text(head + "0.25,10,2\n0,10,2\n")
    assert [one.arrival for one in serving.read_requests(str(trace), 9, None)] == [0, serving.SECOND // 4]
    for text, what in [
        ("", r"trace.csv:1: no column ContextTokens, GeneratedTokens, TIMESTAMP"),
        ("TIMESTAMP,ContextTokens\n", r"trace.csv:1: no column GeneratedTokens"),
        (head, r"trace.csv:1: no requests"),
        (head + "0,10,2\n1,10,0\n", r"trace.csv:3: `0` is not a number of tokens"),
        (head + "0,10\n", r"trace.csv:2: `` is not a number of tokens"),
        (head + "0,10,1e3\n", r"trace.csv:2: `1e3` is not a number of tokens"),
        (head + "soon,10,2\n", r"trace.csv:2: `soon` is not a time"),
        (head + "-3,10,2\n", r"trace.csv:2: `-3` is not a time"),
        (head + "2023-13-16 18:15:46,10,2\n", r"trace.csv:2: month must be in 1..12"),
    ]:
        trace.write_text(text)
        with pytest.raises(clearway.ScenarioError, match=what + "(.|\n)*fix: "):
            serving.read_requests(str(trace), 9, None)
    for words in ("--requests 0", "--rate nan", "--rate -1", "--links x", "--nodes 3"):
        with pytest.raises(SystemExit):
            serving.main(words.split())
        assert "error: argument" in capsys.readouterr().err


def test_percentiles_are_nearest_rank():
    assert [serving.percentile(range(1, 201), percent) for percent in (50, 99, 100)] == [100, 198, 200]
    assert serving.percentile([7], 50) == 7


def test_the_types_are_declared():
    mypy = pytest.importorskip("mypy.api")
    out, err, code = mypy.run(["--strict", *(str(path) for path in sorted(EXAMPLE.glob("*.py")))])
    assert code == 0, out + err


def test_the_loop_of_the_chapter(capsys):
    (loop,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs/src/serving.md").read_text(), re.MULTILINE | re.DOTALL)
    exec(compile(loop, "docs/src/serving.md", "exec"), {})
    # 40 MB at 400 Gb/s, with headers, and four links of 1 us; then 7 ms.
    assert capsys.readouterr().out.splitlines() == [
        "30.000 ms: prefill of request 0 has ended",
        "37.815 ms: decode of request 0 has ended",
        "45.000 ms: prefill of request 1 has ended",
        "52.815 ms: decode of request 1 has ended",
    ]
