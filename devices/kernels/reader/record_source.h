// RecordSource: the records of one file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "devices/files/inflater.h"
#include "devices/kernel.h"

namespace tagflow::devices {

class HostAccess;

// The settings from the node that makes a reader.
struct ReaderSpec {
  enum class Kind : uint8_t {
    kWholeFile,
    kTextLine,
    kFixed,
    kRecord,
    kIdentity,
    kLmdb
  };

  // Reads the attributes of a node such as TextLineReaderV2. InvalidArgument if
  // no such reader can exist.
  static Result<ReaderSpec> make(const KernelInfo& info);
  // As "TextLineReader".
  std::string_view name() const;
  bool operator==(const ReaderSpec&) const = default;

  Kind kind = Kind::kIdentity;
  checkpoint::Compression compression = checkpoint::Compression::kNone;
  int64_t skipped_lines = 0;                            // kTextLine
  int64_t header = 0, record = 0, footer = 0, hop = 0;  // kFixed, bytes
  bool refuses_rest = false;  // kFixed: bytes that are no whole record
  int64_t start = 0;  // kRecord: the byte that the first record begins at
};

struct Record {
  // Empty unless the file has it; then `number` is not used.
  std::string key;
  // Behind the file's name in the key: a line, a record, or a byte. Negative:
  // the name is the key.
  int64_t number = -1;
  std::string value;

  size_t bytes() const { return key.size() + value.size(); }
};

// Thread-compatible.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  // Goes on towards the first record, by a piece of the file: false if it is
  // not there yet. Before next(), to be called until it is true.
  virtual Result<bool> begin() { return true; }
  // The next record; false at the end. DataLoss if the file is damaged; errors
  // of reading it.
  virtual Result<bool> next(Record& record) = 0;
  // Whether the end follows for certain.
  virtual bool is_over() const { return false; }
};

// The path to open for `name`: that of HostAccess, and its errors. A folder
// stands for the file of the LMDB database in it.
Result<std::string> path_to_read(const ReaderSpec& spec, const HostAccess& host,
                                 const std::string& name);

// Opens a file, whose path is of path_to_read(): the caller answers for that.
// Errors of FileSystem. `name` is that which the graph gives to `path`.
Result<std::unique_ptr<RecordSource>> open_source(const ReaderSpec& spec,
                                                  const std::string& name,
                                                  const std::string& path);

}  // namespace tagflow::devices
