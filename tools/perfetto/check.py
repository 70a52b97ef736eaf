#!/usr/bin/env python3
"""Compares a timeline (trace.perfetto) with the tables of the same run, slice by slice and counter by counter.

usage: check.py TRACE TABLES

TRACE is decoded with the message definitions of the Python package `perfetto`, which owe nothing to the writer. TABLES is JSON:

  flows      rows of flows.parquet, by the names of their columns
  series     rows of series.parquet, by the names of their columns; null for what is no number
  summary    summary.json
  paused     for each link that was paused [name, pauses, picoseconds]
  links      for each link [name, name of the node that it begins at]
  over_interval  names of metrics whose values are about all of their interval
  arrows     optional: pairs of flows [cause, effect]

If the program trace_processor_shell is on the path, the trace is also loaded into it, which is what the viewer does: it must accept
every event. Exits with 1 and one line for each difference if there are any.
"""

import json
import shutil
import sys
from collections import Counter, defaultdict

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

BEGIN, END = pb.TrackEvent.TYPE_SLICE_BEGIN, pb.TrackEvent.TYPE_SLICE_END
INSTANT, VALUE = pb.TrackEvent.TYPE_INSTANT, pb.TrackEvent.TYPE_COUNTER

FLOW_COLUMNS = (
    "flow label src dst bytes start_ps finish_ps ideal_fct_ps packets retransmits marks probes timeouts slowdown"
).split()


class Faults:
    """What is wrong, and how much was looked at."""

    def __init__(self):
        self.texts = []
        self.compared = Counter()

    def expect(self, what, found, expected):
        if found != expected:
            self.texts.append(f"{what}: {found!r} in the trace, {expected!r} in the tables")


def argument(annotation):
    kind = annotation.WhichOneof("value")
    return getattr(annotation, kind)


class Event:
    def __init__(self, packet, track):
        event = packet.track_event
        self.ns = packet.timestamp
        self.track = track
        self.kind = event.type
        self.name = event.name
        self.category = event.categories[0] if event.categories else None
        self.arguments = {a.name: argument(a) for a in event.debug_annotations}
        self.value = event.double_counter_value
        self.leaving = list(event.flow_ids)
        self.arriving = list(event.terminating_flow_ids)
        self.end = None


def unknown_fields(message):
    count = len(UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type is not None:
            values = [value] if hasattr(value, "ListFields") else value
            count += sum(map(unknown_fields, values))
    return count


class Trace:
    """Slices, instants and counters of a trace, each with its track as (process, track)."""

    def __init__(self, path, faults):
        trace = pb.Trace()
        with open(path, "rb") as file:
            trace.ParseFromString(file.read())
        self.tracks, self.processes = {}, {}
        self.slices, self.instants, self.counters = [], [], defaultdict(list)
        open_slices = defaultdict(list)
        last = 0
        for packet in trace.packet:
            if unknown_fields(packet):
                faults.texts.append(f"the format has no such fields: {packet}")
            if packet.HasField("track_descriptor"):
                self.describe(packet.track_descriptor, faults)
                continue
            if not packet.HasField("track_event"):
                faults.texts.append(f"a packet that is neither descriptor nor event: {packet}")
                continue
            if packet.timestamp < last:
                faults.texts.append(f"time goes back from {last} to {packet.timestamp}")
            last = packet.timestamp
            event = Event(packet, self.tracks[packet.track_event.track_uuid])
            stack = open_slices[event.track]
            if event.kind == BEGIN:
                if stack:
                    faults.texts.append(f"{event.name} begins within {stack[-1].name} on {event.track}")
                stack.append(event)
                self.slices.append(event)
            elif event.kind == END:
                stack.pop().end = event.ns
            elif event.kind == INSTANT:
                event.within = stack[-1] if stack else None
                self.instants.append(event)
            elif event.kind == VALUE:
                self.counters[event.track].append((event.ns, event.value))
            else:
                faults.texts.append(f"an event of type {event.kind}")

    def describe(self, descriptor, faults):
        uuid = descriptor.uuid
        if uuid == 0 or uuid in self.tracks or uuid in self.processes:
            faults.texts.append(f"track {uuid} is described twice, or is the default track")
        if descriptor.HasField("process"):
            self.processes[uuid] = descriptor.process.process_name
        else:
            process = self.processes[descriptor.parent_uuid]
            self.tracks[uuid] = (process, descriptor.name)


def ns(ps):
    return None if ps is None else ps // 1000


def check_flows(trace, tables, faults):
    slices = defaultdict(list)
    for event in trace.slices:
        if event.category == "flow":
            slices[event.arguments["flow"]].append(event)
    for row in tables["flows"]:
        own = slices.pop(row["flow"], [])
        started = row["start_ps"] is not None
        faults.expect(f"slices of flow {row['flow']}", len(own), int(started))
        for event in own:
            faults.compared["flow slices"] += 1
            name = f"flow {row['flow']}"
            faults.expect(f"host of {name}", event.track[0], f"host{row['src']}")
            faults.expect(f"track of {name}", event.track[1].split(" ")[0], "flows")
            faults.expect(f"start of {name}", event.ns, ns(row["start_ps"]))
            faults.expect(f"end of {name}", event.end, ns(row["finish_ps"]))
            faults.expect(f"name of {name}", event.name, f"{name} to host{row['dst']}")
            expected = {key: row[key] for key in FLOW_COLUMNS if row[key] is not None}
            faults.expect(f"arguments of {name}", event.arguments, expected)
    for flow in slices:
        faults.texts.append(f"flow {flow} is in the trace and not in the table")


def check_counters(trace, tables, faults):
    of_node = dict(map(tuple, tables["links"]))
    # Values about a whole interval stand at its beginning, all others at its end.
    over_interval = set(tables["over_interval"])
    sender = {f"flow {row['flow']}": f"host{row['src']}" for row in tables["flows"]}
    expected = defaultdict(list)
    for row in tables["series"]:
        subject, metric = row["subject"], row["metric"]
        process = of_node.get(subject) or sender.get(subject, "run")
        track = (process, metric if subject == "run" else f"{subject} {metric}")
        time = row["time_ps"] - (row["interval_ps"] if metric in over_interval else 0)
        values, value = expected[track], row["value"]
        if value is not None and (not values or values[-1][1] != value):
            values.append((ns(time), value))
    for track in sorted(set(expected) | set(trace.counters)):
        faults.compared["counters"] += 1
        faults.compared["counter values"] += len(trace.counters[track])
        faults.expect(f"counter {track}", trace.counters[track], expected[track])


def check_events(trace, tables, faults):
    left_out = [e.arguments["events_left_out"] for e in trace.slices if e.category == "run"]
    faults.expect("slices of the run", len(left_out), 1)
    if left_out != [0]:
        return
    packets = tables["summary"]["packets"]
    drops = [event for event in trace.instants if event.category == "drop"]
    faults.compared["drops"] = len(drops)
    faults.expect("drops", len(drops), packets["dropped"] + packets["corrupted"])
    lost = Counter()
    for event in trace.instants:
        if event.category != "loss":
            continue
        faults.compared["losses"] += 1
        flow = event.arguments["flow"]
        lost[flow] += event.arguments["packets"]
        around = event.within and event.within.arguments["flow"]
        faults.expect(f"the flow around a loss of flow {flow} at {event.ns} ns", around, flow)
    for row in tables["flows"]:
        # What is lost is sent again, unless the run or the flow ends before.
        if row["retransmits"] > lost[row["flow"]]:
            faults.texts.append(
                f"flow {row['flow']} sent {row['retransmits']} packets again and lost {lost[row['flow']]}"
            )
    of_node = dict(map(tuple, tables["links"]))
    pauses = defaultdict(list)
    for event in trace.slices:
        if event.category == "pause":
            faults.compared["pauses"] += 1
            link = event.track[1].removesuffix(" pauses")
            faults.expect(f"node of {event.track[1]}", event.track[0], of_node[link])
            pauses[link].append(event)
    faults.expect("paused links", sorted(pauses), sorted(row[0] for row in tables["paused"]))
    for link, count, ps in tables["paused"]:
        own = pauses[link]
        # Classes may change while a link is paused: slices that touch are one pause.
        joined = sum(1 for a, b in zip(own, own[1:]) if a.end == b.ns and a.name != b.name)
        faults.expect(f"pauses of {link}", len(own) - joined, count)
        total = sum(event.end - event.ns for event in own if event.end is not None)
        # Each end is rounded down to a nanosecond.
        if abs(total - ps / 1000) > len(own):
            faults.texts.append(f"{link} is paused for {total} ns in the trace, {ps} ps in the table")


def check_arrows(trace, tables, faults):
    leaving, arriving = {}, {}
    for event in trace.slices:
        for side, ids in ((leaving, event.leaving), (arriving, event.arriving)):
            for arrow in ids:
                if arrow in side:
                    faults.texts.append(f"arrow {arrow} is used twice")
                side[arrow] = event
    faults.expect("arrows that arrive", sorted(arriving), sorted(leaving))
    pairs = []
    for arrow in sorted(leaving.keys() & arriving.keys()):
        cause, effect = leaving[arrow], arriving[arrow]
        faults.compared["arrows"] += 1
        pairs.append([cause.arguments["flow"], effect.arguments["flow"]])
        if effect.ns < cause.ns:
            faults.texts.append(f"arrow {arrow} goes back in time")
    if "arrows" in tables:
        faults.expect("arrows", sorted(pairs), sorted(map(list, tables["arrows"])))


def check_in_trace_processor(path, trace, faults):
    shell = shutil.which("trace_processor_shell")
    if shell is None:
        print("not loaded into the trace processor: there is no trace_processor_shell on the path")
        return
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    with TraceProcessor(trace=path, config=TraceProcessorConfig(bin_path=shell)) as processor:
        one = lambda query: next(iter(processor.query(query))).n
        faults.expect(
            "slices and instants in the trace processor",
            one("select count(*) as n from slice"),
            len(trace.slices) + len(trace.instants),
        )
        values = sum(map(len, trace.counters.values()))
        faults.expect("counter values there", one("select count(*) as n from counter"), values)
        for row in processor.query("select name, value from stats where severity != 'info' and value > 0"):
            faults.texts.append(f"the trace processor complains: {row.name} {row.value}")
    print("loaded into the trace processor")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    path = sys.argv[1]
    with open(sys.argv[2], encoding="utf-8") as file:
        tables = json.load(file)
    faults = Faults()
    trace = Trace(path, faults)
    check_flows(trace, tables, faults)
    check_counters(trace, tables, faults)
    check_events(trace, tables, faults)
    check_arrows(trace, tables, faults)
    strange = {e.category for e in trace.slices + trace.instants} - {"run", "flow", "pause", "drop", "loss"}
    faults.expect("other categories", strange, set())
    check_in_trace_processor(path, trace, faults)
    for text in faults.texts[:100]:
        print(text)
    print(", ".join(f"{what}: {count}" for what, count in sorted(faults.compared.items())))
    sys.exit(1 if faults.texts else 0)


main()
