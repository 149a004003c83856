#!/usr/bin/env bash
# CTest case apps/partition_command: `tagflow partition` by its exit codes,
# texts, files and pictures.
source "$(dirname "$0")/harness.sh"
loop=$here/graphs/loop.pbtxt
first=job_localhost_replica_0_task_0_device_CPU_0.pb
second=job_localhost_replica_0_task_0_device_CPU_1.pb

# The loop, with the sum of its body on a second device.
sed 's/^node { name: "\(Add\|one\)"/& device: "\/cpu:1"/
  t; s/^node {/& device: "\/cpu:0"/' "$loop" >"$work/cut.pbtxt"
# With all nodes as they are written.
cut="--devices cpu:2 --passes none --out parts"
grep -q 'cpu:1' "$work/cut.pbtxt" || complain "the loop has no Add" sed

# shellcheck disable=SC2086
# --- Text, JSON, files --------------------------------------------------------
expect 0 '^partition +.*CPU:0: [0-9]+ nodes, 2 Sends, 1 Recv, [01] control loops?$' \
  - tagflow partition cut.pbtxt $cut --fetch Exit
expect 0 '^partition +.*CPU:1: [0-9]+ nodes, 1 Send, 2 Recvs, 1 control loop$' \
  - tagflow partition cut.pbtxt $cut --fetch Exit
expect 0 "^  file +$second\$" - \
  tagflow partition cut.pbtxt $cut --fetch Exit
expect 0 '^transfers +3 per iteration of "while"$' - \
  tagflow partition cut.pbtxt $cut --fetch Exit
# They are graphs like any other, and right.
for part in "$first" "$second"; do
  expect 0 '1 loop frame,' - tagflow graph "parts/$part"
done
grep -q '_Recv 2' "$work/stdout" || complain "no Recv 2" tagflow graph
expect 0 '' - \
  tagflow partition cut.pbtxt $cut --fetch Exit --json
python3 - "$work" <<'END' || complain "the JSON is wrong" tagflow partition
import json
import os
import sys

report = json.load(open(sys.argv[1] + "/stdout"))
parts = report["partitions"]
assert [p["sends"] for p in parts] == [2, 1], parts
assert parts[1]["control_loops"] == 1 and parts[1]["bodies"] == []
assert report["transfers"] == [{"frame": "while", "count": 3}]
files = sorted(p["file"] for p in parts) + ["partitions.svg"]
assert sorted(os.listdir(sys.argv[1] + "/parts")) == files
END
expect 0 '^transfers +none$' - tagflow partition "$loop" --out one
[ -f "$work/one/$first" ] || complain "there is no $first" tagflow partition

# What an earlier run left is replaced, nothing else is touched.
echo mine >"$work/parts/notes.txt"
expect 0 '^transfers +none$' - tagflow partition "$loop" --out parts
[ ! -e "$work/parts/$second" ] || complain "$second is stale" tagflow partition
[ "$(cat "$work/parts/notes.txt")" = mine ] ||
  complain "notes.txt is gone" tagflow partition

# --- Pictures -----------------------------------------------------------------
expect 0 '' - tagflow partition cut.pbtxt $cut
python3 - "$work/parts/partitions.svg" <<'END' ||
import sys
import xml.etree.ElementTree as tree

SVG = "{http://www.w3.org/2000/svg}"
root = tree.parse(sys.argv[1]).getroot()
groups = [g for g in root.iter(SVG + "g") if g.get("class")]


def of(*words):
    return [g for g in groups if set(words) <= set(g.get("class").split())]


def box(group):
    r = group.find(SVG + "rect")
    x, y, w, h = (float(r.get(k)) for k in ("x", "y", "width", "height"))
    return x, y, x + w, y + h


left, right = sorted(box(g) for g in of("partition"))
assert left[2] <= right[0], "partitions overlap"
assert len(of("edge", "transfer")) == 3
loops = [box(g) for g in of("frame") if g not in of("partition")]
assert len(loops) == 2, loops
assert any(b[0] > right[0] and b[2] < right[2] for b in loops)
assert len(of("node", "merge", "added")) >= 1
END
  complain "the SVG is wrong" tagflow partition
# Nothing in a name is a command.
printf 'node { name: "a>b\\\\c" op: "Placeholder" device: "/cpu:0"
  attr { key: "dtype" value { type: DT_INT32 } } }
node { name: "d" op: "NoOp" input: "^a>b\\\\c" device: "/cpu:1" }' \
  >"$work/odd.pbtxt"
expect 0 '^transfers +1 per run$' - \
  tagflow partition odd.pbtxt --devices cpu:2 --out odd
python3 -c 'import sys, xml.etree.ElementTree as tree
text = "".join(tree.parse(sys.argv[1]).getroot().itertext())
assert "a>b\\c: Placeholder" in text, text' "$work/odd/partitions.svg" ||
  complain "the SVG is wrong" tagflow partition
# Too large for a picture is not too large for files.
python3 -c 'for i in range(2001):
    print("node { name: \"n%d\" op: \"NoOp\" }" % i)' >"$work/many.pbtxt"
expect 0 '2001 nodes' 'no picture: .*2001 nodes and 0 edges are too many' \
  tagflow partition many.pbtxt --out parts
[ ! -e "$work/parts/partitions.svg" ] ||
  complain "the picture is of an earlier run" tagflow partition

# --- What cannot be -----------------------------------------------------------
expect 2 - '--out' tagflow partition "$loop"
expect 2 - 'GRAPH|graph' tagflow partition --out parts
expect 2 - '\[--devices\] ' tagflow partition "$loop" --devices warp:4 --out d
expect 3 - 'no.pb' tagflow partition no.pb --out d
[ ! -e "$work/d" ] || complain "a folder was made in vain" tagflow partition
expect 1 - '\[--fetch\] .*no node "Exti"' \
  tagflow partition "$loop" --fetch Exti --out d
expect 1 - 'asks for "/cpu:1"' tagflow partition cut.pbtxt --out d
echo text >"$work/file"
expect 1 - '\[--out\] .*cannot make folder "file"' \
  tagflow partition "$loop" --out file
if [ "$(id -u)" -ne 0 ]; then
  mkdir "$work/closed" && chmod 555 "$work/closed"
  expect 1 - '\[--out\] .*cannot write "closed/partitions.svg"' \
    tagflow partition "$loop" --out closed
  chmod 755 "$work/closed"
fi
expect 0 'partitions.svg' - tagflow partition --help
finish
