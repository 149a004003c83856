#include "graph/op_library.h"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "tests/temp_path.h"

// Files that are not op libraries. tests/consumer/op_library has some that are.
using namespace tagflow;
using namespace tagflow::graph;

namespace {

bool has(const Status& status, std::string_view text) {
  return status.message().find(text) != std::string_view::npos;
}

}  // namespace

TEST_CASE("an op library that is not there is not found") {
  CHECK(load_op_library("no/such.so").to_string() ==
        "NotFound: [op library] \"no/such.so\": there is no such file");
  CHECK(load_op_library("").code() == Code::kNotFound);
  // A file, though not of the working directory, that the system would find.
  CHECK(load_op_library("libc.so.6").code() == Code::kNotFound);
}

TEST_CASE("a folder or a pipe is refused as an op library") {
  const Status folder = load_op_library("/tmp");
  CHECK(folder.code() == Code::kInvalidArgument);
  CHECK(has(folder, "it is not a regular file"));
  CHECK(load_op_library("/dev/null").code() == Code::kInvalidArgument);
}

TEST_CASE("a file that the system cannot load is refused with its reason") {
  const auto path = tagflow::testing::temp_path("no_library.so");
  std::ofstream(path) << "a text of more than sixty-four letters, which begins "
                         "as no library begins\n";
  const Status status = load_op_library(path.string());
  std::filesystem::remove(path);
  CHECK(status.code() == Code::kInvalidArgument);
  CHECK(has(status, "it cannot be loaded: " + path.string()));
  CHECK(has(status, "ELF"));
}

TEST_CASE("a library that is cut off is refused before it is mapped") {
  void* const function = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
  Dl_info libc;
  REQUIRE(function != nullptr);
  REQUIRE(dladdr(function, &libc) != 0);
  std::string bytes(20'000, '\0');
  std::ifstream(libc.dli_fname, std::ios::binary)
      .read(bytes.data(), std::streamsize(bytes.size()));
  const auto path = tagflow::testing::temp_path("cut_off.so");
  std::ofstream(path, std::ios::binary) << bytes;
  const Status status = load_op_library(path.string());
  std::filesystem::remove(path);
  CHECK(status.code() == Code::kInvalidArgument);
  CHECK(status.message().ends_with(": it is cut off"));
}

TEST_CASE("a file without TAGFLOW_OP_LIBRARY is refused as an op library") {
  void* const function = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
  Dl_info libc;
  REQUIRE(function != nullptr);
  REQUIRE(dladdr(function, &libc) != 0);
  const Status status = load_op_library(libc.dli_fname);
  CHECK(status.code() == Code::kInvalidArgument);
  CHECK(has(status, "it lacks TAGFLOW_OP_LIBRARY"));
  CHECK(load_op_library(libc.dli_fname).to_string() == status.to_string());
}
