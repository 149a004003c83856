#include "apps/shared/io/idx.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "apps/shared/io/file.h"
#include "graph/status_text.h"
#include "tests/temp_path.h"

namespace tagflow {
namespace {

using namespace std::string_view_literals;

// The result of reading a file of these bytes.
Result<Tensor> read(std::string_view bytes) {
  const auto path = testing::temp_path("idx");
  REQUIRE(io::write_file(path, bytes).ok());
  Result<Tensor> tensor = io::read_idx(path);
  std::filesystem::remove(path);
  return tensor;
}

constexpr std::string_view kHeader("\0\0\x08\x02\0\0\0\x02\0\0\0\x03", 12);

TEST_CASE("an IDX file of bytes is read, dimensions big-endian") {
  const auto tensor = read(std::string(kHeader) + "\1\2\3\4\5\6");
  REQUIRE(tensor.ok());
  CHECK(identical(*tensor, Tensor::of<uint8_t>({2, 3}, {1, 2, 3, 4, 5, 6})));
}

TEST_CASE("malformed IDX files are refused") {
  const std::string header(kHeader);
  CHECK(read("").status().code() == Code::kDataLoss);
  CHECK(read("PK\3\4").status().code() == Code::kInvalidArgument);
  CHECK(read(std::string("\0\0\x0d\x01\0\0\0\x01", 8)).status().code() ==
        Code::kInvalidArgument);
  CHECK(read(header.substr(0, 9)).status().code() == Code::kDataLoss);
  CHECK(read(header + "12345").status().code() == Code::kDataLoss);
  CHECK(read(header + "1234567").status().code() == Code::kInvalidArgument);
  // Promises 2^31 bytes and more, has four.
  CHECK(read(std::string("\0\0\x08\x01\x80\0\0\0"
                         "1234",
                         12))
            .status()
            .code() == Code::kDataLoss);
  CHECK(read(std::string("\0\0\x08\x02\xff\0\0\0\xff\0\0\0", 12))
            .status()
            .code() == Code::kInvalidArgument);
  // The number of elements overflows, which the shape finds.
  const Status overflow =
      read("\0\0\x08\x03\xff\0\0\0\xff\0\0\0\xff\0\0\0"sv).status();
  CHECK(overflow.code() == Code::kInvalidArgument);
  CHECK(mentions_file(overflow.message(), testing::temp_path("idx").string()));
  CHECK(io::read_idx("/no/such/file").status().code() == Code::kNotFound);
}

}  // namespace
}  // namespace tagflow
