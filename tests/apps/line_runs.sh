# What tests of runs over workers that go away share; sourced, not run.
# The noise of line.pbtxt is a random op; --scatter puts its nodes on all workers.
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"
graphs=$here/graphs
cp "$graphs/line_x.json" "$graphs/line_y.json" "$work"
started=()
trap 'kill "${started[@]}" 2>/dev/null; wait; rm -rf "$work"' EXIT
line=("$graphs/line.pbtxt" --init init --feed x=@line_x.json
  --feed y=@line_y.json --target train --fetch loss --seed 7)
on=(--cluster c.json)

# run FILE ARGUMENTS...: starts a run in the background; `master` is its process.
run() {
  (cd "$work" && exec "$bin/tagflow" run "${line[@]}" --save "$1" \
    --save-every 50 "${on[@]}" --scatter 5 "${@:2}" >"$1.out" 2>"$1.err" \
    </dev/null) &
  master=$!
  started+=("$master")
}
# reaches FILE STEP: waits until the run of that folder has done the step.
reaches() {
  until grep -qs "^step $2: " "$work/$1.out"; do
    kill -0 "$master" 2>/dev/null || { complain "it ended before step $2" run \
      "$1"; cat "$work/$1.err"; return; }
    sleep 0.01
  done
}
# is_said FILE TEXT: a line of FILE.err has it.
is_said() {
  cases=$((cases + 1))
  grep -qF -- "$2" "$work/$1.err" && return
  complain "stderr does not have: $2" "$1"
  cat "$work/$1.err"
}
