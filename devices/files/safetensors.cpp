#include "devices/files/safetensors.h"

#include <algorithm>
#include <numeric>

#include "devices/files/byte_reader.h"
#include "graph/op_registry.h"

namespace tagflow::checkpoint {

Result<std::unique_ptr<SafetensorsReader>> SafetensorsReader::open(
    std::string path, FileSystem& files) {
  TAGFLOW_ASSIGN(std::unique_ptr<ReadableFile> file, files.open(path));
  const auto of_file = [&](Status status) {
    return std::move(status).with_prefix(fmt::format("\"{}\": ", path));
  };
  uint64_t length = 0;
  if (file->size() < sizeof(length))
    return of_file(error(Code::kDataLoss,
                         "[safetensors] {} bytes are not a safetensors file",
                         file->size()));
  TAGFLOW_RETURN_IF_ERROR(read_exactly(
      *file, 0, {reinterpret_cast<char*>(&length), sizeof(length)}, path));
  if (length > kMaxSafetensorsHeader)
    return of_file(invalid_argument(
        "[safetensors] the header has {} bytes; the limit is {}", length,
        kMaxSafetensorsHeader));
  const uint64_t data = sizeof(length) + length;
  if (data > file->size())
    return of_file(error(Code::kDataLoss,
                         "[safetensors] the header has {} bytes, but the file "
                         "ends inside it",
                         length));
  std::string text(size_t(length), '\0');
  TAGFLOW_RETURN_IF_ERROR(read_exactly(*file, sizeof(length), text, path));
  auto header = parse_safetensors_header(text, file->size() - data);
  if (!header.ok()) return of_file(std::move(header).status());
  return std::unique_ptr<SafetensorsReader>(new SafetensorsReader(
      std::move(path), std::move(file), data, std::move(header).value()));
}

SafetensorsReader::SafetensorsReader(std::string path,
                                     std::unique_ptr<ReadableFile> file,
                                     uint64_t data, SafetensorsHeader header)
    : path_(std::move(path)),
      file_(std::move(file)),
      data_(data),
      header_(std::move(header)),
      by_name_(header_.entries.size()) {
  std::iota(by_name_.begin(), by_name_.end(), size_t{0});
  std::ranges::sort(by_name_, {}, [&](size_t i) -> const std::string& {
    return header_.entries[i].name;
  });
}

Result<const SafetensorsEntry*> SafetensorsReader::find_tensor(
    std::string_view name) const {
  const auto name_of = [&](size_t i) -> std::string_view {
    return header_.entries[i].name;
  };
  const auto at = std::ranges::lower_bound(by_name_, name, {}, name_of);
  if (at != by_name_.end() && name_of(*at) == name)
    return &header_.entries[*at];
  std::vector<std::string> names;
  for (const size_t i : by_name_) names.emplace_back(name_of(i));
  const std::string nearest = graph::nearest_name(name, names);
  return error(
      Code::kNotFound,
      "[safetensors] there is no tensor {:?} in \"{}\", which has {} tensors{}",
      name, path_, names.size(),
      nearest.empty() ? "" : fmt::format("; did you mean {:?}?", nearest));
}

Result<Tensor> SafetensorsReader::read(std::string_view name,
                                       Allocator& allocator) const {
  TAGFLOW_ASSIGN(const SafetensorsEntry* entry, find_tensor(name));
  const DataType dtype = entry->dtype();
  if (dtype == DataType::kInvalid)
    return error(Code::kUnimplemented,
                 "[safetensors] tensor {:?} of \"{}\" is of type {}, which "
                 "cannot be read",
                 name, path_, entry->type);
  // The header was checked: the file has these bytes.
  Result<Tensor> made = Tensor::allocate(dtype, entry->shape, allocator);
  if (!made.ok())
    return std::move(made).status().with_prefix(
        fmt::format("[safetensors] tensor {:?} of \"{}\": ", name, path_));
  Tensor tensor = *std::move(made);
  auto* bytes = static_cast<char*>(tensor.mutable_raw());
  prepare_memory({bytes, tensor.bytes()});
  TAGFLOW_RETURN_IF_ERROR(read_exactly(*file_, data_ + entry->begin,
                                       {bytes, tensor.bytes()}, path_));
  if (dtype == DataType::kBool)
    for (size_t i = 0; i < tensor.bytes(); ++i) bytes[i] = bytes[i] != 0;
  return tensor;
}

namespace {

// Sorts the items, and gives each a place.
Result<SafetensorsHeader> place_items(std::vector<SafetensorsItem>& items) {
  for (const SafetensorsItem& item : items) {
    if (safetensors_type(item.dtype).empty())
      return error(Code::kUnimplemented,
                   "[safetensors] tensor {:?} is of type {}, which the format "
                   "does not have",
                   item.name, dtype_name(item.dtype));
    if (item.name == "__metadata__")
      return invalid_argument("[safetensors] {:?} is not a name of a tensor",
                              item.name);
  }
  // The largest elements come first: so all are aligned.
  std::ranges::sort(items, [](const auto& a, const auto& b) {
    const size_t a_size = dtype_size(a.dtype), b_size = dtype_size(b.dtype);
    return a_size != b_size ? a_size > b_size : a.name < b.name;
  });
  SafetensorsHeader header;
  uint64_t end = 0;
  std::vector<std::string_view> names;
  for (const SafetensorsItem& item : items) {
    const uint64_t begin = end;
    const auto bytes = checked_multiply(item.shape.num_elements(),
                                        int64_t(dtype_size(item.dtype)));
    if (!bytes || uint64_t(*bytes) > uint64_t(INT64_MAX) - begin)
      return invalid_argument("[safetensors] tensor {:?} is too large",
                              item.name);
    end += uint64_t(*bytes);
    header.entries.push_back({item.name,
                              std::string(safetensors_type(item.dtype)),
                              item.shape, begin, end});
    names.push_back(item.name);
  }
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names);
      twice != names.end())
    return invalid_argument("[safetensors] tensor {:?} is there twice", *twice);
  return header;
}

}  // namespace

Status write_safetensors(const std::string& path,
                         std::vector<SafetensorsItem> items,
                         const WriteOptions& options) {
  const auto of_file = [&](Status status) {
    return std::move(status).with_prefix(
        fmt::format("cannot write \"{}\": ", path));
  };
  const auto header = place_items(items);
  if (!header.ok()) return of_file(header.status());
  auto formatted = format_safetensors_header(*header);
  if (!formatted.ok()) return of_file(std::move(formatted).status());
  const std::string text = *std::move(formatted);
  TAGFLOW_ASSIGN(const std::unique_ptr<AtomicFile> file,
                 AtomicFile::create(path, options));
  std::string length;
  append_number(length, uint64_t(text.size()));
  TAGFLOW_RETURN_IF_ERROR(file->append(length + text));
  for (const SafetensorsItem& item : items) {
    TAGFLOW_ASSIGN(const Tensor tensor, item.load());
    if (tensor.dtype() != item.dtype || !(tensor.shape() == item.shape))
      return of_file(error(Code::kInternal,
                           "[safetensors] tensor {:?} is {}, not {}{}",
                           item.name, tensor.describe(), dtype_name(item.dtype),
                           item.shape.to_string()));
    TAGFLOW_RETURN_IF_ERROR(
        file->append({static_cast<const char*>(tensor.raw()), tensor.bytes()}));
  }
  TAGFLOW_RETURN_IF_ERROR(file->finish());
  TAGFLOW_RETURN_IF_ERROR(file->publish());
  return options.sync ? options.file_system().sync_folder(folder_of(path))
                      : Status();
}

}  // namespace tagflow::checkpoint
