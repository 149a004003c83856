#!/usr/bin/env bash
# CTest case apps/graph_command: `tagflow graph` by its exit codes, texts and
# pictures.
source "$(dirname "$0")/harness.sh"
loop=$here/graphs/loop.pbtxt
sums=$here/graphs/arithmetic.pbtxt

# --- Summaries ----------------------------------------------------------------
expect 0 '^graph +1[0-9] nodes, .* 1 loop frame, 0 functions$' - \
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
expect 0 '^graph +1 node,' - tagflow graph "$loop" --fetch n
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
expect 0 '^function +f\(x: float\) -> \(y: float\): 0 nodes, not called$' - \
  tagflow graph function.pbtxt

# --- Functions ----------------------------------------------------------------
functional=$here/graphs/functional.pbtxt
expect 0 '^graph +4 nodes, .* 0 loop frames, 1 functional loop, 2 functions$' \
  - tagflow graph "$functional"
expect 0 '^calls +while: StatelessWhile of loop_body, loop_cond$' - \
  tagflow graph "$functional"
expect 0 '^function +loop_body\(i: int32, n: int32\) -> \(next: int32, same: int32\): 2 nodes$' \
  - tagflow graph "$functional"
expect 0 '^function +loop_body.*: 2 nodes, not called$' - \
  tagflow graph "$functional" --fetch zero
expect 0 '"functional_loops":1,' - tagflow graph "$functional" --json
# wrong SED REGEX REGEX: what is wrong with a body is said, and by what needs the
# body, with the file.
wrong() {
  sed "$1" "$functional" >"$work/wrong.pbtxt"
  expect 1 '^graph +4 nodes' "$2" tagflow graph wrong.pbtxt
  expect 1 - "wrong.pbtxt: .*$3" \
    tagflow run wrong.pbtxt --feed n=1 --fetch i
  expect 1 - "wrong.pbtxt: .*$3" tagflow place wrong.pbtxt --fetch i
  expect 1 - "wrong.pbtxt: .*$3" \
    tagflow partition wrong.pbtxt --fetch i --out wrong_parts
  expect 0 '^graph +1 node,' - tagflow graph wrong.pbtxt --fetch zero
}
both='unknown op "AddV22", did you mean "AddV2"\? \(node "add" of function "loop_body"\); unknown op "Lesss", did you mean "Less"\? \(node "less" of function "loop_cond"\)$'
wrong 's/"AddV2"/"AddV22"/; s/"Less"/"Lesss"/' "$both" "$both"
ghost='\[StatelessWhile\] node "while": no function "ghost" in the library'
wrong 's/func { name: "loop_cond" }/func { name: "ghost" }/' "$ghost" "$ghost"
type='node "while/loop_cond": input 0 \("while/cond/i:0"\) is int32, bool is wanted'
wrong 's/"less:z:0"/"i"/' "$type" "$type"
type='result 0 of function "loop_body" is float, the node.s int32'
wrong '/name: "next"/s/INT32/FLOAT/' "$type" "$type"
unknown='the op has no attribute "Tx", did you mean "T"'
wrong 's/op: "AddV2"/& attr { key: "Tx" value { b: true } }/' \
  "$unknown" "$unknown"
# Of top-level ops, too, all are named at once.
printf 'node { name: "a" op: "Identty" } node { name: "b" op: "Nooop" }' \
  >"$work/bad.pbtxt"
both='unknown op "Identty", .* \(node "a"\); unknown op "Nooop" \(node "b"\)$'
expect 1 - "$both" tagflow graph bad.pbtxt
expect 1 - "$both" tagflow run bad.pbtxt --fetch a
# Those of functions with them, whether these are called or not.
{ cat "$work/bad.pbtxt"
  echo 'library { function { signature { name: "f" }
                             node_def { name: "c" op: "Mull" } } }'
} >"$work/worse.pbtxt"
three='unknown op "Identty", .* \(node "a"\); unknown op "Mull", did you mean "Mul"\? \(node "c" of function "f"\); unknown op "Nooop" \(node "b"\)$'
expect 1 - "$three" tagflow graph worse.pbtxt
expect 1 - "$three" tagflow run worse.pbtxt --fetch a
# A body that nobody calls is not an error, but said.
sed 's/"AddV2"/"AddV22"/; s/^node { name: "while".*/node { name: "while" op: "Pack" input: "zero" input: "n" attr { key: "N" value { i: 2 } }/
  s/{ list { type: DT_INT32 type: DT_INT32 } }/{ type: DT_INT32 }/; /func {/d
  s/^  attr { key: "T" value { type: DT_INT32 } }$/& }/' \
  "$functional" >"$work/idle.pbtxt"
expect 0 '^warning +not called: Unimplemented: .*unknown op "AddV22"' - \
  tagflow graph idle.pbtxt

# Functions that call two functions each stand for 2^30 nodes: soon it is said
# that these were not looked into.
python3 - >"$work/doubling.pbtxt" <<'EOF'
print('node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: '
      'DT_INT32 } } } node { name: "call" op: "f0" input: "x" } library {')
for k in range(30):
    op, out = (f"f{k + 1}", "y") if k < 29 else ("Identity", "output")
    print(f'function {{ signature {{ name: "f{k}" input_arg {{ name: "x" '
          f'type: DT_INT32 }} output_arg {{ name: "y" type: DT_INT32 }} }} '
          f'node_def {{ name: "a" op: "{op}" input: "x" }} '
          f'node_def {{ name: "b" op: "{op}" input: "a:{out}:0" }} '
          f'ret {{ key: "y" value: "b:{out}:0" }} }}')
print("}")
EOF
expect 0 '^warning +functions were checked only up to "call": ' - \
  tagflow graph doubling.pbtxt

# --- Signatures ---------------------------------------------------------------
python3 "$here/saved_model.py" "$work/model"
expect 0 '^signature +"serving_default", the one in use$' - tagflow graph model
expect 0 '^  inputs +x = serving_default_x:0 float' - tagflow graph model
expect 0 '^  outputs +y = minus:0 float' - tagflow graph model
expect 0 '^signature +"twice"$' - tagflow graph model
expect 0 '^graph +2 nodes' - tagflow graph model --signature twice
expect 0 '^graph +2 nodes' - tagflow graph model --fetch y
expect 0 '"signatures":\{.*"twice":\{"in_use":false,' - tagflow graph model --json
# What saves and restores a model no signature needs, and nobody warns of.
python3 "$here/saved_model.py" "$work/saved" saver
expect 0 '^function +__inference__traced_save' - tagflow graph saved
expect 0 '^calls +save: StatefulPartitionedCall' - tagflow graph saved
if grep -q '^warning' "$work/stdout"; then
  complain "the saver's functions are warned of" tagflow graph saved
fi
expect 0 '"warnings":\[\]' - tagflow graph saved --json
expect 1 '' '\[SaveV2\] node "save/save": 1 inputs are given' \
  tagflow graph saved --fetch save
expect 0 '^y = ' - tagflow run saved --feed x=1
expect 1 - 'no signature "thrice"; it has "serving_default", "twice"' \
  tagflow graph model --signature thrice
python3 "$here/saved_model.py" "$work/broken" broken
expect 1 '^signature +"broken"$' '"w" of signature "broken": .*no node "ghost"' \
  tagflow graph broken

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
expect 1 - 'cannot write ".": Is a directory' tagflow graph "$loop" --svg .
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
printf 'node { name: "a" op: "Ident\\033[31mty" }' >"$work/bad.pbtxt"
expect 1 - 'unknown op "Ident.u001b\[31mty"' tagflow graph bad.pbtxt
printf 'node { name: "a" op: "NoOp" device: "red\\033[31m" }' \
  >"$work/red.pbtxt"
expect 0 '^devices +red.u001b\[31m 1$' - tagflow graph red.pbtxt
# Names that are not UTF-8 are drawn, in a picture that is.
printf 'node { name: "v" op: "Placeholder"
         attr { key: "dtype" value { type: DT_FLOAT } } }
       node { name: "e" op: "Enter" input: "v"
         attr { key: "T" value { type: DT_FLOAT } }
         attr { key: "frame_name" value { s: "w\\377" } } }' \
  >"$work/latin.pbtxt"
expect 0 '' - tagflow graph latin.pbtxt --svg latin.svg
grep -q $'frame w\xef\xbf\xbd' "$work/latin.svg" ||
  complain "the SVG is wrong" tagflow graph latin.pbtxt
# What may not be read is not called missing.
nobody="setpriv --reuid 65534 --clear-groups"
if [ "$(id -u)" -eq 0 ] && $nobody "$bin/tagflow" --version >/dev/null 2>&1; then
  mkdir "$work/hidden"
  cp "$loop" "$work/hidden"
  chmod 755 "$work"
  chmod 700 "$work/hidden"
  cases=$((cases + 1))
  (cd "$work" &&
    $nobody "$bin/tagflow" graph hidden/loop.pbtxt >stdout 2>stderr)
  if [ $? -ne 1 ] || ! matches "$work/stderr" 'hidden.*: Permission denied$'; then
    complain "a graph in a folder that may not be read" tagflow graph
  fi
fi
# --- Functions inlined --------------------------------------------------------
graphs=$(dirname "$loop")
expect 0 '^graph .* 1 loop frame, 0 functions$' - \
  tagflow graph "$graphs/functional.pbtxt" --inline --svg inlined.svg
grep -q 'frame while/frame<' "$work/inlined.svg" ||
  complain "no frame of the loop is drawn" tagflow graph --inline
expect 0 '^calls +y/which/then/rest/call: _Call of power$' - \
  tagflow graph "$graphs/recursive.pbtxt" --fetch y --inline
# More than can be drawn is still summarised, and written for other tools.
python3 -c 'for i in range(2001):
    print("node { name: \"n%d\" op: \"NoOp\" }" % i)' >"$work/many.pbtxt"
expect 0 '^graph +2001 nodes' - tagflow graph many.pbtxt --dot many.dot
expect 1 - '2001 nodes and 0 edges are too many to draw' \
  tagflow graph many.pbtxt --svg many.svg
expect 0 '--svg' - tagflow graph --help
finish
