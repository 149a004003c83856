#!/usr/bin/env python3
"""Records what TensorFlow makes of summaries, pictures and sounds.

Usage: record_media.py OUTPUT_FOLDER   (needs tensorflow-cpu; not run by CI)

Writes summary.txt, and media.txt of the files that have no more than a few
hundred bytes, in the form that record_ops.py explains. Strings that are no text
are hexadecimal: "bytes [2] x0a1b x".
"""

import base64
import pathlib
import struct
import sys
import zlib

import numpy as np
import tensorflow as tf

import record_array_ops
from record_array_ops import attr_text, rare, rnd, tensor_text

CODES = record_array_ops.CODES
RAW = tf.raw_ops


def compute(op, inputs, attrs):
    """In a graph: some of these ops do not run outside of one."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        names = [arg.name for arg in
                 record_array_ops.op_def_registry.get(op).input_arg]
        given = {name: [tf.compat.v1.placeholder_with_default(part, None)
                        for part in value] if isinstance(value, list) else
                 tf.compat.v1.placeholder_with_default(value, None)
                 for name, value in zip(names, inputs)}
        result = getattr(RAW, op)(**given, **attrs, name="op")
        result = result if isinstance(result, (list, tuple)) else [result]
        return session.run(list(result))


def array_text(value):
    # NumPy's own strings lose zeros at their ends.
    value = (np.array(value, object) if isinstance(value, (bytes, str))
             else np.asarray(value))
    if value.dtype.kind not in "OSU":
        return tensor_text(tf.constant(value))
    dims = ",".join(str(dim) for dim in value.shape)
    parts = [part if isinstance(part, bytes) else part.encode()
             for part in value.ravel().tolist()]
    return " ".join([f"bytes [{dims}]", *("x" + part.hex() for part in parts)])


def record(path, cases):
    lines = []
    for op, inputs, attrs in cases:
        flat = [item for value in inputs for item in
                (value if isinstance(value, list) else [value])]
        lines.append(f"op {op}")
        lines += [attr_text(name, attrs[name]) for name in attrs
                  if attrs[name] != ""]
        lines += ["in " + array_text(value) for value in flat]
        try:
            lines += ["out " + array_text(value)
                      for value in compute(op, inputs, attrs)]
        except tf.errors.OpError as caught:
            lines.append(f"error {CODES[caught.error_code]}")
        except ValueError:  # refused as the graph is built
            lines.append("error InvalidArgument")
    path.write_text("\n".join(lines) + "\n")


def reals(dims, dtype, low=-300, high=300):
    if dtype.startswith("uint"):
        low = 0
    if dtype.endswith("int8"):
        low, high = max(low, -128), 127
    values = np.array([rnd.uniform(low, high) for _ in range(
        int(np.prod(dims, dtype=np.int64)))]).reshape(dims)
    if rare(0.2):
        values *= 10.0 ** rnd.randint(-14, 2)
    return values.astype(dtype)


def summaries():
    for dtype in record_array_ops.REAL:
        if dtype == "bfloat16":
            continue
        for dims in [[], [0], [7], [2, 3]]:
            yield "HistogramSummary", ["h", reals(dims, dtype)], {}
            yield "ScalarSummary", [np.full(dims, "t", object),
                                    reals(dims, dtype)], {}
    for value in [np.nan, np.inf, -np.inf]:
        yield "HistogramSummary", ["h", np.array([1, value])], {}
    yield "HistogramSummary", [np.array(["h"], object), np.zeros(2)], {}
    for dtype in ["uint8", "float32", "float16", "float64"]:
        for channels in [1, 3, 4, 2]:
            for low in [0, -90]:
                pictures = reals([rnd.randint(1, 3), rnd.randint(1, 4),
                                  rnd.randint(1, 5), channels], dtype, low)
                if dtype != "uint8" and rare(0.3):
                    pictures.flat[0] = rnd.choice([np.nan, np.inf])
                yield "ImageSummary", ["i", pictures], {
                    "max_images": rnd.randint(1, 3)}
    for dims in [[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 1], [2, 1, 1, 1]]:
        yield "ImageSummary", ["i", np.zeros(dims, np.float32)], {}
    yield "ImageSummary", [np.array(["i"], object),
                           np.zeros([1, 1, 1, 1], np.float32)], {}
    for dims in [[2, 5, 2], [2, 5], [1, 0, 1], [0, 1], [3], [1, 2, 0],
                 [4, 1, 3]]:
        for rate in [0.4, 8000.5, 44100.0]:
            yield "AudioSummaryV2", [
                "a", reals(dims, "float32", -1.2, 1.2), np.float32(rate)], {
                    "max_outputs": rnd.randint(1, 3)}
    for rate in [0.0, -1.0, 1e20, np.nan]:
        yield "AudioSummaryV2", ["a", np.zeros([1, 1], np.float32),
                                 np.float32(rate)], {}
    for value in [np.float32(1.5), np.zeros([2, 0]), np.array([True, False]),
                  np.array(["a", "bc"], object), np.arange(3, dtype=np.int8),
                  np.array([1 + 2j], np.complex64)]:
        yield "TensorSummary", [value], {}
        for metadata in [b"", b"\x0a\x03\x0a\x01p"]:
            yield "TensorSummaryV2", ["t", value, metadata], {}
    yield "TensorSummaryV2", ["t", np.float32(1),
                              np.array([b"", b""], object)], {}


def png_chunk(kind, data):
    return (struct.pack(">I", len(data)) + kind + data +
            struct.pack(">I", zlib.crc32(kind + data)))


def png_file(width, height, bits, color, raw, extra=b"", interlace=0):
    head = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, interlace)
    return (b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", head) + extra +
            png_chunk(b"IDAT", zlib.compress(raw)) + png_chunk(b"IEND", b""))


def png(width, bits, color, rows, extra=b""):
    raw = b"".join(b"\0" + row for row in rows)
    return png_file(width, len(rows), bits, color, raw, extra)


def random_bytes(count):
    return bytes(rnd.randrange(256) for _ in range(count))


def pngs():
    palette = png_chunk(b"PLTE", random_bytes(12))
    clear = lambda data: png_chunk(b"tRNS", data)
    grey = png(5, 8, 0, [random_bytes(5) for _ in range(3)])
    yield grey
    yield png(9, 1, 0, [b"\xa5\x80", b"\x3c\0"])
    yield png(3, 4, 0, [b"\x3f\x80"])
    yield png(2, 16, 0, [b"\x12\x80\x12\x7f"])
    yield png(2, 8, 0, [b"\x10\xf0"], clear(b"\0\x10"))
    yield png(2, 8, 4, [random_bytes(4)])
    yield png(6, 8, 2, [random_bytes(18) for _ in range(4)])
    yield png(1, 8, 2, [b"\x01\x80\xf0"], clear(b"\0\x01\0\x80\0\xf0"))
    yield png(3, 8, 6, [random_bytes(12)])
    yield png(4, 8, 3, [b"\0\1\2\3"], palette)
    yield png(4, 2, 3, [b"\x1b"], palette)
    yield png(4, 8, 3, [b"\0\1\2\3"], palette + clear(b"\x80\x20"))
    yield png(3, 16, 2, [random_bytes(18)])
    yield png(2, 16, 6, [random_bytes(16)])
    yield grey[:-8]
    yield grey[:45] + b"\xff" + grey[46:]
    yield grey + b"what follows"


def picture(height, width, channels):
    slope = np.add.outer(np.arange(height) * 9, np.arange(width) * 5)
    noise = np.array([rnd.randrange(60) for _ in range(
        height * width * channels)]).reshape(height, width, channels)
    return (slope[..., None] + noise).astype(np.uint8)


def jpegs():
    for channels in [1, 3]:
        for options in [{}, {"progressive": True}, {"quality": 30},
                        {"chroma_downsampling": False}]:
            yield tf.io.encode_jpeg(picture(13, 18, channels),
                                    **options).numpy()


def gif_data(pixels):
    """Of four colors, without compression."""
    bits = "".join("001" + format(pixel, "03b")[::-1] for pixel in pixels)
    bits += "101"
    bits += "0" * (-len(bits) % 8)
    data = bytes(int(bits[i:i + 8][::-1], 2) for i in range(0, len(bits), 8))
    return b"\x02" + bytes([len(data)]) + data + b"\0"


def gif(width, height, frames, flags=0x81):
    """Frames are (x, y, width, height, transparent, pixels, flags)."""
    file = b"GIF89a" + struct.pack("<HHBBB", width, height, flags, 0, 0)
    file += bytes(range(1, 13))
    for x, y, w, h, transparent, pixels, shape in frames:
        if transparent is not None:
            file += b"\x21\xf9\x04\x01\0\0" + bytes([transparent, 0])
        file += b"\x2c" + struct.pack("<HHHHB", x, y, w, h, shape)
        file += gif_data(pixels)
    return file + b"\x3b"


def gifs():
    whole = (0, 0, 3, 2, None, [0, 1, 2, 3, 0, 1], 0)
    yield gif(3, 2, [whole])
    two = gif(3, 2, [whole, (1, 0, 1, 1, None, [3], 0)])
    yield two
    yield gif(3, 2, [(0, 0, 3, 2, 2, [0, 1, 2, 3, 0, 1], 0),
                     (0, 0, 3, 2, 1, [1, 0, 3, 2, 1, 0], 0)])
    yield gif(3, 2, [(1, 0, 1, 1, None, [3], 0), whole])
    yield gif(3, 2, [whole, (2, 1, 3, 2, None, [0, 1, 2, 3, 0, 1], 0)])
    yield gif(3, 2, [whole, (5, 5, 1, 1, None, [3], 0)])
    yield gif(3, 2, [(1, 0, 2, 1, None, [0, 1], 0)])
    yield gif(1, 8, [(0, 0, 1, 8, None, [0, 1, 2, 3, 0, 1, 2, 3], 0x40)])
    yield gif(3, 2, [(0, 0, 3, 2, None, [0, 1, 2], 0)])
    yield gif(3, 2, [])
    yield gif(3, 2, [whole], 0x01)
    for end in [-1, -4, -8, -14, -20, 20]:
        yield two[:end]


def bmp(width, height, bits, begin=54):
    row = (bits * width + 31) // 32 * 4
    data = random_bytes(row * abs(height))
    return (b"BM" + struct.pack("<IHHI", 54 + len(data), 0, 0, begin) +
            struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, 0,
                        len(data), 0, 0, 0, 0) + data)


def bmps():
    for bits in [8, 24, 32, 16]:
        for height in [3, -2]:
            yield bmp(2, height, bits)
    yield bmp(0, 1, 24)
    yield bmp(1, 0, 24)
    yield bmp(2, 2, 24)[:-1]
    yield bmp(2, 2, 24, 56)


def webps():
    yield base64.b64decode(
        "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")
    lossy = base64.b64decode(
        "UklGRiQAAABXRUJQVlA4IBgAAAAwAQCdASoBAAEAAwA0JaQAA3AA/vuUAAA=")
    yield lossy
    yield lossy[:-9]


def wav(kind=1, channels=1, rate=8000, bits=16, data=None, extra=b"",
        before=b"", align=None, size=16):
    data = random_bytes(12) if data is None else data
    frame = channels * bits // 8
    form = struct.pack("<HHIIHH", kind, channels, rate, rate * frame,
                       frame if align is None else align, bits)
    form += bytes(size - 16)
    body = (b"WAVE" + before + b"fmt " + struct.pack("<I", size) + form +
            extra + b"data" + struct.pack("<I", len(data)) + data)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def wavs():
    yield wav()
    yield wav(channels=2)
    yield wav(channels=3)
    yield wav(size=18)
    yield wav(extra=b"LIST\x04\0\0\0abcd")
    yield wav(before=b"LIST\x04\0\0\0abcd")
    yield wav(kind=3)
    yield wav(bits=8)
    yield wav(align=5)
    yield wav(channels=0)
    yield wav(data=b"")
    yield wav()[:-1]
    yield wav()[:36]
    yield wav() + wav()[36:]


def decoding():
    for file in pngs():
        for channels in [0, 1, 3, 4]:
            for dtype in [tf.uint8, tf.uint16]:
                yield "DecodePng", [file], {"channels": channels,
                                            "dtype": dtype}
            yield "DecodeImage", [file], {"channels": channels,
                                          "dtype": tf.float32}
        yield "DecodeGif", [file], {}
        yield "DecodeJpeg", [file], {}
    for file in jpegs():
        for channels in [0, 1, 3]:
            yield "DecodeJpeg", [file], {"channels": channels}
        for options in [{"ratio": 2}, {"ratio": 8},
                        {"fancy_upscaling": False},
                        {"dct_method": "INTEGER_ACCURATE"}]:
            yield "DecodeJpeg", [file], options
        # Not what is recovered: TensorFlow continues it by whatever follows in
        # memory.
        for options in [{}, {"acceptable_fraction": 0.3}]:
            yield "DecodeJpeg", [file[:len(file) * 3 // 4]], options
        for dtype in [tf.uint8, tf.uint16, tf.float32]:
            yield "DecodeImage", [file], {"dtype": dtype}
        for window in [[3, 5, 4, 6], [0, 0, 13, 18], [9, 0, 5, 5],
                       [-1, 0, 2, 2], [0, 0, 0, 1]]:
            yield "DecodeAndCropJpeg", [file, np.array(window, np.int32)], {}
        yield "ExtractJpegShape", [file], {}
        yield "ExtractJpegShape", [file[:20]], {"output_type": tf.int64}
    for file in gifs():
        yield "DecodeGif", [file], {}
        if file.endswith(b"\x3b"):  # of others we count the frames otherwise
            yield "DecodePng", [file], {}
        for dtype in [tf.uint16, tf.float32]:
            for expands in [True, False]:
                yield "DecodeImage", [file], {"dtype": dtype,
                                              "expand_animations": expands}
    for file in bmps():
        for channels in [0, 1, 3, 4]:
            yield "DecodeBmp", [file], {"channels": channels}
        yield "DecodePng", [file], {}
        # Others end TensorFlow.
        if file[28] in (24, 32) and file[25] == 0:
            yield "DecodeImage", [file], {"dtype": tf.float32}
    for file in webps():
        for channels in [0, 1, 3, 4]:
            yield "DecodeWebP", [file], {"channels": channels}
        yield "DecodeImage", [file], {"expand_animations": False}
    for file in [b"", b"no picture at all, only text"]:
        for op in ["DecodeImage", "DecodePng", "DecodeBmp", "DecodeGif"]:
            yield op, [file], {}
    for file in wavs():
        yield "DecodeWav", [file], {}
        yield "DecodeWav", [file], {"desired_samples": rnd.randint(0, 9),
                                    "desired_channels": rnd.randint(1, 4)}


def encoding():
    for dtype in [np.uint8, np.uint16]:
        for channels in [1, 2, 3, 4, 5]:
            for compression in [-1, 0, 9]:
                yield "EncodePng", [np.array(
                    picture(4, 7, channels) * 3, dtype)], {
                        "compression": compression}
        yield "EncodePng", [np.array(picture(4, 6, 1), dtype).reshape(
            [2, 2, 2, 3, 1])], {}
    for channels in [1, 3]:
        for options in [{}, {"quality": 20}, {"quality": 0},
                        {"progressive": True}, {"optimize_size": True},
                        {"chroma_downsampling": False}, {"x_density": 7},
                        {"density_unit": "cm"}, {"xmp_metadata": "<x/>"},
                        {"format": "rgb"}, {"format": "grayscale"}]:
            yield "EncodeJpeg", [picture(9, 11, channels)], options
        for quality in [0, 50, 100, 101, -1]:
            yield "EncodeJpegVariableQuality", [picture(9, 11, channels),
                                                np.int32(quality)], {}
    yield "EncodeJpeg", [picture(2, 2, 2)], {}
    for dims in [[5, 2], [0, 1], [1, 0]]:
        for rate in [8000, 0, -1]:
            yield "EncodeWav", [reals(dims, "float32", -1.2, 1.2),
                                np.int32(rate)], {}


def main():
    folder = pathlib.Path(sys.argv[1])
    record(folder / "summary.txt", summaries())
    record(folder / "media.txt", [*decoding(), *encoding()])


if __name__ == "__main__":
    main()
