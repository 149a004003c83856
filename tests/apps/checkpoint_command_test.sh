#!/usr/bin/env bash
# CTest case apps/checkpoint_command: tagflow checkpoint by its exit codes and
# texts.
source "$(dirname "$0")/harness.sh"
data=$here/../devices/data/checkpoint

# --- ls -----------------------------------------------------------------------
expect 0 '^of/int32 +int32\[2,3\] +24 bytes$' - tagflow checkpoint ls \
  "$data/types"
expect 0 '^16 tensors, 446 bytes, bundle of 1 shard$' - tagflow checkpoint ls \
  "$data/types.index"
expect 0 '^boxes +string\[4,5\] +[0-9]+ bytes  in several shards  4 slices$' - \
  tagflow checkpoint ls "$data/sliced"
expect 0 '^whole .* 96 bytes  in shard 0$' - tagflow checkpoint ls \
  "$data/sliced"
expect 0 '^of/int64 ' - tagflow checkpoint ls "$data"
expect 0 '^15 tensors, .* of 1 shard$' - tagflow checkpoint ls \
  "$data/types.safetensors"
expect 0 '"name":"rows","dtype":"float","shape":\[6,4\],"bytes":96,"slices":3,' \
  - tagflow checkpoint ls "$data/sliced" --json
header='{"a\nb":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
printf "\\x$(printf %x ${#header})\\0\\0\\0\\0\\0\\0\\0%sx" "$header" \
  >"$work"/lines.safetensors
expect 0 '^a\\u000ab +uint8\[1\] +1 bytes$' - \
  tagflow checkpoint ls "$work"/lines.safetensors
header='{"x":{"note":{"a":[1]},"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
printf "\\x$(printf %x ${#header})\\0\\0\\0\\0\\0\\0\\0%sx" "$header" \
  >"$work"/note.safetensors
expect 0 '^x +uint8\[1\] +1 bytes$' - tagflow checkpoint ls note.safetensors
expect 3 - 'there is no checkpoint "nowhere"' tagflow checkpoint ls nowhere
expect 3 - 'cannot open "x.safetensors"' tagflow checkpoint ls x.safetensors
expect 1 - 'is a V1 checkpoint' tagflow checkpoint ls "$data/v1"
expect 2 - 'subcommand' tagflow checkpoint
expect 2 - 'path' tagflow checkpoint ls
expect 2 - 'see tagflow checkpoint cat --help' tagflow checkpoint cat
for command in ls cat diff convert; do
  expect 0 'PATH' - tagflow checkpoint "$command" --help
done

# --- cat ----------------------------------------------------------------------
expect 0 '^of/int32 = int32\[2,3\] \[\[0, 3, 1\], \[4, 2, 0\]\]$' - \
  tagflow checkpoint cat "$data/types" of/int32
expect 0 '"name": "scalar", "dtype": "float", "shape": \[\], "value": 0' - \
  tagflow checkpoint cat "$data/shapes" scalar --json
expect 0 - - tagflow checkpoint cat "$data/types" of/int8 --out int8.npy
expect 0 - - tagflow checkpoint cat "$data/types" of/string --out string.json
grep -q base64 "$work/string.json" || complain "no strings" cat
expect 3 - 'there is no tensor "of/int3".*did you mean' \
  tagflow checkpoint cat "$data/types" of/int3
# A message is no longer than somebody reads.
expect 3 - \
  'no tensor "x+\.\.\. \(696[0-9]+ bytes left out\) \.\.\.x+" in ".*/types"' \
  tagflow checkpoint cat "$data/types" "$(printf 'x%.0s' {1..70000})"
[ "$(wc -c <"$work/stderr")" -lt 1000 ] ||
  complain "the message is too long" tagflow checkpoint cat
expect 3 - 'did you mean "model/_layers/2/bias/.ATTRIBUTES/VARIABLE_VALUE"' \
  tagflow checkpoint cat "$here/models/keras_lstm/model/variables" \
  model/_layers/2/bias

# --- convert and diff ---------------------------------------------------------
expect 0 - - tagflow checkpoint convert "$data/sliced" copy --shards 3
expect 0 '^3 tensors, .* of 3 shards$' - tagflow checkpoint ls copy
expect 0 - - tagflow checkpoint diff "$data/sliced" copy
expect 0 - - tagflow checkpoint convert "$data/types.safetensors" types
expect 0 - - tagflow checkpoint convert types types.safetensors
expect 0 - - tagflow checkpoint diff "$data/types.safetensors" types.safetensors
expect 1 '^of/string: string\[2,3\] in the second only$' - \
  tagflow checkpoint diff types "$data/types"
expect 1 '"name":"scalar","first":"float\[\]","second":null' - \
  tagflow checkpoint diff types "$data/types" --json
expect 1 - \
  'types: .*"no.safetensors": .*"of/complex128" is of type complex128, which the format' \
  tagflow checkpoint convert "$data/types" no.safetensors
[ ! -e "$work/no.safetensors" ] || complain "half a file is left" convert
expect 2 - 'a .safetensors file has one shard' \
  tagflow checkpoint convert types x.safetensors --shards 2
expect 3 - 'there is no checkpoint' tagflow checkpoint convert nowhere x
# The extension of another format is no prefix's.
for name in copy.safetensor copy.safetenosrs copy.safe copy.SafeTensors; do
  expect 2 - "\"$name\" would be the prefix .*did you mean \"copy.safetensors\"" \
    tagflow checkpoint convert types $name
done
expect 2 - '\.npz files are not written: "copy.npz" should end in .safetensors' \
  tagflow checkpoint convert types copy.npz
expect 2 - '"copy.index" would be .*did you mean "copy"\?' \
  tagflow checkpoint convert types copy.index
expect 0 - - tagflow checkpoint convert types model.ckpt-10
expect 2 - 'is written to a .npy file: "int8.json" should end so' \
  tagflow checkpoint cat types of/int8 --out int8.json
expect 2 - 'is written to a .json file: "text.npy" should end so' \
  tagflow checkpoint cat "$data/types" of/string --out text.npy
expect 3 - 'there is no checkpoint' tagflow checkpoint diff types nowhere

mkdir "$work/folder"
expect 1 - '"folder" is a folder; .*as "folder/model.ckpt"' \
  tagflow checkpoint convert types folder

# A file that is only half written is not left. (Of 1024 bytes or 512.)
small() { (ulimit -f 1; "$bin/tagflow" "$@" 2>"$work/stderr"); }
truncate -s 4096 "$work/zeros"
{ printf '\x48\0\0\0\0\0\0\0%-72s' \
  '{"x":{"dtype":"U8","shape":[4096],"data_offsets":[0,4096]}}'
  cat "$work/zeros"; } >"$work/large.safetensors"
expect 0 '^1 tensors, 4096 bytes' - tagflow checkpoint ls large.safetensors
for command in "cat large.safetensors x --out half.npy" \
  "convert large.safetensors half" \
  "convert large.safetensors half.safetensors"; do
  # shellcheck disable=SC2086
  (cd "$work" && small checkpoint $command)
  [ $? = 1 ] && grep -q 'File too large' "$work/stderr" ||
    complain "no error" $command
  ls "$work"/half* >/dev/null 2>&1 && complain "half a file is left" $command
done

finish
