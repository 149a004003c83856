#include "devices/files/bundle_writer.h"

#include <algorithm>
#include <functional>

#include "graph/fault.h"

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

Result<std::unique_ptr<BundleWriter>> BundleWriter::make(
    std::string prefix, int own_shards, int num_shards,
    const WriteOptions& options) {
  TAGFLOW_RETURN_IF_ERROR(check_prefix(prefix));
  std::unique_ptr<BundleWriter> writer(
      new BundleWriter(std::move(prefix), num_shards, options));
  for (int i = 0; i < own_shards; ++i) {
    TAGFLOW_ASSIGN(
        auto file,
        AtomicFile::create(data_path(writer->prefix_, i, num_shards), options));
    // Each of many would need its own memory for that.
    if (own_shards == 1) file->write_through();
    writer->shards_.push_back(std::move(file));
  }
  return writer;
}

Result<std::unique_ptr<BundleWriter>> BundleWriter::create(
    std::string prefix, int num_shards, const WriteOptions& options) {
  return make(std::move(prefix), num_shards, num_shards, options);
}

Result<std::unique_ptr<BundleWriter>> BundleWriter::create_first(
    std::string prefix, int num_shards, const WriteOptions& options) {
  return make(std::move(prefix), 1, num_shards, options);
}

BundleWriter::~BundleWriter() {
  for (const auto& [number, shard] : adopted_) {
    if (shard.is_published) continue;
    const std::string& path = shard.temporary;
    static_cast<void>(
        guarded([&] { return options_.file_system().remove(path); }));
  }
}

Status BundleWriter::write(std::string key, const Tensor& tensor) {
  const auto shard = std::ranges::min_element(
      shards_, {}, [](const auto& file) { return file->size(); });
  TAGFLOW_ASSIGN(
      BundleEntry entry,
      append_tensor(**shard, key, int(shard - shards_.begin()), tensor));
  entries_.emplace(std::move(key), std::move(entry));
  return {};
}

Status BundleWriter::adopt(ForeignShard shard) {
  const auto refuse = [&](std::string_view what) {
    return invalid_argument(
        "[checkpoint] shard {} of {}, which {} has "
        "written, {}",
        shard.shard, num_shards_, shard.writer, what);
  };
  if (shard.shard < int(shards_.size()) || shard.shard >= num_shards_ ||
      adopted_.contains(shard.shard))
    return refuse("is not one that is missing");
  for (const BundleEntry& entry : shard.entries) {
    if (entry.is_sliced() || entry.is_slice() || entry.key.empty() ||
        entry.shard != shard.shard || entry.offset > shard.size ||
        entry.size > shard.size - entry.offset)
      return refuse(fmt::format("cannot have tensor {:?}", entry.key));
    if (entries_.contains(entry.key))
      return refuse(fmt::format("has tensor {:?}, too", entry.key));
  }
  adopted_.emplace(shard.shard,
                   Adopted{std::move(shard.path),
                           data_path(prefix_, shard.shard, num_shards_)});
  for (BundleEntry& entry : shard.entries) {
    std::string key = entry.key;
    if (!entries_.try_emplace(std::move(key), std::move(entry)).second)
      return refuse("has a tensor twice");
  }
  return {};
}

Status BundleWriter::add(std::string_view name, const Tensor& tensor) {
  TAGFLOW_RETURN_IF_ERROR(check_savable(name, tensor));
  if (entries_.contains(name))
    return invalid_argument("[checkpoint] tensor {:?} is added twice", name);
  return write(std::string(name), tensor);
}

Status BundleWriter::add_slice(std::string_view name, const Shape& whole,
                               const TensorSlice& slice, const Tensor& tensor) {
  TAGFLOW_RETURN_IF_ERROR(check_savable(name, tensor));
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
  if (shards_.size() + adopted_.size() != size_t(num_shards_))
    return invalid_argument("[checkpoint] \"{}\" has {} shards of {}", prefix_,
                            shards_.size() + adopted_.size(), num_shards_);
  for (const auto& [key, entry] : entries_)
    if (Status status = check_disjoint(entry.resolved_slices()); !status.ok())
      return std::move(status).with_prefix(
          fmt::format("[checkpoint] tensor {:?}: ", key));
  for (const auto& shard : shards_) TAGFLOW_RETURN_IF_ERROR(shard->finish());
  BundleIndex index;
  index.num_shards = num_shards_;
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
  for (auto& [number, shard] : adopted_) {
    TAGFLOW_RETURN_IF_ERROR(files.rename(shard.temporary, shard.target));
    shard.is_published = true;
  }
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
  for (const auto& [number, shard] : adopted_)
    if (shard.is_published) static_cast<void>(files.remove(shard.target));
  return status;
}

}  // namespace tagflow::checkpoint
