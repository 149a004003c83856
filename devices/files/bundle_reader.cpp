#include "devices/files/bundle_reader.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "devices/files/crc32c.h"
#include "devices/files/string_elements.h"
#include "devices/files/table.h"
#include "devices/string_writer.h"
#include "graph/memory_charge.h"
#include "graph/op_registry.h"
#include "graph/status_text.h"

namespace tagflow::checkpoint {
namespace {

// Far more than any number of tensors needs.
constexpr uint64_t kMaxIndexBytes = uint64_t{1} << 30;
// Read at a time: fits in a core's own cache, where the checksum reads it.
constexpr size_t kReadPiece = size_t{256} << 10;

// The type of an entry, and the bytes of an element: 0 for strings.
struct EntryType {
  DataType dtype = DataType::kInvalid;
  size_t element_bytes = 0;
};

Result<EntryType> type_of(const BundleEntry& entry) {
  const auto dtype = DataType(entry.dtype);
  const bool is_ours =
      entry.dtype > 0 && entry.dtype < kRefOffset && is_known(dtype);
  if (is_ours && dtype == DataType::kString) return EntryType{dtype, 0};
  if (is_ours && is_plain(dtype)) return EntryType{dtype, dtype_size(dtype)};
  return error(Code::kUnimplemented, "tensors of {} cannot be read",
               entry.dtype_text());
}

// Checks that the bytes of an entry can be the elements of its shape.
Status check_size(const BundleEntry& entry, const EntryType& type) {
  const int64_t count = entry.shape.num_elements();
  const auto bytes = checked_multiply(
      count, std::max<int64_t>(1, int64_t(type.element_bytes)));
  // A string needs at least one byte.
  const bool fits =
      bytes && (type.element_bytes == 0 ? uint64_t(*bytes) <= entry.size
                                        : uint64_t(*bytes) == entry.size);
  if (fits) return {};
  return error(Code::kDataLoss, "{}{} cannot have {} bytes", entry.dtype_text(),
               entry.shape.to_string(), entry.size);
}

// In C++ any other byte in a bool is undefined behaviour.
void normalize_bools(Tensor& tensor) {
  if (tensor.dtype() != DataType::kBool) return;
  auto* bytes = static_cast<unsigned char*>(tensor.mutable_raw());
  for (size_t i = 0; i < tensor.bytes(); ++i) bytes[i] = bytes[i] != 0;
}

}  // namespace

// A stored slice of a tensor, and the part of it to read.
struct BundleReader::Part {
  const BundleEntry* entry = nullptr;
  TensorSlice slice;   // the entry's elements, resolved
  TensorSlice common;  // the part to read
};

bool is_v1_checkpoint(const std::string& path, FileSystem& files) {
  const auto file = files.open(path);
  if (!file.ok()) return false;
  char footer[48];
  const uint64_t size = (*file)->size();
  if (size < sizeof(footer)) return false;
  return read_exactly(**file, size - sizeof(footer), footer, path).ok() &&
         is_table({footer, sizeof(footer)});
}

Result<std::unique_ptr<BundleReader>> BundleReader::open(std::string prefix,
                                                         FileSystem& files) {
  const std::string path = index_path(prefix);
  auto bytes = read_whole(files, path, kMaxIndexBytes);
  if (!bytes.ok() && bytes.status().code() == Code::kNotFound) {
    if (is_v1_checkpoint(prefix, files))
      return error(Code::kUnimplemented,
                   "[checkpoint] \"{}\" is a V1 checkpoint, which cannot be "
                   "read; save it with V2",
                   prefix);
    return error(Code::kNotFound,
                 "[checkpoint] there is no checkpoint \"{}\": no file \"{}\"",
                 prefix, path);
  }
  TAGFLOW_RETURN_IF_ERROR(bytes.status());
  TAGFLOW_ASSIGN(BundleIndex index, parse_bundle_index(*bytes, path));
  return of_index(std::move(prefix), std::move(index), files);
}

std::unique_ptr<BundleReader> BundleReader::of_index(std::string prefix,
                                                     BundleIndex index,
                                                     FileSystem& files) {
  return std::unique_ptr<BundleReader>(
      new BundleReader(std::move(prefix), files, std::move(index)));
}

std::span<const BundleEntry> BundleReader::tensors() const {
  const std::span<const BundleEntry> all = index_.entries;
  const auto first =
      std::ranges::partition_point(all, &BundleEntry::is_slice) - all.begin();
  return all.subspan(size_t(first));
}

const BundleEntry* BundleReader::find(std::string_view key) const {
  const auto& all = index_.entries;
  const auto at = std::ranges::lower_bound(
      all, key, {},
      [](const BundleEntry& entry) { return std::string_view(entry.key); });
  return at != all.end() && at->key == key ? &*at : nullptr;
}

Result<const BundleEntry*> BundleReader::find_tensor(
    std::string_view name) const {
  const BundleEntry* entry = find(name);
  if (entry != nullptr && !entry->is_slice()) return entry;
  std::vector<std::string> names;
  for (const BundleEntry& other : tensors()) names.push_back(other.key);
  // TensorFlow's keys have a long suffix, which nobody types.
  const auto longer = std::ranges::find_if(names, [&](const std::string& key) {
    return key.starts_with(fmt::format("{}/", name));
  });
  std::string hint =
      longer == names.end() ? graph::nearest_name(name, names) : *longer;
  if (!hint.empty()) {
    hint = fmt::format("; did you mean {:?}?", hint);
  } else if (!names.empty()) {
    hint = fmt::format("; the first is {:?}", names.front());
  }
  return error(Code::kNotFound,
               "[checkpoint] there is no tensor {:?} in \"{}\", which has {} "
               "tensors{}",
               name, prefix_, names.size(), hint);
}

Result<const ReadableFile*> BundleReader::shard(int number) const {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<ReadableFile>& file = shards_[number];
  if (file == nullptr) {
    TAGFLOW_ASSIGN(file,
                   files_.open(data_path(prefix_, number, index_.num_shards)));
  }
  return file.get();
}

Result<const ReadableFile*> BundleReader::file_of(
    const BundleEntry& entry) const {
  TAGFLOW_ASSIGN(const ReadableFile* file, shard(entry.shard));
  TAGFLOW_RETURN_IF_ERROR(check_end(entry, file->size()));
  return file;
}

Status BundleReader::check_end(const BundleEntry& entry,
                               uint64_t file_size) const {
  if (entry.offset + entry.size <= file_size) return {};
  return error(Code::kDataLoss,
               "[checkpoint] \"{}\" has {} bytes, but {:?} should end at {}",
               data_path(prefix_, entry.shard, index_.num_shards), file_size,
               entry.key, entry.offset + entry.size);
}

// Reads part of an entry's bytes. The checksum needs all of them.
Status BundleReader::read_bytes(const BundleEntry& entry, uint64_t skipped,
                                std::span<char> bytes) const {
  TAGFLOW_ASSIGN(const ReadableFile* file, file_of(entry));
  const std::string path = data_path(prefix_, entry.shard, index_.num_shards);
  const uint64_t end = skipped + bytes.size();
  std::vector<char> others(end - skipped == entry.size ? 0 : kReadPiece);
  uint32_t crc = 0;
  for (uint64_t at = 0; at < entry.size;) {
    const bool is_wanted = at >= skipped && at < end;
    const uint64_t stop = is_wanted ? end : at < skipped ? skipped : entry.size;
    const auto count = size_t(std::min<uint64_t>(stop - at, kReadPiece));
    const std::span<char> piece =
        is_wanted ? bytes.subspan(size_t(at - skipped), count)
                  : std::span(others).first(count);
    TAGFLOW_RETURN_IF_ERROR(
        read_exactly(*file, entry.offset + at, piece, path));
    crc = extend_crc32c(crc, {piece.data(), piece.size()});
    at += count;
  }
  if (mask_crc32c(crc) == entry.crc) return {};
  return error(Code::kDataLoss, "the checksum is wrong");
}

Result<Tensor> BundleReader::read_entry(const BundleEntry& entry,
                                        Allocator& allocator) const {
  TAGFLOW_ASSIGN(const EntryType type, type_of(entry));
  TAGFLOW_ASSIGN(const ReadableFile* file, file_of(entry));
  TAGFLOW_RETURN_IF_ERROR(check_size(entry, type));
  if (type.dtype == DataType::kString) {
    MemoryCharge charge;
    if (!charge.set(allocator, size_t(entry.size)))
      return out_of_memory(allocator, "the entry", size_t(entry.size));
    std::string bytes(size_t(entry.size), '\0');
    TAGFLOW_RETURN_IF_ERROR(
        read_exactly(*file, entry.offset, bytes,
                     data_path(prefix_, entry.shard, index_.num_shards)));
    return parse_string_elements(bytes, entry.crc, entry.shape, allocator);
  }
  TAGFLOW_ASSIGN(Tensor tensor,
                 Tensor::allocate(type.dtype, entry.shape, allocator));
  const std::span<char> bytes(static_cast<char*>(tensor.mutable_raw()),
                              tensor.bytes());
  prepare_memory(bytes);
  TAGFLOW_RETURN_IF_ERROR(read_bytes(entry, 0, bytes));
  normalize_bools(tensor);
  return tensor;
}

// Checks that the slices have each element of `target` once, and that their
// files are large enough for it.
Result<std::vector<BundleReader::Part>> BundleReader::parts_of(
    const BundleEntry& entry, const TensorSlice& target) const {
  TAGFLOW_ASSIGN(const EntryType type, type_of(entry));
  TAGFLOW_ASSIGN(const Shape target_shape, target.shape_in(entry.shape));
  std::vector<Part> parts;
  std::set<int> shards;
  uint64_t room = 0;
  for (const TensorSlice& slice : entry.slices) {
    const TensorSlice place = slice.resolved(entry.shape);
    auto common = place.intersection(target);
    if (!common) continue;
    const BundleEntry* part = find(slice_key(entry.key, slice));
    TAGFLOW_ASSIGN(const Shape part_shape, slice.shape_in(entry.shape));
    if (part == nullptr || part->dtype != entry.dtype ||
        !(part->shape == part_shape) || part->is_sliced())
      return error(Code::kDataLoss, "slice {} is missing or of another kind",
                   slice.to_string());
    TAGFLOW_ASSIGN(const ReadableFile* file, file_of(*part));
    if (shards.insert(part->shard).second) room += file->size();
    TAGFLOW_RETURN_IF_ERROR(check_size(*part, type));
    parts.push_back({part, place, std::move(*common)});
  }
  std::vector<TensorSlice> places;
  for (const Part& part : parts) places.push_back(part.slice);
  if (Status status = check_disjoint(places); !status.ok())
    return error(status.code() == Code::kInvalidArgument ? Code::kDataLoss
                                                         : status.code(),
                 "{}", status.message());
  // This cannot overflow: all slices are within one tensor, and disjoint.
  int64_t covered = 0;
  for (const Part& part : parts) {
    TAGFLOW_ASSIGN(const Shape shape, part.common.shape_in(entry.shape));
    covered += shape.num_elements();
  }
  if (covered != target_shape.num_elements())
    return invalid_argument("its slices have {} of the {} elements of slice {}",
                            covered, target_shape.num_elements(),
                            target.to_string());
  if (uint64_t(covered) > room / std::max<size_t>(type.element_bytes, 1))
    return error(Code::kDataLoss, "{} elements cannot be in {} bytes", covered,
                 room);
  return parts;
}

Status BundleReader::copy_part(const Part& part, const TensorSlice& target,
                               Tensor& tensor) const {
  const SliceCopy copy(part.common, part.slice, target);
  const size_t size =
      tensor.dtype() == DataType::kString ? 0 : dtype_size(tensor.dtype());
  auto* to = static_cast<char*>(tensor.mutable_raw());
  const auto run = copy.single_run();
  if (run && size > 0)
    return read_bytes(*part.entry, uint64_t(run->from) * size,
                      {to + size_t(run->to) * size, size_t(run->count) * size});
  TAGFLOW_ASSIGN(const Tensor source,
                 read_entry(*part.entry, tensor.buffer() == nullptr
                                             ? host_allocator()
                                             : *tensor.buffer()->allocator));
  copy.for_each_run([&](const SliceRun& each) {
    if (size > 0) {
      std::memcpy(
          to + size_t(each.to) * size,
          static_cast<const char*>(source.raw()) + size_t(each.from) * size,
          size_t(each.count) * size);
    } else {
      devices::ElementWriter<std::string>(tensor).copy(
          source.data<std::string>() + each.from, each.count,
          tensor.mutable_data<std::string>() + each.to);
    }
  });
  return {};
}

Result<Tensor> BundleReader::read(std::string_view name,
                                  Allocator& allocator) const {
  TAGFLOW_ASSIGN(const BundleEntry* entry, find_tensor(name));
  return read_slice(name, whole_slice(entry->shape), allocator);
}

Result<Tensor> BundleReader::read_slice(std::string_view name,
                                        const TensorSlice& slice,
                                        Allocator& allocator) const {
  TAGFLOW_ASSIGN(const BundleEntry* entry, find_tensor(name));
  const auto read = [&]() -> Result<Tensor> {
    TAGFLOW_ASSIGN(const Shape shape, slice.shape_in(entry->shape));
    const TensorSlice target = slice.resolved(entry->shape);
    const bool is_all = shape == entry->shape;
    if (!entry->is_sliced() && is_all) return read_entry(*entry, allocator);
    TAGFLOW_ASSIGN(const EntryType type, type_of(*entry));
    std::vector<Part> parts;
    if (entry->is_sliced()) {
      TAGFLOW_ASSIGN(parts, parts_of(*entry, target));
    } else {
      TAGFLOW_RETURN_IF_ERROR(file_of(*entry).status());
      TAGFLOW_RETURN_IF_ERROR(check_size(*entry, type));
      parts.push_back({entry, whole_slice(entry->shape), target});
    }
    TAGFLOW_ASSIGN(Tensor tensor,
                   Tensor::allocate(type.dtype, shape, allocator));
    if (type.element_bytes > 0)
      prepare_memory(
          {static_cast<char*>(tensor.mutable_raw()), tensor.bytes()});
    for (const Part& part : parts)
      TAGFLOW_RETURN_IF_ERROR(copy_part(part, target, tensor));
    normalize_bools(tensor);
    return tensor;
  };
  Result<Tensor> tensor = read();
  if (tensor.ok()) return tensor;
  Status status = std::move(tensor).status();
  if (mentions_file(status.message(), prefix_)) return status;
  return std::move(status).with_prefix(
      fmt::format("[checkpoint] tensor {:?} of \"{}\": ", name, prefix_));
}

Status BundleReader::check_complete() const {
  // shard() would keep each file open: there may be more of them than the limit
  // of open files.
  std::vector<uint64_t> sizes;
  for (int i = 0; i < index_.num_shards; ++i) {
    TAGFLOW_ASSIGN(const auto file,
                   files_.open(data_path(prefix_, i, index_.num_shards)));
    sizes.push_back(file->size());
  }
  for (const BundleEntry& entry : index_.entries) {
    if (!entry.is_sliced())
      TAGFLOW_RETURN_IF_ERROR(check_end(entry, sizes[size_t(entry.shard)]));
    for (const TensorSlice& slice : entry.slices)
      if (find(slice_key(entry.key, slice)) == nullptr)
        return error(Code::kDataLoss,
                     "[checkpoint] \"{}\" lacks slice {} of {:?}", prefix_,
                     slice.to_string(), entry.key);
  }
  return {};
}

}  // namespace tagflow::checkpoint
