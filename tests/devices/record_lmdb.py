#!/usr/bin/env python3
"""Writes databases of LMDB into a folder, for the tests of its reader.

Usage: record_lmdb.py OUTPUT_FOLDER        (needs lmdb of PyPI, and a compiler)

The files there were made by lmdb 3.0.0 with liblmdb 0.9.36. lmdb_databases.h
beside the tests knows the same keys and values, by formulas.

  second.mdb      records of generation 1: of generation 0, to which the older
                  meta page leads, some were deleted, some written again
  compact.mdb     a compact copy of it
  small.mdb       fewer records in pages of 512 bytes, which no machine has:
                  a `sysconf` of our own tells LMDB so
  empty.mdb       nothing was ever written
  emptied.mdb     all was deleted
  values.mdb      the key "k" has several values: lmdb has no such database
                  without a name, so a named one takes the place of the main one
  databases.mdb   a database that has a name, "inner", beside a record
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import lmdb

COUNT, LONGEST = 300, 200  # keys, and bytes of one
FEW, SHORTER = 40, 100  # in small pages
SYSCONF = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
long sysconf(int name) {
  if (name == _SC_PAGESIZE) return 512;
  return ((long (*)(int))dlsym(RTLD_NEXT, "sysconf"))(name);
}
"""


def key(i, longest):
    return f"{i:04d}".encode() + b"k" * (i * 37 % (longest - 3))


def value(i, generation):
    size = (i + generation) * 29 % 160
    if i % 25 == 7:
        size = 1500 + 3 * i * i % 9000  # on pages of its own
    return bytes((i + generation + 7 * j) % 251 for j in range(size))


def is_deleted(i):
    return i % 3 == 1


def open_database(folder, **options):
    return lmdb.open(str(folder), map_size=1 << 24, **options)


def put_first(database, count, longest):
    with database.begin(write=True) as writing:
        for i in range(count):
            # In an order that is not that of the keys.
            at = i * 7 % count
            writing.put(key(at, longest), value(at, 0))


def put_second(database, count, longest):
    with database.begin(write=True) as writing:
        for i in range(count):
            if is_deleted(i):
                writing.delete(key(i, longest))
            elif i % 5 == 0:
                writing.put(key(i, longest), value(i, 1))


def put_both(database, count=COUNT, longest=LONGEST):
    put_first(database, count, longest)
    assert contents(database) == expected(0, count, longest)
    put_second(database, count, longest)
    assert contents(database) == expected(1, count, longest)


def expected(generation, count, longest):
    return [(key(i, longest), value(i, int(generation == 1 and i % 5 == 0)))
            for i in range(count) if generation == 0 or not is_deleted(i)]


def contents(database):
    with database.begin() as reading:
        return list(reading.cursor())


def put_small(database):
    put_both(database, FEW, SHORTER)
    assert database.stat()["psize"] == 512


def put_and_delete(database):
    for act in (put_first, put_second):
        act(database, 2, LONGEST)
    with database.begin(write=True) as writing:
        writing.delete(key(0, LONGEST))
    assert contents(database) == []


def put_database(database):
    inner = database.open_db(b"inner")
    with database.begin(write=True) as writing:
        writing.put(b"a", b"one")
        writing.put(b"k", b"v", db=inner)


def put_values(database):
    inner = database.open_db(b"inner", dupsort=True)
    with database.begin(write=True) as writing:
        for text in (b"v", b"w"):
            writing.put(b"k", text, db=inner)


def name_nothing(path):
    """Moves the description of the database "inner" into both meta pages."""
    contents = bytearray(path.read_bytes())
    begin = contents.rindex(b"inner") + len(b"inner")
    for meta in (0, 4096):
        contents[meta + 88:meta + 136] = contents[begin:begin + 48]
    path.write_bytes(contents)


def record(out, fill, **options):
    """Keeps the file of a new database."""
    with tempfile.TemporaryDirectory() as folder:
        fill(lmdb.open(folder, map_size=1 << 24, **options))
        shutil.copyfile(pathlib.Path(folder, "data.mdb"), out)


def record_compact(out):
    with tempfile.TemporaryDirectory() as copy:
        with tempfile.TemporaryDirectory() as folder:
            database = lmdb.open(folder, map_size=1 << 24)
            put_both(database)
            database.copy(copy, compact=True)
        assert contents(lmdb.open(copy)) == expected(1, COUNT, LONGEST)
        shutil.copyfile(pathlib.Path(copy, "data.mdb"), out)


def record_small(out):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder, "sysconf.c")
        source.write_text(SYSCONF)
        library = str(source.with_suffix(".so"))
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source],
                       check=True)
        subprocess.run([sys.executable, __file__, out], check=True,
                       env=os.environ | {"LD_PRELOAD": library})


def main():
    out = pathlib.Path(sys.argv[1])
    if "LD_PRELOAD" in os.environ:
        return record(out / "small.mdb", put_small)
    record(out / "second.mdb", put_both)
    record_compact(out / "compact.mdb")
    record_small(out)
    record(out / "empty.mdb", lambda database: None)
    record(out / "emptied.mdb", put_and_delete)
    record(out / "databases.mdb", put_database, max_dbs=1)
    record(out / "values.mdb", put_values, max_dbs=1)
    name_nothing(out / "values.mdb")
    print("lmdb", lmdb.__version__, "liblmdb", lmdb.version())


if __name__ == "__main__":
    main()
