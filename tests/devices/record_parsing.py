#!/usr/bin/env python3
"""Records what TensorFlow parses out of strings: Examples, CSV, JSON, raw and
compressed bytes, and protobuf messages of types that only descriptors know.

Usage: record_parsing.py OUTPUT_FOLDER   (needs tensorflow-cpu; not run by CI)

Writes parsing.txt in the form that record_ops.py explains, refused inputs too,
and the descriptors of its messages, parsing.desc.

TensorFlow's own parser of Examples leaves out or refuses some of what protobuf
reads: Note [Odd Examples] in devices/kernels/parsing/serialized_batch.h. So the
result of a case is what TensorFlow makes of its messages as protobuf writes
them, after it has read them; it is an error if protobuf cannot read one.
"""

import functools
import gzip
import json
import pathlib
import struct
import sys
import zlib

import tensorflow as tf
from google.protobuf.message import DecodeError

from message_types import (FIELD_TYPES, FIELDS, SOURCE, WIRES, field, kind_of,
                           varint)
from record_array_ops import NAMES, attr_text, quoted, rare, rnd
from record_media import array_text

RAW = tf.raw_ops
CODES = {3: "InvalidArgument", 5: "NotFound", 8: "ResourceExhausted",
         9: "FailedPrecondition", 11: "OutOfRange",
         12: "Unimplemented", 13: "Internal", 15: "DataLoss"}
TYPES = [tf.float32, tf.int64, tf.string]


# --- Examples ----------------------------------------------------------------

def feature(dtype, values, packed=True, odd=False):
    """A Feature, also one that few programs write: not packed. One that is odd
    is in several pieces, each packed or not, and has fields without meaning."""
    if odd and rare(0.7):
        pieces = []
        while values and rare(0.7):
            count = rnd.randint(0, len(values))
            pieces.append(feature(dtype, values[:count], rare(0.5)))
            values = values[count:]
        pieces.append(feature(dtype, values, rare(0.5)))
        if rare(0.2):
            pieces.insert(rnd.randint(0, len(pieces)), field(7, b"x"))
        if rare(0.2):  # of another kind: the last kind counts
            pieces.insert(0, feature(rnd.choice(TYPES), []))
        return b"".join(pieces) if rare(0.5) else merged(pieces)
    if dtype == tf.string:
        return field(1, b"".join(field(1, v) for v in values))
    number, wire, write = ((2, 5, lambda v: struct.pack("<f", v))
                           if dtype == tf.float32 else (3, 0, varint))
    if packed:
        inner = field(1, b"".join(map(write, values)))
    else:
        inner = b"".join(varint(1 << 3 | wire) + write(v) for v in values)
    return field(number, inner)


def merged(features):
    """The lists of short Features as one list, if they are of one kind."""
    kinds = {piece[0] for piece in features}
    if len(kinds) > 1 or any(len(piece) > 129 for piece in features):
        return b"".join(features)
    return field(kinds.pop() >> 3, b"".join(piece[2:] for piece in features))


def some_values(dtype, count):
    if dtype == tf.string:
        return [bytes(rnd.choices(b"ab\0\xff", k=rnd.choice([0, 1, 3, 40])))
                for _ in range(count)]
    if dtype == tf.int64:
        return [rnd.choice([0, 1, -1, 7, 2**62, -2**63, 300])
                for _ in range(count)]
    return [rnd.choice([0.0, 1.5, -2.25, 1e30]) for _ in range(count)]


def entry(key, value, odd, has_value=False):
    """An entry of a map; one that is odd may be without a key or, unless it
    `has_value`, without a value."""
    parts = [field(1, key.encode()), field(2, value)]
    if odd and rare(0.3):
        forms = [parts[1:], parts[::-1], [field(1, b"other")] + parts]
        parts = rnd.choice(forms + ([] if has_value else [parts[:1], []]))
    return b"".join(parts)


def features(wanted, chance=0.85, empty=0.07, odd=False):
    """Features by key: mostly those of `wanted`, {key: (dtype, count)}, now
    and then of another type or length, empty, twice, or absent."""
    entries = []
    for key, (dtype, count) in wanted.items():
        if not rare(chance):
            continue
        if rare():
            dtype = rnd.choice(TYPES)
        if count is None or rare():
            count = rnd.randint(0, 3)
        value = feature(dtype, some_values(dtype, count), rare(0.7), odd)
        if rare(empty):
            value = b""  # no kind
        entries.append(entry(key, value, odd, has_value=empty == 0))
        if rare(0.04):
            entries.append(entries[-1])
    rnd.shuffle(entries)
    if rare(0.1):
        entries.append(field(1, b"other") + field(2, feature(
            tf.int64, [1])))
    return b"".join(field(1, made) for made in entries)


def damaged(message):
    if message and rare(0.03):
        return message[:rnd.randrange(len(message))]
    if message and rare(0.02):
        at = rnd.randrange(len(message))
        return message[:at] + bytes([rnd.randrange(256)]) + message[at + 1:]
    return message


def example_case(odd=False):
    names = list("abcdefgh")
    rnd.shuffle(names)
    if odd and rare(0.3):
        names[0] = ""  # the key of an entry without one
    wanted, spec = {}, {"sparse": [], "dense": [], "ragged": []}
    for name in names[:rnd.randint(0 if odd else 1, 4)]:
        kind = rnd.choice(list(spec))
        dtype = rnd.choice(TYPES)
        spec[kind].append((name, dtype))
        wanted[name] = (dtype, None)
    shapes, defaults = [], []
    for name, dtype in spec["dense"]:
        dims = rnd.choice([[], [1], [2], [2, 2], [0], [-1], [-1, 2]])
        shapes.append(dims)
        count = 1
        for dim in dims:
            count *= dim
        if dims[:1] == [-1]:
            stride = -count
            wanted[name] = (dtype, stride * rnd.randint(0, 2))
            defaults.append(tf.constant(some_values(dtype, 1), dtype))
            defaults[-1] = tf.reshape(defaults[-1], rnd.choice([[], [1]]))
        else:
            wanted[name] = (dtype, count)
            values = tf.constant(some_values(dtype, count), dtype)
            defaults.append(tf.reshape(values, dims) if rare(0.6) else
                            tf.zeros([0], dtype))
    return wanted, spec, shapes, defaults


def keys(entries):
    return tf.constant([name for name, _ in entries], tf.string)


def dtypes(entries):
    return [dtype for _, dtype in entries]


def examples(odd=False):
    wanted, spec, shapes, defaults = example_case(odd)
    batch = rnd.choice([None, 0, 1, 2, 3])

    def message():
        made = field(1, features(wanted, odd=odd)) if rare(0.97) else b""
        if odd and rare(0.2):  # several parts become one
            made += field(9, b"x") + field(1, features(wanted, odd=odd))
        return damaged(made)

    messages = [message() for _ in range(1 if batch is None else batch)]
    serialized = tf.constant(messages, tf.string)
    splits = [rnd.choice([tf.int32, tf.int64]) for _ in spec["ragged"]]
    yield "ParseExampleV2", dict(
        serialized=tf.reshape(serialized, []) if batch is None else serialized,
        names=tf.constant([f"n{i}" for i in range(batch or 0)] if rare(0.3)
                          else [], tf.string),
        sparse_keys=keys(spec["sparse"]), dense_keys=keys(spec["dense"]),
        ragged_keys=keys(spec["ragged"]), dense_defaults=defaults), dict(
            Tdense=dtypes(spec["dense"]), num_sparse=len(spec["sparse"]),
            sparse_types=dtypes(spec["sparse"]),
            ragged_value_types=dtypes(spec["ragged"]), ragged_split_types=splits,
            dense_shapes=[tf.TensorShape([None if d < 0 else d for d in dims])
                          for dims in shapes])
    if batch is None and not spec["ragged"] and "" not in wanted:
        yield "ParseSingleExample", dict(
            serialized=tf.reshape(serialized, []), dense_defaults=defaults), dict(
                num_sparse=len(spec["sparse"]),
                sparse_keys=[name for name, _ in spec["sparse"]],
                dense_keys=[name for name, _ in spec["dense"]],
                sparse_types=dtypes(spec["sparse"]),
                Tdense=dtypes(spec["dense"]),
                dense_shapes=[
                    tf.TensorShape([None if d < 0 else d for d in dims])
                    for dims in shapes])


def sequences(odd=False):
    wanted, spec, shapes, defaults = example_case(odd)
    if any(dims[:1] == [-1] for dims in shapes):
        return
    lists = {kind: [] for kind in ("sparse", "dense", "ragged")}
    list_shapes, lists_wanted = [], {}
    for name in list("uvwxyz")[:rnd.randint(1, 3)]:
        kind, dtype = rnd.choice(list(lists)), rnd.choice(TYPES)
        lists[kind].append((name, dtype))
        count = None
        if kind == "dense":
            list_shapes.append(rnd.choice([[], [1], [2]]))
            count = 2 if list_shapes[-1] == [2] else 1
        lists_wanted[name] = (dtype, count)

    def message():
        entries = []
        for name, (dtype, count) in lists_wanted.items():
            if rare(0.15):
                continue
            steps = b""
            for _ in range(rnd.randint(1, 3)):
                kind = dtype if not rare(0.03) else rnd.choice(TYPES)
                n = count if count is not None and not rare(0.03) else (
                    rnd.randint(0, 2))
                steps += field(1, feature(kind, some_values(kind, n),
                                          rare(0.7), odd) if not rare(0.04)
                               else b"")
            entries.append(entry(name, steps, odd))
        return damaged(field(1, features(wanted, empty=0, odd=odd)) + field(
            2, b"".join(field(1, made) for made in entries)))

    # Of a single message, TensorFlow does not set all splits.
    batch = rnd.choice(([] if spec["ragged"] or lists["ragged"] else [None]) +
                       ([0, 1, 2, 3] if odd else [1, 2, 3]))
    # TensorFlow refuses an empty batch that has no defaults.
    if batch == 0 and any(tf.size(value) == 0 for value in defaults):
        return
    serialized = tf.constant(
        [message() for _ in range(1 if batch is None else batch)], tf.string)
    yield "ParseSequenceExampleV2", dict(
        serialized=tf.reshape(serialized, []) if batch is None else serialized,
        debug_name=tf.constant([], tf.string),
        context_sparse_keys=keys(spec["sparse"]),
        context_dense_keys=keys(spec["dense"]),
        context_ragged_keys=keys(spec["ragged"]),
        feature_list_sparse_keys=keys(lists["sparse"]),
        feature_list_dense_keys=keys(lists["dense"]),
        feature_list_ragged_keys=keys(lists["ragged"]),
        feature_list_dense_missing_assumed_empty=tf.constant(
            [rare(0.5) for _ in lists["dense"]], tf.bool),
        context_dense_defaults=defaults), dict(
            Ncontext_sparse=len(spec["sparse"]),
            Tcontext_dense=dtypes(spec["dense"]),
            context_sparse_types=dtypes(spec["sparse"]),
            context_ragged_value_types=dtypes(spec["ragged"]),
            context_ragged_split_types=[
                rnd.choice([tf.int32, tf.int64]) for _ in spec["ragged"]],
            context_dense_shapes=[tf.TensorShape(dims) for dims in shapes],
            Nfeature_list_sparse=len(lists["sparse"]),
            Nfeature_list_dense=len(lists["dense"]),
            feature_list_dense_types=dtypes(lists["dense"]),
            feature_list_sparse_types=dtypes(lists["sparse"]),
            feature_list_ragged_value_types=dtypes(lists["ragged"]),
            feature_list_ragged_split_types=[
                rnd.choice([tf.int32, tf.int64]) for _ in lists["ragged"]],
            feature_list_dense_shapes=[tf.TensorShape(d)
                                       for d in list_shapes])


# --- Text --------------------------------------------------------------------

def csv_field(delimiter):
    number = rnd.choice(["1", "-7", " 5", "6 ", "1.5", "1e3", "nan", "-inf",
                         "+4", "0x1f", "99999999999", "1e400", ".5", "5.",
                         "2147483648", "abc", "NA", "", "", "1_0", "Infinity",
                         "-0", "007", "1e-50", "9223372036854775807",
                         "9223372036854775808", " ", "\t3", "3\r"])
    if rare(0.25):
        text = rnd.choice([number, "a" + delimiter + "b", 'x""y', "two\nlines",
                           "", "NA", " 1", "\r\n"])
        return '"' + text + '"' + rnd.choice([""] * 12 + [" ", "z", '"'])
    return number + rnd.choice([""] * 30 + ['"', "\n", "\r\n", "\r"])


def csv():
    delimiter = rnd.choice([",", ",", ",", ";", " ", "\t", "|"])
    columns = rnd.randint(1, 4)
    rows = [delimiter.join(csv_field(delimiter) for _ in range(
        columns + (rnd.choice([-1, 1]) if rare() else 0)))
            for _ in range(rnd.choice([0, 1, 1, 1, 2]))]
    select = (sorted(rnd.sample(range(columns), rnd.randint(1, columns)))
              if rare(0.3) else [])
    if select and rare(0.2):
        select = select[::-1] if rare(0.5) else select + [columns]
    out = [rnd.choice([tf.float32, tf.float64, tf.int32, tf.int64, tf.string])
           for _ in range(len(select) or columns)]
    defaults = []
    for dtype in out:
        value = tf.constant(["d"] if dtype == tf.string else [9], dtype)
        defaults.append(rnd.choice([value, value[0], value[:0]]))
    attrs = dict(field_delim=delimiter, use_quote_delim=not rare(0.2),
                 na_value=rnd.choice(["", "", "NA", " ", "d"]),
                 select_cols=select)
    if rare(0.02):
        attrs["field_delim"] = rnd.choice(["", ",,", '"'])
    records = tf.constant(rows, tf.string)
    if len(rows) == 1 and rare(0.5):
        records = tf.reshape(records, rnd.choice([[], [1, 1]]))
    yield "DecodeCSV", dict(records=records, record_defaults=defaults), attrs


JSON = [
    '{}', '', 'null', '[]', '{"features":{}}', '{"features":null}',
    '{"features":{"feature":{}}}',
    '{"features":{"feature":{"a":{"int64List":{"value":[1,2]}}}}}',
    '{"features":{"feature":{"a":{"int64_list":{"value":["1",-2]}}}}}',
    '{"features":{"feature":{"a":{"int64List":{"value":[1.0,1e2]}}}}}',
    '{"features":{"feature":{"a":{"int64List":{"value":[1.5]}}}}}',
    '{"features":{"feature":{"a":{"floatList":{"value":[1,"2.5","NaN",1e39]}}}}'
    '}',
    '{"features":{"feature":{"a":{"floatList":{"value":["Infinity",-0.0]}}}}}',
    '{"features":{"feature":{"a":{"bytesList":{"value":["AAE=","_-8"]}}}}}',
    '{"features":{"feature":{"a":{"bytesList":{"value":["A"]}}}}}',
    '{"features":{"feature":{"a":{"bytesList":{"value":["*"]}}}}}',
    '{"features":{"feature":{"a":{"bytesList":{},"int64List":{}}}}}',
    '{"features":{"feature":{"a":{}}}}', '{"features":{"feature":{"a":null}}}',
    '{"features":{"feature":{"a":{},"a":{}}}}', '{"nope":1}', '{"features":1}',
    '{"features":{"feature":{"a":{"int64List":{"value":[9223372036854775807]}}}'
    '}}',
    '{"features":{"feature":{"a":{"int64List":{"value":[9223372036854775808]}}}'
    '}}',
    '{"features":{"feature":{"a":{"int64List":{"value":[]}}}}}',
    '{"features":{"feature":{"a":{"int64List":{"value":null}}}}}',
    '{"features":{"feature":{"a":{"int64List":{"value":1}}}}}',
    '{"features":{"feature":{"\\u00e9":{"int64List":{"value":[true]}}}}}',
    ' { "features" : { } } ', '{"features":{}} x', '{"features":{},}',
    "{'features':{}}", '{features:{}}', '{"features":{}', '{"features":{"featur'
    'e":{"a":{"bytesList":{"value":["\\ud800"]}}}}}',
]


def json_examples():
    for text in rnd.sample(JSON, 4):
        yield "DecodeJSONExample", dict(json_examples=tf.constant(text)), {}
    many = [json.dumps({"features": {"feature": {"k": {"int64List": {
        "value": [str(i)]}}}}}) for i in range(rnd.randint(0, 3))]
    yield "DecodeJSONExample", dict(
        json_examples=tf.constant(many, tf.string)), {}


# --- Bytes -------------------------------------------------------------------

RAW_TYPES = [tf.float16, tf.float32, tf.float64, tf.int32, tf.uint16, tf.uint8,
             tf.int16, tf.int8, tf.int64, tf.bfloat16, tf.bool, tf.complex64,
             tf.complex128]


def raw():
    dtype = rnd.choice(RAW_TYPES)
    size = dtype.size
    length = size * rnd.randint(0, 3) + (rare() and 1)
    allowed = b"\0\1\2" if dtype == tf.bool else b"\0\1\x40\x41\x80"
    rows = [bytes(rnd.choices(allowed[:2] if dtype == tf.bool else allowed,
                              k=length if not rare() else length + size))
            for _ in range(rnd.choice([0, 1, 2, 3]))]
    little = rare(0.6)
    yield "DecodeRaw", dict(bytes=tf.constant(rows, tf.string)), dict(
        out_type=dtype, little_endian=little)
    if dtype not in (tf.bool, tf.complex64, tf.complex128, tf.bfloat16,
                     tf.float16):  # it has no kernels for these
        fixed = rnd.choice([size, 2 * size, 3 * size, length, 0, -size])
        yield "DecodePaddedRaw", dict(
            input_bytes=tf.constant(rows, tf.string),
            fixed_length=tf.constant(fixed, tf.int32)), dict(
                out_type=dtype, little_endian=little)


def compressed():
    texts = [bytes(rnd.choices(b"ab", k=rnd.choice([1, 50, 3000])))
             for _ in range(rnd.choice([0, 1, 2]))]
    kind = rnd.choice(["", "ZLIB", "GZIP", "GZIP", "zlib", "NONE"])
    pack = {"ZLIB": zlib.compress, "GZIP": lambda t: gzip.compress(t, mtime=0)}
    packed = [pack.get(kind, bytes)(text) for text in texts]
    if packed and rare(0.4):
        packed[0] = rnd.choice([
            packed[0] + b"rest", packed[0] * 2, packed[0][:-3], b"x",
            packed[0][:5], b"", zlib.compress(b"zz")])
    yield "DecodeCompressed", dict(bytes=tf.constant(packed, tf.string)), dict(
        compression_type=kind)


# --- Messages ----------------------------------------------------------------

WIDER = {tf.float32: tf.float64, tf.int32: tf.int64, tf.uint32: tf.uint64}


def wire_value(kind):
    wire = WIRES.get(kind, 0)
    if wire == 1:
        return struct.pack("<d", rnd.choice([0.0, -1.5, 3.0]))
    if wire == 5:
        return struct.pack("<f", rnd.choice([0.0, -1.5, 3.0]))
    if wire == 0:
        return varint(rnd.choice([0, 1, 5, 7, 300, -1, 2**40 + 3]))
    return rnd.choice([b"", b"\x08\x05", b"\x08\x01\x08\x02"])


def message_bytes(names):
    result = b""
    for _ in range(rnd.randint(0, 6)):
        name = rnd.choice(names + list(FIELDS))
        kind, number = kind_of(name), FIELDS[name].number
        wire = WIRES.get(kind, 0)
        values = [wire_value(kind) for _ in range(rnd.randint(1, 3))]
        if wire == 3:
            result += (varint(number << 3 | 3) + values[0] +
                       varint(number << 3 | 4))
        elif wire == 2:
            result += field(number, values[0])
        elif name[0] in "rp" and rare(0.5):
            result += field(number, b"".join(values))
        else:
            result += varint(number << 3 | wire) + values[0]
        if rare(0.05):  # of another wire type, or unknown
            result += rnd.choice([varint(number << 3 | 1) + b"12345678",
                                  varint(number << 3 | 5) + b"1234",
                                  varint(900 << 3 | 3) + varint(900 << 3 | 4),
                                  varint(901 << 3) + b"\x05"])
    return damaged(result)


def messages():
    names = rnd.sample(list(FIELDS), rnd.randint(0, 5))
    types = [FIELD_TYPES[kind_of(name)] for name in names]
    types = [WIDER[t] if t in WIDER and kind_of(n) != "enum" and rare(0.2)
             else t for n, t in zip(names, types)]
    if rare(0.03) and types:
        types[0] = rnd.choice([tf.int32, tf.string, tf.int8])
    dims = rnd.choice([[], [1], [2], [3], [2, 2]] + [[0]] * rare())
    count = 1
    for dim in dims:
        count *= dim
    values = tf.constant([message_bytes(names) for _ in range(count)],
                         tf.string)
    attrs = dict(message_type="t.M", field_names=names, output_types=types,
                 descriptor_source=SOURCE, sanitize=rare(0.3))
    yield "DecodeProtoV2", dict(bytes=tf.reshape(values, dims)), attrs
    if not names:
        return
    batch = rnd.randint(1, 3)
    widths = [rnd.randint(0, 3) for _ in names]
    tensors = []
    for name, width in zip(names, widths):
        dtype = FIELD_TYPES[kind_of(name)]
        low = 0 if dtype.is_unsigned else -5
        given = ([rnd.choice([b"", b"\x08\x05"]) for _ in range(batch * width)]
                 if dtype == tf.string else
                 [rnd.randint(low, 400) for _ in range(batch * width)])
        if dtype == tf.bool:
            given = [bool(v % 2) for v in given]
        tensors.append(tf.reshape(tf.constant(given, dtype), [batch, width]))
    sizes = [[rnd.randint(0, width + rare(0.01)) for width in widths]
             for _ in range(batch)]
    yield "EncodeProto", dict(sizes=tf.constant(sizes, tf.int32),
                              values=tensors), dict(
        field_names=names, message_type="t.M", descriptor_source=SOURCE,
        Tinput_types=[t.dtype for t in tensors])


TEXTS = ["", "o_int32: 4", "r_int32: [1, 2] r_int32: 3", "o_enum: B",
         "o_enum: 7", "o_enum: C", "o_message { a: 4 }", "o_message < a: 4 >",
         "r_message { } r_message { a: 1 }", "o_group: 4", "O_group { x: 1 }",
         "[t.e]: 4", "o_string: 'a' \"b\"", "o_string: a", "nope: 1",
         "o_int32: 99999999999", "o_bool: true", "o_bool: t", "o_float: nan",
         "o_double: -inf", "o_int32: 1 o_int32: 2", "o_int32: 0x10",
         "o_int32: 010", "# only a comment", "o_bytes: '\\377\\x01'", "o_int32"]


def texts():
    text = rnd.choice(TEXTS)
    yield "DecodeProtoV2", dict(bytes=tf.constant([text])), dict(
        message_type="t.M", field_names=[
            "o_int32", "r_int32", "o_enum", "o_message", "r_message",
            "o_string", "o_bool", "o_float", "o_double", "t.e", "o_bytes"],
        output_types=[tf.int32, tf.int64, tf.int32, tf.string, tf.string,
                      tf.string, tf.bool, tf.float32, tf.float64, tf.int32,
                      tf.string],
        descriptor_source=SOURCE, message_format="text", sanitize=rare(0.5))
    for kind, text in rnd.sample([("text", "q: 4"), ("text", ""),
                                  ("binary", ""), ("binary", "\x08\x04"),
                                  ("json", "")], 2):
        yield "DecodeProtoV2", dict(bytes=tf.constant(text)), dict(
            message_type=rnd.choice(["t.R"] * 6 + ["t.E", ".t.R", "R", ""]),
            field_names=["q"], output_types=[tf.int32],
            descriptor_source=SOURCE if rare(0.95) else b"bytes://\x0a\x05",
            message_format=kind, sanitize=rare(0.5))


# --- Recording ---------------------------------------------------------------

def attribute(name, value):
    if value is SOURCE:
        return f"attr {name} contents parsing.desc"
    if isinstance(value, bytes):
        return f"attr {name} bytes x{value.hex()}"
    if isinstance(value, str):
        return f"attr {name} string {quoted(value)}"
    if isinstance(value, list) and value and isinstance(value[0], tf.DType):
        words = " ".join(NAMES.get(t.name, t.name) for t in value)
        return f'attr {name} types "{words}"'
    if isinstance(value, list) and value and isinstance(
            value[0], tf.TensorShape):
        words = " ".join("[" + ",".join(
            "?" if d is None else str(d) for d in s.as_list()) + "]"
                         for s in value)
        return f'attr {name} shapes "{words}"'
    if isinstance(value, list) and not value:
        return f'attr {name} empty {LISTS.get(name, "types")}'
    return attr_text(name, value)


# The kinds of lists that may be empty.
LISTS = {"select_cols": "ints", "field_names": "strings",
         "sparse_keys": "strings", "dense_keys": "strings",
         "dense_shapes": "shapes", "context_dense_shapes": "shapes",
         "feature_list_dense_shapes": "shapes"}
# What the inputs say.
INFERRED = {"Tdense", "Tcontext_dense", "Tinput_types"}


def compute(op, inputs, attrs):
    given = {name: value for name, value in attrs.items()
             if name not in INFERRED}
    return tf.nest.flatten(getattr(RAW, op)(**inputs, **given))


def rewritten(op, inputs):
    """The inputs, with messages as protobuf writes them."""
    kind = (tf.train.SequenceExample if "Sequence" in op else tf.train.Example)
    serialized, texts = inputs["serialized"], []
    for text in tf.reshape(serialized, [-1]).numpy():
        message = kind.FromString(text)
        message.DiscardUnknownFields()
        texts.append(message.SerializeToString())
    return inputs | {"serialized": tf.reshape(
        tf.constant(texts, tf.string), serialized.shape)}


def case_lines(op, inputs, attrs):
    lines = [f"op {op}"]
    lines += [attribute(name, attrs[name]) for name in attrs]
    for value in inputs.values():
        lines += ["in " + array_text(part.numpy()) for part in
                  (value if isinstance(value, list) else [value])]
    if op.startswith("Parse"):
        try:
            inputs = rewritten(op, inputs)
        except DecodeError as caught:
            # Here and in TensorFlow, keys may be other than UTF-8.
            return [] if "UTF-8" in str(caught) else lines + [
                "error InvalidArgument"]
    try:
        values = compute(op, inputs, attrs)
    except tf.errors.OpError as caught:
        return lines + [f"error {CODES[caught.error_code]}"]
    except ValueError:  # refused as the node is made
        return lines + ["error InvalidArgument"]
    return lines + ["out " + array_text(value.numpy()) for value in values]


def main():
    lines = []
    rounds = [(examples, 220), (sequences, 150), (csv, 400),
              (json_examples, 40), (raw, 60), (compressed, 50),
              (messages, 150), (texts, 90),
              (functools.partial(examples, odd=True), 120),
              (functools.partial(sequences, odd=True), 120)]
    for theme, count in rounds:
        for _ in range(count):
            for op, inputs, attrs in theme():
                lines += case_lines(op, inputs, attrs)
    folder = pathlib.Path(sys.argv[1])
    (folder / "parsing.desc").write_bytes(SOURCE)
    (folder / "parsing.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
