#!/usr/bin/env bash
# CTest case apps/output: what cannot be written is said, and costs nothing of
# the rest.
source "$(dirname "$0")/harness.sh"
loop=$here/graphs/loop.pbtxt
sums=$here/graphs/arithmetic.pbtxt
run=(tagflow run "$loop" --feed n=7 --fetch Exit)
full='No space left on device$'

# --- stdout -------------------------------------------------------------------
# prints CODE PROGRAM ARGUMENTS...: to a full disk and to a closed stdout.
prints() {
  local code=$1
  shift
  to_stdout "$code" "ResourceExhausted: .*stdout failed: $full" /dev/full "$@"
  to_stdout "$code" 'DataLoss: .*stdout failed: Bad file descriptor$' closed "$@"
}
# to_stdout CODE ERROR FILE PROGRAM ARGUMENTS...
to_stdout() {
  local code=$1 cause=$2 file=$3 name=$4 actual
  shift 4
  cases=$((cases + 1))
  : >"$work/stdout"
  (cd "$work" && if [ "$file" = closed ]; then exec >&-; else exec >"$file"; fi
    "$bin/$name" "$@" 2>"$work/stderr" </dev/null)
  actual=$?
  [ "$actual" -eq "$code" ] &&
    matches "$work/stderr" "^error: $cause" &&
    [ "$(grep -c 'stdout failed' "$work/stderr")" -eq 1 ] ||
    complain "exit code $actual, expected $code, with stdout $file" \
      "$name" "$@"
}
mkdir -p "$work/case"
printf "\x22\x00" >"$work/case/graph.pb"
echo '{"name": "e", "runs": []}' >"$work/case/case.json"
prints 1 "${run[@]}"
prints 1 "${run[@]}" --json
prints 1 tagflow step "$loop" --feed n=7 --fetch Exit
prints 1 tagflow step "$loop" --feed n=7 --fetch Exit --json
prints 1 tagflow graph "$loop"
prints 1 tagflow graph "$loop" --json
prints 1 tagflow place "$loop"
prints 1 tagflow place "$loop" --json
prints 1 tagflow partition "$loop" --out parts
prints 1 tagflow conform case
prints 1 tagflow conform case --json
prints 1 tagflow bench empty_step --repeats 1
prints 1 tagflow ops
prints 1 tagflow ops MatMul
prints 1 tagflow ops --json
prints 1 tagflow --help
prints 1 tagflow --version
prints 1 tagflow run --help
prints 1 kmeans --help
prints 1 fortunes --help
prints 1 g2p --help
prints 1 train_images --help
# What went wrong first decides.
prints 5 tagflow step "$here/graphs/lonely_recv.pbtxt" --fetch y:0
# Who prints nothing needs no stdout; and what is opened is not taken for it.
(cd "$work" && "$bin/tagflow" run "$sums" --feed 'x=[1, 2]' --fetch y \
  --out plain >&- 2>stderr) || complain "there is nothing to print" tagflow run
(cd "$work" && "$bin/tagflow" run "$sums" --feed 'x=[1, 2]' --fetch y --json \
  --out closed --trace t.json <&- >&- 2>&-)
[ $? -eq 1 ] || complain "all streams are closed" tagflow run
cmp -s "$work/plain/y_0.npy" "$work/closed/y_0.npy" &&
  python3 -m json.tool "$work/t.json" >/dev/null ||
  complain "the files are not as they should be" tagflow run

# --- files --------------------------------------------------------------------
trace="^error: ResourceExhausted: \[--trace\] .*\"/dev/full\" failed: $full"
expect 1 '^Exit = int32\[\] 7$' "$trace" "${run[@]}" --trace /dev/full
expect 1 '"value": 7' "$trace" "${run[@]}" --trace /dev/full --json
expect 1 - "$trace" "${run[@]}" --trace /dev/full --out results
[ -s "$work/results/Exit_0.npy" ] ||
  complain "the results are lost" tagflow run --trace
expect 1 '^Exit = int32\[\] 3$' "$trace" \
  tagflow step "$loop" --feed n=3 --fetch Exit --trace /dev/full
expect 5 - "$trace" \
  tagflow run "$here/graphs/lonely_recv.pbtxt" --fetch y --trace /dev/full
expect 5 - Deadlock \
  tagflow run "$here/graphs/lonely_recv.pbtxt" --fetch y --trace /dev/full
# A path that only the system knows to be none.
expect 1 '^Exit = int32\[\] 7$' '\[--trace\] .*cannot write "/proc/t.json": ' \
  "${run[@]}" --trace /proc/t.json
expect 1 '^Exit = int32\[\] 3$' "/dev/full\" failed: $full" \
  tagflow step "$loop" --feed n=3 --fetch Exit --html /dev/full
expect 1 '' "/dev/full\" failed: $full" tagflow graph "$loop" --dot /dev/full
expect 1 '' "/dev/full\" failed: $full" tagflow graph "$loop" --svg /dev/full
expect 1 '' "/dev/full\" failed: $full" tagflow place "$loop" --svg /dev/full
mkdir -p "$work/out"
ln -s /dev/full "$work/out/y_0.npy"
ln -s /dev/full "$work/out/dir_echo_0.json"
expect 1 - "y_0.npy\" failed: $full" \
  tagflow run "$sums" --feed 'x=[1, 2]' --fetch y --out out
expect 1 - "dir_echo_0.json\" failed: $full" \
  tagflow run "$sums" --feed 'text="a"' --fetch dir/echo --out out
# No file may have a byte.
cases=$((cases + 1))
(cd "$work" && trap '' XFSZ && ulimit -f 0 &&
  "$bin/tagflow" partition "$loop" --out none 2>&1; echo "code $?") |
  cat >"$work/stdout"
matches "$work/stdout" '^error: .*File too large' &&
  matches "$work/stdout" '^code 1$' ||
  complain "a GraphDef that cannot be written" tagflow partition
finish
