#!/usr/bin/env bash
# CTest case apps/gradients_command: `tagflow gradients` by its exit codes,
# texts and files, and what its graphs give when they run.
source "$(dirname "$0")/harness.sh"
power=$here/graphs/power.pbtxt  # y = x w^n, by a loop
values="--feed n=3 --feed x=2 --feed w=3"

# also LINE: what was expected last printed this line, too.
also() {
  grep -qxE -- "$1" "$work/stdout" || complain "no line is $1" the command above
}

# shellcheck disable=SC2086
# --- Orders -------------------------------------------------------------------
expect 0 '^gradients +order 1, of y:0$' - \
  tagflow gradients "$power" --y y:0 --x x:0 --x w:0 --out first.pb
also '  grad_0:0  float.* by x:0'
also '  grad_1:0  float.* by w:0'
also 'graph +[0-9]+ nodes, 24 before'
run="tagflow run first.pb --fetch y --fetch grad_0:0 --fetch grad_1"
for options in "" "--passes none" "--window 1" "--devices cpu:2 --scatter 1"; do
  expect 0 '^y = float\[\] 54\.0$' '' $run $values $options
  also 'grad_0:0 = float\[\] 27\.0'
  also 'grad_1 = float\[\] 54\.0'
done
# No trip, and one.
expect 0 '^grad_0:0 = float\[\] 1\.0$' - $run --feed n=0 --feed x=2 --feed w=3
also 'grad_1 = float\[\] 0\.0'
expect 0 '^grad_1 = float\[\] 2\.0$' - $run --feed n=1 --feed x=2 --feed w=3
# by_w ORDER VALUE: the derivative of 2 w^3 at 3.
by_w() {
  expect 0 "^gradients +order $1, of y\$" - \
    tagflow gradients "$power" --y y --x w --order "$1" --out order.pb
  expect 0 "^grad_0 = float\\[\\] $2\$" - \
    tagflow run order.pb $values --fetch grad_0
}
by_w 1 '54\.0'
by_w 2 '36\.0'
by_w 3 '12\.0'
by_w 4 '0\.0'
# Order 2 by both is of the sum of w^n and n x w^(n - 1).
expect 0 '' - tagflow gradients "$power" --y y --x x w --order 2 --out both.pb
expect 0 '^grad_0 = float\[\] 27\.0$' - \
  tagflow run both.pb $values --fetch grad_0 --fetch grad_1
also 'grad_1 = float\[\] 63\.0'

# --- Loops that keep little ---------------------------------------------------
for plan in every:1 every:2 every:50 log all; do
  expect 0 '' - tagflow gradients "$power" --y y --x x w --order 2 \
    --checkpoint "while=$plan" --out plan.pb
  expect 0 '^grad_0 = float\[\] 405\.0$' - tagflow run plan.pb \
    --feed n=5 --feed x=2 --feed w=3 --fetch grad_0 --fetch grad_1
  also 'grad_1 = float\[\] 1485\.0'
done
expect 0 '^  every k-th +while/Merge_1:0' - tagflow gradients "$power" --y y \
  --x w --checkpoint while=every:2 --out plan.pb --explain
expect 1 - 'loop "while": "every:0" is not a plan of what gradients of a loop keep' \
  tagflow gradients "$power" --y y --x w --checkpoint while=every:0
expect 1 - 'no loop has a frame of this name; the graph has "while"' \
  tagflow gradients "$power" --y y --x w --checkpoint until=log
expect 2 - '"while" is not LOOP=PLAN' \
  tagflow gradients "$power" --y y --x w --checkpoint while
expect 2 - 'loop "while" is named twice' tagflow gradients "$power" --y y \
  --x w --checkpoint while=log while=log

# --- Files --------------------------------------------------------------------
# As text, on stdout and in a file; either is a graph as any other.
expect 0 '^node \{' - tagflow gradients --y y --x x "$power"
cp "$work/stdout" "$work/printed.pbtxt"
expect 0 '' - tagflow gradients "$power" --y y --x x --out text.pbtxt
cmp -s "$work/printed.pbtxt" "$work/text.pbtxt" ||
  complain "what is printed is not what is written" tagflow gradients
expect 0 '^grad_0 = float\[\] 27\.0$' - \
  tagflow run text.pbtxt $values --fetch grad_0
expect 0 '^frame ' - tagflow graph first.pb
# A graph that has gradients gets others under other names.
expect 0 '^  d_0:0 ' - \
  tagflow gradients first.pb --y grad_1 --x x --prefix d --out more.pb
expect 0 '^d_0 = float\[\] 27\.0$' - tagflow run more.pb $values --fetch d_0
expect 1 - 'AlreadyExists: first.pb: \[gradients\] .* node "grad_0".*by "w"' \
  tagflow gradients first.pb --y y --x w
# In its own place.
expect 0 '' - tagflow gradients more.pb --y y --x w --prefix e --out more.pb
expect 0 '^e_0 = float\[\] 54\.0$' - tagflow run more.pb $values --fetch e_0

# --- A recursion --------------------------------------------------------------
recursive=$here/graphs/recursive.pbtxt  # y = x^n
for order in "1 27\\.0" "2 18\\.0" "3 6\\.0"; do
  expect 0 '' - tagflow gradients "$recursive" --y y --x x \
    --order "${order% *}" --out recursive.pb
  for options in "" "--devices cpu:3 --scatter 1"; do
    expect 0 "^grad_0 = float\\[\\] ${order#* }\$" - \
      tagflow run recursive.pb --feed x=3 --feed n=3 --fetch grad_0 $options
  done
done
expect 0 '^y = float\[\] 8\.0$' - \
  tagflow run recursive.pb --feed x=2 --feed n=3 --fetch y
expect 0 '^function ' - tagflow graph recursive.pb
expect 0 '^  saved +which/to_bool:0 bool\[\], for the gradient of ' - \
  tagflow gradients "$recursive" --y y --x x --out recursive.pb --explain
also 'function    "power"'

# --- JSON, and what is not connected ------------------------------------------
expect 0 '' - tagflow gradients "$power" --y y --x x w --order 2 --out j.pb --json
python3 - "$work/stdout" <<'END' || complain "the JSON is wrong" tagflow gradients
import json
import sys

report = json.load(open(sys.argv[1]))
assert report["order"] == 2 and report["ys"] == ["y"], report
assert [g["name"] for g in report["gradients"]] == ["grad_0:0", "grad_1:0"]
assert [g["x"] for g in report["gradients"]] == ["x", "w"]
assert all(g["dtype"] == "float" and g["connected"]
           for g in report["gradients"]), report
assert report["nodes"] > report["nodes_before"] == 24, report
END
cat >"$work/apart.pbtxt" <<'END'
node { name: "x" op: "Placeholder"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 2 } } } } }
node { name: "z" op: "Placeholder"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { } } } }
node { name: "y" op: "Square" input: "x"
  attr { key: "T" value { type: DT_FLOAT } } }
END
expect 0 '^  grad_1:0 +float\[\] by z: zeros, since it is not connected$' - \
  tagflow gradients apart.pbtxt --y y --x x z --out apart.pb
expect 0 '^grad_0 = float\[2\] \[2\.0, 6\.0\]$' - \
  tagflow run apart.pb --feed 'x=[1, 3]' --feed z=7 --fetch grad_0 --fetch grad_1
also 'grad_1 = float\[\] 0\.0'

# --- What is kept of the loop -------------------------------------------------
expect 0 '^  saved +while/Merge_1:0 float\[\], for the gradient of "while/Mul"$' - \
  tagflow gradients "$power" --y y --x w --out kept.pb --explain
also '  outside +while/Mul/Enter:0 float\[\], for the gradient of "while/Mul"'
expect 0 '"how":"reused"' - \
  tagflow gradients "$power" --y y --x w --order 2 --out kept.pb --explain --json

# --- Forward mode -------------------------------------------------------------
# Along (1, 0.5): 27 + 54 / 2. Nothing is saved of the loop.
expect 0 '^tangents +order 1, by x, w$' - \
  tagflow gradients "$power" --y y --x x w --forward --out jvp.pb
also '  jvp_0:0    float.* of y'
also '  jvp_x_1:0  float.* of w: to be fed'
expect 0 '^jvp_0 = float\[\] 54\.0$' - \
  tagflow run jvp.pb $values --feed jvp_x_0=1 --feed jvp_x_1=0.5 --fetch jvp_0
grep -q PersistentStack "$work/jvp.pb" &&
  complain "forward mode saves values" tagflow gradients --forward
# Order 3 along w, which changes itself: w d/dw makes 3 of each factor.
expect 0 '^  w:0 +float.* of w: given$' - tagflow gradients "$power" \
  --y y --x w --forward --tangent w --order 3 --prefix t --out jvp.pb
expect 0 '^t_0 = float\[\] 1458\.0$' - tagflow run jvp.pb $values --fetch t_0
# A Hessian times a vector: forward mode of a gradient. d/dx 54 + d/dw 54.
expect 0 '' - tagflow gradients "$power" --y y --x w --out first.pb
expect 0 '' - tagflow gradients first.pb --y grad_0 --x x w --forward --out h.pb
expect 0 '^jvp_0 = float\[\] 63\.0$' - \
  tagflow run h.pb $values --feed jvp_x_0=1 --feed jvp_x_1=1 --fetch jvp_0
expect 0 '^  jvp_0:0 +float\[2\] of y: zeros, since it is not connected$' - \
  tagflow gradients apart.pbtxt --y y --x z --forward --out apart.pb
expect 0 '"tangents":.*"of_xs":.*"x":"w"' - \
  tagflow gradients "$power" --y y --x w --forward --out jvp.pb --json

# --- What cannot be -----------------------------------------------------------
expect 2 - '--y' tagflow gradients "$power" --x x
expect 2 - '--x' tagflow gradients "$power" --y y
expect 2 - 'graph|GRAPH' tagflow gradients --y y --x x
for order in 0 -1 1.5 101; do
  expect 2 - '--order' tagflow gradients "$power" --y y --x x --order "$order"
done
expect 2 - '\[--prefix\] ' tagflow gradients "$power" --y y --x x --prefix ''
expect 2 - '\[--prefix\] ' tagflow gradients "$power" --y y --x x --prefix 'a b'
expect 2 - '\[--y\] ' tagflow gradients "$power" --y y: --x x
expect 2 - '--out' tagflow gradients "$power" --y y --x x --json
expect 3 - 'no.pb' tagflow gradients no.pb --y y --x x
expect 1 - '\[--y\] .*no node "yy", did you mean "y"' \
  tagflow gradients "$power" --y yy --x x
expect 1 - '\[--x\] .*"x"' tagflow gradients "$power" --y y --x x:1
expect 1 - '\[--out\] .*cannot write "nowhere/a.pb"' \
  tagflow gradients "$power" --y y --x x --out nowhere/a.pb
expect 2 - 'forward' tagflow gradients "$power" --y y --x x --tangent x
expect 2 - '\[--tangent\] 1 tangents are given for 2' \
  tagflow gradients "$power" --y y --x x w --forward --tangent x
expect 2 - 'forward' \
  tagflow gradients "$power" --y y --x x --forward --explain --out no.pb
# A plan for what forward mode does not save would have no effect.
expect 2 - '--forward excludes --checkpoint' \
  tagflow gradients "$power" --y y --x x --forward --checkpoint while=log
for name in no.pbtx no.pbtext no.PB; do
  expect 2 - "did you mean \"no.pb(txt)?\" in place of \"$name\"" \
    tagflow gradients "$power" --y y --x x --out $name
done
expect 1 - '\[--tangent\] .*"xx"' \
  tagflow gradients "$power" --y y --x x --forward --tangent xx
expect 1 - 'tangent 0 \("n:0"\) is int32' \
  tagflow gradients "$power" --y y --x x --forward --tangent n
expect 1 - 'AlreadyExists: .* node "jvp_0".*tangent of y "y"' \
  tagflow gradients jvp.pb --y y --x x --forward
# No derivative by an integer.
expect 1 - '"n(:0)?"' tagflow gradients "$power" --y y --x n --out n.pb
[ ! -e "$work/n.pb" ] || complain "a file was written in vain" tagflow gradients
expect 0 '--prefix' - tagflow gradients --help

# --- SavedModels --------------------------------------------------------------
# By the names of a signature, with the values of the variables.
model=$here/models/keras_lstm/model
expect 0 '^  grad_0:0  float\[\?,4,2\] by predict_x:0$' - tagflow gradients \
  "$model" --signature predict --y y --x x --out with_gradients
expect 0 '^grad_0 = float\[12,4,2\] ' - tagflow run with_gradients \
  --signature predict --feed "x=$here/models/keras_lstm/feed_0.npy" --fetch grad_0
expect 0 '^y = float' - tagflow run with_gradients --signature predict \
  --feed "x=$here/models/keras_lstm/feed_0.npy"
# What is there stays.
expect 1 - 'AlreadyExists: .*is there already' tagflow gradients "$model" \
  --signature predict --y y --x x --out with_gradients
expect 1 - 'no signature "none"; it has "predict", "train"' tagflow gradients \
  "$model" --signature none --y y --x x --out with_gradients
cp -r "$model" "$work/copied"
for inside in copied copied/variables copied/new; do
  expect 1 - 'is in the folder of the SavedModel that is copied' \
    tagflow gradients copied --signature predict --y y --x x --out "$inside"
done
[ ! -e "$work/copied/new" ] || complain "a folder was made" tagflow gradients
# A link that leads back, and a model that is read-only.
ln -s . "$work/copied/loop"
expect 1 - 'nests folders' \
  tagflow gradients copied --signature predict --y y --x x --out looped
[ ! -e "$work/looped" ] || complain "a part was written" tagflow gradients
rm "$work/copied/loop"
chmod -R a-w "$work/copied"
expect 0 '' - \
  tagflow gradients copied --signature predict --y y --x x --out from_read_only
[ -w "$work/from_read_only/variables" ] || complain "modes" tagflow gradients
chmod -R u+w "$work/copied"
for name in power.meta saved_model.pb; do
  expect 2 - 'should end in .pb or .pbtxt' \
    tagflow gradients "$power" --y y --x x --out "$name"
done

# --- What nobody could read ---------------------------------------------------
{ cat "$power"
  echo 'library { function { signature { name: "f" }
          node_def { name: "i" op: "NoOp" device: "\377" } } }'
} >"$work/not_utf8.pbtxt"
expect 1 - 'not_utf8.pbtxt: \[graphdef\] node "i": tensorflow.NodeDef.device is not UTF-8' \
  tagflow gradients not_utf8.pbtxt --y y --x x --out not_utf8.pb
[ "$(wc -l <"$work/stderr")" -eq 1 ] || complain "more than an error" gradients
{ echo 'node { name: "x" op: "Placeholder"
          attr { key: "dtype" value { type: DT_FLOAT } } }
        node { name: "y" op: "AddN"'
  for ((i = 0; i < 65536; i++)); do echo 'input: "x"'; done
  echo '  attr { key: "N" value { i: 65536 } } }'
} >"$work/wide.pbtxt"
expect 1 - 'node "y" has 65536 inputs, but nodes run with up to 65535 only' \
  tagflow gradients wide.pbtxt --y y --x x --out wide.pb
for file in not_utf8.pb wide.pb; do
  [ ! -e "$work/$file" ] || complain "$file is left" tagflow gradients
done
# --- Time ---------------------------------------------------------------------
python3 - >"$work/chain.pbtxt" <<'END'
print('node { name: "x" op: "Placeholder" '
      'attr { key: "dtype" value { type: DT_FLOAT } } '
      'attr { key: "shape" value { shape { } } } }')
for i in range(100_000):
    print(f'node {{ name: "s{i}" op: "Sin" input: "{f"s{i - 1}" if i else "x"}" '
          'attr { key: "T" value { type: DT_FLOAT } } }')
END
for mode in "--order 2" --forward; do
  # shellcheck disable=SC2086
  expect 1 - 'chain.pbtxt: .*the time-out of 0\.01 s passed while' \
    tagflow gradients "$work/chain.pbtxt" --y s99999 --x x $mode \
    --out late.pb --timeout 0.01
done
expect 2 - '--timeout\] "nan" is not a number' \
  tagflow gradients "$work/chain.pbtxt" --y s99999 --x x --timeout nan
finish
