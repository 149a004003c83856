#include "devices/files/direct_output.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "devices/files/atomic_file.h"
#include "devices/files/bundle_shard.h"
#include "devices/files/bundle_writer.h"
#include "devices/files/scoped_files.h"
#include "tests/temp_path.h"

namespace tagflow::checkpoint {
namespace {

namespace fs = std::filesystem;

// A new file, which is removed with it.
struct NewFile {
  explicit NewFile(const fs::path& folder)
      : path(folder / ("direct." + std::to_string(::getpid()))),
        descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600)) {
    REQUIRE(descriptor >= 0);
  }
  ~NewFile() {
    ::close(descriptor);
    fs::remove(path);
  }
  std::string contents() const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  const fs::path path;
  const int descriptor;
};

std::string random_bytes(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes;
  bytes.reserve(count + sizeof(uint64_t));
  while (bytes.size() < count) {
    const uint64_t word = random();
    bytes.append(reinterpret_cast<const char*>(&word), sizeof(word));
  }
  bytes.resize(count);
  return bytes;
}

// Those of a disk, and of memory, which may not have it.
std::vector<fs::path> folders() {
  std::vector<fs::path> folders = {fs::temp_directory_path()};
  if (fs::is_directory("/dev/shm")) folders.emplace_back("/dev/shm");
  return folders;
}

constexpr size_t kBlock = size_t{4} << 20;

}  // namespace

TEST_CASE("a file that is written past the cache has all bytes") {
  for (const fs::path& folder : folders())
    for (const size_t size :
         {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, size_t{4097},
          kBlock - 1, kBlock + 1, 2 * kBlock + 12'345})
      for (const size_t piece : {size_t{1000}, size_t{256} << 10, size}) {
        if (piece == 0 || size / piece > 100) continue;
        CAPTURE(folder.string());
        CAPTURE(size);
        CAPTURE(piece);
        const std::string bytes = random_bytes(size, size);
        const NewFile file(folder);
        const auto output = DirectOutput::begin(file.descriptor);
        if (output == nullptr) continue;
        for (size_t at = 0; at < size; at += piece)
          REQUIRE(output->write(std::string_view(bytes).substr(at, piece)));
        REQUIRE(output->finish());
        CHECK(file.contents() == bytes);
      }
}

TEST_CASE("a file past the cache that becomes too large is an error") {
  const NewFile file(fs::temp_directory_path());
  const auto output = DirectOutput::begin(file.descriptor);
  if (output == nullptr) return;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{100'000, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string bytes(kBlock / 2, 'x');
  bool is_well = true;
  int number = 0;
  for (int i = 0; i < 4 && is_well; ++i) {
    is_well = output->write(bytes);
    number = errno;
  }
  if (is_well) {
    is_well = output->finish();
    number = errno;
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  CHECK(!is_well);
  CHECK(number == EFBIG);
}

// Counts the files that are to be written through.
class CountingFiles final : public ScopedFiles {
 public:
  CountingFiles()
      : ScopedFiles(graph::FileScope::everywhere(),
                    graph::FileScope::everywhere()) {}
  Result<std::unique_ptr<WritableFile>> create(
      const std::string& path) override {
    TAGFLOW_ASSIGN(auto file, ScopedFiles::create(path));
    return std::unique_ptr<WritableFile>(new Counted(std::move(file), through));
  }
  int through = 0;

 private:
  class Counted final : public WritableFile {
   public:
    Counted(std::unique_ptr<WritableFile> file, int& through)
        : file_(std::move(file)), through_(through) {}
    Result<size_t> write(std::string_view bytes) override {
      return file_->write(bytes);
    }
    void write_through() override {
      ++through_;
      file_->write_through();
    }
    Status sync() override { return file_->sync(); }

   private:
    const std::unique_ptr<WritableFile> file_;
    int& through_;
  };
};

TEST_CASE("the data of a bundle that is synced goes past the cache") {
  const fs::path folder = testing::temp_path("direct_bundle");
  for (const auto& [sync, shards, through] :
       {std::tuple{true, 1, 1}, {false, 1, 0}, {true, 2, 0}}) {
    CAPTURE(sync);
    CAPTURE(shards);
    CountingFiles files;
    const auto writer = BundleWriter::create(
        (folder / "model").string(), shards, {.files = &files, .sync = sync});
    REQUIRE(writer.ok());
    REQUIRE((*writer)->add("x", Tensor::scalar(1.f)).ok());
    REQUIRE((*writer)->finish().ok());
    REQUIRE((*writer)->publish().ok());
    CHECK(files.through == through);
    fs::remove_all(folder);
  }
  CountingFiles files;
  std::vector<Tensor> tensors = {Tensor::scalar(1.f)};
  const std::string key = "x";
  const std::atomic<bool> stopped = false;
  const auto shard =
      write_shard((folder / "model.data-00001-of-00002").string(), 7, {&key, 1},
                  tensors, stopped, {.files = &files});
  REQUIRE(shard.ok());
  CHECK(files.through == 1);
}

TEST_CASE("a large file that is synced has all bytes") {
  for (const bool sync : {true, false}) {
    const std::string path = testing::temp_path("direct_atomic");
    const std::string bytes = random_bytes(kBlock + 77, 7);
    {
      const auto file = AtomicFile::create(path, {.sync = sync});
      REQUIRE(file.ok());
      (*file)->write_through();
      uint32_t crc = 0;
      REQUIRE((*file)->append(bytes, crc).ok());
      REQUIRE((*file)->append("end").ok());
      REQUIRE((*file)->finish().ok());
      REQUIRE((*file)->publish().ok());
    }
    std::ifstream file(path, std::ios::binary);
    const std::string read{std::istreambuf_iterator<char>(file), {}};
    CHECK(read == bytes + "end");
    fs::remove(path);
  }
}

}  // namespace tagflow::checkpoint
