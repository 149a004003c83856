#!/usr/bin/env bash
# CTest case apps/interrupt: runs that a signal or their time-out cuts short.
source "$(dirname "$0")/harness.sh"
loop=$here/graphs/loop.pbtxt
endless=(--feed n=2000000000 --fetch Exit)

# interrupt SIGNAL CODE STDOUT_REGEX STDERR_REGEX TICKS PROGRAM ARGUMENTS...
# As expect(), of a program that gets the signal as soon as it cancels runs by
# it, and has taken so many ticks of a processor's time.
interrupt() {
  local signal=$1 code=$2 out_regex=$3 err_regex=$4 ticks=$5 name=$6 actual pid
  shift 6
  cases=$((cases + 1))
  (cd "$work" && exec "$bin/$name" "$@" >stdout 2>stderr </dev/null) &
  pid=$!
  until is_busy "$pid" "$ticks"; do
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.02
  done
  kill "-$signal" "$pid"
  wait "$pid"
  actual=$?
  if [ "$actual" -ne "$code" ]; then
    complain "exit code $actual after $signal, expected $code" "$name" "$@"
  elif ! matches "$work/stdout" "$out_regex"; then
    complain "stdout is not $out_regex" "$name" "$@"
  elif ! matches "$work/stderr" "$err_regex"; then
    complain "stderr is not $err_regex" "$name" "$@"
  fi
}
# is_busy PID TICKS
is_busy() {
  python3 - "$@" <<'END' 2>/dev/null
import glob, sys
threads = glob.glob(f"/proc/{sys.argv[1]}/task/*/comm")
names = [open(thread).read().strip() for thread in threads]
times = open(f"/proc/{sys.argv[1]}/stat").read().rsplit(")", 1)[1].split()
sys.exit(not ("interruptible" in names and
              int(times[11]) + int(times[12]) >= int(sys.argv[2])))
END
}

# --- Signals ------------------------------------------------------------------
interrupt INT 130 - '^error: Cancelled: \[SIGINT\] .*run was cancelled' 0 \
  tagflow run "$loop" "${endless[@]}"
interrupt TERM 143 - '^error: Cancelled: \[SIGTERM\] ' 0 \
  tagflow run "$loop" "${endless[@]}"
interrupt INT 130 - '\[SIGINT\]' 0 \
  tagflow run "$loop" --feed n=1 --fetch Exit --repeat 1000000000
# How far a run had come that was under way, and its trace.
interrupt INT 130 - \
  'run was cancelled; frame "while" had come to iteration [0-9]+' 50 \
  tagflow run "$loop" "${endless[@]}" --passes none --trace t.json
# It is full by then, and large: a look at its parts must do.
grep -q '"name": "while/0"' "$work/t.json" && grep -q '"Add"' "$work/t.json" &&
  [ "$(tail -n 1 "$work/t.json")" = "]}" ] ||
  complain "the trace is wrong" tagflow run --trace
# A training is saved as it is between two steps.
line=$here/graphs/line.pbtxt
interrupt TERM 143 - \
  '\[SIGTERM\] .*ended after step [0-9]+ of 1000000000, which is saved' 2 \
  tagflow run "$line" --init init --target train --feed x=1 --feed y=2 \
  --steps 1000000000 --save saved
steps=$(sed -n 's/.*ended after step \([0-9]*\) of.*/\1/p' "$work/stderr")
expect 0 "^steps = int64\[\] $steps\$" - \
  tagflow run "$line" --restore saved --fetch steps
# Trips of milliseconds: so the steps of the highest limit last for minutes.
sed 's/op: "AddV2".*"one"/& input: "^most"/' "$loop" >"$work/heavy.pbtxt"
cat >>"$work/heavy.pbtxt" <<'END'
node { name: "shape" op: "Const" input: "^Identity"
       attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "value" value { tensor { dtype: DT_INT32
         tensor_shape { dim { size: 2 } } int_val: 1 int_val: 4000000 } } } }
node { name: "many" op: "Fill" input: "shape" input: "Identity"
       attr { key: "T" value { type: DT_INT32 } } }
node { name: "most" op: "ArgMax" input: "many" input: "one"
       attr { key: "T" value { type: DT_INT32 } } }
END
interrupt TERM 143 '' '\[SIGTERM\]' 0 tagflow step heavy.pbtxt \
  "${endless[@]}" --limit 100000 --trace steps.json
[ "$(tail -n 1 "$work/steps.json")" = "]}" ] ||
  complain "the trace is wrong" tagflow step --trace
interrupt INT 130 - '\[SIGINT\]' 0 \
  tagflow place "$loop" "${endless[@]}" --measure 1
# Cases: those that are through are told, and how many are left.
mkdir -p "$work/cases/a"
printf "\x22\x00" >"$work/cases/a/graph.pb"
echo '{"name": "a", "runs": []}' >"$work/cases/a/case.json"
expect 0 - 'wrote' tagflow run "$here/graphs/arithmetic.pbtxt" --feed p=true \
  --fetch p:0 --out cases/b
cp -r "$work/cases/b" "$work/cases/c"
python3 "$here/endless_case.py" "$work/cases/b"
python3 "$here/endless_case.py" "$work/cases/c"
interrupt INT 130 '^1 passed, 0 failed, 0 skipped$' \
  '^error: Cancelled: \[SIGINT\] \[conform\] 2 of 3 cases are left, from "cases/b" on$' \
  20 tagflow conform cases
# Before a run nothing is there that could be cancelled.
expect 1 '^1 passed, 2 failed' '^error: endless: DeadlineExceeded' \
  tagflow conform cases --timeout 0.1

# --- Files that are half written ----------------------------------------------
# in_mid_write PATTERN PROGRAM ARGUMENTS...: ends the program when a file matches
# the pattern, which then must be gone; if it was killed, once the program has
# run again. One that is done before is started anew.
in_mid_write() {
  local signal
  for signal in TERM KILL; do in_mid_write_by "$signal" "$@"; done
}
in_mid_write_by() {
  local signal=$1 pattern=$2 name=$3 actual pid i left='half*'
  shift 3
  cases=$((cases + 1))
  for i in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf "$work/half"*
    (cd "$work" && exec "$bin/$name" "$@" >stdout 2>stderr </dev/null) &
    pid=$!
    until compgen -G "$work/$pattern" >/dev/null; do
      kill -0 "$pid" 2>/dev/null || break
    done
    kill -"$signal" "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    actual=$?
    [ "$actual" = 0 ] || break
  done
  [ "$actual" = $((128 + $(kill -l "$signal"))) ] ||
    complain "exit code $actual" "$name" "$@"
  if [ "$signal" = KILL ]; then
    compgen -G "$work/half*.tmp-*" >/dev/null ||
      complain 'it was not killed in mid-write' "$name" "$@"
    (cd "$work" && "$bin/$name" "$@" >stdout 2>stderr </dev/null) ||
      complain 'it fails after it was killed' "$name" "$@"
    left='half*.tmp-*'
  fi
  compgen -G "$work/$left" >/dev/null &&
    complain "there still is: $(cd "$work" && ls -d half*)" "$name" "$@"
}
size=100000000
header=$(printf '{"x":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}' \
  $size $size)
{ printf "\\x$(printf %x ${#header})\\0\\0\\0\\0\\0\\0\\0%s" "$header"
  head -c $size /dev/zero; } >"$work/large.safetensors"
in_mid_write 'half.data*.tmp-*' \
  tagflow checkpoint convert large.safetensors half
in_mid_write 'half.safetensors.tmp-*' \
  tagflow checkpoint convert large.safetensors half.safetensors
in_mid_write 'half.npy.tmp-*' \
  tagflow checkpoint cat large.safetensors x --out half.npy
cp -r "$here/models/keras_lstm/model" "$work/model"
mkdir -p "$work/model/assets/inner"
cp "$work/large.safetensors" "$work/model/assets/inner"
in_mid_write 'half.tmp-*/assets/inner/large*' tagflow gradients model \
  --signature predict --y y --x x --out half
rm "$work/large.safetensors" "$work/model/assets/inner/large.safetensors"

# --- Kernels that cannot be interrupted ---------------------------------------
# One search of a regular expression, whose automaton has more states than fit
# into its memory, in four million digits, which take half a second to make.
cat >"$work/slow.pbtxt" <<'END'
node { name: "size" op: "Placeholder"
       attr { key: "dtype" value { type: DT_INT32 } } }
node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "value" value { tensor { dtype: DT_INT32
         tensor_shape { } int_val: 0 } } } }
node { name: "ten" op: "Const" attr { key: "dtype" value { type: DT_INT32 } }
       attr { key: "value" value { tensor { dtype: DT_INT32
         tensor_shape { } int_val: 10 } } } }
node { name: "digits" op: "RandomUniformInt"
       input: "size" input: "zero" input: "ten"
       attr { key: "T" value { type: DT_INT32 } }
       attr { key: "Tout" value { type: DT_INT32 } } }
node { name: "words" op: "AsString" input: "digits"
       attr { key: "T" value { type: DT_INT32 } } }
node { name: "x" op: "ReduceJoin" input: "words" input: "zero" }
node { name: "y" op: "StaticRegexFullMatch" input: "x"
       attr { key: "pattern" value { s: "[0-9]*[0-4][0-9]{900}" } } }
END
slow=(slow.pbtxt --feed 'size=[4000000]' --fetch y)
# The program ends long before: here within minutes, which says nothing of how
# fast it is.
mkdir "$work/bin"
printf '#!/bin/sh\nexec timeout -s KILL 120 "%s/tagflow" "$@"\n' "$bin" \
  >"$work/bin/soon"
chmod +x "$work/bin/soon"
tools=$bin
bin=$work/bin
expect 1 - '^error: DeadlineExceeded: .*(FullMatch "y"|was still ending)' \
  soon run "${slow[@]}" --timeout 1
expect 1 - '^error: DeadlineExceeded: ' \
  soon run "${slow[@]}" --timeout 1 --repeat 3 --out late --mailbox-only
expect 1 - '^error: DeadlineExceeded: ' \
  soon place "${slow[@]}" --timeout 1 --measure 1
bin=$tools
# Ticks say that the kernel runs: what comes before it takes a third of them.
interrupt INT 130 - '^error: Cancelled: \[SIGINT\] ' 300 \
  tagflow run "${slow[@]}"
# Nobody can tell what a trace holds that is still being written.
interrupt INT 130 - \
  '\[--trace\] "late.json" is not written: a kernel that cannot be' 300 \
  tagflow run "${slow[@]}" --trace late.json
interrupt TERM 143 - 'there are no steps to show' 300 tagflow step "${slow[@]}"
finish
