// The databases of tests/devices/record_lmdb.py, which has the same formulas.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/source_path.h"

namespace tagflow::checkpoint {

using LmdbRecords = std::vector<std::pair<std::string, std::string>>;

inline std::string lmdb_path(const std::string& name) {
  return source_path("tests/devices/data/lmdb/" + name);
}

// What second.mdb and compact.mdb have; small.mdb has 40 keys of up to 100
// bytes.
inline LmdbRecords lmdb_records(int generation = 1, int count = 300,
                                int longest = 200) {
  LmdbRecords records;
  for (int i = 0; i < count; ++i) {
    if (generation == 1 && i % 3 == 1) continue;
    const int written = generation == 1 && i % 5 == 0 ? 1 : 0;
    const int size = i % 25 == 7 ? 1500 + 3 * i * i % 9000  // of several pages
                                 : (i + written) * 29 % 160;
    std::string value;
    for (int j = 0; j < size; ++j) value += char((i + written + 7 * j) % 251);
    std::string key = std::to_string(10000 + i).substr(1);
    key.append(size_t(i * 37 % (longest - 3)), 'k');
    records.emplace_back(std::move(key), std::move(value));
  }
  return records;
}

}  // namespace tagflow::checkpoint
