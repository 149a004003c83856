// Bytes compressed by zlib.
#pragma once

#include <doctest/doctest.h>
#include <zlib.h>

#include <string>

namespace tagflow::testing {

inline std::string deflated(std::string text, bool gzip) {
  z_stream z{};
  REQUIRE(deflateInit2(&z, 6, Z_DEFLATED, MAX_WBITS + (gzip ? 16 : 0), 8,
                       Z_DEFAULT_STRATEGY) == Z_OK);
  std::string bytes(deflateBound(&z, uLong(text.size())), '\0');
  z.next_in = reinterpret_cast<Bytef*>(text.data());
  z.avail_in = uInt(text.size());
  z.next_out = reinterpret_cast<Bytef*>(bytes.data());
  z.avail_out = uInt(bytes.size());
  REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
  bytes.resize(z.total_out);
  deflateEnd(&z);
  return bytes;
}

}  // namespace tagflow::testing
