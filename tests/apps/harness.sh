# What the test scripts of the commands share; sourced, not run.
set -uo pipefail

bin=${TAGFLOW_BIN:?the folder of the built programs}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
cases=0

# expect CODE STDOUT_REGEX STDERR_REGEX PROGRAM ARGUMENTS...
# Runs the program in the empty folder; each regex (grep -E) must match a line
# of its stream, "" matches anything, and "-" asks for no output at all.
expect() {
  local code=$1 out_regex=$2 err_regex=$3 name=$4 actual
  shift 4
  cases=$((cases + 1))
  (cd "$work" && "$bin/$name" "$@" >"$work/stdout" 2>"$work/stderr" </dev/null)
  actual=$?
  if [ "$actual" -ne "$code" ]; then
    complain "exit code $actual, expected $code" "$name" "$@"
  elif ! matches "$work/stdout" "$out_regex"; then
    complain "stdout is not $out_regex" "$name" "$@"
  elif ! matches "$work/stderr" "$err_regex"; then
    complain "stderr is not $err_regex" "$name" "$@"
  fi
}

# start FILE PROGRAM ARGUMENTS...: starts the program in the background, in the
# folder $work, with its streams in FILE.out and FILE.err, and waits until it is
# ready. `pid` is its process, which is added to `started`.
start() {
  local file=$work/$1 name=$2
  shift 2
  cases=$((cases + 1))
  rm -f "$file.out" "$file.err"
  (cd "$work" && exec "$bin/$name" "$@" >"$file.out" 2>"$file.err" \
    </dev/null) &
  pid=$!
  started+=("$pid")
  until grep -qs '^ready: ' "$file.out"; do
    kill -0 "$pid" 2>/dev/null || { complain "it is not ready" "$name" "$@"
      cat "$file.err"; return; }
    sleep 0.01
  done
}

# exits CODE PID WHAT: waits for the process, which ends with the code.
exits() {
  cases=$((cases + 1))
  wait "$2"
  local actual=$?
  [ "$actual" = "$1" ] || complain "exit code $actual, not $1" "$3"
}

matches() {
  case $2 in
    "") return 0 ;;
    -) [ ! -s "$1" ] ;;
    *) grep -qE -- "$2" "$1" ;;
  esac
}

complain() {
  failures=$((failures + 1))
  echo "FAILED: $1"
  shift
  echo "  command: $*"
  sed 's/^/  stdout: /' "$work/stdout" | head -5
  sed 's/^/  stderr: /' "$work/stderr" | head -5
}

finish() {
  echo "$cases cases, $failures failed"
  [ "$cases" -gt 0 ] && [ "$failures" -eq 0 ]
}
