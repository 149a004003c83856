// Workloads: files of tensors.
//
//   checkpoint   a bundle of --bytes of floats, in 16 tensors: written, and
//                read again, with checksums, from and to the page cache, by one
//                thread. The value is what is written; the config has what is
//                read, what is written to the disk (fsync), and, for
//                comparison, copies of the tensors in memory
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "apps/bench/stopwatch.h"
#include "apps/bench/workload.h"
#include "devices/checkpoint/bundle_reader.h"
#include "devices/checkpoint/bundle_writer.h"

namespace tagflow::apps {
namespace {

constexpr int kTensors = 16;

std::string checkpoint_name(int i) { return fmt::format("tensor_{}", i); }

class ScratchFolder {
 public:
  ScratchFolder()
      : path_(std::filesystem::temp_directory_path() /
              fmt::format("tagflow_bench_{}", ::getpid())) {
    std::filesystem::create_directories(path_);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path(std::string_view name) const {
    return (path_ / name).string();
  }

 private:
  const std::filesystem::path path_;
};

Status write_bundle(const std::string& prefix,
                    const std::vector<Tensor>& tensors, bool sync) {
  TAGFLOW_ASSIGN(const auto writer,
                 checkpoint::BundleWriter::create(prefix, 1, {nullptr, sync}));
  for (int i = 0; i < kTensors; ++i)
    TAGFLOW_RETURN_IF_ERROR(
        writer->add(checkpoint_name(i), tensors[size_t(i)]));
  TAGFLOW_RETURN_IF_ERROR(writer->finish());
  return writer->publish();
}

Status read_bundle(const std::string& prefix) {
  TAGFLOW_ASSIGN(const auto reader, checkpoint::BundleReader::open(prefix));
  for (int i = 0; i < kTensors; ++i)
    TAGFLOW_RETURN_IF_ERROR(reader->read(checkpoint_name(i)).status());
  return {};
}

// 10^9 bytes a second, the median of `repeats` after one that is not counted.
template <class Body>
Result<double> gigabytes_per_second(double bytes, int repeats, Body body) {
  std::vector<double> seconds;
  for (int i = 0; i <= repeats; ++i) {
    const Clock::time_point start = Clock::now();
    TAGFLOW_RETURN_IF_ERROR(body());
    const std::chrono::duration<double> took = Clock::now() - start;
    if (i > 0) seconds.push_back(took.count());
  }
  return bytes / median(std::move(seconds)) / 1e9;
}

}  // namespace

Result<Measurement> measure_checkpoint(const BenchOptions& options) {
  const int64_t elements =
      std::max<int64_t>(1, options.bytes / int64_t(kTensors * sizeof(float)));
  std::vector<Tensor> tensors;
  for (int i = 0; i < kTensors; ++i) {
    TAGFLOW_ASSIGN(Tensor tensor,
                   Tensor::allocate(DataType::kFloat, {elements}));
    std::fill_n(tensor.mutable_data<float>(), elements, 0.5f + float(i));
    tensors.push_back(std::move(tensor));
  }
  const double bytes = double(kTensors) * double(tensors[0].bytes());
  const ScratchFolder folder;
  const std::string prefix = folder.path("model");
  TAGFLOW_ASSIGN(const double written,
                 gigabytes_per_second(bytes, options.repeats, [&] {
                   return write_bundle(prefix, tensors, false);
                 }));
  TAGFLOW_ASSIGN(const double read,
                 gigabytes_per_second(bytes, options.repeats,
                                      [&] { return read_bundle(prefix); }));
  TAGFLOW_ASSIGN(const double synced, gigabytes_per_second(bytes, 1, [&] {
                   return write_bundle(prefix, tensors, true);
                 }));
  TAGFLOW_ASSIGN(const double copied,
                 gigabytes_per_second(bytes, options.repeats, [&]() -> Status {
                   for (const Tensor& tensor : tensors) {
                     const Tensor copy = tensor.clone();
                     if (!copy.valid()) return Status::out_of_memory();
                   }
                   return {};
                 }));
  return Measurement{"checkpoint",
                     written,
                     "GB/s",
                     {{"bytes", bytes},
                      {"read", read},
                      {"written_to_disk", synced},
                      {"copied_in_memory", copied},
                      {"repeats", options.repeats}}};
}

}  // namespace tagflow::apps
