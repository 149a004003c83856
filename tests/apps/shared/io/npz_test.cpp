#include "apps/shared/io/npz.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "apps/shared/io/file.h"
#include "tests/temp_folder.h"

namespace tagflow {
namespace {

using io::NamedTensor;
using io::read_npz;
using io::write_npz;

TEST_CASE("arrays of an archive come back, and bytes do not depend on time") {
  const testing::TempFolder folder("npz_arrays");
  const auto path = folder.path() / "a.npz";
  const std::vector<NamedTensor> arrays = {
      {"x", Tensor::vector<float>({1, 2, 3})},
      {"deep/y", Tensor::scalar<int64_t>(7)},
      {"z", Tensor::make(DataType::kFloat, {0})}};
  REQUIRE(write_npz(path, arrays).ok());
  for (const auto& [name, value] : arrays) {
    const Result<Tensor> read = read_npz(path, name);
    REQUIRE(read.ok());
    CHECK(read->dtype() == value.dtype());
    CHECK(read->to_string() == value.to_string());
  }
  const std::string first = io::read_file(path).value();
  REQUIRE(write_npz(path, arrays).ok());
  CHECK(io::read_file(path).value() == first);
}

TEST_CASE("what an archive does not have is said with what it has") {
  const testing::TempFolder folder("npz_missing");
  const auto path = folder.path() / "a.npz";
  REQUIRE(write_npz(path,
                    std::vector<NamedTensor>{{"x", Tensor::vector<float>({1})},
                                             {"y", Tensor::vector<float>({2})}})
              .ok());
  CHECK(read_npz(path, "z").status().message() ==
        fmt::format("[npz] \"{}\" has no array \"z\"; it has \"x\", \"y\"",
                    path.string()));
  CHECK(read_npz(folder.path() / "b.npz", "x").status().code() ==
        Code::kNotFound);
  CHECK(write_npz(path,
                  std::vector<NamedTensor>{{"x", Tensor::vector<float>({1})},
                                           {"x", Tensor::vector<float>({2})}})
            .code() == Code::kInvalidArgument);
  CHECK(write_npz(path, {}).code() == Code::kInvalidArgument);
  CHECK(write_npz(path,
                  std::vector<NamedTensor>{
                      {"s", Tensor::scalar(std::string("text"))}})
            .code() == Code::kInvalidArgument);
}

TEST_CASE("a damaged archive is an error, whichever byte it is") {
  const testing::TempFolder folder("npz_damaged");
  const auto path = folder.path() / "a.npz";
  const Tensor value = Tensor::vector<float>({1, 2, 3});
  REQUIRE(write_npz(path, std::vector<NamedTensor>{{"x", value}}).ok());
  const std::string bytes = io::read_file(path).value();
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string other = bytes;
    other[i] = char(other[i] ^ 0x55);
    REQUIRE(io::write_file(path, other).ok());
    // A byte of no meaning may change; the values may not.
    const Result<Tensor> read = read_npz(path, "x");
    if (read.ok()) CHECK(read->to_string() == value.to_string());
    REQUIRE(io::write_file(path, bytes.substr(0, i)).ok());
    CHECK(!read_npz(path, "x").ok());
  }
}

}  // namespace
}  // namespace tagflow
