// Fuzzes the splitting of CSV records. The first byte chooses the delimiter and
// the columns. Fields that are written again, in quotes, are the same fields.
#include <cstdlib>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "devices/kernels/parsing/csv_fields.h"

using namespace tagflow::devices;  // NOLINT: a fuzz target

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  CsvFormat format;
  if (data[0] & 1) format.delimiter = '\t';
  format.has_quotes = !(data[0] & 2);
  if (data[0] & 4) format.columns = {0, 2};
  const std::string_view record(reinterpret_cast<const char*>(data) + 1,
                                size - 1);
  std::vector<std::string_view> fields;
  std::deque<std::string> unescaped;
  if (split_record(record, format, fields, unescaped) != nullptr) return 0;
  if (!format.has_quotes || !format.columns.empty()) return 0;
  std::string again;
  for (const std::string_view field : fields) {
    if (!again.empty()) again += format.delimiter;
    again += '"';
    for (const char c : field) again += c == '"' ? "\"\"" : std::string(1, c);
    again += '"';
  }
  std::vector<std::string_view> same;
  std::deque<std::string> texts;
  if (split_record(again, format, same, texts) != nullptr || same != fields)
    std::abort();
  return 0;
}
