#!/usr/bin/env bash
# Measures `bench cluster_scale` over workers that have a network namespace
# each, which a bridge connects. Needs root. All of it ends with the script.
# usage: cluster_in_namespaces.sh TAGFLOW WORKERS
set -euo pipefail
tagflow=$(readlink -f "$1")
count=$2
if [ "$count" -gt 250 ]; then
  echo "there are addresses for 250 workers" >&2
  exit 2
fi
work=$(mktemp -d)
prefix=tagflow-$$
hub=$prefix-hub  # of the bridge, and of the master
pids=()

clean_up() {
  [ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null || true
  wait
  for space in "$hub" $(seq -f "$prefix-%g" 0 $((count - 1))); do
    ip netns delete "$space" 2>/dev/null || true
  done
  rm -rf "$work"
}
trap clean_up EXIT

cd "$work"
head -c 32 /dev/urandom | base64 >secret
chmod 600 secret
ip netns add "$hub"
ip -n "$hub" link add name switch type bridge
ip -n "$hub" address add 10.87.0.1/16 dev switch
ip -n "$hub" link set switch up
ip -n "$hub" link set lo up
tasks=()
for task in $(seq 0 $((count - 1))); do
  space=$prefix-$task
  address=10.87.1.$((task + 1))
  ip netns add "$space"
  ip -n "$space" link set lo up
  ip -n "$hub" link add name "w$task" type veth peer name uplink netns "$space"
  ip -n "$hub" link set "w$task" master switch up
  ip -n "$space" address add "$address/16" dev uplink
  ip -n "$space" link set uplink up
  tasks+=("{\"job\": \"worker\", \"task\": $task, \"address\": \"$address:4000\"}")
done
printf '{"name": "bench", "secret_file": "secret", "tasks": [%s]}\n' \
  "$(IFS=,; echo "${tasks[*]}")" >cluster.json

begin=$(date +%s%N)
for task in $(seq 0 $((count - 1))); do
  ip netns exec "$prefix-$task" "$tagflow" worker --task "$task" \
    --listen "10.87.1.$((task + 1)):4000" --name bench --secret-file secret \
    --workers 1 --insecure --quiet >"ready.$task" 2>"log.$task" &
  pids+=($!)
done
for task in $(seq 0 $((count - 1))); do
  until [ -s "ready.$task" ]; do
    kill -0 "${pids[$task]}" || { cat "log.$task" >&2; exit 1; }
    sleep 0.002
  done
done
ready=$((($(date +%s%N) - begin) / 1000000))
echo "$count workers were ready after $ready ms"
ip netns exec "$hub" "$tagflow" bench cluster_scale --tasks "$count" \
  --cluster cluster.json --json
