// Inflater: decompresses bytes of the formats of zlib.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "graph/status.h"

namespace tagflow::checkpoint {

enum class Compression : uint8_t { kNone, kZlib, kGzip };

// The compression with that name: "", "ZLIB" or "GZIP". InvalidArgument for
// another. Thread-safe.
Result<Compression> compression_of(std::string_view name);
std::string_view name_of(Compression compression);

// One compressed stream. Files of gzip may have several, one behind the other,
// which count as one; what follows a stream of zlib is ignored.
// Thread-compatible.
class Inflater {
 public:
  // REQUIRES: compression is not kNone. Throws std::bad_alloc.
  explicit Inflater(Compression compression);
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Fills as much of `output` as the input gives, and removes from `input` what
  // was used: after that, `output` is full, or `input` is empty, and there is
  // no more to come. Returns the number of bytes. DataLoss if the input is
  // damaged.
  Result<size_t> inflate(std::string_view& input, std::span<char> output);
  // Whether the bytes so far are a whole stream, or several.
  bool at_end() const { return at_end_; }

 private:
  struct Stream;
  const Compression compression_;
  const std::unique_ptr<Stream> stream_;
  bool at_end_ = false;
};

}  // namespace tagflow::checkpoint
