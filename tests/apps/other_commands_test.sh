#!/usr/bin/env bash
# CTest case apps/other_commands: ops, bench, conform and kmeans by their exit
# codes and texts.
source "$(dirname "$0")/harness.sh"

# --- tagflow itself -----------------------------------------------------------
expect 0 'conform' - tagflow --help
expect 0 '^[0-9]+\.[0-9]+' - tagflow --version

# --- ops ----------------------------------------------------------------------
expect 0 '^engine +Switch\(data: T, pred: bool\) ->' - tagflow ops
expect 0 '^CPU(,GPU)? +MatMul\(a: T, b: T\)' - tagflow ops MatMul
expect 0 '^  attribute transpose_a: bool = false$' - tagflow ops MatMul
expect 0 '^  input     a: T$' - tagflow ops MatMul
expect 0 '^  output    product: T$' - tagflow ops MatMul
expect 0 '^  stateful  no$' - tagflow ops MatMul
expect 0 '^  kernels   CPU, T in \{.*float.*\}$' - tagflow ops MatMul
expect 0 '^  computed  by the engine itself' - tagflow ops Switch
expect 0 '^  stateful  yes' - tagflow ops Print
expect 0 '^  kernels   none' - tagflow ops _Arg
expect 1 - 'unknown op ""' tagflow ops ''
expect 0 '^CPU(,GPU)? +MatMul\(.*\[.*transpose_a.*\]  .*T \{.*float' - \
  tagflow ops
# The types of each kind of device are behind its name.
if grep -qE '^CPU,GPU +MatMul' "$work/stdout"; then
  matches "$work/stdout" '^CPU,GPU +MatMul.*  CPU: T \{.*  GPU: T \{' ||
    complain "the types of a GPU are not told from those of a CPU" tagflow ops
else
  matches "$work/stdout" '^CPU +MatMul.*\]  T \{' ||
    complain "the types of the only device have its name" tagflow ops
fi
expect 0 '^  gradient  yes$' - tagflow ops MatMul
expect 0 '^  tangent   yes, by a rule of its own$' - tagflow ops MatMul
expect 0 '^  tangent   yes, from the rule of its gradient$' - tagflow ops Svd
expect 0 '^  gradient  no, it is zero: its result is constant but for jumps$' - \
  tagflow ops Floor
expect 0 '^  tangent   no, it is zero: ' - tagflow ops Floor
expect 0 '^  gradient  yes, with the loop, conditional or function' - \
  tagflow ops Switch
expect 0 '"gradient":"yes".*"tangent":"yes' - tagflow ops MatMul --json
expect 0 '"kernel":"CPU' - tagflow ops MatMul --json
expect 0 '"kernels":\{"CPU":\{"T":\[.*"float"' - tagflow ops MatMul --json
expect 1 - 'MatMul' tagflow ops MatMull
expect 0 '^CPU(,GPU)? +BatchMatMulV2' - tagflow ops --filter matmul
grep -q Switch "$work/stdout" && complain "--filter lets all pass" tagflow ops
expect 1 - 'NotFound: \[--filter\] none of the [0-9]+ ops has "NoSuchOp" in its' \
  tagflow ops --filter NoSuchOp
expect 1 - 'has "MatMuls" in its name; did you mean "MatMul"\?$' \
  tagflow ops --filter MatMuls --json
expect 0 'OP' - tagflow ops --help
# Libraries that can be loaded: check.consumer.
echo 'no library' >"$work/text.so"
expect 3 - '^error: NotFound: \[--op-library\] \[op library\] "no/such.so": ' \
  tagflow ops --op-library no/such.so MatMul
expect 1 - 'InvalidArgument: .*"text.so": it cannot be loaded: ' \
  tagflow ops --op-library text.so MatMul
for command in run step graph place vars; do
  expect 3 - '"no/such.so": there is no such file' \
    tagflow $command "$here/graphs/loop.pbtxt" --op-library no/such.so
done
expect 3 - '"no/such.so": there is no such file' \
  tagflow partition "$here/graphs/loop.pbtxt" --op-library no/such.so --out cut
expect 3 - '"no/such.so": there is no such file' \
  tagflow gradients "$here/graphs/loop.pbtxt" --op-library no/such.so \
  --y Exit --x n
expect 3 - '"no/such.so": there is no such file' \
  tagflow conform "$here" --op-library no/such.so
# A library that ends the process does not make it a success.
printf '%s\n' '#include <stdlib.h>' \
  'static void __attribute__((constructor)) leave(void) { exit(0); }' \
  >"$work/leave.c"
"${CC:-cc}" -shared -fPIC -o "$work/leave.so" "$work/leave.c"
expect 1 - 'Aborted: .* the op library "leave.so" ended the process by exit' \
  tagflow ops --op-library leave.so MatMul

# --- Words that are misspelt --------------------------------------------------
misspelt() {
  local wanted=$1
  shift
  expect 2 - "^error: there is no $wanted\$" "$@"
}
misspelt 'option "--ftch"; did you mean "--fetch"\?' \
  tagflow run "$here/graphs/loop.pbtxt" --feed n=1 --ftch Exit
misspelt 'option "--ftch"; did you mean "--fetch"\?' \
  tagflow run "$here/graphs/loop.pbtxt" --ftch=Exit
# Although nothing is named that could run.
misspelt 'option "--jsn"; did you mean "--json"\?' tagflow graph --jsn
misspelt 'option "-fetch"; did you mean "--fetch"\?' \
  tagflow step "$here/graphs/loop.pbtxt" -fetch Exit
misspelt 'option "--tolerence"; did you mean "--tolerance"\?' \
  tagflow checkpoint diff a b --tolerence 1
misspelt 'option "--versoin"; did you mean "--version"\?' tagflow --versoin
misspelt 'option "--qqqqqqqq"' tagflow vars x --qqqqqqqq
misspelt 'subcommand "rnu"; did you mean "run"\?' tagflow rnu x.pb --fetch y
misspelt 'subcommand "covnert"; did you mean "convert"\?' \
  tagflow checkpoint covnert a b
misspelt 'option "--shrds"; did you mean "--shards"\?' kmeans --shrds 2
expect 2 - 'not expected: b' tagflow vars a b

# --- bench --------------------------------------------------------------------
expect 0 '"name":"loop","value":[0-9.e+-]+,"unit":"ns"' - \
  tagflow bench loop --trips 1000 --repeats 3
expect 0 '"vars":3' - tagflow bench loop --vars 3 --trips 100 --repeats 1
expect 0 '"unit":"ns"' - tagflow bench nested --trips 10 --repeats 1
expect 0 '"unit":"ns"' - tagflow bench loop_cond --trips 100 --repeats 1
expect 0 '"unit":"us"' - tagflow bench map_fn --trips 100 --repeats 1
expect 0 '"unit":"us"' - tagflow bench tensor_array --trips 100 --repeats 1
for op in Identity Add; do
  expect 0 '"passes":"none"' - \
    tagflow bench chain --op "$op" --nodes 100 --repeats 1
  expect 0 '"unit":"ns"' - \
    tagflow bench wide --op "$op" --nodes 100 --repeats 1
done
expect 0 '"unit":"ns"' - tagflow bench dead --nodes 100 --repeats 1
expect 0 '"unit":"us"' - tagflow bench empty_step --repeats 1
expect 0 '"unit":"GFLOP/s"' - tagflow bench matmul --size 32 --repeats 1 --json
expect 0 '"unit":"ms"' - tagflow bench elementwise --repeats 1
expect 0 '"unit":"ms"' - tagflow bench sum --repeats 1
expect 0 '"unit":"ms","config":\{"batch":2,"inputs":4,"repeats":1,"steps":3,"train":false,"units":4' - \
  tagflow bench lstm --batch 2 --steps 3 --units 4 --repeats 1
expect 0 '"unit":"s","config":\{"batches":3,"ms":10.0' - \
  tagflow bench prefetch --trips 3 --repeats 1
expect 0 '"inputs":3,.*"units":4' - \
  tagflow bench lstm --batch 2 --steps 3 --inputs 3 --units 4 --repeats 1
expect 2 - '--inputs' tagflow bench lstm --inputs -1
for name in cluster_loop cluster_sum; do
  expect 0 '"tcp_round_trip":[0-9.]+,"trips":100,"window":[0-9]+,"workers":1' - \
    tagflow bench "$name" --trips 100 --repeats 1 --workers 1
done
expect 0 '"unit":"us"' - tagflow bench cluster_step --repeats 1
expect 0 '"embedded":[0-9.]+,"ratio":[0-9.]+' - \
  tagflow bench cluster_service --repeats 1
expect 0 '"abort_ms":[0-9.]+,"join_ms":[0-9.]+,"repeats":1,"tasks":3' - \
  tagflow bench cluster_scale --tasks 3 --trips 20 --repeats 1
expect 0 '"tcp_stream":[0-9.]+' - tagflow bench cluster_transfer --repeats 1
expect 0 '"one_process":[0-9.]+' - tagflow bench cluster_lstm --train \
  --batch 2 --steps 3 --units 8 --repeats 1
expect 0 '"nodes":1000,"one_process":[0-9.]+' - \
  tagflow bench cluster_register --nodes 1000 --repeats 1
for name in cluster_mlp cluster_cnn; do
  expect 0 '"batch":4,"one_worker":[0-9.]+,"repeats":1,"speedup":[0-9.]+' - \
    tagflow bench "$name" --batch 4 --repeats 1
done
expect 0 '"raw_write":[0-9.]+' - \
  tagflow bench checkpoint --bytes 100000 --repeats 1
# Nothing but what the reader asked for, and nothing at all, is copied.
expect 0 '"bytes_copied":([1-9][0-9]+),"bytes_read":\1,' - \
  tagflow bench embedding --nodes 1000 --trips 20 --repeats 1
expect 0 '"bytes_to_device":0,"bytes_to_host":0,"new_buffers":0,' - \
  tagflow bench stream_assign --trips 20 --repeats 1
expect 1 - 'asks for "/device:STREAM:0", and there is no such' \
  tagflow bench stream_assign --devices cpu:2 --trips 2 --repeats 1
expect 0 '"swapped_out_mib_per_run":[1-9]' - \
  tagflow bench swap --trips 30 --repeats 1
expect 0 '"unit":"MiB"' - tagflow bench freeing_first --nodes 4 --repeats 1
expect 0 '"unit":"GB/s"' - tagflow bench checkpoint --bytes 100000 --repeats 1
expect 0 '"unit":"s"' - tagflow bench load --nodes 1000 --repeats 1
expect 0 '"unit":"bytes"' - tagflow bench loop_memory --trips 1000
expect 0 '"unit":"us"' - tagflow bench loop_grad --trips 100 --repeats 1
expect 0 '"unit":"us"' - tagflow bench map_fn_grad --trips 100 --repeats 1
expect 0 '"unit":"ratio"' - \
  tagflow bench second_order_ratio --trips 100 --repeats 1
expect 0 '"unit":"s","config":[{]"nodes":1[0-9][0-9],' - \
  tagflow bench gradient_build --nodes 100 --repeats 1
expect 0 '"bytes_of_10_trips":[0-9]+,"trips":20,"w_bytes":1048576' - \
  tagflow bench grad_memory --trips 20
expect 0 '"peak_values":[0-9.]+,.*"ratio_of_log":' - \
  tagflow bench recompute --trips 16 --repeats 1
expect 0 '"bytes_of_10_trips":[0-9.]+,"trips":20' - \
  tagflow bench grad_shapes --trips 20
expect 0 '"peak_ratio":[0-9.]+,' - \
  tagflow bench grad_pushes --trips 20 --repeats 1
expect 0 '"peak_ratio":[0-9.]+,' - \
  tagflow bench grad_gathers --trips 20 --repeats 1
expect 0 '"ratio_of_order_1":3' - tagflow bench gradient_nodes
expect 0 '"train":true,"units":4' - tagflow bench lstm --train --batch 2 \
  --steps 3 --inputs 3 --units 4 --repeats 1
expect 0 '"unit":"ratio"' - tagflow bench lstm_backward_ratio --batch 2 \
  --steps 3 --units 4 --repeats 1
expect 0 '"unit":"ms","config":[{]"batch":3' - \
  tagflow bench mlp --batch 3 --repeats 1
expect 0 '"unit":"ms","config":[{]"batch":3' - \
  tagflow bench cnn --batch 3 --repeats 1
expect 0 '"unit":"ratio"' - tagflow bench loop_scaling --trips 3 --repeats 1
expect 0 '"unit":"ratio".*"two_apart":' - \
  tagflow bench kmeans_scaling --nodes 1000 --trips 3 --repeats 1
numbers='"busy_share":[0-9.e-]+,"max":[0-9.e-]+,"p50":[0-9.e-]+,"p99":[0-9.e-]+'
expect 0 "\"unit\":\"ms\".*\"kernels_in_a_row\",$numbers,\"priority\":\"high\"" \
  - tagflow bench fairness --nodes 10 --trips 1 --repeats 1 --workers 2
expect 0 '"kernels_at_once",.*"window":3,.*"nodes",.*"kernel_ms":50.0' - \
  tagflow bench fairness --nodes 10 --trips 1 --repeats 1 --workers 1 --window 3
expect 0 '"devices":"cpu:2,stream:1",.*"us":.*"sessions":4,"timed_runs":100' \
  - tagflow bench sessions --nodes 4 --trips 100 --repeats 1
expect 0 '"each":\[\{[^{]*"devices":"cpu:2",[^{]*\}\].*"workers":1' - \
  tagflow bench sessions --nodes 1 --trips 1 --repeats 1 --devices cpu:2 \
  --workers 1
expect 0 '^  loop_memory  +[a-z]' - tagflow bench --help
expect 0 '^  devices_pingpong +[a-z]' - tagflow bench --help
expect 0 '^  compare  +the same' - tagflow bench --help
expect 2 - 'did you mean "loop"' tagflow bench lop
expect 2 - '--trips' tagflow bench loop --trips -1
expect 2 - '--trips' tagflow bench loop --trips 3000000000
expect 2 - '--op' tagflow bench chain --op Mul
expect 2 - 'needs --python' tagflow bench compare
expect 2 - 'no workload named "x"' \
  tagflow bench compare --python python3 --only x
expect 3 - 'cannot start' \
  tagflow bench compare --python /no/such/python --only empty_step
expect 1 - 'import tensorflow' \
  tagflow bench compare --python true --only empty_step
expect 0 '^  models  +frozen Keras' - tagflow bench --help
expect 2 - 'models needs --python' tagflow bench models
expect 2 - 'no model is named "x"; there is "mobilenet", ' \
  tagflow bench models --python python3 --only x
expect 3 - 'cannot start' tagflow bench models --python /no/such/python
expect 1 - 'import tensorflow' tagflow bench models --python true --only lstm
# One that answers, with a model that is not one.
fake="$here/fake_tensorflow.py"
expect 0 '^\| ResNet50, 224 x 224 x 3 \| 1 \| 250 \| session \| [0-9.e-]+ \| [0-9.e+]+ \| [0-9.e+-]+ \|' \
  - tagflow bench models --python "$fake" --only resnet --repeats 1
expect 0 '"batch":5,"difference":0.0,"how":"session","name":"transformer"' - \
  tagflow bench models --python "$fake" --only transformer --batch 5 \
  --repeats 1 --rounds 1 --json
expect 0 "^\\| empty step \\| 2500000 \\| caller's thread \\|( [0-9.e-]+ \\|){2} us" \
  - tagflow bench compare --python "$fake" --only empty_step --repeats 1
expect 0 '^\| 10000 dead `Identity` \| 275000 \| not optimised \|' \
  - tagflow bench compare --python "$fake" --only dead --repeats 1 --rounds 2
expect 0 '"how":"caller.s thread","mailbox":[0-9.e-]+,"name":"nested"' - \
  tagflow bench compare --python "$fake" --only nested --repeats 1 \
  --rounds 1 --json
expect 1 '' 'TensorFlow answered "[{]}"' \
  tagflow bench compare --python "$fake" --only sum --repeats 1
expect 0 '"difference":[0-9.e-]+,"how":"caller.s thread",.*"map_fn_grad"' - \
  tagflow bench compare --python "$fake" --only map_fn_grad --repeats 1 \
  --rounds 1 --json
expect 1 '' "loop_grad: .* differs from TensorFlow's by 2 of its largest" \
  tagflow bench compare --python "$fake" --only loop_grad --repeats 1
expect 1 '' "lstm: the result differs from TensorFlow's by 2 of" \
  tagflow bench models --python "$fake" --only lstm --repeats 1
expect 1 '' "mobilenet, not frozen: the result differs from TensorFlow's by 2" \
  tagflow bench models --python "$fake" --only mobilenet --repeats 1
expect 0 '^\| train step: 784-512-10, SGD \| 128 \| 250 \| session \| [0-9.e-]+ \| [0-9.e+]+ \| - \|' \
  - tagflow bench models --python "$fake" --only mlp_train --repeats 1
expect 1 '' "lstm_train: the result differs from TensorFlow's by 0.33 of" \
  tagflow bench models --python "$fake" --only lstm_train --repeats 1
expect 0 '"mailbox":null,"name":"prefetch","ratio":null' - \
  tagflow bench compare --python "$fake" --only prefetch --repeats 1 \
  --rounds 1 --json
expect 0 '^\| 100 batches of 10 ms beside steps of 10 ms \| - \| - \| [0-9.]+ \| - \| s \| - \|' \
  - tagflow bench compare --python "$fake" --only prefetch --repeats 1 --rounds 1
expect 0 '"mailbox":null,"name":"cluster_step","ratio":[0-9.e+]+' - \
  tagflow bench cluster --python "$fake" --only cluster_step --repeats 1 \
  --rounds 1 --json
expect 2 - 'no workload named "empty_step" is compared' \
  tagflow bench cluster --python "$fake" --only empty_step
expect 1 '' 'TensorFlow answered "Killed"' \
  tagflow bench models --python "$fake" --only bigru --repeats 1

# --- examples over several devices -------------------------------------------
# What the trace of a cut loop has: the nodes of both partitions.
expect 0 'ended by themselves' - examples/distributed_loop loop.json
python3 "$here/check_trace.py" "$work/loop.json" while/Less &&
  python3 "$here/check_trace.py" "$work/loop.json" while/Add ||
  complain "the trace is wrong" examples/distributed_loop

# --- conform ------------------------------------------------------------------
# A case of a loop, made here: the graph as text cannot be used, so that the
# folder has what `run` wrote and a graph of no nodes if none is needed.
expect 2 - 'folders' tagflow conform
expect 3 - 'no folder "nowhere"' tagflow conform nowhere
echo text >"$work/README.md"
expect 2 - '"README.md" is a file; a case is a folder with graph.pb and case' \
  tagflow conform README.md
mkdir -p "$work/cases/not_a_case" "$work/cases/broken" "$work/cases/empty" \
  "$work/cases/odd"
none='NotFound: \[conform\] there is no case, a folder with graph.pb and case.json in it, in '
expect 3 - "$none\"cases/not_a_case\"$" tagflow conform cases/not_a_case
expect 3 - "$none\"cases/not_a_case\"$" tagflow conform cases/not_a_case --json
mkdir "$work/nothing"
expect 3 - "$none\"cases/not_a_case\", \"nothing\"$" \
  tagflow conform cases/not_a_case nothing
expect 3 - "$none.* and 1 more$" \
  tagflow conform nothing nothing nothing nothing nothing nothing
: >"$work/cases/broken/graph.pb"
echo '{' >"$work/cases/broken/case.json"
expect 1 '^0 passed, 1 failed, 0 skipped$' 'broken.*not a JSON object' \
  tagflow conform cases/broken
# A graph without nodes: its versions alone.
printf "\x22\x00" >"$work/cases/empty/graph.pb"
echo '{"name": "e", "runs": []}' >"$work/cases/empty/case.json"
# An op that no one has, in what a run needs: skipped, and counted.
printf '\n\x0d\n\x01a\x12\x08NoSuchOp' >"$work/cases/odd/graph.pb"
echo '{"name": "o", "runs": [{"targets": ["a"], "fetches": [],
 "expect": []}]}' >"$work/cases/odd/case.json"
expect 0 '^missing NoSuchOp in 1 case$' - tagflow conform cases/odd
expect 0 '^1 passed, 0 failed, 1 skipped$' - \
  tagflow conform cases/empty cases/odd cases/not_a_case
# A folder of them, with others among them: the same.
expect 1 '^1 passed, 1 failed, 1 skipped$' 'broken' tagflow conform cases
expect 0 '"skipped":1' - tagflow conform --json cases/empty/ cases/odd/
tail -n 1 "$work/stdout" | grep -qx '1 passed, 0 failed, 1 skipped' ||
  complain "the last line of --json is not the count" tagflow conform
# The same op if nothing needs it does not matter: the run itself fails.
echo '{"name": "o", "runs": [{"targets": ["b"], "fetches": [],
 "error": {"code": "NotFoundError"}}]}' >"$work/cases/odd/case.json"
expect 0 '^1 passed' - tagflow conform cases/odd
# Gradients of what is not there fail the case.
echo '{"name": "o", "runs": [{}],
 "gradients": {"ys": ["y:0"], "xs": ["y:0"]}}' >"$work/cases/odd/case.json"
expect 1 '^0 passed, 1 failed, 0 skipped$' 'o: NotFound: .*no node "y"' \
  tagflow conform cases/odd
# A pipe that nobody writes to is not waited for.
mkdir "$work/piped"
mkfifo "$work/piped/case.json"
: >"$work/piped/graph.pb"
expect 1 '^0 passed, 1 failed' 'piped/case.json" is not a regular file' \
  tagflow conform piped
rm "$work/piped/case.json"
echo '{"name": "p", "runs": [{"feeds": {"a:0": "a.npy"}}]}' \
  >"$work/piped/case.json"
mkfifo "$work/piped/a.npy"
cp "$work/cases/empty/graph.pb" "$work/piped"
expect 1 '^0 passed, 1 failed' 'piped/a.npy" is not a regular file' \
  tagflow conform piped

# --- kmeans -------------------------------------------------------------------
expect 3 - 'dataset-fashion-mnist' kmeans --data nowhere
expect 2 - '--clusters' kmeans -k 0
expect 2 - '--colour' kmeans --colour
expect 2 - '--shards' kmeans --shards 0
expect 2 - '--shards' kmeans --shards 65
expect 0 'max-iterations' - kmeans --help
data=/usr/share/datasets/fashion-mnist
if [ -d "$data" ]; then
  expect 0 '^trips: ' 'iteration 1: 2000 points' \
    kmeans --points 2000 -k 5 --check --out km
  head -c 8 "$work/km/centroids.png" | grep -q PNG ||
    complain "there is no picture" kmeans
  grep -q '^| 4 |' "$work/km/report.md" ||
    complain "the report has no row for cluster 4" kmeans
  # The same clusters on two devices.
  sed -n '/^trips: /p; /^purity: /p' "$work/stdout" >"$work/one_device"
  expect 0 '^trips: ' 'the same centroids and assignments' \
    kmeans --points 2000 -k 5 --check --shards 2 --out km2
  sed -n '/^trips: /p; /^purity: /p' "$work/stdout" |
    cmp -s - "$work/one_device" ||
    complain "two devices come to other clusters than one" kmeans
  expect 0 '"converged": false' '' \
    kmeans --points 500 --max-iterations 2 --json --out km
  expect 2 - '50 clusters need more than 20 points' \
    kmeans --points 20 -k 50 --out km
fi
finish
