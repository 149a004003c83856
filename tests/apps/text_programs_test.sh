#!/usr/bin/env bash
# CTest case apps/text_programs: g2p and fortunes on data that is made here, as
# trainings are begun, ended, resumed, used and refused.
source "$(dirname "$0")/harness.sh"

# Words of three letters, in which "c" before another letter is silent; and
# texts that count.
python3 - "$work" <<'END'
import itertools, os, sys
with open(os.path.join(sys.argv[1], "lexicon"), "w") as out:
    out.write("MNCL\n")
    for letters in itertools.product("abcde", repeat=4):
        said = [l for l, n in zip(letters, letters[1:] + ("",))
                if l != "c" or not n]
        word = "".join(letters)
        out.write('("%s" nil (((%s) 1)))\n' % (word, " ".join(said)))
os.mkdir(os.path.join(sys.argv[1], "texts"))
with open(os.path.join(sys.argv[1], "texts", "counts"), "w") as out:
    for i in range(400):
        out.write("%d and %d is %d\n%%\n" % (i, i, 2 * i))
END

small="--lexicon lexicon --units 16 --embedding 8"
short="--batch 16 --epochs 2 --rate 0.02"
tiny="--units 16 --embedding 8"
texts="--data texts --streams 4 --piece 16 --epochs 2"

# same FOLDER FOLDER: both trainings came to the same bits.
same() {
  cases=$((cases + 1))
  local data
  data=$(basename "$work/$1"/model.ckpt-*[0-9][0-9].data-*)
  for file in history.csv "$data"; do
    cmp -s "$work/$1/$file" "$work/$2/$file" ||
      complain "a resumed training is another one" "$1 $2 $file"
  done
}

# --- What is refused ----------------------------------------------------------
for program in g2p fortunes; do
  expect 0 'train' - "$program" --help
  expect 0 '--epochs' - "$program" train --help
  expect 2 - 'subcommand' "$program"
  expect 2 - '--epochs' "$program" train --epochs 0
done
expect 3 - 'festlex-cmu' g2p train --lexicon nowhere
expect 3 - 'Debian.s package fortunes' fortunes train --data nowhere
echo 'MNCL' >"$work/broken"
echo '("a" nil (((ey) 1))' >>"$work/broken"
expect 1 - 'broken: .*line 2 is not an entry' g2p train --lexicon broken
printf 'MNCL\n("a" nil (((ey) 1)))\n' >"$work/broken"
expect 2 - '1 words are too few' g2p train --lexicon broken
expect 2 - 'too few' fortunes train --data texts --streams 4096
expect 2 - '--width' g2p train --width 0
expect 2 - 'the beam 1 to 6' g2p train --lexicon lexicon --width 99
expect 2 - '--temperature' fortunes sample --temperature 0
expect 3 - 'nowhere' fortunes sample --restore nowhere

# shellcheck disable=SC2086
{
# --- g2p: stopped, resumed, used ----------------------------------------------
expect 0 '^beam of 4: [0-9.]+ % of phonemes' 'epoch 2, step [0-9]+ of' \
  g2p train $small $short --report-every 20 --save whole
grep -q '<polyline class="line"' "$work/whole/loss.svg" ||
  complain "there is no picture" g2p
expect 0 '^step: 7 of' '' g2p train $small $short --save part --stop-at 7
expect 0 '"beam_phoneme_error_rate": 0\.' 'resumed after step 7' \
  g2p train $small $short --save part --json
same whole part
expect 0 '^abde: [a-e ]+ \(0\.[0-9]+\)$' '' \
  g2p say abde cab --restore whole $small
expect 1 - '"aB" is not a word' g2p say aB --restore whole $small
expect 1 - 'is of another model' g2p say a --restore whole --lexicon lexicon
truncate -s 99 "$work"/whole/model.ckpt-*.data-*
expect 1 - 'no complete checkpoint' g2p train $small $short --save whole

# --- fortunes -----------------------------------------------------------------
expect 0 '^bits per character: [0-9.]+$' 'epoch 2, step [0-9]+ of' \
  fortunes train $texts $tiny --report-every 20 --save story
expect 0 '^step: 9 of' '' fortunes train $texts $tiny --save half --stop-at 9
expect 0 '"bits_per_character": ' 'resumed after step 9' \
  fortunes train $texts $tiny --save half --json
same story half
expect 0 '^%$' '' fortunes sample --restore story $tiny --count 3 --seed 1
cp "$work/stdout" "$work/first"
expect 0 '' '' fortunes sample --restore story $tiny --count 3 --seed 1
cmp -s "$work/stdout" "$work/first" ||
  complain "one seed draws two texts" fortunes sample
expect 1 - 'another model' fortunes sample --restore story --units 17 \
  --embedding 8
}
python3 - "$work" <<'END' || complain "a loss does not fall" -
import sys
for name in ("whole", "story"):
    rows = [line.split(",") for line in open(f"{sys.argv[1]}/{name}/history.csv")]
    losses = [float(row[2]) for row in rows[1:] if row[1] == "train"]
    assert sum(losses[-5:]) < 0.9 * sum(losses[:5]), (name, losses)
END
finish
