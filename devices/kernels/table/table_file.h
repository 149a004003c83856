// Entries of tables, read from text files.
#pragma once

#include <string>

#include "devices/kernel.h"

namespace tagflow::devices {

// The location of keys and values in a file.
struct TableFile {
  static constexpr int64_t kLineNumber = -1;
  static constexpr int64_t kWholeLine = -2;
  // The maximum length of a line.
  static constexpr size_t kMaxLineBytes = size_t(1) << 20;

  // A column, or one of the above.
  int64_t key_index = 0;
  int64_t value_index = 0;
  int64_t lines = -1;  // to be read; -1: all
  char delimiter = '\t';
  int64_t offset = 0;  // added to line numbers
};

struct TableEntries {
  Tensor keys;
  Tensor values;
};

// Reads the entries of these types from a file that the graph names.
// InvalidArgument, with the file and the line, if the text is invalid; NotFound
// if the file does not exist; PermissionDenied if the session must not read it.
Result<TableEntries> read_table_file(const KernelContext& context,
                                     const std::string& name,
                                     const TableFile& format, DataType key,
                                     DataType value);

}  // namespace tagflow::devices
