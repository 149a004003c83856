#!/usr/bin/env bash
# CTest case apps/chaos: some schedules of `chaos`, which has found nothing if
# it ends with 0. Many more are run by hand, as docs/faults.md has it.
source "$(dirname "$0")/harness.sh"

# Each of these prints a line about itself, and the last one about all.
expect 0 '^4 of 4 schedules passed$' '' chaos --seed 2 --schedules 4 --steps 60
cases=$((cases + 1))
[ "$(grep -c '^seed [2-5]: ok; ' "$work/stdout")" = 4 ] ||
  complain "a schedule is missing" chaos
# What takes longer than it may is a failure.
expect 1 - 'undisturbed: \[chaos\] it hangs after step [0-9]+ of 100000' \
  chaos --steps 100000 --bound 1
expect 2 - '--schedules' chaos --schedules 0
finish
