#include "devices/files/host_access.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "devices/kernel_registry.h"
#include "graph/op_registry.h"
#include "tests/devices/kernel_fixture.h"
#include "tests/devices/one_step.h"
#include "tests/source_path.h"
#include "tests/temp_path.h"

namespace tagflow::devices {
namespace {

namespace fs = std::filesystem;

// Uses files, which the definition of its op does not say.
class SilentKernel : public CheapKernel {
 public:
  explicit SilentKernel(const KernelInfo&) {}
  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(const HostAccess* host, files_of(context));
    return host->path_to_read("x").status();
  }
};

}  // namespace

TEST_CASE("a kernel gets no files if the definition of its op has none") {
  graph::OpRegistry::global().add(
      graph::OpDefBuilder("SilentFileTestOp").stateful());
  KernelRegistry::global().add<SilentKernel>("SilentFileTestOp");
  expect_error(run_op("SilentFileTestOp", {}), Code::kInternal,
               "the kernel uses files, but the definition of its op does not "
               "say so");
}

TEST_CASE("kernels open files and print only as their sessions allow") {
  // Calls that open, make, list, change or remove files, or print.
  const std::regex uses(
      "\\b(f?open|opendir|fstream|[io]fstream|fopen|creat|mkdir|unlink|rename|"
      "stat|mmap)\\s*[({]|\\bi?o?fstream\\s+\\w|Bundle(Reader|Writer|Merge)::|"
      "\\bfilesystem::|\\bstd(out|err),|, std(out|err)\\)");
  const std::regex asks("files_of\\(|host_access_of\\(|HostAccess&");
  int sources = 0;
  for (const auto& entry :
       fs::recursive_directory_iterator(source_path("devices/kernels"))) {
    const fs::path& path = entry.path();
    // What uses paths that its callers have resolved: its headers say so.
    if (!entry.is_regular_file() || path.filename() == "regular_file.h" ||
        path.filename() == "record_source.cpp")
      continue;
    std::ifstream file(path);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    if (!std::regex_search(text, uses)) continue;
    ++sources;
    CHECK_MESSAGE(std::regex_search(text, asks), path.string());
  }
  CHECK(sources >= 5);
}

TEST_CASE("what a graph prints goes to the sink of its session") {
  std::vector<std::string> texts;
  OneStep step;
  step.resources.set_host_access(std::make_shared<HostAccess>(
      graph::OpPolicy(), [&](PrintStream stream, std::string_view text) {
        texts.push_back(stream == PrintStream::kOutput ? "out: " : "error: ");
        texts.back() += text;
      }));
  const Tensor text = Tensor::scalar("a");
  for (const char* stream : {"stdout", "stderr", "log(info)", "log(error)"})
    CHECK(step.run("PrintV2", {text}, {{"output_stream", stream}}).ok());
  CHECK(step.run("Print", {text, Tensor::scalar(1)}, {{"message", "b"}}).ok());
  CHECK(texts == std::vector<std::string>{"out: a\n", "error: a\n",
                                          "error: a\n", "error: a\n",
                                          "error: b[1]\n"});
}

TEST_CASE("nothing is printed into a pipe, which nobody may read") {
  const fs::path pipe = tagflow::testing::temp_path("print_pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  expect_error(run_op("PrintV2", {Tensor::scalar("a")},
                      {{"output_stream", "file://" + pipe.string()}}),
               Code::kInvalidArgument, "is not a regular file");
  fs::remove(pipe);
}

}  // namespace tagflow::devices
