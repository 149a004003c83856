// InputStream: reads a file front to back, in large pieces.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "devices/files/files.h"
#include "devices/files/inflater.h"

namespace tagflow::checkpoint {

// What is read stays in the stream's buffer, where it can be looked at without
// a copy. The buffer grows only as far as the file has bytes. Of a compressed
// file, all bytes and positions are those of the expanded text.
// Thread-compatible.
class InputStream {
 public:
  static constexpr size_t kPieceBytes = size_t(1) << 18;
  // No record, and no line, of a compressed file is longer: a few bytes could
  // ask for any amount of memory. As many as a picture has (media/picture.h).
  static constexpr uint64_t kMostExpanded = uint64_t(1) << 29;

  InputStream(std::unique_ptr<ReadableFile> file, Compression compression,
              size_t piece_bytes = kPieceBytes);

  // The next bytes: at least so many, or all that are left. Valid until the
  // next call of a function that is not const. Errors of the file; DataLoss if
  // the file is not compressed so, or ends too early; ResourceExhausted, before
  // memory is taken, if it is compressed, and these are more than
  // kMostExpanded.
  Result<std::string_view> peek(size_t bytes);
  // Goes on. REQUIRES: peek() has returned so many.
  void skip(size_t bytes) {
    begin_ += bytes;
    position_ += bytes;
  }
  // As skip(), of any number of bytes: those that are not in the buffer are not
  // read, unless the file is compressed. False if it ends before; then nothing
  // is left. Errors as of peek().
  Result<bool> skip_ahead(uint64_t bytes);
  bool is_compressed() const { return inflater_ != nullptr; }
  // The number of bytes before the next one.
  uint64_t position() const { return position_; }
  // The next bytes up to a line end, and goes behind that. At the end of the
  // file, which needs no line end, false. `line` is valid as for peek().
  Result<bool> read_line(std::string_view& line);

 private:
  // ResourceExhausted as of peek().
  Status check_expanded(uint64_t bytes) const;
  // Adds a piece of the file to the buffer; at_end_ if there is none.
  Status fill();
  Status fill_plain();
  Status fill_inflated();
  // Makes room behind the bytes that are left.
  void make_room();

  std::unique_ptr<ReadableFile> file_;
  size_t piece_bytes_;
  std::unique_ptr<Inflater> inflater_;  // null: not compressed
  std::string buffer_;
  size_t begin_ = 0, end_ = 0;  // what is left in the buffer
  std::string compressed_;      // a piece of the file
  std::string_view packed_;     // what is left of it
  uint64_t offset_ = 0;         // in the file
  uint64_t position_ = 0;
  bool at_end_ = false;
};

}  // namespace tagflow::checkpoint
