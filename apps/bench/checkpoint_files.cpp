#include "apps/bench/checkpoint_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "apps/bench/graphs.h"
#include "apps/bench/stopwatch.h"
#include "devices/files/bundle_reader.h"
#include "devices/files/bundle_writer.h"

namespace tagflow::apps {
namespace {

namespace fs = std::filesystem;

// Closes itself.
class RawFile {
 public:
  explicit RawFile(const std::string& path)
      : number_(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                       0600)) {}
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;
  ~RawFile() {
    if (number_ >= 0) ::close(number_);
  }
  bool is_open() const { return number_ >= 0; }
  // A mebibyte at a time.
  bool write(std::string_view bytes) const {
    constexpr size_t kBlock = size_t{1} << 20;
    while (!bytes.empty()) {
      const ssize_t count =
          ::write(number_, bytes.data(), std::min(bytes.size(), kBlock));
      if (count <= 0) return false;
      bytes.remove_prefix(size_t(count));
    }
    return true;
  }

 private:
  const int number_;
};

}  // namespace

Result<CheckpointFiles> CheckpointFiles::make(int64_t bytes) {
  TAGFLOW_ASSIGN(TemporaryFolder folder, TemporaryFolder::make());
  const int64_t each = bytes / int64_t(kCheckpointTensors * sizeof(float));
  return CheckpointFiles(std::move(folder), std::max<int64_t>(1, each));
}

double CheckpointFiles::bytes() const {
  return double(kCheckpointTensors) * double(elements_) * sizeof(float);
}

// Makes the tensors, and room for the files.
Status CheckpointFiles::start_write() {
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder_.path(), code))
    fs::remove(entry.path(), code);
  while (tensors_.size() < kCheckpointTensors) {
    TAGFLOW_ASSIGN(Tensor tensor,
                   Tensor::allocate(DataType::kFloat, {elements_}));
    std::fill_n(tensor.mutable_data<float>(), elements_,
                0.5f + float(tensors_.size()));
    tensors_.push_back(std::move(tensor));
  }
  return {};
}

Status CheckpointFiles::write_bundle(bool sync) const {
  TAGFLOW_ASSIGN(const auto writer, checkpoint::BundleWriter::create(
                                        prefix(), 1, {nullptr, sync}));
  for (int i = 0; i < kCheckpointTensors; ++i)
    TAGFLOW_RETURN_IF_ERROR(
        writer->add(checkpoint_name(i), tensors_[size_t(i)]));
  TAGFLOW_RETURN_IF_ERROR(writer->finish());
  return writer->publish();
}

Status CheckpointFiles::write_raw() const {
  const std::string path = (folder_.path() / "raw").string();
  const RawFile file(path);
  bool is_written = file.is_open();
  for (const Tensor& tensor : tensors_)
    is_written =
        is_written &&
        file.write({static_cast<const char*>(tensor.raw()), tensor.bytes()});
  if (is_written) return {};
  return error(Code::kPermissionDenied, "[bench] cannot write \"{}\"", path);
}

Result<double> CheckpointFiles::write_seconds(bool sync) {
  TAGFLOW_RETURN_IF_ERROR(start_write());
  return seconds_of([&] { return write_bundle(sync); });
}

Result<double> CheckpointFiles::raw_write_seconds() {
  TAGFLOW_RETURN_IF_ERROR(start_write());
  return seconds_of([&] { return write_raw(); });
}

Result<double> CheckpointFiles::read_seconds() const {
  return seconds_of([&]() -> Status {
    TAGFLOW_ASSIGN(const auto reader, checkpoint::BundleReader::open(prefix()));
    for (int i = 0; i < kCheckpointTensors; ++i)
      TAGFLOW_RETURN_IF_ERROR(reader->read(checkpoint_name(i)).status());
    return {};
  });
}

Result<double> CheckpointFiles::copy_seconds() {
  TAGFLOW_RETURN_IF_ERROR(start_write());
  return seconds_of([&]() -> Status {
    for (const Tensor& tensor : tensors_) {
      const Tensor copy = tensor.clone();
      if (!copy.valid()) return Status::out_of_memory();
    }
    return {};
  });
}

}  // namespace tagflow::apps
