#!/usr/bin/env bash
# tagflow run with models that TensorFlow wrote with their variables.
. "$(dirname "$0")/harness.sh"
models=$here/models

lstm=$models/keras_lstm
expect 0 '^y = float\[2,1\] \[\[' - \
  tagflow run "$lstm/model" --signature predict --feed "x=$lstm/predict_0.npy"
expect 0 '^y = float\[2,1\] \[\[' - \
  tagflow run "$lstm/model/saved_model.pb" --signature predict \
  --feed "x=$lstm/predict_0.npy" --devices cpu:2
# Of a checkpoint that TensorFlow wrote no more is demanded than it has.
expect 0 '^y = float\[2,1\] \[\[' - \
  tagflow run "$lstm/model" --signature predict --feed "x=$lstm/predict_0.npy" \
  --restore "$lstm/model/variables"
# Nor does it matter which names a file without objects has.
expect 0 - '"_CHECKPOINTABLE_OBJECT_GRAPH" is left out' \
  tagflow checkpoint convert "$lstm/model/variables" x.safetensors
expect 0 '^y = float\[2,1\] \[\[' - \
  tagflow run "$lstm/model" --signature predict --feed "x=$lstm/predict_0.npy" \
  --restore x.safetensors
# The table of an asset, and a generator; each train step adds one.
module=$models/module_with_loop
expect 0 '^step = int64\[\] 3$' '' \
  tagflow run "$module/model" --signature train --feed 'word=["two"]' \
  --feed 'x=[[1, 2, 3]]' --feed 'y=[[0, 0, 1]]' --repeat 3
# A MetaGraph takes the checkpoint beside it.
expect 0 '^output = float\[2,1\]' - \
  tagflow run "$models/adam/model.meta" --fetch output \
  --feed "x=$models/adam/predict_0.npy"

# What is missing is named, with the file.
cp -r "$module/model" "$work/model"
rm "$work/model/assets/words.txt"
expect 3 - 'no asset ".*/model/assets/words.txt", the value of tensor "' \
  tagflow run model --signature predict --feed 'x=[[1, 2, 3]]'
cp "$module/model/assets/words.txt" "$work/model/assets"
rm "$work/model/variables/variables.data-00000-of-00001"
expect 3 - 'variables.data-00000-of-00001' \
  tagflow run model --signature predict --feed 'x=[[1, 2, 3]]'
rm "$work/model/variables/variables.index"
expect 3 - 'variable ".*" and [0-9]+ more need values: .*no file ".*/variables.index"' \
  tagflow run model --signature predict --feed 'x=[[1, 2, 3]]'
echo damaged >"$work/model/variables/variables.index"
expect 1 - 'error: DataLoss: .*variables.index' \
  tagflow run model --signature predict --feed 'x=[[1, 2, 3]]'
cp "$models/adam/model.meta" "$work/alone.meta"
expect 1 - 'variable "weight" .*is not initialized' \
  tagflow run alone.meta --fetch output --feed 'x=[[1, 2, 3]]'

finish
