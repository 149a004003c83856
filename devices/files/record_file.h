// Files of records, as TensorFlow writes them (TFRecord):
//
//   length, 8 bytes | its checksum, 4 | data | its checksum, 4     a record
//
// Numbers are little-endian, checksums masked CRC-32C. The file may be
// compressed as a whole.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "devices/files/input_stream.h"

namespace tagflow::checkpoint {

// The next record of a stream; false at its end. `data` is valid until the
// stream is used again. DataLoss if the record is damaged, or ends too early:
// then the stream stays before it. A length that is wrong takes no memory.
// ResourceExhausted for a record of a compressed file that is longer than
// InputStream::kMostExpanded.
Result<bool> read_record(InputStream& stream, std::string_view& data);

// Adds a record to bytes that are to be written.
void append_record(std::string& to, std::string_view data);

}  // namespace tagflow::checkpoint
