#!/usr/bin/env python3
"""Records what TensorFlow makes of pictures that few programs write.

Usage: record_pictures.py OUTPUT_FOLDER
(needs tensorflow-cpu and Pillow; not run by CI)

Writes pictures.txt in the form that record_media.py explains.
"""

import io
import pathlib
import struct
import sys
import zlib

import numpy as np
import tensorflow as tf
from PIL import Image

from record_media import (bmp, gif_data, picture, png, png_chunk, png_file,
                          random_bytes, record)

# First column, first row, and the steps, of each pass of Adam7.
PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4),
          (1, 0, 2, 2), (0, 1, 1, 2)]
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def interlaced(width, height, bits, color, extra=b""):
    raw = b""
    for x, y, step_x, step_y in PASSES:
        columns = len(range(x, width, step_x))
        row = (columns * bits * CHANNELS[color] + 7) // 8
        for _ in range(y, height, step_y):
            raw += b"\0" + random_bytes(row) if columns else b""
    return png_file(width, height, bits, color, raw, extra, interlace=1)


def pngs():
    palette = png_chunk(b"PLTE", random_bytes(768))
    for width, height in [(1, 1), (2, 3), (9, 5)]:
        for bits, color in [(1, 0), (8, 0), (16, 0), (8, 2), (16, 2), (8, 3),
                            (8, 4), (16, 4), (8, 6), (16, 6)]:
            yield interlaced(width, height, bits, color,
                             palette if color == 3 else b"")
    for color in CHANNELS:
        yield png(1, 8, color, [random_bytes(CHANNELS[color])],
                  palette if color == 3 else b"")
    grey = [random_bytes(3), random_bytes(3)]
    for extra in [png_chunk(b"gAMA", struct.pack(">I", 45455)),
                  png_chunk(b"gAMA", struct.pack(">I", 100000)),
                  png_chunk(b"bKGD", b"\0\x40"), png_chunk(b"sBIT", b"\3"),
                  png_chunk(b"tEXt", b"a\0b"), png_chunk(b"abCd", b"x"),
                  png_chunk(b"ABCD", b"x"), png_chunk(b"pHYs", b"\0" * 9),
                  png_chunk(b"tEXt", b"a\0b")[:-1] + b"!"]:
        yield png(3, 8, 0, grey, extra)
    short = png_chunk(b"PLTE", random_bytes(6))
    yield png(3, 8, 3, [b"\0\1\2"], short)  # an entry is missing
    yield png(3, 8, 3, [b"\0\1\0"])  # all are
    yield png(3, 8, 3, [b"\0\1\0"], short + png_chunk(b"tRNS", b"\x10\x20"))
    yield png(3, 8, 0, grey[:1] + [b"\1"])  # a row is cut off


def jpeg(mode, height, width, **options):
    pixels = picture(height, width, len(mode))
    file = io.BytesIO()
    Image.frombytes(mode, (width, height), pixels.tobytes()).save(
        file, "JPEG", quality=75, **options)
    return file.getvalue()


def jpegs():
    for size in [(1, 1), (9, 17)]:
        yield jpeg("CMYK", *size)
        yield jpeg("CMYK", *size, progressive=True)
        yield jpeg("L", *size, progressive=True)
        yield jpeg("RGB", *size, keep_rgb=True)
        yield jpeg("RGB", *size, progressive=True)
        yield jpeg("RGB", *size, restart_marker_blocks=1)
        for sampling in [0, 1, 2, "4:1:1"]:
            yield jpeg("RGB", *size, subsampling=sampling)
    yield jpeg("RGB", *size)[:-2]  # without its end
    yield jpeg("RGB", *size) + b"what follows"


def gif(width, height, frames, version=b"GIF89a"):
    """Frames are (x, y, width, height, transparent, disposal, pixels, local
    colors, interlaced)."""
    file = version + struct.pack("<HHBBB", width, height, 0x81, 2, 0)
    file += bytes(range(1, 13))
    file += b"\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0"
    for x, y, w, h, transparent, disposal, pixels, local, is_interlaced in frames:
        file += b"\x21\xf9\x04" + bytes(
            [disposal << 2 | (transparent is not None), 5, 0,
             transparent or 0, 0])
        file += b"\x21\xfe\x01c\0"
        file += b"\x2c" + struct.pack("<HHHHB", x, y, w, h, (
            0x81 if local else 0) | (0x40 if is_interlaced else 0))
        file += bytes(range(101, 113)) if local else b""
        file += gif_data(pixels)
    return file + b"\x3b"


def gifs():
    pixels = [0, 1, 2, 3, 1, 2]
    yield gif(1, 1, [(0, 0, 1, 1, None, 0, [2], False, False)])
    yield gif(1, 1, [(0, 0, 1, 1, 2, 0, [2], False, False)])
    for disposal in range(5):
        for transparent in [None, 1]:
            yield gif(3, 2, [
                (0, 0, 3, 2, None, disposal, pixels, False, False),
                (1, 0, 2, 1, transparent, disposal, [1, 3], False, False),
                (0, 0, 3, 2, transparent, 0, pixels[::-1], True, False)])
    yield gif(3, 4, [(0, 0, 3, 4, None, 0, pixels * 2, True, True)])
    yield gif(3, 2, [(0, 0, 3, 2, None, 0, pixels, False, False)], b"GIF87a")


def bmps():
    yield bmp(1, 1, 24)
    yield bmp(1, -1, 32)
    yield bmp(3, -3, 24)
    yield bmp(5, 2, 8)
    old = bmp(2, 2, 24)
    longer = bytearray(old[:14] + struct.pack("<I", 124) + old[18:54] +
                       bytes(84) + old[54:])
    longer[10:14] = struct.pack("<I", 138)
    yield bytes(longer)
    for compression in [1, 3]:
        changed = bytearray(old)
        changed[30] = compression
        yield bytes(changed)


def decoding():
    for file in pngs():
        for options in [{}, {"channels": 3}, {"dtype": tf.uint16},
                        {"channels": 4, "dtype": tf.uint16}, {"channels": 1}]:
            yield "DecodePng", [file], options
        yield "DecodeImage", [file], {}
    for file in jpegs():
        for channels in [0, 1, 3]:
            yield "DecodeJpeg", [file], {"channels": channels}
        yield "DecodeJpeg", [file], {"dct_method": "INTEGER_ACCURATE"}
        yield "DecodeImage", [file], {"channels": 3}
        yield "DecodeImage", [file], {"channels": 4}
        yield "ExtractJpegShape", [file], {}
        yield "DecodeAndCropJpeg", [file, np.array([0, 0, 1, 1], np.int32)], {}
    for file in gifs():
        yield "DecodeGif", [file], {}
        for options in [{}, {"expand_animations": False}, {"channels": 3}]:
            yield "DecodeImage", [file], options
    for file in bmps():
        for channels in [0, 1, 3, 4]:
            yield "DecodeBmp", [file], {"channels": channels}
    for op, file in [("DecodePng", next(gifs())), ("DecodePng", next(jpegs())),
                     ("DecodeJpeg", next(pngs())), ("DecodeGif", next(pngs())),
                     ("DecodeBmp", next(pngs()))]:
        for channels in [{}] + [{"channels": 1}] * (op != "DecodeGif"):
            yield op, [file], channels


if __name__ == "__main__":
    record(pathlib.Path(sys.argv[1]) / "pictures.txt", decoding())
