#!/usr/bin/env bash
# CTest case apps/graph_command: `tagflow graph` by its exit codes, texts and
# pictures.
source "$(dirname "$0")/harness.sh"
loop=$here/graphs/loop.pbtxt
sums=$here/graphs/arithmetic.pbtxt

# --- Summaries ----------------------------------------------------------------
expect 0 '^graph +1[0-9] nodes, .* 1 loop frames, 0 functions$' - \
  tagflow graph "$loop"
expect 0 '^ops +.*Enter 2' - tagflow graph "$loop"
expect 0 '^feed +n:0 int32\[\]$' - tagflow graph "$loop"
expect 0 '^unread +Exit:0 int32' - tagflow graph "$loop"
expect 0 '^frame +"while": [0-9]+ nodes, parallel_iterations 10, while Less:0$' \
  - tagflow graph "$loop"
expect 0 '^  variables +Merge:0 int32' - tagflow graph "$loop"
expect 0 '^  invariants +n_enter:0 int32' - tagflow graph "$loop"
expect 0 '^  results +Exit:0 int32' - tagflow graph "$loop"
expect 0 '^constants +[0-9]+, [0-9]+ bytes; the largest is ' - \
  tagflow graph "$loop"
expect 0 '^targets +check$' - tagflow graph "$sums"
expect 0 '^graph +1 nodes' - tagflow graph "$loop" --fetch n
expect 0 '^\{"nodes":' - tagflow graph "$loop" --json
python3 -c 'import json, sys
graph = json.load(open(sys.argv[1]))
assert graph["frames"][1]["name"] == "while", graph["frames"]
assert graph["ops"]["Enter"] == 2' "$work/stdout" ||
  complain "the JSON is wrong" tagflow graph --json
printf 'library { function { signature { name: "f"
  input_arg { name: "x" type: DT_FLOAT }
  output_arg { name: "y" type: DT_FLOAT } }
  ret { key: "y" value: "x" } } }' >"$work/function.pbtxt"
expect 0 '^function +f\(x: float\) -> \(y: float\): 0 nodes$' - \
  tagflow graph function.pbtxt

# --- Pictures -----------------------------------------------------------------
expect 0 '' - tagflow graph "$loop" --dot loop.dot --svg loop.svg
dot -Tsvg "$work/loop.dot" >/dev/null ||
  complain "dot does not take what --dot wrote" tagflow graph --dot
python3 - "$work/loop.svg" <<'EOF' || complain "the SVG is wrong" tagflow graph
import sys
import xml.etree.ElementTree as tree

SVG = "{http://www.w3.org/2000/svg}"
root = tree.parse(sys.argv[1]).getroot()
groups = {g.get("id"): g for g in root.iter(SVG + "g")}


def box(group):
    r = groups[group].find(SVG + "rect")
    x, y, w, h = (float(r.get(k)) for k in ("x", "y", "width", "height"))
    return x, y, x + w, y + h


nodes = [g for g in groups if g and g[0] == "n" and g[1:].isdigit()]
frame = box("f1")
inside = 0
for node in nodes:
    r = groups[node].find(SVG + "rect")
    if r is None:
        continue
    x0, y0, x1, y1 = box(node)
    assert x0 >= 0 and y0 >= 0
    inside += (x0 > frame[0] and x1 < frame[2] and y0 > frame[1]
               and y1 < frame[3])
assert len(nodes) >= 12 and inside >= 6, (len(nodes), inside)
EOF

# --- What cannot be -----------------------------------------------------------
expect 1 - 'no/such/a.dot' tagflow graph "$loop" --dot no/such/a.dot
expect 1 - 'no/such/a.svg' tagflow graph "$loop" --svg no/such/a.svg
expect 3 - 'no.pb' tagflow graph no.pb
expect 2 - 'GRAPH|graph' tagflow graph
expect 2 - '--colour' tagflow graph "$loop" --colour
expect 2 - '\[--fetch\] ' tagflow graph "$loop" --fetch Exit:x
expect 1 - '\[--fetch\] .*no node "Exti"' tagflow graph "$loop" --fetch Exti
printf 'node { name: "a" op: "Identity" input: "a" }' >"$work/bad.pbtxt"
expect 1 - 'cycle a -> a' tagflow graph bad.pbtxt
printf 'node { name: "a" op: "NoOp" input: "^ghost" }' >"$work/bad.pbtxt"
expect 1 - 'ghost' tagflow graph bad.pbtxt
printf 'node { name: "a" op: "Identty" }' >"$work/bad.pbtxt"
expect 1 - 'did you mean "Identity"' tagflow graph bad.pbtxt
# More than can be drawn is still summarised, and written for other tools.
python3 -c 'for i in range(2001):
    print("node { name: \"n%d\" op: \"NoOp\" }" % i)' >"$work/many.pbtxt"
expect 0 '^graph +2001 nodes' - tagflow graph many.pbtxt --dot many.dot
expect 1 - '2001 nodes and 0 edges are too many to draw' \
  tagflow graph many.pbtxt --svg many.svg
expect 0 '--svg' - tagflow graph --help
finish
