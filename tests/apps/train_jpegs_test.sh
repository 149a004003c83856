#!/usr/bin/env bash
# CTest case apps/train_jpegs: a classifier of JPEG pictures in TFRecord files,
# as docs/input.md trains it; ended, resumed, and refused.
source "$(dirname "$0")/harness.sh"

# --- What is refused ----------------------------------------------------------
expect 0 '--draw' - train_jpegs --help
expect 2 - 'DATA' train_jpegs
expect 2 - '--draw' train_jpegs shapes --draw 1
expect 2 - 'excludes' train_jpegs shapes --draw 10 --from folder
expect 3 - '"shapes": --draw N draws some, and --from DIR' train_jpegs shapes
expect 3 - 'cannot read the folder "nowhere"' train_jpegs shapes --from nowhere

# --- The training of docs/input.md --------------------------------------------
expect 0 '^step: 744 of 744$' 'epoch 8: on the test set' \
  train_jpegs out/shapes --draw 1000 --summaries out/runs/shapes
cases=$((cases + 1))
# Six classes, of which a guess meets one in six.
awk '$2 == "accuracy:" { exit !($3 >= 0.93) }' "$work/stdout" ||
  complain "$(cat "$work/stdout")" train_jpegs
for tag in loss accuracy learning_rate conv_0/kernel pictures/image/2 'step 2'; do
  cases=$((cases + 1))
  grep -qr "$tag" "$work/out/runs/shapes/train" ||
    complain "no summary of $tag" train_jpegs
done

# --- Ended, and resumed -------------------------------------------------------
few="out/shapes --epochs 1"
# shellcheck disable=SC2086
{
expect 0 '^step: 40 of 93$' '' train_jpegs $few --save stopped --stop-at 40
expect 0 '^step: 93 of 93$' 'resumed after step 40 from' \
  train_jpegs $few --save stopped
# Without a word: what the queues had, and where the reader was, are in the last
# checkpoint.
cases=$((cases + 1))
(cd "$work" && exec "$bin/train_jpegs" $few --save killed --save-every 4 \
  --report-every 1 2>killed.err >/dev/null) &
training=$!
until grep -q 'step [1-9][0-9] of' "$work/killed.err" 2>/dev/null ||
  ! kill -0 $training 2>/dev/null; do sleep 0.01; done
kill -KILL $training
wait $training 2>/dev/null
[ $? = 137 ] || complain "it was not killed" train_jpegs
expect 0 '^step: 93 of 93$' 'resumed after step [0-9]+ from' \
  train_jpegs $few --save killed
cases=$((cases + 1))
python3 - "$work/killed/history.csv" <<'END' || complain "steps are missing" -
import sys
rows = [line.split(",") for line in open(sys.argv[1])][1:]
steps = [int(row[0]) for row in rows if row[1] == "train"]
assert steps == list(range(1, 94)), steps
END

# --- Pictures of folders, and damaged ones ------------------------------------
cases=$((cases + 1))
python3 - "$work" <<'END' || complain "no pictures" -
import pathlib, struct, sys
work = pathlib.Path(sys.argv[1])
data = (work / "out/shapes/train-0.tfrecord").read_bytes()
at = 0
for i in range(60):
    length = struct.unpack_from("<Q", data, at)[0]
    example = data[at + 12:at + 12 + length]
    at += 16 + length
    folder = work / "folders" / f"class_{i % 3}"
    folder.mkdir(parents=True, exist_ok=True)
    begin, end = example.index(b"\xff\xd8"), example.rindex(b"\xff\xd9") + 2
    (folder / f"{i}.jpg").write_bytes(example[begin:end])
(work / "folders/class_0/about.txt").write_text("no picture")
END
expect 0 '^step: 6 of 6$' '48 pictures of 3 classes to train with, 12 to test' \
  train_jpegs taken --from folders --epochs 2 --batch 16 --save small
# The folder of another set.
expect 1 - '"stopped" is of a training whose data is 6000 pictures, .*, not 48' \
  train_jpegs taken --batch 16 --save stopped
expect 1 - '"small" is of a training whose side is 32, not 16; .*--fresh' \
  train_jpegs taken --batch 16 --side 16 --save small
printf 'JFIF' >"$work/folders/class_1/bad.jpg"
expect 1 - 'InvalidArgument: .*folders/class_1/bad.jpg' \
  train_jpegs other --from folders
expect 1 - '48 pictures do not fill a batch of 64' train_jpegs taken --save none
printf 'x' | dd of="$work/taken/train-1.tfrecord" bs=1 seek=100 conv=notrunc \
  2>/dev/null
expect 1 - 'DataLoss: .*taken/train-1.tfrecord' \
  train_jpegs taken --batch 16 --save small
}
finish
