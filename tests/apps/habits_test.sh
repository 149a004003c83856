#!/usr/bin/env bash
# What shells, manuals and pipes expect of the command.
source "$(dirname "$0")/harness.sh"
loop=$here/graphs/loop.pbtxt

# --- A graph on stdin ---------------------------------------------------------
# piped FILE STDOUT_REGEX: `tagflow run -` with the file on stdin.
piped() {
  cases=$((cases + 1))
  "$bin/tagflow" run - --feed n=5 --fetch Exit <"$1" >"$work/stdout" 2>&1
  matches "$work/stdout" "$2" || complain "stdout is not $2" run - "$1"
}
piped "$loop" '^Exit = int32\[\] 5$'
sed -n '1,3p' "$loop" >"$work/part.pbtxt"
piped "$work/part.pbtxt" '^error: InvalidArgument: -: \[graphdef\]'
printf 'PK\003\004' >"$work/archive.keras"
piped "$work/archive.keras" 'not a graph, but a zip archive'
: >"$work/nothing"
piped "$work/nothing" 'DataLoss: -: \[graphdef\] there is nothing on stdin'
expect 1 - 'not a graph, but a Keras archive' \
  tagflow run "$work/archive.keras"

# --- Completion ---------------------------------------------------------------
expect 2 - 'bash' tagflow completion fish
"$bin/tagflow" completion bash >"$work/completion"
# completes WORDS... is WORD...: what bash offers for the last of the words.
completes() {
  local words=() wanted
  while [ "$1" != is ]; do
    words+=("$1")
    shift
  done
  shift
  wanted=$*
  cases=$((cases + 1))
  local offered
  offered=$(cd "$work" && bash -c 'source ./completion
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _tagflow
    echo "${COMPREPLY[*]}"' bash "${words[@]}" | tr '\n' ' ')
  [ "${offered% }" = "$wanted" ] ||
    complain "offers \"$offered\", not \"$wanted\"" "${words[@]}"
}
completes tagflow ru is run
completes tagflow run --fet is --fetch
completes tagflow run --save-on "" is workers master
completes tagflow run part is part.pbtxt
completes tagflow cluster st is start status
completes tagflow cluster start --resp is --respawn
completes tagflow completion z is zsh
# Names of ops and passes, also in lists.
completes tagflow ops MatMu is MatMul
completes tagflow run --deny-ops MatMu is MatMul
completes tagflow run --deny-ops ReadFile,WriteF is ReadFile,WriteFile
completes tagflow step --passes edg is edges
completes tagflow step --passes fold,edg is fold,edges
completes tagflow run --passes=-edg is --passes=-edges
completes tagflow bench chai is chain
completes tagflow ops --js is --json
# Bash makes a word of "=".
completes tagflow run --passes = -edg is -edges
expect 0 '^#compdef tagflow$' - tagflow completion zsh
if command -v zsh >/dev/null; then
  cases=$((cases + 1))
  zsh -n "$work/stdout" || complain "it is no script of zsh" completion zsh
fi

# --- Manual pages ---------------------------------------------------------------
expect 0 '^\.TH "TAGFLOW-RUN" 1' - tagflow man run
expect 0 '^\\fB\\-\\-feed\\fR \\fINAME:PORT=VALUE\\fR$' - tagflow man run
expect 0 '^\\fBtagflow cluster start\\fR' - tagflow man cluster start
expect 2 - '"tagflow cluster" has no command "strat"' tagflow man cluster strat
expect 0 - - tagflow man --out pages
for page in tagflow tagflow-run tagflow-cluster-start; do
  cases=$((cases + 1))
  [ -s "$work/pages/$page.1" ] || complain "no page" "$page"
done

finish
