#include "devices/files/inflater.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>

namespace tagflow::checkpoint {

struct Inflater::Stream {
  z_stream z{};
};

Result<Compression> compression_of(std::string_view name) {
  if (name.empty() || name == "NONE") return Compression::kNone;
  if (name == "ZLIB") return Compression::kZlib;
  if (name == "GZIP") return Compression::kGzip;
  return invalid_argument(
      "compression \"{}\" is unknown: there are \"\", \"ZLIB\" and \"GZIP\"",
      name);
}

std::string_view name_of(Compression compression) {
  switch (compression) {
    case Compression::kZlib:
      return "ZLIB";
    case Compression::kGzip:
      return "GZIP";
    case Compression::kNone:
      break;
  }
  return "no compression";
}

Inflater::Inflater(Compression compression)
    : compression_(compression), stream_(std::make_unique<Stream>()) {
  // Adding 16 to the size of the window asks for the format of gzip.
  const int window = MAX_WBITS + (compression == Compression::kGzip ? 16 : 0);
  if (inflateInit2(&stream_->z, window) != Z_OK) throw std::bad_alloc();
}

Inflater::~Inflater() { inflateEnd(&stream_->z); }

Result<size_t> Inflater::inflate(std::string_view& input,
                                 std::span<char> output) {
  constexpr size_t kMost = std::numeric_limits<uInt>::max();
  z_stream& z = stream_->z;
  size_t written = 0;
  while (written < output.size()) {
    if (at_end_) {
      if (compression_ != Compression::kGzip) input = {};
      if (input.empty()) break;
      // Another stream follows.
      if (inflateReset(&z) != Z_OK)
        return error(Code::kInternal, "zlib cannot be reset");
      at_end_ = false;
    }
    const size_t given = std::min(input.size(), kMost);
    const size_t room = std::min(output.size() - written, kMost);
    // zlib does not change its input.
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
    z.avail_in = uInt(given);
    z.next_out = reinterpret_cast<Bytef*>(output.data() + written);
    z.avail_out = uInt(room);
    const int code = ::inflate(&z, Z_NO_FLUSH);
    const size_t used = given - z.avail_in, made = room - z.avail_out;
    input.remove_prefix(used);
    written += made;
    if (code == Z_STREAM_END) {
      at_end_ = true;
    } else if (code == Z_MEM_ERROR) {
      return Status::out_of_memory();
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      return error(Code::kDataLoss, "bytes are not compressed by {}: {}",
                   name_of(compression_),
                   z.msg != nullptr ? z.msg : "a dictionary is missing");
    } else if (used == 0 && made == 0) {
      break;
    }
  }
  return written;
}

}  // namespace tagflow::checkpoint
