#!/usr/bin/env bash
# CTest case apps/train_images: trainings on a few hundred pictures, as they are
# begun, ended, resumed, and refused.
source "$(dirname "$0")/harness.sh"
data=/usr/share/datasets/fashion-mnist
few="--pictures 320 --batch 32 --epochs 2"

# same FOLDER FOLDER WHAT: both trainings came to the same bits.
same() {
  for file in history.csv model.ckpt-20.data-00000-of-00001; do
    cmp -s "$work/$1/$file" "$work/$2/$file" || complain "$3" "$1 $2 $file"
  done
}

# --- What is refused ----------------------------------------------------------
expect 0 'mlp' - train_images --help
expect 0 '--epochs' - train_images cnn --help
expect 2 - 'subcommand' train_images
expect 2 - 'no subcommand "mpl"' train_images mpl
expect 2 - '--epochs' train_images mlp --epochs 0
expect 2 - '--rate' train_images mlp --rate -1
expect 2 - '"often" is neither a number of steps' \
  train_images mlp --save-every often
expect 2 - 'the path is empty' train_images mlp --save ''
expect 3 - 'dataset-fashion-mnist' train_images mlp --data nowhere
expect 2 - '--style: star not in {ring,ps,async,backup}' train_images mlp --style star
expect 2 - '--replicas' train_images mlp --replicas 0
expect 3 - '\[--cluster\] .*nowhere.json' \
  train_images mlp --cluster nowhere.json

if [ ! -d "$data" ]; then
  finish
  exit
fi
# shellcheck disable=SC2086
{
# --- Stopped, and resumed -----------------------------------------------------
for model in mlp lstm cnn; do
  expect 0 '^test accuracy: 0\.' 'epoch 2, step 20 of 20: loss .* images/s' \
    train_images $model $few --report-every 5 --save $model
  grep -q '<polyline class="line"' "$work/$model/loss.svg" ||
    complain "there is no picture" $model
  expect 0 '^step: 7 of 20$' '' \
    train_images $model $few --save part_$model --stop-at 7
  expect 0 "\"model\": \"$model\", \"step\": 20, .*\"test_accuracy\": 0\." \
    'resumed after step 7' train_images $model $few --save part_$model --json
  same $model part_$model "a resumed training is another one"
done
python3 - "$work/mlp/history.csv" <<'END' || complain "the loss does not fall" -
import sys
rows = [line.split(",") for line in open(sys.argv[1])][1:]
losses = [float(row[2]) for row in rows if row[1] == "train"]
assert len(losses) == 20 and len(rows) == 22, rows
assert sum(losses[-5:]) < 0.8 * sum(losses[:5]), losses
END
# A signal ends it, whenever it comes, or even without a word; the same command
# goes on.
for signal in TERM KILL; do
  cases=$((cases + 1))
  (cd "$work" && exec "$bin/train_images" mlp $few --save ended_$signal \
    --report-every 1 --save-every 2 2>ended.err >/dev/null) &
  training=$!
  until grep -q 'step [3-9] of' "$work/ended.err" 2>/dev/null ||
    ! kill -0 $training 2>/dev/null; do :; done
  kill -$signal $training 2>/dev/null
  wait $training 2>/dev/null
  code=$?
  [ $code = $((128 + $(kill -l $signal))) ] || [ $code = 0 ] ||
    complain "exit code $code of what a signal ended" train_images
  expect 0 '^step: 20 of 20$' '' train_images mlp $few --save ended_$signal
  same mlp ended_$signal "what a signal ended goes on otherwise"
  rm "$work/ended.err"
done
# Over, and begun anew.
expect 0 '^step: 20 of 20$' 'resumed after step 20' \
  train_images mlp $few --save ended_TERM
expect 0 '^step: 5 of 20$' '' \
  train_images mlp $few --save ended_TERM --fresh --stop-at 5
[ ! -e "$work/ended_TERM/model.ckpt-20.index" ] ||
  complain "an old checkpoint is left" train_images --fresh
expect 1 - 'is of a training whose model is mlp, not cnn' train_images cnn $few --save mlp

# --- Over several devices -----------------------------------------------------
expect 1 - 'of a batch of 32: make --batch a multiple of 3$' \
  train_images mlp $few --replicas 3
expect 1 - 'of 2 replicas, 2 cannot be backups' \
  train_images mlp $few --replicas 2 --style backup --backups 2
started=()
trap 'kill "${started[@]}" 2>/dev/null; wait; rm -rf "$work"' EXIT
start cluster tagflow cluster start 2 --file c.json
expect 2 - 'leave out --workers' \
  train_images mlp $few --cluster c.json --workers 1
expect 2 - 'the cluster has 2 devices, and 3 replicas' \
  train_images mlp $few --cluster c.json --replicas 3
for style in ring ps; do
  expect 0 '^step: 20 of 20$' '' \
    train_images mlp $few --replicas 2 --style $style --save here_$style
  expect 0 '^step: 7 of 20$' '' train_images mlp $few --cluster c.json \
    --style $style --save there_$style --stop-at 7
  expect 0 '^step: 20 of 20$' 'resumed after step 7' \
    train_images mlp $few --cluster c.json --style $style --save there_$style
  cmp -s "$work/here_$style/history.csv" "$work/there_$style/history.csv" ||
    complain "workers come to something else" $style
done
expect 0 '^step: 20 of 20$' '' \
  train_images cnn $few --cluster c.json --save cnn_ring
# Replicas that do not wait for each other come to something else each time.
for style in async backup; do
  expect 0 '^step: 7 of 20$' '' train_images mlp $few --cluster c.json \
    --style $style --save $style --stop-at 7
  expect 0 '^test accuracy: 0\.' 'resumed after step 7' \
    train_images mlp $few --cluster c.json --style $style --save $style
done
# A lost worker ends a training, whichever runs notice it.
mapfile -t workers < <(pgrep -P "$pid")
cases=$((cases + 1))
(cd "$work" && exec "$bin/train_images" mlp --pictures 320 --epochs 100000 \
  --cluster c.json --style async --save lost --report-every 1 2>lost.err >/dev/null) &
training=$!
until grep -q 'step [3-9] of' "$work/lost.err" 2>/dev/null ||
  ! kill -0 $training 2>/dev/null; do sleep 0.01; done
kill -KILL "${workers[1]}"
wait $training
code=$?
[ $code = 4 ] && grep -q 'worker/task:' "$work/lost.err" ||
  complain "exit code $code after a worker was lost" train_images

kill "$pid"
wait "$pid"

# With --restarts, it goes on when another worker is in its place.
start respawned tagflow cluster start 2 --respawn --file c.json
more="--pictures 320 --batch 32 --epochs 30"
expect 0 '^step: 300 of 300$' '' train_images mlp $more --cluster c.json \
  --save losing_none
mapfile -t workers < <(pgrep -P "$pid")
cases=$((cases + 1))
(cd "$work" && exec "$bin/train_images" mlp $more --cluster c.json \
  --save losing_one --fresh --save-every 3 --report-every 1 --restarts 2 \
  --json 2>losing_one.err >losing_one.out) &
training=$!
until grep -q 'step [5-9] of' "$work/losing_one.err" 2>/dev/null ||
  ! kill -0 $training 2>/dev/null; do sleep 0.01; done
kill -KILL "${workers[0]}"
wait $training
code=$?
[ $code = 0 ] && grep -q '; restart 1 of 2$' "$work/losing_one.err" &&
  grep -q 'resumed after step' "$work/losing_one.err" ||
  complain "exit code $code of a training that has lost a worker" train_images
cmp -s "$work/losing_none/history.csv" "$work/losing_one/history.csv" ||
  complain "a training that has lost a worker is another one" train_images
expect 0 - - tagflow checkpoint diff losing_none losing_one
# Nobody is in its place.
kill "$pid"
wait "$pid"
start left tagflow cluster start 2 --file c.json
mapfile -t workers < <(pgrep -P "$pid")
cases=$((cases + 1))
(cd "$work" && exec "$bin/train_images" mlp --pictures 320 --epochs 100000 \
  --cluster c.json --save left --report-every 1 --restarts 2 \
  --restart-wait 0.1 2>left.err >/dev/null) &
training=$!
until grep -q 'step [3-9] of' "$work/left.err" 2>/dev/null ||
  ! kill -0 $training 2>/dev/null; do sleep 0.01; done
kill -KILL "${workers[1]}"
wait $training
code=$?
[ $code = 4 ] && grep -q 'there is no training without /job:worker/task:1' \
  "$work/left.err" || complain "exit code $code without a worker" train_images
expect 2 - '--restarts requires --cluster' train_images mlp --restarts 1

# --- Damaged ------------------------------------------------------------------
cp -r "$work/part_mlp" "$work/damaged"
truncate -s 99 "$work"/damaged/model.ckpt-20.data-*
expect 0 '^step: 20 of 20$' \
  'warning: .*model.ckpt-20.data-.*" has 99 bytes.*model.ckpt-7" is used instead' \
  train_images mlp $few --save damaged
cmp -s "$work/mlp/history.csv" "$work/damaged/history.csv" ||
  complain "from an older checkpoint it goes on otherwise" train_images
truncate -s 99 "$work"/damaged/*.data-*
expect 1 - 'no complete checkpoint in "damaged"' train_images mlp $few --save damaged
echo 'loss' >"$work/part_mlp/history.csv"
expect 1 - 'DataLoss: \[history\] "part_mlp/history.csv" does not begin' \
  train_images mlp $few --save part_mlp
mkdir "$work/data"
cp "$data"/t10k-* "$data"/train-labels* "$work/data"
head -c 100000 "$data/train-images-idx3-ubyte.gz" \
  >"$work/data/train-images-idx3-ubyte.gz"
expect 1 - 'DataLoss: .*data/train-images-idx3-ubyte.gz' \
  train_images mlp $few --data data
cp "$data/t10k-images-idx3-ubyte.gz" "$work/data/train-images-idx3-ubyte.gz"
expect 1 - 'do not match' train_images mlp $few --data data
expect 1 - '20 rows do not fill a batch of 32' \
  train_images mlp --pictures 20 --batch 32

# --- A full disk --------------------------------------------------------------
# No file may be larger than 1 MiB: a checkpoint is.
cases=$((cases + 1))
(cd "$work" && ulimit -f 1024 && "$bin/train_images" mlp $few --save full \
  >stdout 2>stderr)
[ $? = 1 ] && matches "$work/stderr" \
  '^error: .*\[--save\] .*full/model.ckpt-0.*File too large' ||
  complain "a checkpoint that cannot be written" train_images
ls "$work"/full/*.index 2>/dev/null && complain "half a checkpoint is left" -
rm -f "$work/mlp/loss.svg"
mkdir "$work/mlp/loss.svg"
expect 1 - 'cannot write "mlp/loss.svg"' train_images mlp $few --save mlp

# --- With certificates, and without a cluster file ----------------------------
expect 2 - 'tls-ca requires --tls-cert' \
  train_images mlp $few --cluster c.json --tls-ca certs/ca.pem
(umask 077 && echo "the secret of this test" >"$work/secret")
expect 0 '^certs/master.pem$' - tagflow cluster certs --out certs \
  --name pictures --task worker/0
# tls PROCESS: the switches of a process.
tls() {
  echo --secret-file secret --tls-ca certs/ca.pem --tls-cert "certs/$1.pem" \
    --tls-key "certs/$1.key"
}
start worker tagflow worker $(tls worker-0)
cases=$((cases + 1))
# On a busy machine a hello may be too slow.
until (cd "$work" && "$bin/train_images" mlp $few --save by_tls --stop-at 7 \
  --cluster "$(sed -n 's/^ready: //p' worker.out)" $(tls master) \
  2>/dev/null) | grep -qx 'step: 7 of 20'; do sleep 0.05; done
}
finish
