"""The types of the protobuf messages that record_parsing.py records: message t.M
has a field of each type and use, as "o_int32"."""

import tensorflow as tf
from google.protobuf import descriptor_pb2

FIELD = descriptor_pb2.FieldDescriptorProto
FIELD_TYPES = {
    "double": tf.float64, "float": tf.float32, "int64": tf.int64,
    "uint64": tf.uint64, "int32": tf.int32, "fixed64": tf.uint64,
    "fixed32": tf.uint32, "bool": tf.bool, "string": tf.string,
    "bytes": tf.string, "uint32": tf.uint32, "enum": tf.int32,
    "sfixed32": tf.int32, "sfixed64": tf.int64, "sint32": tf.int32,
    "sint64": tf.int64, "message": tf.string, "group": tf.string}
WIRES = dict(double=1, fixed64=1, sfixed64=1, float=5, fixed32=5, sfixed32=5,
             string=2, bytes=2, message=2, group=3)
DEFAULTS = dict(double="1.5", float="2.5", int64="-3",
                uint64="18446744073709551615", int32="-4", fixed64="9",
                fixed32="4294967295", bool="true", string="text",
                bytes="\\001b", uint32="8", enum="B", sfixed32="-5",
                sfixed64="-6", sint32="-7", sint64="-8")


def make_descriptors():
    files = descriptor_pb2.FileDescriptorSet()
    file = files.file.add(name="t.proto", package="t", syntax="proto2")
    enum = file.enum_type.add(name="E")
    enum.value.add(name="A", number=5)
    enum.value.add(name="B", number=7)
    sub = file.message_type.add(name="S")
    sub.field.add(name="a", number=1, type=FIELD.TYPE_INT32, label=1)
    message = file.message_type.add(name="M")
    group = message.nested_type.add(name="G")
    group.field.add(name="x", number=1, type=FIELD.TYPE_INT32, label=1)
    number = 0
    for kind in FIELD_TYPES:
        for use in "odrp":  # optional, with a default, repeated, packed
            number += 1
            if (use == "d" and kind not in DEFAULTS or
                    use == "p" and WIRES.get(kind, 0) in (2, 3)):
                continue
            new = message.field.add(
                name=f"{use}_{kind}", number=number,
                type=getattr(FIELD, "TYPE_" + kind.upper()),
                label=3 if use in "rp" else 1)
            name = {"enum": ".t.E", "message": ".t.S", "group": ".t.M.G"}
            if kind in name:
                new.type_name = name[kind]
            if use == "d":
                new.default_value = DEFAULTS[kind]
            if use == "p":
                new.options.packed = True
    message.extension_range.add(start=1000, end=2000)
    file.extension.add(name="e", number=1000, type=FIELD.TYPE_INT32, label=1,
                       extendee=".t.M")
    strict = file.message_type.add(name="R")
    strict.field.add(name="q", number=1, type=FIELD.TYPE_INT32, label=2)
    return files


FILES = make_descriptors()
SOURCE = b"bytes://" + FILES.SerializeToString()
FIELDS = {f.name: f for f in FILES.file[0].message_type[1].field}


def kind_of(name):
    return name[2:]


# --- How fields are written ---------------------------------------------------

def varint(value):
    value %= 2**64
    result = b""
    while value >= 128:
        result += bytes([value & 127 | 128])
        value >>= 7
    return result + bytes([value])


def field(number, value):
    return varint(number << 3 | 2) + varint(len(value)) + value
