// The operating system's files, and their contents after a process was killed.
#include "devices/files/files.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>

#include "devices/files/atomic_file.h"
#include "devices/files/bundle_reader.h"
#include "devices/files/bundle_writer.h"
#include "devices/files/state.h"
#include "tests/devices/files/examples.h"

namespace tagflow::checkpoint {
namespace {

template <class T>
std::string text_of(const Result<T>& result) {
  return result.status().to_string();
}

TEST_CASE("errors of files have the code of their cause, and name the file") {
  const TempFolder folder("files");
  FileSystem& files = local_files();
  CHECK(text_of(files.open(folder.path("x"))) ==
        fmt::format("NotFound: [checkpoint] cannot open \"{}\": No such file "
                    "or directory",
                    folder.path("x")));
  CHECK(text_of(files.open(folder.path(""))).find("is not a regular file") !=
        std::string::npos);
  REQUIRE(::mkfifo(folder.path("pipe").c_str(), 0600) == 0);
  CHECK(
      text_of(files.open(folder.path("pipe"))).find("is not a regular file") !=
      std::string::npos);
  REQUIRE(write_atomically(folder.path("f"), "text", {}).ok());
  CHECK(files.create(folder.path("f")).status().code() == Code::kAlreadyExists);
  CHECK(
      text_of(read_whole(files, folder.path("f"), 3)).find("the limit is 3") !=
      std::string::npos);
  CHECK(read_whole(files, folder.path("f"), 4).value() == "text");
  REQUIRE(::symlink("loop", folder.path("loop").c_str()) == 0);
  CHECK(files.open(folder.path("loop")).status().code() == Code::kNotFound);
  // A file is not a folder.
  CHECK(!write_atomically(folder.path("f/g"), "text", {}).ok());
  CHECK(files.make_folder("/proc/none").to_string() ==
        "NotFound: [checkpoint] cannot make the folder \"/proc/none\": No such "
        "file or directory");
  CHECK(files.make_folder(folder.path("f")).to_string() ==
        fmt::format("NotFound: [checkpoint] cannot make the folder \"{}\": Not "
                    "a directory",
                    folder.path("f")));
  REQUIRE(write_atomically(folder.path("new/folder/g"), "text", {}).ok());
  CHECK(bytes_of(folder.path("new/folder/g")) == "text");
}

TEST_CASE("a file that does not fit leaves nothing behind") {
  const TempFolder folder("full");
  // The one kind of full disk that a test can have.
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const Status status =
      write_atomically(folder.path("f"), std::string(5000, 'x'), {});
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, handler);
  CHECK(status.code() == Code::kResourceExhausted);
  CHECK(folder.names().empty());
}

// Saves checkpoints, one after the other, until it is killed.
[[noreturn]] void save_forever(const TempFolder& folder) {
  for (int step = 0;; ++step) {
    const std::string prefix = folder.path(fmt::format("step-{}", step));
    const Tensor number = Tensor::scalar(int32_t(step));
    Tensor large = Tensor::make(DataType::kInt32, {20'000});
    for (int32_t& element : large.mutable_flat<int32_t>()) element = step;
    auto writer = BundleWriter::create(prefix, 2, {nullptr, false});
    CheckpointState state;
    state.newest = prefix;
    const bool ok =
        writer.ok() && (*writer)->add("step", number).ok() &&
        (*writer)->add("large", large).ok() && (*writer)->finish().ok() &&
        (*writer)->publish().ok() &&
        write_checkpoint_state(folder.path(""), state, {nullptr, false}).ok();
    if (!ok) ::_exit(1);
    // As savers do, which keep the last few.
    const std::string old = folder.path(fmt::format("step-{}", step - 3));
    static_cast<void>(local_files().remove(index_path(old)));
    for (int i = 0; i < 2; ++i)
      static_cast<void>(local_files().remove(data_path(old, i, 2)));
  }
}

TEST_CASE("a process that is killed at any moment leaves a whole checkpoint") {
  constexpr int kKills = 200;
  int found = 0;
  for (int kill = 0; kill < kKills; ++kill) {
    const TempFolder folder("killed");
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) save_forever(folder);
    // Later and later, over some saves.
    ::usleep(useconds_t(300 + 37 * kill));
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    const auto newest = find_newest_checkpoint(folder.path(""));
    // The first may not have come to its end.
    if (!newest.ok()) {
      CHECK(!local_files().exists(folder.path("checkpoint")));
      CHECK(!local_files().exists(folder.path("step-0.index")));
      continue;
    }
    ++found;
    const auto reader = BundleReader::open(newest->prefix);
    REQUIRE(reader.ok());
    const auto step = (*reader)->read("step");
    const auto large = (*reader)->read("large");
    REQUIRE(step.ok());
    REQUIRE(large.ok());
    CHECK(newest->prefix.ends_with(
        fmt::format("step-{}", step->scalar_value<int32_t>())));
    for (const int32_t element : large->flat<int32_t>())
      REQUIRE(element == step->scalar_value<int32_t>());
  }
  // Else it tests nothing.
  CHECK(found > 10);
}

}  // namespace
}  // namespace tagflow::checkpoint
