#include "devices/files/bundle_writer.h"

#include <algorithm>
#include <functional>

#include "devices/files/crc32c.h"
#include "devices/files/string_elements.h"

namespace tagflow::checkpoint {

Status check_prefix(std::string_view prefix) {
  if (!prefix.empty() && !prefix.ends_with('/') &&
      prefix.find('\0') == prefix.npos)
    return {};
  return invalid_argument("[checkpoint] {:?} is not a prefix of file names",
                          prefix);
}

Status remove_index(const std::string& prefix, const WriteOptions& options) {
  FileSystem& files = options.file_system();
  const std::string path = index_path(prefix);
  if (!files.exists(path)) return {};
  TAGFLOW_RETURN_IF_ERROR(files.remove(path));
  return options.sync ? files.sync_folder(folder_of(path)) : Status();
}

Result<std::unique_ptr<BundleWriter>> BundleWriter::create(
    std::string prefix, int num_shards, const WriteOptions& options) {
  TAGFLOW_RETURN_IF_ERROR(check_prefix(prefix));
  std::unique_ptr<BundleWriter> writer(
      new BundleWriter(std::move(prefix), options));
  for (int i = 0; i < num_shards; ++i) {
    TAGFLOW_ASSIGN(
        auto file,
        AtomicFile::create(data_path(writer->prefix_, i, num_shards), options));
    writer->shards_.push_back(std::move(file));
  }
  return writer;
}

BundleWriter::~BundleWriter() = default;

Status BundleWriter::check_new(std::string_view name,
                               const Tensor& tensor) const {
  if (name.empty() || name.front() == '\0')
    return invalid_argument("[checkpoint] {:?} is not a name of a tensor",
                            name);
  if (!tensor.valid() ||
      (!is_plain(tensor.dtype()) && tensor.dtype() != DataType::kString))
    return error(Code::kUnimplemented,
                 "[checkpoint] tensor {:?} is {}, which cannot be saved", name,
                 tensor.describe());
  return {};
}

Status BundleWriter::write(std::string key, const Tensor& tensor) {
  const auto shard = std::ranges::min_element(
      shards_, {}, [](const auto& file) { return file->size(); });
  AtomicFile& file = **shard;
  BundleEntry entry;
  entry.key = key;
  entry.dtype = int(tensor.dtype());
  entry.shape = tensor.shape();
  entry.shard = int(shard - shards_.begin());
  entry.offset = file.size();
  uint32_t crc = 0;
  if (tensor.dtype() == DataType::kString) {
    TAGFLOW_ASSIGN(crc,
                   write_string_elements(tensor, [&](std::string_view bytes) {
                     return file.append(bytes);
                   }));
  } else {
    TAGFLOW_RETURN_IF_ERROR(file.append(
        {static_cast<const char*>(tensor.raw()), tensor.bytes()}, crc));
  }
  entry.size = file.size() - entry.offset;
  entry.crc = mask_crc32c(crc);
  entries_.emplace(std::move(key), std::move(entry));
  return {};
}

Status BundleWriter::add(std::string_view name, const Tensor& tensor) {
  TAGFLOW_RETURN_IF_ERROR(check_new(name, tensor));
  if (entries_.contains(name))
    return invalid_argument("[checkpoint] tensor {:?} is added twice", name);
  return write(std::string(name), tensor);
}

Status BundleWriter::add_slice(std::string_view name, const Shape& whole,
                               const TensorSlice& slice, const Tensor& tensor) {
  TAGFLOW_RETURN_IF_ERROR(check_new(name, tensor));
  const auto refuse = [&](std::string_view what) {
    return invalid_argument("[checkpoint] slice {} of tensor {:?}: {}",
                            slice.to_string(), name, what);
  };
  const auto shape = slice.shape_in(whole);
  if (!shape.ok()) return refuse(shape.status().message());
  if (!(*shape == tensor.shape()))
    return refuse(fmt::format("its shape must be {}, not {}",
                              shape->to_string(), tensor.shape().to_string()));
  // TensorFlow writes such a slice as a whole tensor.
  if (*shape == whole) return add(name, tensor);

  const auto it = entries_.find(name);
  if (it != entries_.end()) {
    const BundleEntry& entry = it->second;
    if (!entry.is_sliced()) return refuse("the tensor is added as a whole");
    if (entry.dtype != int(tensor.dtype()) || !(entry.shape == whole))
      return refuse(fmt::format("the tensor is {}{}, not {}{}",
                                entry.dtype_text(), entry.shape.to_string(),
                                dtype_name(tensor.dtype()), whole.to_string()));
    if (entry.slices.size() == kMaxSlices)
      return refuse(fmt::format("it has {} others", kMaxSlices));
  }
  std::string key = slice_key(name, slice);
  if (entries_.contains(key)) return refuse("it is added twice");
  TAGFLOW_RETURN_IF_ERROR(write(std::move(key), tensor));
  BundleEntry& entry = entries_[std::string(name)];
  entry.key = name;
  entry.dtype = int(tensor.dtype());
  entry.shape = whole;
  entry.slices.push_back(slice);
  return {};
}

Status BundleWriter::finish() {
  for (const auto& [key, entry] : entries_)
    if (Status status = check_disjoint(entry.resolved_slices()); !status.ok())
      return std::move(status).with_prefix(
          fmt::format("[checkpoint] tensor {:?}: ", key));
  for (const auto& shard : shards_) TAGFLOW_RETURN_IF_ERROR(shard->finish());
  BundleIndex index;
  index.num_shards = int(shards_.size());
  for (auto& [key, entry] : entries_) index.entries.push_back(std::move(entry));
  entries_.clear();
  TAGFLOW_ASSIGN(const std::string bytes, format_bundle_index(index));
  TAGFLOW_ASSIGN(auto file, AtomicFile::create(index_path(prefix_), options_));
  TAGFLOW_RETURN_IF_ERROR(file->append(bytes));
  TAGFLOW_RETURN_IF_ERROR(file->finish());
  index_ = std::move(file);
  return {};
}

Status BundleWriter::publish_files() {
  FileSystem& files = options_.file_system();
  const std::string folder = folder_of(prefix_);
  for (const auto& shard : shards_) TAGFLOW_RETURN_IF_ERROR(shard->publish());
  if (options_.sync) TAGFLOW_RETURN_IF_ERROR(files.sync_folder(folder));
  TAGFLOW_RETURN_IF_ERROR(index_->publish());
  return options_.sync ? files.sync_folder(folder) : Status();
}

Status BundleWriter::publish() {
  TAGFLOW_RETURN_IF_ERROR(remove_index(prefix_, options_));
  Status status = publish_files();
  if (status.ok()) return status;
  FileSystem& files = options_.file_system();
  // The index first: if it cannot be removed, its shards must stay.
  const std::string index = index_path(prefix_);
  if (files.exists(index) && !files.remove(index).ok()) return status;
  for (const auto& shard : shards_)
    if (shard->is_published()) static_cast<void>(files.remove(shard->target()));
  return status;
}

}  // namespace tagflow::checkpoint
