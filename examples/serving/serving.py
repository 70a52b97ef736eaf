"""Serving of a large language model on separate prefill and decode instances, over a simulated network.

``python serving.py --rate 40`` prints the latencies of the same requests twice: with every message alone on the network, and with all
messages in one packet-level simulation, where they share links. The chapter "Serving" of the book explains the model and the metrics.

Needs Python 3.10 and the package ``clearway``. Times are whole picoseconds, sizes bytes.
"""

from __future__ import annotations

import argparse
import csv
import math
import random
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import clearway
from cluster import GPUS, MODELS, SECOND, Cluster
from engine import IdleNetwork, Request, SimulatedNetwork, serve

MS = 10**9
# Log-normal lengths with the medians of conversations at Azure (Splitwise, ISCA 2024, section III: 1020 and 129 tokens). The standard
# deviations of the logarithm are assumptions.
PROMPT_MEDIAN, PROMPT_SIGMA, OUTPUT_MEDIAN, OUTPUT_SIGMA = 1020, 0.5, 129, 0.7


def draw_requests(number: int, rate: float, seed: int) -> list[Request]:
    """Requests that arrive as a Poisson process of ``rate`` per second, with log-normal lengths."""
    draws = random.Random(seed)
    requests, time = [], 0.0
    for index in range(number):
        time += draws.expovariate(rate)
        prompt = max(1, round(draws.lognormvariate(math.log(PROMPT_MEDIAN), PROMPT_SIGMA)))
        output = max(1, round(draws.lognormvariate(math.log(OUTPUT_MEDIAN), OUTPUT_SIGMA)))
        requests.append(Request(index, round(SECOND * time), prompt, output))
    return requests


def read_requests(path: str, number: int, rate: float | None) -> list[Request]:
    """The first ``number`` requests of a trace with the columns of Azure's: TIMESTAMP (a date with a time of day, or seconds),
    ContextTokens, GeneratedTokens. Arrivals are spread or compressed to a mean ``rate`` per second, if there is one."""
    rows = []
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        try:
            missing = {"TIMESTAMP", "ContextTokens", "GeneratedTokens"} - set(reader.fieldnames or [])
            if missing:
                raise ValueError(f"no column {', '.join(sorted(missing))}")
            for row in islice(reader, number):
                rows.append((parse_time(row["TIMESTAMP"]), parse_tokens(row["ContextTokens"]), parse_tokens(row["GeneratedTokens"])))
            if not rows:
                raise ValueError("no requests")
        except (ValueError, csv.Error) as error:
            raise clearway.ScenarioError(
                f"{path}:{max(1, reader.line_num)}: {error}\n  fix: begin with the line `TIMESTAMP,ContextTokens,GeneratedTokens`, and "
                "give a line such as `2023-11-16 18:15:46.6805900,374,44` or `0.25,374,44` for each request"
            ) from None
    rows.sort(key=lambda row: row[0])
    first, last = rows[0][0], rows[-1][0]
    # The mean distance of n arrivals is that of n - 1 gaps.
    scale = (len(rows) - 1) / rate / ((last - first) / SECOND) if rate is not None and last > first else 1.0
    return [Request(index, round((row[0] - first) * scale), row[1], row[2]) for index, row in enumerate(rows)]


def parse_time(text: str | None) -> int:
    """A time in picoseconds: of a date and time of day in UTC, or of a number of seconds."""
    match = TIME.fullmatch((text or "").strip())
    if match is None:
        raise ValueError(f"`{text or ''}` is not a time")
    date, seconds, fraction = match.groups()
    whole = int(seconds) if date is None else (datetime.fromisoformat(date) - datetime(1970, 1, 1)) // timedelta(seconds=1)
    return whole * SECOND + int((fraction or "").ljust(12, "0"))


TIME = re.compile(r"(?:(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)|(\d{1,9}))(?:\.(\d{1,12}))?(?:Z|\+00:00)?", re.ASCII)


def parse_tokens(text: str | None) -> int:
    """A number of tokens from 1 on."""
    if text is None or not re.fullmatch(r"\s*0*[1-9]\d{0,8}\s*", text, re.ASCII):
        raise ValueError(f"`{text or ''}` is not a number of tokens from 1 to 999999999")
    return int(text)


def metrics(requests: Iterable[Request]) -> dict[str, list[int]]:
    """Latencies in picoseconds, by name; the chapter defines them."""
    values: dict[str, list[int]] = {name: [] for name in METRICS}
    for request in requests:
        times = request.tokens
        values["TTFT, prefill"].append(times[0] - request.arrival)
        values["end to end"].append(times[-1] - request.arrival)
        if len(times) > 1:
            values["KV transfer"].append(request.cache_received - request.cache_sent)
            values["TTST"].append(times[1] - times[0])
            values["TTFT, decode"].append(times[1] - request.arrival)
            values["TPOT"].append((times[-1] - times[0]) // (len(times) - 1))
            values["ITL"] += [after - before for before, after in zip(times, times[1:])]
    return values


METRICS = ("TTFT, prefill", "KV transfer", "TTST", "TTFT, decode", "TPOT", "ITL", "end to end")
PERCENTILES = (50, 99)


def percentile(values: Sequence[int], percent: int) -> float:
    """Nearest rank; not a number without values."""
    ordered = sorted(values)
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else math.nan


@dataclass
class Outcome:
    """What became of the requests of one seed, on both networks."""

    seed: int
    alone: list[Request]
    shared: list[Request]
    result: clearway.Result

    @property
    def tokens_per_second(self) -> float:
        """Output tokens per second between the first arrival and the last token."""
        end = max(request.tokens[-1] for request in self.shared)
        return sum(request.output for request in self.shared) / ((end - self.shared[0].arrival) / SECOND)


def simulate(
    seed: int, draw: Callable[[int], list[Request]], cluster: Cluster, open_simulation: Callable[[int, bool], clearway.Simulation]
) -> Outcome:
    """Serves the requests of a seed on the idle network, and on the simulated one. ``open_simulation`` gets the seed, and whether the
    traffic of the scenario may run, too."""
    alone, shared = draw(seed), draw(seed)
    with open_simulation(seed, True) as sim:
        check(cluster, sim.hosts, alone)
        idle = IdleNetwork(lambda: open_simulation(seed, False))
        serve(alone, cluster, idle, idle)
        serve(shared, cluster, SimulatedNetwork(sim), idle)
        result = sim.finish(to_the_end=True)
    return Outcome(seed, alone, shared, result)


def check(cluster: Cluster, hosts: int, requests: Iterable[Request]) -> None:
    """Refuses clusters that cannot serve the requests.

    :raises clearway.ScenarioError: with a fix.
    """
    heads = cluster.model.kv_heads
    longest = max(requests, key=lambda request: request.peak)
    for is_wrong, what, fix in [
        (cluster.hosts > hosts, f"{cluster.hosts} GPUs, and a fabric of {hosts} hosts", "use fewer instances, or a larger fabric"),
        (
            heads % cluster.gpus != 0 and cluster.gpus % heads != 0,
            f"{heads} key-value heads cannot be shared evenly by {cluster.gpus} GPUs",
            "use a number of GPUs that divides the number of heads, or a multiple of it",
        ),
        (
            longest.peak > cluster.room,
            f"an instance has memory for {max(0, cluster.room)} tokens, and request {longest.number} has {longest.peak}",
            "use more GPUs for an instance, or a smaller model",
        ),
    ]:
        if is_wrong:
            raise clearway.ScenarioError(f"{what}\n  fix: {fix}")


def table(outcomes: Sequence[Outcome]) -> str:
    """Latencies on both networks: the median over seeds, and the range of the ratios."""
    wide = 20 if len(outcomes) > 1 else 0
    head = "".join(f"{f'p{percent} alone':>12}{'shared':>9}{'ratio':>8}{'':{wide}}" for percent in PERCENTILES)
    lines = [f"{'latency, ms':13}{head}"]
    pairs = [(metrics(outcome.alone), metrics(outcome.shared)) for outcome in outcomes]
    for name in METRICS:
        line = f"{name:13}"
        for percent in PERCENTILES:
            both = [[percentile(values[name], percent) / MS for values in pair] for pair in pairs]
            ratios = [shared / alone for alone, shared in both]
            alone, shared = (median(column) for column in zip(*both))
            spread = f" ({min(ratios):.3f} to {max(ratios):.3f})" if wide else ""
            line += f"{alone:12.2f}{shared:9.2f}{median(ratios):8.3f}{spread:{wide}}"
        lines.append(line)
    return "\n".join(line.rstrip() for line in lines)


def busiest_links(result: clearway.Result, number: int) -> list[tuple[str, float, int]]:
    """Directed links with the most bytes: name, mean load, longest queue. Runs the posted messages again, because links are sampled,
    and runs in steps have no samples."""
    again = clearway.run(result.scenario, overrides={"observe.series.every": "1ms"})
    if again.digest != result.digest:
        raise clearway.Defect("the run of the listed messages differs from the run in steps")
    seconds = again.summary.simulated_us / 1e6
    rows = sorted(again.links, key=lambda row: (-int(row["bytes"]), str(row["link"]), str(row["from"])))[:number]
    return [(f"{row['from']} to {row['to']}", 8 * row["bytes"] / row["rate_bps"] / seconds, row["peak_queue_bytes"]) for row in rows]


def fabric(hosts: int) -> dict[str, Any]:
    """The fabric without ``--scenario``: leaves with two nodes of eight GPUs, and a NIC of 400 Gb/s for each GPU, as a DGX H100 has."""
    leaf = 16
    topology = {"kind": "leaf-spine", "hosts": -(-hosts // leaf) * leaf, "hosts-per-leaf": leaf, "link-rate": "400Gbps"}
    return {"name": "serving", "stop": {"at-most": "10000s"}, "topology": topology}


def write_requests(folder: Path, outcome: Outcome) -> None:
    """Writes ``requests.csv``: a line for each request and network, with times in microseconds."""
    with open(folder / "requests.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["network", "request", "prompt", "output", "arrival_us", "cache_sent_us", "cache_received_us", "tokens_us"])
        for network, requests in (("alone", outcome.alone), ("shared", outcome.shared)):
            for one in requests:
                times = [one.arrival, one.cache_sent, one.cache_received]
                tokens = " ".join(str(time / 1e6) for time in one.tokens)
                writer.writerow([network, one.number, one.prompt, one.output, *(time / 1e6 for time in times), tokens])


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Latencies of a served language model, with and without contention in the network.")
    parser.add_argument("--rate", type=positive(float), help="requests per second (default: 40, or as in the trace)")
    parser.add_argument("--requests", type=positive(int), default=200)
    parser.add_argument("--seed", type=int, default=1, help="seed of the requests and of the network")
    parser.add_argument("--seeds", type=positive(int), default=1, help="how many seeds, from --seed on")
    parser.add_argument("--trace", metavar="CSV", help="requests: columns TIMESTAMP, ContextTokens, GeneratedTokens")
    parser.add_argument("--scenario", metavar="FILE", help="a scenario of Clearway (default: leaf-spine, 400 Gb/s, as large as needed)")
    set_help = "a key of the scenario, such as topology.oversubscription=8"
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help=set_help)
    parser.add_argument("--own-traffic", action="store_true", help="run the workload of the scenario beside the requests")
    parser.add_argument("--model", choices=MODELS, default="llama-3-70b")
    parser.add_argument("--gpu", choices=GPUS, default="h100")
    parser.add_argument("--prefill", type=positive(int), default=4, help="prefill instances")
    parser.add_argument("--decode", type=positive(int), default=4, help="decode instances")
    parser.add_argument("--nodes", type=int, choices=(1, 2), default=1, help="nodes of an instance")
    parser.add_argument("--gpus-per-node", type=positive(int), default=8)
    parser.add_argument("--per-layer", action="store_true", help="with two nodes: a swap for each all-reduce, not one an iteration")
    parser.add_argument("--links", type=positive(int), default=0, metavar="N", help="print the N busiest links (runs the network again)")
    parser.add_argument("--out", type=Path, help="folder for requests.csv and the results of the network, of the first seed")
    return parser.parse_args(words)


def positive(number: type[int] | type[float]) -> Callable[[str], float]:
    """A parser of numbers above zero."""

    def parse(text: str) -> float:
        value = number(text)
        if not 0 < value < math.inf:
            raise ValueError
        return value

    parse.__name__ = f"{number.__name__} above zero"
    return parse


def main(words: Sequence[str] | None = None) -> None:
    given = arguments(words)
    parts = (MODELS[given.model], GPUS[given.gpu], given.prefill, given.decode, given.nodes, given.gpus_per_node, given.per_layer)
    cluster = Cluster(*parts)

    def draw(seed: int) -> list[Request]:
        if given.trace:
            return read_requests(given.trace, given.requests, given.rate)
        return draw_requests(given.requests, given.rate or 40.0, seed)

    def open_simulation(seed: int, with_traffic: bool) -> clearway.Simulation:
        scenario = given.scenario or fabric(cluster.hosts)
        return clearway.Simulation(scenario, seed=seed, overrides=given.set, own_traffic=with_traffic and given.own_traffic)

    outcomes = [simulate(seed, draw, cluster, open_simulation) for seed in range(given.seed, given.seed + given.seeds)]
    first = outcomes[0]
    tokens, packets = sum(one.output for one in first.shared), first.result.summary.packets
    print(f"seed {first.seed}: {len(first.shared)} requests, {tokens} tokens, {first.tokens_per_second:.0f} tokens/s")
    print(f"{len(first.result.flows)} messages, {packets.data_sent} packets, {packets.dropped} dropped\n")
    print(table(outcomes))
    if given.links:
        print("\nbusiest links             load  longest queue")
        for link, load, queue in busiest_links(first.result, given.links):
            print(f"{link:22}{100 * load:6.1f} %{queue / 1e3:12.0f} kB")
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        write_requests(given.out, first)
        first.result.save(given.out / "network")


if __name__ == "__main__":
    try:
        main()
    except (clearway.ScenarioError, clearway.ResultError) as error:
        sys.exit(f"error: {error}")
    except OSError as error:
        sys.exit(f"error: {error.filename}: {error.strerror}\n  fix: give another path to --trace or --out")
