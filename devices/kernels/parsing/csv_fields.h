// Splits lines of text into fields (RFC 4180, and TensorFlow where it differs).
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace tagflow::devices {

struct CsvFormat {
  char delimiter = ',';
  // Fields may be in quotes, in which a delimiter is text, and two quotes are
  // one.
  bool has_quotes = true;
  // The columns that are wanted, in increasing order; none: all.
  std::vector<int64_t> columns;
};

// Adds the wanted fields of a record. They refer to the record, or to texts
// that are added to `unescaped`. Returns what is wrong with the record; null if
// nothing is. Thread-safe.
const char* split_record(std::string_view record, const CsvFormat& format,
                         std::vector<std::string_view>& fields,
                         std::deque<std::string>& unescaped);

}  // namespace tagflow::devices
