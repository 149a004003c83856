"""Loads the native module, before anything else of the package imports it.

TensorFlow's libraries make the symbols of their protobuf, RE2, OpenSSL and
others visible to all libraries that are loaded later. With RTLD_DEEPBIND the
native module finds its own first, and so both work in one process.
"""

import os
import sys

# What Debian 12 calls the libraries that it needs.
_PACKAGES = ("libcaf-core0.17 libdnnl2 libfarmhash0 libfmt9 libgif7 libgomp1 "
             "libicu72 libjpeg62-turbo libleveldb1d libpng16-16 libprotobuf32 "
             "libre2-9 libsnappy1v5 libssl3 libwebp7 libwebpdemux2 zlib1g")


def _missing(needs: str, cpuinfo: str) -> str:
    """The instructions in the file `needs` that the processor has not."""
    if not os.path.exists(needs) or not os.path.exists(cpuinfo):
        return ""
    with open(needs) as file:
        wanted = file.read().split()
    if not wanted:
        return ""
    with open(cpuinfo) as file:
        for line in file:
            if line.startswith("flags"):
                has = set(line.split())
                return " ".join(each for each in wanted if each not in has)
    return ""


_without = _missing(
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "_processor.txt"),
    "/proc/cpuinfo")
if _without:
    raise ImportError(
        f"this wheel of tagflow was built for another processor: this one has "
        f"no {_without}. Build it here, or with python/build.sh --portable")

_flags = sys.getdlopenflags()
sys.setdlopenflags(os.RTLD_NOW | os.RTLD_LOCAL |
                   getattr(os, "RTLD_DEEPBIND", 0))
try:
    from . import _native  # noqa: F401
except ImportError as error:
    if "cannot open shared object file" not in str(error):
        raise
    raise ImportError(
        f"{error}. tagflow needs libraries of Debian 12: "
        f"apt install {_PACKAGES}") from error
finally:
    sys.setdlopenflags(_flags)
