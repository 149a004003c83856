#!/usr/bin/env bash
# CTest case apps/training_command: tagflow run --steps, with what it restores
# and saves, and tagflow vars.
source "$(dirname "$0")/harness.sh"
graphs=$here/graphs
line=$graphs/line.pbtxt
cp "$graphs/line_x.json" "$graphs/line_y.json" "$work"
rows="--feed x=@line_x.json --feed y=@line_y.json"
train="$line $rows --target train --init init"

# losses FILE: "STEP LOSS" of each line.
losses() {
  python3 -c 'import json, sys
for line in open(sys.argv[1]):
    step = json.loads(line)
    assert list(step) == ["step", "fetches"], step
    print(step["step"], step["fetches"]["loss"])' "$1"
}
# same FILE FILE WHAT
same() {
  cmp -s "$1" "$2" || { complain "$3"; diff "$1" "$2" | head -5; }
}

# --- Steps --------------------------------------------------------------------
# shellcheck disable=SC2086
{
expect 0 '^{"step": 3, "fetches": {"loss": [0-9.e-]+}}$' - \
  tagflow run $train --fetch loss --steps 3 --json
[ "$(wc -l <"$work/stdout")" = 3 ] || complain "not three lines" --steps
expect 0 '^step 2: steps = int64\[\] [012]$' - \
  tagflow run $train --fetch steps --steps 2
expect 0 - - tagflow run $train --steps 4
expect 0 - '^info: wrote results/slope_read_0.npy$' \
  tagflow run $train --steps 4 --fetch slope/read --out results
[ -f "$work/results/slope_read_0.npy" ] || complain "no result" --out

# --- Queues -------------------------------------------------------------------
# Two epochs of ten numbers, in batches of four, by queue runners.
queues=$here/../actors/data/queue_runners.meta
batches="$queues --init start --fetch numbers --json"
expect 0 '^{"step": 3, "fetches": {"numbers": \[8, 9, 0, 1\]}}$' - \
  tagflow run $batches --steps 3
expect 0 '^{"step": 5, "fetches": {"numbers": \[6, 7, 8, 9\]}}$' - \
  tagflow run $batches --steps 5
expect 1 '^{"step": 5' 'OutOfRange.*queue "batch/fifo_queue" is closed' \
  tagflow run $batches --steps 6
# A runner of a queue that nobody reads is not started; one that cannot go on
# says why.
expect 0 - - tagflow run "$queues" --target start
expect 1 - 'queue runner 0 of "input_producer".*not initialized' \
  tagflow run "$queues" --fetch numbers

# --- Datasets -----------------------------------------------------------------
# 0, 3, ..., 15, summed up by a variable. The iterator goes on where it was.
sums="$graphs/iterator.pbtxt --init init --fetch sum --save sums"
expect 0 '^step 2: sum = int64\[\] 3$' - tagflow run $sums --steps 2
expect 0 '^step 4: sum = int64\[\] 18$' 'resumed after step 2' \
  tagflow run $sums --steps 4
expect 1 '^step 6: sum = int64\[\] 45$' \
  'OutOfRange.*the state after step 6 is saved' tagflow run $sums --steps 9
expect 1 - 'resumed after step 6' tagflow run $sums --steps 9

# --- Rows ---------------------------------------------------------------------
echo '[[1, 2], [3, 4], [5, 6]]' >"$work/rows.json"
sums="$graphs/arithmetic.pbtxt --fetch y --steps 4 --json"
expect 0 '^{"step": 4, "fetches": {"y": \[2.0, 4.0\]}}$' - \
  tagflow run $sums --feed x=@rows.json
expect 0 '^{"step": 3, "fetches": {"y": \[10.0, 12.0\]}}$' - \
  tagflow run $sums --feed x=@rows.json
expect 1 - 'a row of the value, without --batch, is float\[\]' \
  tagflow run $sums --feed x=@line_x.json
expect 0 '^{"step": 1, "fetches": {"loss": ' - \
  tagflow run $train --batch 7 --steps 1 --fetch loss --json
expect 0 '^{"step": 1' 'warning: .*"line_x.json" has 50 rows, so a batch of 60' \
  tagflow run $train --batch 60 --steps 1 --fetch loss --json
expect 2 - 'begins with @, but "7" is not a .npy, .npz or .json file' \
  tagflow run $sums --feed x=@7
expect 3 - 'no file "none.npy"' tagflow run $sums --feed x=@none.npy
expect 2 - 'no feed is by rows' tagflow run $sums --feed 'x=[1, 2]' --batch 2
echo 7 >"$work/scalar.json"
expect 1 - 'float\[\] has no rows' tagflow run $sums --feed x=@scalar.json
# NumPy's own default is not the graph's type.
python3 - "$work/doubles.npy" <<'END'
import struct, sys
header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }"
header += " " * (63 - (10 + len(header)) % 64) + "\n"
with open(sys.argv[1], "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)))
    file.write(header.encode() + struct.pack("<4d", 1, 2, 3, 4))
END
expect 1 - 'is double\[2\], in "doubles.npy"; write the file with .astype\("float32"\)' \
  tagflow run $sums --feed x=@doubles.npy
# A file that is shorter would be begun again before the others.
echo '[1, 2, 3]' >"$work/three.json"
expect 1 - '"line_x.json" has [0-9]+ rows, but "three.json" has 3: each step' \
  tagflow run $line --target train --init init --steps 1 \
  --feed x=@line_x.json --feed y=@three.json
expect 1 - 'ResourceExhausted.*x: "rows.json": the rows of a step, float\[[0-9]+,2\], need' \
  tagflow run $sums --feed x=@rows.json --batch 1000000000000

# --- Saved, and resumed -------------------------------------------------------
for passes in "" "--passes none"; do
  rm -rf "$work"/part "$work"/whole
  more="--fetch loss --json --batch 3 --keep 0 $passes"
  expect 0 - - tagflow run $train --steps 1 --save whole --keep 0
  mkdir "$work/part"
  cp "$work"/whole/model.ckpt-0.* "$work/part"
  # As if nobody had ended it, from the same beginning.
  expect 0 '' - tagflow run $train $more --steps 30 --restore whole/model.ckpt-0
  losses "$work/stdout" >"$work/expected"
  : >"$work/actual"
  for steps in 7 8 19 30; do
    expect 0 '' 'info: resumed after step [0-9]+ from "part/model.ckpt-' \
      tagflow run $train $more --steps "$steps" --save part --save-every 5
    losses "$work/stdout" >>"$work/actual"
    # An evaluation in between, which saves nothing.
    expect 0 '' - tagflow run "$line" $rows --restore part --fetch loss
  done
  same "$work/expected" "$work/actual" "a resumed training is another one"
  [ -f "$work/part/model.ckpt-24.index" ] || complain "step 24 is not saved" -
done
expect 0 - 'resumed after step 30' tagflow run $train --steps 30 --save part
expect 0 - 'nothing is left to do: --steps 30' \
  tagflow run $train --steps 30 --save part
expect 0 '^steps = int64\[\] 30$' - tagflow run "$line" --restore part --fetch steps
expect 0 '^steps = int64\[\] 24$' - \
  tagflow run "$line" --restore part/model.ckpt-24 --fetch steps
expect 0 - - tagflow checkpoint convert part model.safetensors
expect 0 '^steps = int64\[\] 30$' - \
  tagflow run "$line" --restore model.safetensors --fetch steps
# A new training, from what another one came to.
expect 0 'step 1: steps = int64\[\] 3[01]$' - tagflow run $train \
  --restore model.safetensors --save second --steps 1 --fetch steps
expect 0 '^steps = int64\[\] 31$' - tagflow run "$line" --restore second --fetch steps
# Only the last ones stay.
expect 0 - - tagflow run $train --steps 20 --save few --save-every 1 --keep 2
[ "$(ls "$work"/few/*.index | wc -l)" = 2 ] || complain "not two" --keep
expect 0 - - tagflow run $train --steps 3 --save few2 --save-every 1000s

# What says how to go on is not a difference of variables.
expect 0 - - tagflow checkpoint diff part/model.ckpt-24 part/model.ckpt-24
expect 0 - 'wrote results/steps_0.npy' tagflow run $line --restore part \
  --steps 1 --fetch steps --save same --out results
expect 1 '^_tagflow/step: ' - tagflow checkpoint diff same part --all
expect 0 - - tagflow checkpoint diff same part

# An older one may be all that is whole, but not silently.
cp -r "$work/few" "$work/damaged"
truncate -s 9 "$work"/damaged/model.ckpt-20.data-*
damaged='/model.ckpt-20.data-.*" has 9 bytes.*; "damaged/model.ckpt-19" is used instead'
expect 0 '^steps = int64\[\] 19$' "warning: \[--restore\] .*$damaged" \
  tagflow run "$line" --restore damaged --fetch steps
expect 0 'tensors, ' "warning: .*$damaged" tagflow checkpoint ls damaged
expect 0 - "warning: \[--save\] .*$damaged" \
  tagflow run $train --steps 20 --save damaged --out results

cp -r "$work/few" "$work/wrong"
printf x | dd of="$work/wrong/$(basename "$work"/few/model.ckpt-20.data-*)" \
  bs=1 seek=2 conv=notrunc 2>/dev/null
expect 0 '^steps = int64\[\] 19$' 'checksum is wrong; "wrong/model.ckpt-19" is' \
  tagflow run "$line" --restore wrong --fetch steps
[ "$(wc -l <"$work/stderr")" = 1 ] || complain "not one warning" --restore
rm "$work"/wrong/model.ckpt-19.*
expect 1 - 'no complete checkpoint in "wrong".*checksum is wrong; to start anew' \
  tagflow run "$line" --restore wrong --fetch steps

# --- What is refused ----------------------------------------------------------
expect 3 - '\[--restore\] .*there is no checkpoint' \
  tagflow run "$line" --restore nowhere --fetch steps
mkdir "$work/empty"
expect 3 - '\[--restore\] .*there is no checkpoint in "empty"' \
  tagflow run "$line" --restore empty --fetch steps
expect 0 - - tagflow run $train --steps 1 --save empty
expect 1 - 'variable "[a-z/M]+" of .* is not initialized' \
  tagflow run "$line" --feed x=1 --feed y=1 --target train
expect 1 - 'is not initialized: .*; --init NODE runs a node' \
  tagflow run "$line" --feed x=1 --feed y=1 --target train
expect 1 - '\[--init\] .*no node "inti"' \
  tagflow run "$line" --init inti --fetch steps
expect 1 - '\[--init\] .*no node "inti"' tagflow run $line $rows \
  --target train --init inti --save part --steps 99
# Without a value of any variable there is no checkpoint, which --init would
# take for a beginning.
expect 1 - 'variable ".*" .*is not initialized.*--init NODE' \
  tagflow run $line $rows --target train --save late --steps 2
ls "$work"/late/*.index 2>/dev/null && complain "a checkpoint of nothing" -
expect 1 - '\[--save\] .*there is nothing to save: variable "offset" and all' \
  tagflow run $line --fetch zero --save late --steps 2 --out results
expect 0 - - tagflow run $train --save late --steps 2
expect 0 '^steps = int64\[\] 2$' - tagflow run "$line" --restore late --fetch steps
expect 0 - - tagflow run $line --target init --save by_steps --steps 1
expect 0 '^steps = int64\[\] 0$' - \
  tagflow run "$line" --restore by_steps --fetch steps
sed 's/"slope"/"incline"/g' "$line" >"$work/other.pbtxt"
expect 1 - 'is of another model: "incline" \(float\[\]\) is not in it, "slope" \(float\[\]\) is not a variable of the graph' \
  tagflow run other.pbtxt --restore part --fetch steps
expect 1 - '\[--save\] .*is of another model: "incline"' \
  tagflow run other.pbtxt --save part --steps 40 --fetch steps
expect 2 - '--steps' tagflow run "$line" --steps 0 --fetch steps
expect 2 - 'excludes' tagflow run "$line" --steps 2 --repeat 2 --fetch steps
expect 2 - 'there is no --steps' tagflow run "$line" --save s --fetch steps
expect 2 - 'there is no --save' \
  tagflow run "$line" --steps 1 --save-every 3 --fetch steps
for interval in 0 -1 x 1.5 0s 1m nans infs s; do
  expect 2 - "\"$interval\" is neither a number of steps" tagflow run $train \
    --save s --steps 1 "--save-every=$interval"
done
for option in --save --restore; do
  expect 2 - "$option: the path is empty" \
    tagflow run "$line" --steps 1 --fetch steps "$option" ''
done
: >"$work/file"
expect 1 - '\[--save\] .*"file' tagflow run $train --steps 2 --save file
# A step that fails leaves the checkpoints before it.
expect 0 - - tagflow run $train --steps 2 --save fails
expect 1 - '\[step 3\] .*\[2\].*\[3\]' tagflow run "$line" --feed 'x=[1, 2]' \
  --feed 'y=[1, 2, 3]' --target train --steps 9 --save fails
expect 0 '^steps = int64\[\] 2$' - tagflow run "$line" --restore fails --fetch steps
}

# --- vars ---------------------------------------------------------------------
expect 0 '^slope/Momentum +float\[\] +resource +4 bytes$' - tagflow vars "$line"
expect 0 '^steps +int64\[\] +reference +8 bytes$' - tagflow vars "$line"
expect 0 '^5 variables, 24 bytes$' - tagflow vars "$line"
expect 0 '{"name":"steps","dtype":"int64","shape":\[\],"kind":"reference","device":null,"bytes":8}' \
  - tagflow vars "$line" --json
cat >"$work/vars.pbtxt" <<'END'
node { name: "a" op: "VarHandleOp" device: "/device:CPU:0"
  attr { key: "dtype" value { type: DT_STRING } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 2 } } } }
  attr { key: "container" value { s: "mine" } } }
node { name: "b" op: "Variable"
  attr { key: "dtype" value { type: DT_HALF } }
  attr { key: "shape" value { shape { unknown_rank: true } } } }
END
expect 0 '^mine/a +string\[\?,2\] +resource +\? bytes  /device:CPU:0$' - \
  tagflow vars vars.pbtxt
expect 0 '^2 variables, 0 bytes, and 2 of unknown size$' - tagflow vars vars.pbtxt
expect 0 '"shape":\[null,2\],"kind":"resource","device":"/device:CPU:0","bytes":null' \
  - tagflow vars vars.pbtxt --json
expect 0 '^0 variables, 0 bytes$' - tagflow vars "$graphs/loop.pbtxt"
expect 3 - 'no.pb' tagflow vars no.pb
expect 0 'NODE' - tagflow run --help

finish
