#!/usr/bin/env python3
"""Records what TensorFlow makes of regular expressions and hashes of strings.

Usage: record_text_ops.py OUTPUT_FOLDER   (needs tensorflow-cpu; not run by CI)

Writes text.txt in the form that record_ops.py explains, refused inputs too.
"""

import pathlib
import sys

import tensorflow as tf

from record_array_ops import rare, record, rnd

PATTERNS = ["a", "[ab]+", "(a)(b)", "^a", "b$", "", "x*", "\\w+", "[^a]", "(",
            "a{2,3}", "(?i)A", ".", "\\d|c", "a b", "b|", "[[:alpha:]]",
            "\\pL", "*"]
REWRITES = ["", "-", "<\\0>", "\\2\\1", "x\\\\y", "\\1", "q \"r\"", "\\9"]


def word():
    return "".join(rnd.choice("aabbc1 A\"\\é")
                   for _ in range(rnd.choice([0, 1, 2, 5, 9, 17, 40, 90])))


def words(dims):
    count = 1
    for dim in dims:
        count *= dim
    return tf.reshape(tf.constant([word() for _ in range(count)], tf.string),
                      dims)


def patterns():
    text = words(rnd.choice([[], [3], [2, 2], [0]]))
    pattern, rewrite = rnd.choice(PATTERNS), rnd.choice(REWRITES)
    some = {"replace_global": rare(0.6)}
    dims = [1] if rare() else []
    yield "RegexReplace", [text, tf.fill(dims, pattern), tf.constant(rewrite)
                           ], some
    yield "RegexFullMatch", [text, tf.fill(dims, pattern)], {}
    if pattern and rewrite:  # what is empty is not recorded
        yield "StaticRegexReplace", [text], some | {
            "pattern": pattern, "rewrite": rewrite}
        yield "StaticRegexFullMatch", [text], {"pattern": pattern}


def hashes():
    text = words([8])
    many = {"num_buckets": rnd.choice([1, 2, 10, 1000, 2**62])}
    yield "StringToHashBucketFast", [text], many
    yield "StringToHashBucket", [text], many
    key = [rnd.randint(-2**62, 2**62) for _ in range(2 - rare())]
    yield "StringToHashBucketStrong", [text], many | {"key": key}


if __name__ == "__main__":
    record(pathlib.Path(sys.argv[1]) / "text.txt", [patterns, hashes],
           rounds=24)
