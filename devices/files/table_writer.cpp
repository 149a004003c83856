#include <leveldb/env.h>
#include <leveldb/options.h>
#include <leveldb/table_builder.h>

#include "devices/files/table.h"

namespace tagflow::checkpoint {
namespace {

// A string that LevelDB writes to as a file.
class TextFile final : public leveldb::WritableFile {
 public:
  leveldb::Status Append(const leveldb::Slice& data) override {
    text.append(data.data(), data.size());
    return {};
  }
  leveldb::Status Close() override { return {}; }
  leveldb::Status Flush() override { return {}; }
  leveldb::Status Sync() override { return {}; }

  std::string text;
};

}  // namespace

Result<std::string> format_table(const std::vector<TableEntry>& entries) {
  leveldb::Options options;
  // As TensorFlow writes them: equal entries give equal bytes.
  options.compression = leveldb::kNoCompression;
  options.block_size = size_t{256} << 10;
  TextFile file;
  leveldb::TableBuilder builder(options, &file);
  try {
    for (const auto& [key, value] : entries) builder.Add(key, value);
    // The destructor asserts that the builder was finished. After Flush(),
    // Finish() has nothing left to do before it sets that.
    builder.Flush();
  } catch (...) {
    builder.Abandon();
    throw;
  }
  const leveldb::Status status = builder.Finish();
  if (status.ok()) return std::move(file.text);
  return error(Code::kInternal, "[checkpoint] cannot write an index: {}",
               status.ToString());
}

}  // namespace tagflow::checkpoint
