"""Checks that a trace is what Perfetto and chrome://tracing want.

usage: check_trace.py FILE NODE

It has a slice of the node; slices of a track nest; an arrow has two ends, in
slices, and goes forward in time.
"""
import collections
import json
import sys

SLACK = 1e-6  # of a microsecond: times are decimal
events = json.load(open(sys.argv[1]))["traceEvents"]
tracks, arrows = collections.defaultdict(list), collections.defaultdict(dict)
for event in events:
    kind = event["ph"]
    assert kind in "MXisf", event
    # Perfetto shows no thread 0, and one of the process's number as main.
    assert event.get("tid") not in (0, event["pid"]), event
    if kind == "X":
        assert event["dur"] >= 0, event
        tracks[event["pid"], event["tid"]].append(event)
    elif kind == "i":
        assert event["s"] in ("t", "p", "g"), event
    elif kind in "sf":
        assert kind not in arrows[event["id"]], event
        arrows[event["id"]][kind] = event


def end(slice_):
    return slice_["ts"] + slice_["dur"]


for slices in tracks.values():
    slices.sort(key=lambda s: (s["ts"], -s["dur"]))
    around = []
    for inner in slices:
        while around and end(around[-1]) <= inner["ts"] + SLACK:
            around.pop()
        assert not around or end(inner) <= end(around[-1]) + SLACK, inner
        around.append(inner)
for arrow in arrows.values():
    assert set(arrow) == {"s", "f"}, arrow
    assert arrow["s"]["ts"] <= arrow["f"]["ts"] + SLACK, arrow
    for tip in arrow.values():
        assert any(s["ts"] <= tip["ts"] + SLACK and tip["ts"] <= end(s) + SLACK
                   for s in tracks[tip["pid"], tip["tid"]]), tip
assert arrows, "no arrows"
assert any(s["name"].startswith(sys.argv[2])
           for slices in tracks.values() for s in slices), "no such node"
