#!/usr/bin/env bash
# CTest case apps/run_command: `tagflow run` by its exit codes and texts.
source "$(dirname "$0")/harness.sh"
loop=$here/graphs/loop.pbtxt
sums=$here/graphs/arithmetic.pbtxt

# --- What works ---------------------------------------------------------------
expect 0 '^Exit:0 = int32\[\] 7$' - \
  tagflow run "$loop" --feed n:0=7 --fetch Exit:0
expect 0 '^y:0 = float\[2\] \[3.0, 5.0\]$' - \
  tagflow run "$sums" --feed 'x=[1.5, 2.5]' --fetch y:0
expect 0 '"value": \[3.0, 5.0\]' - \
  tagflow run "$sums" --feed 'x:0=[1.5, 2.5]' --fetch y:0 --json
expect 0 '^dir/echo:0 = string\[1\] \["a"\]$' - \
  tagflow run "$sums" --feed 'text:0=["a"]' --fetch dir/echo:0
expect 0 '^Exit:0 = int32\[\] 100$' '100 runs' \
  tagflow run "$loop" --feed n=100 --fetch Exit:0 --repeat 100
for switches in "--workers 1" "--workers 2 --window 1" "--window 32" \
  --mailbox-only --through-wire "--passes none" "--passes edges" "--seed 3" "--timeout 60" \
  "--devices cpu:1" "--devices CPU:2" "--scatter 18446744073709551615 --devices cpu:2"; do
  # shellcheck disable=SC2086
  expect 0 '^Exit:0 = int32\[\] 50$' - \
    tagflow run "$loop" --feed n:0=50 --fetch Exit:0 $switches
done
expect 0 - '^info: wrote results/y_0.npy, results/dir_echo_0.json$' \
  tagflow run "$sums" --feed 'x:0=[1, 2]' --feed 'text="b"' \
  --fetch y:0 --fetch dir/echo:0 --out results
[ -f "$work/results/y_0.npy" ] && [ -f "$work/results/dir_echo_0.json" ] ||
  complain "files of --out are missing" tagflow run --out
expect 0 '\[2.0, 4.0\]' - \
  tagflow run "$sums" --feed x:0=results/y_0.npy --feed p:0=true --fetch x:0
expect 0 '"b"' - tagflow run "$sums" \
  --feed text:0=results/dir_echo_0.json --fetch dir/echo:0
expect 0 '^Add:0@while/1 = int32\[\] 2$' - \
  tagflow run "$loop" --feed n=3 --fetch Exit:0 --watch Add@1 --watch Exit
expect 0 '^Exit:0@while/3 = int32\[\] 3$' - \
  tagflow run "$loop" --feed n=3 --fetch Exit:0 --watch Add@while/1-2 \
  --watch Exit
expect 0 '' 'Add:0 was not computed in any such iteration' \
  tagflow run "$loop" --feed n=3 --fetch Exit:0 --watch Add@7
expect 0 '"value": 3' 'Add:0@while/1 = int32\[\] 2$' \
  tagflow run "$loop" --feed n=3 --fetch Exit:0 --watch Add@1 --json
expect 0 '^Exit:0 = int32\[\] 3$' - tagflow run "$loop" --feed n=3 \
  --fetch Exit:0 --watch Add --watch-out seen
for i in 0 1 2; do
  [ -f "$work/seen/Add_0@while_$i.npy" ] ||
    complain "iteration $i is missing" tagflow run --watch-out
done
expect 1 - 'NotFound: \[--watch\] .*no node "Ad", did you mean "Add"' \
  tagflow run "$loop" --feed n=3 --fetch Exit:0 --watch Ad
expect 2 - '\[--watch\] "x" in "Add@x" is not ITERATION' \
  tagflow run "$loop" --feed n=3 --fetch Exit:0 --watch Add@x
expect 2 - '--watch-out requires --watch' \
  tagflow run "$loop" --feed n=3 --fetch Exit:0 --watch-out d
expect 0 '^Exit:0 = int32\[\] 3$' - \
  tagflow run "$loop" --feed n=3 --fetch Exit:0 --check-numerics
expect 1 - '\[--check-numerics\] output 0 of node "y" .* in root/0 is float\[2\].* with an infinity at element 1; its inputs: .*x:0 float\[2\] from 1 to ' \
  tagflow run "$sums" --feed 'x=[1, 3e38]' --fetch y:0 --check-numerics
expect 0 '^step 2: Exit:0 = int32\[\] 3$' - \
  tagflow run "$loop" --feed n=3 --fetch Exit:0 --steps 2 --summaries runs/a
for text in brain.Event:2 Exit:0 LoopCond 'step 2'; do
  grep -qs "$text" "$work"/runs/a/events.out.tfevents.* ||
    complain "the event file lacks $text" tagflow run --summaries
done
expect 0 '' - tagflow run "$loop" --feed n:0=30 --fetch Exit:0 --trace t.json \
  --passes none
python3 "$here/check_trace.py" "$work/t.json" Add ||
  complain "the trace is wrong" tagflow run --trace
expect 0 'NAME:PORT=VALUE' - tagflow run --help
expect 0 'JSON cannot express some values; write$' - tagflow run --help

# --- What a graph may do ------------------------------------------------------
read_file=$here/graphs/read_file.pbtxt
mkdir "$work/files"
printf '{"step": 1}' >"$work/files/text"
printf 'secret' >"$work/secret"
ln -s ../secret "$work/files/link"
expect 0 '^text = string\[\] "secret"$' - \
  tagflow run "$read_file" --feed 'path="secret"' --fetch text
expect 0 '^text = string\[\] "\{' - tagflow run "$read_file" \
  --feed 'path="text"' --fetch text --file-root files
for path in ../secret link "$work/secret"; do
  expect 1 - "PermissionDenied: .*\"$path\" is not beneath \".*/files\"" \
    tagflow run "$read_file" --feed "path=\"$path\"" --fetch text \
    --file-root files
done
expect 1 - 'node "text" has the op ReadFile, which uses files' \
  tagflow run "$read_file" --feed 'path="secret"' --fetch text --no-file-ops
expect 1 - 'node "text" has the op ReadFile, which the list of denied ops' \
  tagflow run "$read_file" --feed 'path="secret"' --fetch text \
  --deny-ops WriteFile,ReadFile
expect 1 - 'node "print" has the op PrintV2, which the list of allowed ops' \
  tagflow run "$read_file" --feed 'path="secret"' --fetch text \
  --allow-ops Placeholder,ReadFile --allow-ops Const
expect 0 '"secret"' - tagflow run "$read_file" --feed 'path="secret"' \
  --fetch text --allow-ops Placeholder,ReadFile --allow-ops PrintV2
expect 2 - 'unknown op "RaedFile", did you mean "ReadFile"' \
  tagflow run "$read_file" --feed 'path="secret"' --fetch text \
  --deny-ops RaedFile
expect 2 - 'no/folder' tagflow run "$read_file" --feed 'path="secret"' \
  --fetch text --file-root no/folder
expect 2 - 'excludes' tagflow run "$read_file" --feed 'path="secret"' \
  --fetch text --file-root files --no-file-ops
# What a graph prints is no line of results.
expect 0 '^secret$' - \
  tagflow run "$read_file" --feed 'path="secret"' --target print
expect 0 '^\{"step": 1, "fetches"' '^\{"step": 1\}$' tagflow run "$read_file" \
  --feed 'path="files/text"' --target print --fetch path --steps 1 --json
[ "$(wc -l <"$work/stdout")" = 1 ] ||
  complain "the graph prints lines of --json" tagflow run --json

# --- What is fed is fed to --init, too ----------------------------------------
cat >"$work/fed_init.pbtxt" <<'END'
node { name: "x" op: "Placeholder"
       attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { } } } }
node { name: "v" op: "VarHandleOp"
       attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "shape" value { shape { } } }
       attr { key: "shared_name" value { s: "v" } } }
node { name: "set" op: "AssignVariableOp" input: "v" input: "x"
       attr { key: "dtype" value { type: DT_FLOAT } } }
node { name: "other" op: "NoOp" }
node { name: "read" op: "ReadVariableOp" input: "v"
       attr { key: "dtype" value { type: DT_FLOAT } } }
END
expect 0 '^read = float\[\] 7.5$' - tagflow run fed_init.pbtxt --feed x=7.5 \
  --init other --init set --fetch read

# --- What took how long -------------------------------------------------------
expect 0 '^Exit:0 = int32\[\] 3$' '^Less: Less +1 +4 ' \
  tagflow run "$loop" --feed n=3 --fetch Exit:0 --stats --passes none
expect 0 - '^Switch +1 +8 .* 32 +4$' tagflow run "$loop" --feed n=3 \
  --fetch Exit:0 --stats --passes none --repeat 2 --out stats.npz

# --- A saved model, by its own names ------------------------------------------
python3 "$here/saved_model.py" "$work/model"
expect 0 '^y = float\[2\] \[-1.0, -2.5\]$' - tagflow run model --feed 'x=[1, 2.5]'
expect 0 '^z = float\[1\] \[2.0\]$' - \
  tagflow run model --signature twice --feed 'x=[1]'
expect 0 '^minus:0 = float\[\] -1.0$' - \
  tagflow run model --feed serving_default_x:0=1 --fetch minus:0
expect 0 '"y": \{"dtype": "float"' - tagflow run model --feed 'x=[1]' --json
expect 0 - '^info: wrote model_out/y.npy$' \
  tagflow run model --feed 'x=[1]' --out model_out
[ -f "$work/model_out/y.npy" ] || complain "there is no y.npy" tagflow run --out
mkdir "$work/linked"
ln -s ../model/saved_model.pb "$work/linked/saved_model.pb"
expect 0 '^y = float' - tagflow run linked --feed 'x=[1]'
expect 1 - 'the link ".*/linked/saved_model.pb" leads to' \
  tagflow run linked --feed 'x=[1]' --file-root linked
expect 1 - 'signature "serving_default" needs values for these inputs: "x" \(float<' \
  tagflow run model
expect 1 - 'no node "q".*; the inputs of signature "serving_default" are x' \
  tagflow run model --feed q=1
expect 1 - 'the outputs of signature "twice" are z' \
  tagflow run model --signature twice --feed x=1 --fetch output_0
expect 1 - 'no signature "thrice"; it has "serving_default", "twice"' \
  tagflow run model --signature thrice
expect 1 - 'the file has no signatures' \
  tagflow run "$loop" --signature serving_default --fetch Exit

# --- What is inside of functions ----------------------------------------------
functional=$here/graphs/functional.pbtxt
expect 0 '^i = int32\[\] 4$' - tagflow run "$functional" --feed n=4 --fetch i
inside='; StatelessWhile "while" calls loop_body and loop_cond, and nodes inside a function can be neither fed nor fetched: use the inputs and outputs of "while", such as "while:0"$'
expect 1 - "\[--fetch\] .*no node \"while/body/add\"$inside" \
  tagflow run "$functional" --feed n=4 --fetch while/body/add:0
expect 1 - "\[--target\] .*no node \"while/done\"$inside" \
  tagflow run "$functional" --feed n=4 --target while/done

# --- Values that JSON cannot express ------------------------------------------
expect 0 '"value": \["nan", "-inf"\]' - \
  tagflow run "$sums" --feed 'x=["nan", "-inf"]' --fetch y:0 --json
expect 2 - 'JSON cannot express them: write "nan"' \
  tagflow run "$sums" --feed 'x=[NaN, 1]' --fetch y:0
echo '["a", "b"]' >"$work/words.json"
expect 0 'string\[2\] \["a", "b"\]' - \
  tagflow run "$sums" --feed text=words.json --fetch dir/echo:0
echo '[1, 2]' >"$work/numbers.json"
expect 0 '\[2.0, 4.0\]' - \
  tagflow run "$sums" --feed x=numbers.json --fetch y:0
expect 1 - '"numbers.json": \[literal\] 1 is not a value of type string' \
  tagflow run "$sums" --feed text=numbers.json --fetch dir/echo:0
expect 2 - 'a string is written in double quotes' \
  tagflow run "$sums" --feed text=hello --fetch dir/echo:0

# --- Several devices ----------------------------------------------------------
two=$here/graphs/two_devices.pbtxt
lossy="--devices cpu:2 --feed n=2 --feed x=1.00390625 --fetch y --passes none"
# shellcheck disable=SC2086
{
  expect 0 '^y = float\[\] 4.015625$' - tagflow run "$two" $lossy
  expect 0 '^y = float\[\] 4.0$' - tagflow run $lossy --lossy '*' "$two"
  expect 0 '' '\[lossy\] "x:0" matches no transfer: the sent float tensors are "' \
    tagflow run $lossy --lossy x:0 "$two"
  expect 1 - '\[lossy\] .*no node "q"' tagflow run "$two" $lossy --lossy q:0
}

# The peak of an accelerator that reads eight tensors of 1 MiB one by one, and,
# where all come at once, has them all.
layers="--devices stream:latency=5ms --feed x=1 --fetch y --json"
peak() {
  python3 -c 'import json, sys
cpu, stream = json.load(open(sys.argv[1]))["devices"]
assert stream["device"].endswith("STREAM:0") and cpu["memory"] is None
assert stream["memory"]["limit_bytes"] == 2 << 30
assert stream["memory"]["allocations"] >= 16
print(stream["memory"]["peak_bytes"] >> 20)' "$work/stdout"
}
# shellcheck disable=SC2086
{
  expect 0 '"value": 1.0}' - tagflow run "$here/graphs/layers.pbtxt" $layers
  late=$(peak)
  expect 0 '"value": 1.0}' - tagflow run "$here/graphs/layers.pbtxt" $layers \
    --no-recv-scheduling
  [ "$late" -le 5 ] && [ "$(peak)" -ge 8 ] ||
    complain "peaks of $late and $(peak) MiB" tagflow run
}

# --- Usage errors -------------------------------------------------------------
expect 2 - 'A subcommand is required' tagflow
expect 2 - 'no subcommand "conforn"; did you mean "conform"' \
  tagflow conforn
expect 2 - 'GRAPH|graph' tagflow run
expect 2 - 'nothing to run' tagflow run "$loop"
expect 2 - '--colour' tagflow run "$loop" --fetch Exit:0 --colour
expect 2 - '--workers' tagflow run "$loop" --fetch Exit:0 --workers -1
expect 2 - '--workers' tagflow run "$loop" --fetch Exit:0 --workers many
expect 2 - '--window' tagflow run "$loop" --fetch Exit:0 --window -3
expect 2 - '--timeout' tagflow run "$loop" --fetch Exit:0 --timeout -1
# CLI11 finds no fault with a number that is none.
expect 2 - '--timeout\] "nan" is not a number' \
  tagflow run "$loop" --feed n=1 --fetch Exit:0 --timeout nan
expect 2 - '--timeout' tagflow run "$loop" --fetch Exit:0 --timeout inf
# A time that rounds to nothing is not none.
expect 1 - DeadlineExceeded tagflow run "$loop" --feed n=2000000000 \
  --fetch Exit:0 --timeout 1e-300
for option in --out --trace --summaries; do
  expect 2 - "$option: the path is empty" \
    tagflow run "$loop" --feed n=1 --fetch Exit:0 "$option" ''
done
expect 2 - '--html: the path is empty' \
  tagflow step "$loop" --feed n=1 --fetch Exit:0 --html ''
for option in --svg --dot; do
  expect 2 - "$option: the path is empty" tagflow graph "$loop" "$option=" ''
done
expect 2 - '--repeat' tagflow run "$loop" --fetch Exit:0 --repeat 0
expect 2 - 'no pass "magic"' \
  tagflow run "$loop" --fetch Exit:0 --passes magic
expect 2 - 'there is no device type "gpu", did you mean "cuda"' \
  tagflow run "$loop" --fetch Exit:0 --devices GPU:4
for spec in cpu:0 cpu:2, cpu:2:memory stream:bandwidth=0 stream:latency=9s \
  cpu:40,cpu:40 stream:bandwidth=1KB; do
  expect 2 - '\[--devices\] \[devices\] "' \
    tagflow run "$loop" --fetch Exit:0 --devices "$spec"
  expect 2 - '\[--devices\] \[devices\] "' \
    tagflow conform "$work" --devices "$spec"
  expect 2 - '\[--devices\] \[devices\] "' \
    tagflow bench loop --devices "$spec"
done
expect 2 - '--scatter: "-1" is not a whole number' tagflow run "$loop" --fetch Exit:0 --scatter -1
expect 2 - '--seed: "-1" is not a whole number' tagflow run "$loop" --fetch Exit:0 --seed -1
expect 2 - '--seed: "18446744073709551616" is not a whole' tagflow run "$loop" --fetch Exit:0 --seed 18446744073709551616
expect 2 - '\[--target\] .*the name of a node is empty' tagflow run "$loop" --feed n=1 --target ''
expect 0 '' '\[--scatter\] there is only one device' \
  tagflow run "$loop" --feed n=1 --fetch Exit:0 --scatter 1
expect 0 '' - tagflow run "$loop" --feed n=1 --fetch Exit:0 --scatter 1 \
  --devices stream
for command in run step place partition conform bench; do
  expect 0 '^stream +an accelerator' - tagflow "$command" --help
  expect 0 '^  memory= .*\(2GiB\): a size, as ' - tagflow "$command" --help
  expect 0 '1 to 64 of each' - tagflow "$command" --help
done
expect 2 - 'not NAME:PORT=VALUE' \
  tagflow run "$loop" --feed n:0 --fetch Exit:0
expect 2 - 'nor a JSON literal' \
  tagflow run "$loop" --feed 'n:0=[1' --fetch Exit:0
expect 2 - 'fed twice' \
  tagflow run "$loop" --feed n=1 --feed n:0=2 --fetch Exit:0

# --- Missing files ------------------------------------------------------------
expect 3 - 'no.pb' tagflow run no.pb --fetch y:0
expect 1 - 'cannot write "no/such/t.json": No such file' \
  tagflow run "$loop" --feed n=2000000000 --fetch Exit:0 --trace no/such/t.json
expect 3 - 'no file "no.npy"' \
  tagflow run "$sums" --feed x:0=no.npy --fetch y:0

# --- Run-time errors ----------------------------------------------------------
expect 1 - 'no node "Exti"' tagflow run "$loop" --feed n:0=1 --fetch Exti:0
expect 1 - 'Exit:1|port' tagflow run "$loop" --feed n:0=1 --fetch Exit:1
expect 1 - 'no node "m"' tagflow run "$loop" --feed m:0=1 --fetch Exit:0
expect 2 - 'not a value of type int32' \
  tagflow run "$loop" --feed n:0=1.5 --fetch Exit:0
expect 1 - 'int32\[2\]' tagflow run "$loop" --feed 'n:0=[1, 2]' --fetch Exit:0
expect 1 - 'float\[3\]' tagflow run "$sums" --feed 'x:0=[1,2,3]' --fetch y:0
expect 1 - 'placeholder "x" was not fed' tagflow run "$sums" --fetch y:0
expect 1 - 'Add' tagflow run "$loop" --feed n:0=1 --fetch Add:0
expect 1 - 'assertion failed' \
  tagflow run "$sums" --feed 'x:0=[1,2]' --feed p:0=false --target check
# A dead fetch names the Switch that killed it.
expect 1 - 'Switch "s" .* predicate "p:0" was false' tagflow run "$sums" --feed 'x:0=[1,2]' --feed p:0=false \
  --fetch never:0
expect 1 - 'DeadlineExceeded: .*(frame "while" had come to|was still ending)' \
  tagflow run "$loop" --feed n:0=2000000000 --fetch Exit:0 --timeout 0.1

# --- Limits before the run ----------------------------------------------------
# doubling N: f_N calls f_N-1 twice, and so on.
doubling() {
  echo 'node { name: "x" op: "Placeholder"
          attr { key: "dtype" value { type: DT_FLOAT } } }'
  echo "node { name: \"y\" op: \"f_$1\" input: \"x\" } library {"
  for ((i = 0; i <= $1; i++)); do
    echo "function { signature { name: \"f_$i\"
            input_arg { name: \"a\" type: DT_FLOAT }
            output_arg { name: \"r\" type: DT_FLOAT } }"
    if [ "$i" -eq 0 ]; then
      echo 'node_def { name: "p" op: "Square" input: "a"
              attr { key: "T" value { type: DT_FLOAT } } }
            ret { key: "r" value: "p:y:0" } }'
    else
      echo "node_def { name: \"p\" op: \"f_$((i - 1))\" input: \"a\" }
            node_def { name: \"q\" op: \"f_$((i - 1))\" input: \"p:r:0\" }
            ret { key: \"r\" value: \"q:r:0\" } }"
    fi
  done
  echo '}'
}
doubling 16 >"$work/expo16.pbtxt"
doubling 30 >"$work/expo30.pbtxt"
expect 1 - 'DeadlineExceeded: .*time-out of 0.05 s passed while .* \([0-9]+ nodes' \
  tagflow run expo16.pbtxt --feed x=1 --fetch y --timeout 0.05
expect 1 - 'than 1048576 nodes, the limit: f_30 "y", .* becomes 5368709117$' \
  tagflow run expo30.pbtxt --feed x=1 --fetch y
expect 1 - 'than 100000 nodes, the limit' tagflow run expo16.pbtxt \
  --feed x=1 --fetch y --max-nodes 100000
expect 1 - 'expo16.pbtxt: .* is one more than the limit of 20 nodes$' \
  tagflow run expo16.pbtxt --feed x=1 --fetch y --max-nodes 20
expect 2 - '--max-nodes' tagflow run "$loop" --fetch Exit --max-nodes 0
expect 1 - 'more than [0-9]+ nodes, the limit: f_30 "y"' \
  tagflow gradients expo30.pbtxt --y y --x x --out expo.pb
[ ! -e "$work/expo.pb" ] || complain "a file is left" tagflow gradients

# An Exit of the body's value, rather than of the Switch's, leaves each time.
{ cat "$loop"
  echo 'node { name: "leak" op: "Exit" input: "Add"
          attr { key: "T" value { type: DT_INT32 } } }'
} >"$work/leak.pbtxt"
expect 1 - '"leak" was live a second time, in iteration "while/1"' \
  tagflow run leak.pbtxt --feed n:0=3 --fetch leak:0

# --- A step that can make no progress -----------------------------------------
expect 5 - 'Deadlock: .*progress: _Recv "x" in the root frame waits for "edge" of /device:CPU:0, which nobody sends; the fetch "y:0"' \
  tagflow run "$here/graphs/lonely_recv.pbtxt" --fetch y:0
# What was fed is not waited for, and the cause comes before what it holds up.
{ cat "$here/graphs/lonely_recv.pbtxt"
  echo 'node { name: "f" op: "Placeholder"
          attr { key: "dtype" value { type: DT_FLOAT } } }
        node { name: "sum" op: "AddV2" input: "x" input: "f"
          attr { key: "T" value { type: DT_FLOAT } } }
        node { name: "limit" op: "Enter" input: "sum"
          attr { key: "T" value { type: DT_FLOAT } }
          attr { key: "frame_name" value { s: "w" } }
          attr { key: "is_constant" value { b: true } } }
        node { name: "first" op: "Enter" input: "f"
          attr { key: "T" value { type: DT_FLOAT } }
          attr { key: "frame_name" value { s: "w" } } }
        node { name: "merge" op: "Merge" input: "first" input: "next"
          attr { key: "T" value { type: DT_FLOAT } }
          attr { key: "N" value { i: 2 } } }
        node { name: "less" op: "Less" input: "merge" input: "limit"
          attr { key: "T" value { type: DT_FLOAT } } }
        node { name: "cond" op: "LoopCond" input: "less" }
        node { name: "switch" op: "Switch" input: "merge" input: "cond"
          attr { key: "T" value { type: DT_FLOAT } } }
        node { name: "body" op: "Neg" input: "switch:1"
          attr { key: "T" value { type: DT_FLOAT } } }
        node { name: "next" op: "NextIteration" input: "body"
          attr { key: "T" value { type: DT_FLOAT } } }
        node { name: "exit" op: "Exit" input: "switch"
          attr { key: "T" value { type: DT_FLOAT } } }'
} >"$work/stuck.pbtxt"
expect 5 - 'progress: _Recv "x" .*, which nobody sends; frame "w" waits for 1 of its Enters: "limit"; .*Less "less" in iteration "w/0" waits for 1 more input, of "limit"; ' \
  tagflow run stuck.pbtxt --feed f=1 --fetch exit

# --- Malformed graphs ---------------------------------------------------------
# refuse REGEX TEXT: the text as a .pbtxt file.
refuse() {
  printf '%s' "$2" >"$work/bad.pbtxt"
  expect 1 - "$1" tagflow run bad.pbtxt --target a
}
refuse 'bad.pbtxt: .*line 1.*Expected string' 'node { name: "a" op: '
refuse 'line 1, column 4: .*no field named "no"' 'no such field: 1'
refuse 'did you mean "Identity"' 'node { name: "a" op: "Identty" }'
refuse 'AlreadyExists: .*node "a"' 'node { name: "a" op: "NoOp" } node { name: "a" op: "NoOp" }'
refuse 'ghost' 'node { name: "a" op: "NoOp" input: "^ghost" }'
refuse '"a": 0 inputs' 'node { name: "a" op: "Identity" }'
refuse 'cycle a -> a' 'node { name: "a" op: "Identity" input: "a" }'
refuse 'cycle a -> b -> a' 'node { name: "a" op: "NoOp" input: "^b" }
            node { name: "b" op: "NoOp" input: "^a" }'
refuse 'name' 'node { name: "" op: "NoOp" }'
refuse 'name' 'node { name: "a b" op: "NoOp" }'
expect 2 - '\[--fetch\] ' tagflow run "$loop" --feed n:0=1 --fetch Exit:x
printf '\xff\xff\xff\xff' >"$work/bad.pb"
expect 1 - 'bad.pb: .*4 bytes are not a GraphDef: .*cut off' \
  tagflow run bad.pb --target a
: >"$work/empty.pb"
expect 1 - 'empty.pb" is empty' tagflow run empty.pb --target a
mkdir "$work/folder.pb"
expect 3 - 'folder.pb' tagflow run folder.pb --target a

# Archives of numpy: an array by the feed's name, or by a name of its own.
expect 0 - 'wrote all.npz' tagflow run "$sums" --feed x:0=results/y_0.npy \
  --feed p:0=true --fetch x:0 --fetch y:0 --out all.npz
expect 0 '^x:0 = ' - tagflow run "$sums" --feed x:0=all.npz:x_0 \
  --feed p:0=true --fetch x:0
printf 'not zip' >"$work/bad.npz"
expect 3 - 'has no array "x:0"; it has "x_0", "y_0"' \
  tagflow run "$sums" --feed x:0=all.npz --feed p:0=true --fetch x:0
expect 1 - 'DataLoss.*bad\.npz' \
  tagflow run "$sums" --feed x:0=bad.npz:x_0 --feed p:0=true --fetch x:0

# Results that are known: what --out writes, --expect reads.
expect 0 '^x:0 = ' - tagflow run "$sums" --feed x:0=results/y_0.npy \
  --feed p:0=true --fetch x:0 --fetch y:0 --expect all.npz
expect 0 '^y:0 = ' - tagflow run "$sums" --feed 'x:0=[1, 2]' \
  --feed 'text="b"' --fetch y:0 --fetch dir/echo:0 --expect results
expect 0 '^y:0 = ' - tagflow run "$sums" --feed 'x:0=[1, 2]' --fetch y:0 \
  --expect results/y_0.npy
expect 1 '^y:0 = ' '\[--expect\] y:0: ' tagflow run "$sums" \
  --feed 'x:0=[1, 3]' --feed 'text="b"' --fetch y:0 --fetch dir/echo:0 \
  --expect results
expect 1 '^dir/echo:0 = ' '\[--expect\] dir/echo:0: ' tagflow run "$sums" \
  --feed 'text="c"' --fetch dir/echo:0 --expect results
# What cannot be read, or cannot be a result, is known before the run.
expect 3 - '\[--expect\] .*nothing' tagflow run "$sums" --feed 'x:0=[1, 2]' \
  --fetch y:0 --expect nothing
expect 1 - 'has one result, but several are fetched' tagflow run "$sums" \
  --feed 'x:0=[1, 2]' --feed 'text="b"' --fetch y:0 --fetch dir/echo:0 \
  --expect results/y_0.npy
expect 1 - '\[--expect\] dir/echo:0 is string.*, but what is expected is float\[2\]' \
  tagflow run "$sums" --feed 'text="b"' --fetch dir/echo:0 \
  --expect results/y_0.npy
expect 1 - '\[--expect\] x is float\[\], but what is expected is float\[2\]' \
  tagflow run "$here/graphs/two_processes.pbtxt" --feed x=1 --fetch x --soft-placement \
  --expect results/y_0.npy

printf 'not npy' >"$work/bad.npy"
expect 1 - 'magic' tagflow run "$sums" --feed x:0=bad.npy --fetch y:0
finish
