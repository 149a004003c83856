#!/usr/bin/env bash
# CTest case apps/place_command: `tagflow place` by its exit codes, texts and
# pictures.
source "$(dirname "$0")/harness.sh"
loop=$here/graphs/loop.pbtxt
sums=$here/graphs/arithmetic.pbtxt

# A product on each of two devices, and a sum of both.
python3 - >"$work/products.pbtxt" <<'END'
def node(name, op, inputs, device, *attrs):
    inputs = "".join(f' input: "{i}"' for i in inputs)
    attrs = "".join(f" attr {{ key: \"{k}\" value {{ {v} }} }}" for k, v in attrs)
    print(f'node {{ name: "{name}" op: "{op}"{inputs} device: "{device}"{attrs} }}')

T = ("T", "type: DT_FLOAT")
side = "dim { size: 64 }"
node("x", "Placeholder", [], "", ("dtype", "type: DT_FLOAT"),
     ("shape", f"shape {{ {side} {side} }}"))
node("a", "MatMul", ["x", "x"], "/cpu:0", T)
node("b", "MatMul", ["x", "x"], "/cpu:1", T)
node("y", "AddV2", ["a", "b"], "/cpu:0", T)
END
two="--devices cpu:2"

# --- Text and JSON ------------------------------------------------------------
# shellcheck disable=SC2086
{
  expect 0 '^device +/job:localhost/replica:0/task:0/device:CPU:1: 1 node, busy [0-9.]+ us, [0-9]+% of its capacity \([0-9]+ kernels? at once\)$' \
    - tagflow place products.pbtxt $two
  expect 0 '^makespan +[1-9][0-9.]* us, as simulated$' - \
    tagflow place products.pbtxt $two
  expect 0 '^transfers +2, 32768 bytes$' - tagflow place products.pbtxt $two
  expect 0 '^  b +MatMul +constraint "/cpu:1"$' - \
    tagflow place products.pbtxt $two
  expect 0 '^note +times are estimates from shapes' - \
    tagflow place products.pbtxt $two
  expect 0 '^note +a loop counts as 10 iterations' - tagflow place "$loop" $two
  expect 0 '^  while_[a-z]+|^  Merge +Merge +' - tagflow place "$loop" $two
  expect 0 '^  a +MatMul +drawn at random, constraint "/cpu:0"$' - \
    tagflow place products.pbtxt --devices cpu:3 --scatter 4 --soft-placement
  expect 0 '^  x +Placeholder +drawn at random$' - \
    tagflow place products.pbtxt --devices cpu:3 --scatter 4 --soft-placement
  expect 0 '^note +there is one device, and nothing to choose$' - \
    tagflow place "$sums"
  expect 0 '' - tagflow place products.pbtxt $two --json
}
python3 - "$work/stdout" <<'END' || complain "the JSON is wrong" tagflow place
import json
import sys

report = json.load(open(sys.argv[1]))
nodes = {node["name"]: node for node in report["nodes"]}
assert set(nodes) == {"x", "a", "b", "y"}, nodes
assert nodes["b"]["device"].endswith("CPU:1") and nodes["b"]["frame"] == ""
assert nodes["y"]["start_us"] >= nodes["b"]["finish_us"]
assert nodes["y"]["finish_us"] == report["makespan_us"]
assert [t["tensor"] for t in report["transfers"]] == ["x:0", "b:0"]
assert sum(device["nodes"] for device in report["devices"]) == 4
END
# A part of the graph; a feed may be named without a value.
expect 0 '^  y +AddV2 ' - \
  tagflow place products.pbtxt --devices cpu:2 --fetch y:0 --feed a --feed b
grep -q MatMul "$work/stdout" && complain "what is fed is not needed" tagflow
expect 0 '^device .*CPU:0: 1 node,' - \
  tagflow place "$sums" --target text
expect 0 'constraint' - \
  tagflow place products.pbtxt --devices cpu:2 --target b

# --- Measurements -------------------------------------------------------------
python3 -c 'import json
json.dump([[1.0] * 64] * 64, open("'"$work"'/x.json", "w"))'
expect 0 '^measured +[0-9.]+ us, median of 3 runs$' - \
  tagflow place products.pbtxt --devices cpu:2 --measure 3 --feed x=x.json
expect 0 '^note +times are those of 3 runs$' - \
  tagflow place products.pbtxt --devices cpu:2 --measure 3 --feed x=x.json
expect 0 '"measured":\{"runs":2,"median_us":[0-9.e+-]+\}' - \
  tagflow place products.pbtxt --devices cpu:2 --measure 2 --feed x=x.json \
  --json
expect 0 '^measured ' - tagflow place "$loop" --devices cpu:2,stream:1 --measure 2 --feed n=20 \
  --fetch Exit
expect 2 - '"x" is not NAME:PORT=VALUE' \
  tagflow place products.pbtxt --measure 1 --feed x --fetch y
expect 1 - 'Placeholder' \
  tagflow place products.pbtxt --devices cpu:2 --measure 1
expect 2 - '--measure' tagflow place products.pbtxt --measure 0

# --- Files of costs -----------------------------------------------------------
expect 0 '^note +times are those of 2 runs$' - \
  tagflow place products.pbtxt --devices cpu:2 --measure 2 --feed x=x.json \
  --save costs.json
python3 -c 'import json, sys
costs = json.load(open(sys.argv[1]))
assert costs["format"] == "tagflow costs" and costs["version"] == 1, costs
assert any("nanoseconds" in node for node in costs["nodes"]), costs' "$work/costs.json" ||
  complain "the costs are wrong" tagflow place --save
expect 0 '^note +times are from the file of --costs' - \
  tagflow place products.pbtxt --devices cpu:2 --costs costs.json
# Of another graph, they have no effect.
foreign='\[--costs\] none of its [0-9]+ costs is of a node of this graph'
expect 0 '^note +times are estimates from shapes, since the file of --costs has' \
  "$foreign" tagflow place "$loop" --costs costs.json
echo '{"format": "tagflow costs", "version": 1}' >"$work/empty.json"
expect 0 '^note +times are estimates from shapes, since the file of --costs has' \
  '\[--costs\] the file has no costs of nodes' \
  tagflow place "$loop" --costs empty.json
expect 0 '' "$foreign" \
  tagflow run "$loop" --costs costs.json --feed n=3 --fetch Exit
# A run goes on measuring, and makes the file if there is none.
expect 0 '^y = ' - tagflow run products.pbtxt --devices cpu:2 --feed x=x.json \
  --fetch y --costs costs.json
cp "$work/costs.json" "$work/before.json"
expect 0 '^y = ' - tagflow run products.pbtxt --devices cpu:2 --feed x=x.json \
  --fetch y --costs costs.json --learn
cmp -s "$work/costs.json" "$work/before.json" &&
  complain "nothing was learnt" tagflow run --learn
expect 0 '^Exit = ' - \
  tagflow run "$loop" --feed n=3 --fetch Exit --costs made.json --learn
grep -q '"loops"' "$work/made.json" ||
  complain "no costs are there" tagflow run --learn
expect 3 - '\[--costs\] .*no.json' \
  tagflow run "$loop" --feed n=3 --fetch Exit --costs no.json
printf '{"format": "tagflow costs", "version": 7}' >"$work/later.json"
expect 1 - '\[--costs\] .*later.json.*version 7, not 1' \
  tagflow place "$loop" --costs later.json
expect 2 - '--costs' tagflow run "$loop" --feed n=3 --fetch Exit --learn
# No output is another file of the command.
cp "$loop" "$work/copy.pbtxt"
expect 2 - '\[--trace\] "made.json" is the file of --costs as well' \
  tagflow run copy.pbtxt --feed n=3 --fetch Exit --costs made.json --learn \
  --trace made.json
expect 2 - '\[--trace\] .*is the file of GRAPH' \
  tagflow run copy.pbtxt --feed n=3 --fetch Exit --trace ./copy.pbtxt
expect 2 - '\[--svg\] "x" is the file of --save' \
  tagflow place copy.pbtxt --measure 1 --feed n=3 --save x --svg x
expect 2 - '\[--html\] .*is the file of GRAPH' \
  tagflow step copy.pbtxt --feed n=3 --fetch Exit --html copy.pbtxt
cmp "$loop" "$work/copy.pbtxt" || complain "the graph is lost" tagflow step
# Runs at once lose no costs of each other.
for _ in 1 2 3 4; do
  (cd "$work" && "$bin/tagflow" run "$loop" --feed n=3 --fetch Exit \
    --costs shared.json --learn >/dev/null) &
done
wait
python3 -c 'import json, sys
(loop,) = json.load(open(sys.argv[1]))["loops"]
sys.exit(loop["trips"]["count"] != 4)' "$work/shared.json" ||
  complain "costs are lost" tagflow run --learn
# Nor do they wait for a training, which locks the folder of its checkpoints.
exec 9<"$work"
flock -x 9
expect 0 '^Exit = ' - tagflow run "$loop" --feed n=3 --fetch Exit \
  --costs shared.json --learn --timeout 20
exec 9<&-
expect 2 - '--measure' tagflow place "$loop" --save costs.json
expect 1 - 'no/such/c.json' tagflow run "$loop" --feed n=3 --fetch Exit \
  --costs no/such/c.json --learn

# --- Signatures ---------------------------------------------------------------
python3 "$here/saved_model.py" "$work/model"
expect 0 '^device .*: 2 nodes' - tagflow place model
expect 0 '^device .*: 2 nodes' - tagflow place model --signature twice
expect 1 - 'signature "serving_default" needs values for these inputs' \
  tagflow place model --measure 1

# --- Pictures -----------------------------------------------------------------
expect 0 '^makespan' - \
  tagflow place products.pbtxt --devices cpu:2 --svg schedule.svg
python3 - "$work/schedule.svg" <<'END' || complain "the SVG is wrong" tagflow
import sys
import xml.etree.ElementTree as tree

SVG = "{http://www.w3.org/2000/svg}"
root = tree.parse(sys.argv[1]).getroot()
groups = list(root.iter(SVG + "g"))
bars = [g for g in groups if g.get("class") == "bar"]
titles = [g.find(SVG + "title").text.splitlines()[0] for g in bars]
assert sorted(titles) == ["a", "b", "b:0", "x:0", "y"], titles
lines = [g for g in groups if g.get("class") == "line"]
assert len(lines) == 4, len(lines)
width = float(root.get("width"))
for bar in bars:
    rect = bar.find(SVG + "rect")
    x, w = float(rect.get("x")), float(rect.get("width"))
    assert 0 < x and x + w < width, (x, w)
END
expect 0 '' - tagflow place "$loop" --devices cpu:2 --svg loop.svg
python3 -c 'import sys, xml.etree.ElementTree as tree
tree.parse(sys.argv[1])' "$work/loop.svg" || complain "no XML" tagflow place

# Nothing in a file is a command: not in text, not in a picture.
printf 'node { name: "a" op: "NoOp" attr { key: "_class" value { list {
  s: "loc:@</svg>\\033[31m" } } } }' >"$work/red.pbtxt"
expect 0 '^  a +NoOp ' - tagflow place red.pbtxt --devices cpu:2 --svg red.svg
grep -q $'\033' "$work/stdout" "$work/red.svg" &&
  complain "a control character is there" tagflow place
printf 'node { name: "a" op: "NoOp" device: "/cpu:7\\033[31m" }' \
  >"$work/red.pbtxt"
expect 1 - '/cpu:7.x1b\[31m' tagflow place red.pbtxt --devices cpu:2

# --- What cannot be -----------------------------------------------------------
expect 2 - 'GRAPH|graph' tagflow place
expect 2 - '--colour' tagflow place "$loop" --colour
expect 2 - '\[--devices\] ' tagflow place "$loop" --devices warp:4
expect 2 - '\[--fetch\] ' tagflow place "$loop" --fetch Exit:x
expect 2 - 'is not NAME:PORT\[=VALUE\]$' tagflow place "$loop" --feed =1
expect 2 - 'fed twice' tagflow place "$loop" --feed n --feed n:0
expect 1 - '\[--feed\] .*no node "m"' tagflow place "$loop" --feed m
expect 1 - '\[--fetch\] .*no node "Exti"' tagflow place "$loop" --fetch Exti
expect 3 - 'no.pb' tagflow place no.pb
expect 1 - 'no/such/a.svg' tagflow place "$loop" --svg no/such/a.svg
expect 1 - 'cannot write ".": Is a directory' tagflow place "$loop" --svg .
expect 1 - '"b" asks for "/cpu:1"' tagflow place products.pbtxt
expect 0 '^warning .*"b"' - tagflow place products.pbtxt --soft-placement
expect 0 '--measure' - tagflow place --help
expect 0 'NAME:PORT\[=VALUE\]' - tagflow place --help
finish
