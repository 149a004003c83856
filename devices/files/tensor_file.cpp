#include "devices/files/tensor_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "devices/files/bundle_reader.h"
#include "devices/files/safetensors.h"

namespace tagflow::checkpoint {
namespace {

class BundleFile final : public TensorFile {
 public:
  BundleFile(std::unique_ptr<BundleReader> reader,
             std::vector<DamagedCheckpoint> damaged)
      : TensorFile(std::move(damaged)), reader_(std::move(reader)) {
    for (const BundleEntry& entry : reader_->tensors())
      tensors_.push_back(info_of(entry));
  }

  std::string_view format() const override { return "bundle"; }
  const std::string& path() const override { return reader_->prefix(); }
  int num_shards() const override { return reader_->num_shards(); }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  Result<Tensor> read(std::string_view name) const override {
    return reader_->read(name);
  }
  Result<Tensor> read_slice(std::string_view name,
                            const TensorSlice& slice) const override {
    return reader_->read_slice(name, slice);
  }
  const BundleReader* bundle() const override { return reader_.get(); }

 private:
  TensorInfo info_of(const BundleEntry& entry) const {
    TensorInfo info{entry.key,  entry.dtype_text(), entry.shape,
                    entry.size, entry.shard,        int(entry.slices.size())};
    bool is_first = true;
    for (const TensorSlice& slice : entry.slices) {
      const BundleEntry* part = reader_->find(slice_key(entry.key, slice));
      if (part == nullptr) continue;
      info.bytes += part->size;
      info.shard = is_first || part->shard == info.shard ? part->shard : -1;
      is_first = false;
    }
    return info;
  }

  const std::unique_ptr<BundleReader> reader_;
  std::vector<TensorInfo> tensors_;
};

class SafetensorsFile final : public TensorFile {
 public:
  explicit SafetensorsFile(std::unique_ptr<SafetensorsReader> reader)
      : reader_(std::move(reader)) {
    for (const SafetensorsEntry& entry : reader_->tensors()) {
      const DataType dtype = entry.dtype();
      tensors_.push_back(
          {entry.name,
           dtype == DataType::kInvalid ? entry.type : dtype_name(dtype),
           entry.shape, entry.end - entry.begin});
    }
    std::ranges::sort(tensors_, {}, &TensorInfo::name);
  }

  std::string_view format() const override { return "safetensors"; }
  const std::string& path() const override { return reader_->path(); }
  int num_shards() const override { return 1; }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  Result<Tensor> read(std::string_view name) const override {
    return reader_->read(name);
  }
  Result<Tensor> read_slice(std::string_view name,
                            const TensorSlice& slice) const override {
    TAGFLOW_ASSIGN(const Tensor whole, reader_->read(name));
    TAGFLOW_ASSIGN(const Shape shape, slice.shape_in(whole.shape()));
    TAGFLOW_ASSIGN(Tensor part, Tensor::allocate(whole.dtype(), shape));
    const TensorSlice target = slice.resolved(whole.shape());
    // No type of the format has elements of varying size.
    const size_t size = dtype_size(whole.dtype());
    const auto* from = static_cast<const std::byte*>(whole.raw());
    auto* to = static_cast<std::byte*>(part.mutable_raw());
    SliceCopy(target, whole_slice(whole.shape()), target)
        .for_each_run([&](const SliceRun& run) {
          std::memcpy(to + size_t(run.to) * size,
                      from + size_t(run.from) * size, size_t(run.count) * size);
        });
    return part;
  }

 private:
  const std::unique_ptr<SafetensorsReader> reader_;
  std::vector<TensorInfo> tensors_;
};

}  // namespace

const TensorInfo* TensorFile::find(std::string_view name) const {
  const auto name_of = [](const TensorInfo& info) {
    return std::string_view(info.name);
  };
  const auto it = std::ranges::lower_bound(tensors(), name, {}, name_of);
  return it != tensors().end() && it->name == name ? &*it : nullptr;
}

bool is_safetensors_path(std::string_view path) {
  return path.ends_with(".safetensors");
}

Result<std::unique_ptr<TensorFile>> open_tensor_file(
    const std::string& path, const DamagedCheckpoints& known,
    FileSystem& files) {
  if (is_safetensors_path(path)) {
    TAGFLOW_ASSIGN(auto reader, SafetensorsReader::open(path));
    return std::unique_ptr<TensorFile>(
        std::make_unique<SafetensorsFile>(std::move(reader)));
  }
  constexpr std::string_view kIndex = ".index";
  NewestCheckpoint newest{path, {}};
  if (files.is_folder(path)) {
    TAGFLOW_ASSIGN(newest, find_newest_checkpoint(path, known, files));
  } else if (path.ends_with(kIndex)) {
    newest.prefix.resize(path.size() - kIndex.size());
  }
  TAGFLOW_ASSIGN(auto reader,
                 BundleReader::open(std::move(newest.prefix), files));
  return std::unique_ptr<TensorFile>(std::make_unique<BundleFile>(
      std::move(reader), std::move(newest.damaged)));
}

}  // namespace tagflow::checkpoint
