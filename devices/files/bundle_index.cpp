#include "devices/files/bundle_index.h"

#include <google/protobuf/arena.h>

#include "devices/files/table.h"
#include "graph/proto/checkpoint.pb.h"

namespace tagflow::checkpoint {
namespace {

// Messages are on arenas: one that could not be filled for lack of memory
// cannot be destroyed.
namespace pb = google::protobuf;

// The format's version; later versions that old readers cannot read say so.
constexpr int kBundleVersion = 1;

Status broken_index(std::string_view name, std::string_view what) {
  return error(Code::kDataLoss, "[checkpoint] the index \"{}\" is damaged: {}",
               name, what);
}

Result<int> parse_bundle_header(const std::string& bytes,
                                std::string_view name) {
  pb::Arena arena;
  auto& header =
      *pb::Arena::CreateMessage<tensorflow::BundleHeaderProto>(&arena);
  if (!header.ParseFromString(bytes))
    return broken_index(name, "its header is not a protobuf message");
  if (header.endianness() != tensorflow::BundleHeaderProto::LITTLE)
    return error(Code::kUnimplemented,
                 "[checkpoint] \"{}\" is of a big-endian machine; only "
                 "little-endian checkpoints can be read",
                 name);
  if (header.version().min_consumer() > kBundleVersion)
    return error(Code::kUnimplemented,
                 "[checkpoint] \"{}\" needs a reader of version {}; this one "
                 "has version {}",
                 name, header.version().min_consumer(), kBundleVersion);
  if (header.num_shards() < 1)
    return broken_index(name,
                        fmt::format("it has {} shards", header.num_shards()));
  return header.num_shards();
}

Result<TensorSlice> slice_of_proto(const tensorflow::TensorSliceProto& proto) {
  if (proto.extent_size() > kMaxRank)
    return invalid_argument("a slice has {} dimensions", proto.extent_size());
  std::vector<Extent> extents;
  for (const auto& extent : proto.extent())
    extents.push_back(
        {extent.start(), extent.has_length() ? extent.length() : Extent::kAll});
  return TensorSlice(std::move(extents));
}

// Errors about an entry, without its name.
Status fill_bundle_entry(const std::string& bytes, int num_shards,
                         BundleEntry& entry) {
  pb::Arena arena;
  auto& proto = *pb::Arena::CreateMessage<tensorflow::BundleEntryProto>(&arena);
  if (!proto.ParseFromString(bytes))
    return invalid_argument("is not a protobuf message");
  entry.dtype = int(proto.dtype());
  if (proto.shape().unknown_rank())
    return invalid_argument("has a shape of unknown rank");
  std::vector<int64_t> dims;
  for (const auto& dim : proto.shape().dim()) dims.push_back(dim.size());
  TAGFLOW_ASSIGN(entry.shape, Shape::make(dims));
  if (size_t(proto.slices_size()) > kMaxSlices)
    return invalid_argument("has {} slices; the limit is {}",
                            proto.slices_size(), kMaxSlices);
  for (const auto& slice : proto.slices()) {
    TAGFLOW_ASSIGN(TensorSlice parsed, slice_of_proto(slice));
    TAGFLOW_RETURN_IF_ERROR(parsed.shape_in(entry.shape).status());
    entry.slices.push_back(std::move(parsed));
  }
  if (proto.shard_id() < 0 || proto.shard_id() >= num_shards)
    return invalid_argument("is in shard {} of {}", proto.shard_id(),
                            num_shards);
  if (proto.offset() < 0 || proto.size() < 0 ||
      proto.size() > INT64_MAX - proto.offset())
    return invalid_argument("has {} bytes at {}", proto.size(), proto.offset());
  entry.shard = proto.shard_id();
  entry.offset = uint64_t(proto.offset());
  entry.size = uint64_t(proto.size());
  entry.crc = proto.crc32c();
  return {};
}

std::string format_bundle_entry(const BundleEntry& entry) {
  pb::Arena arena;
  auto& proto = *pb::Arena::CreateMessage<tensorflow::BundleEntryProto>(&arena);
  proto.set_dtype(tensorflow::DataType(entry.dtype));
  // A scalar's entry has a shape, too.
  proto.mutable_shape();
  for (const int64_t dim : entry.shape.dims())
    proto.mutable_shape()->add_dim()->set_size(dim);
  for (const TensorSlice& slice : entry.slices) {
    auto& to = *proto.add_slices();
    for (const Extent& extent : slice.extents()) {
      auto& to_extent = *to.add_extent();
      to_extent.set_start(extent.start);
      if (!extent.is_all()) to_extent.set_length(extent.length);
    }
  }
  if (!entry.is_sliced()) {
    proto.set_shard_id(entry.shard);
    proto.set_offset(int64_t(entry.offset));
    proto.set_size(int64_t(entry.size));
    proto.set_crc32c(entry.crc);
  }
  return proto.SerializeAsString();
}

}  // namespace

std::vector<TensorSlice> BundleEntry::resolved_slices() const {
  std::vector<TensorSlice> places;
  for (const TensorSlice& slice : slices)
    places.push_back(slice.resolved(shape));
  return places;
}

std::string BundleEntry::dtype_text() const {
  const bool is_ours = dtype >= 0 && dtype < kRefOffset &&
                       is_known(DataType(dtype)) &&
                       DataType(dtype) != DataType::kInvalid;
  return is_ours ? dtype_name(DataType(dtype)) : fmt::format("type {}", dtype);
}

Result<BundleIndex> parse_bundle_index(std::string_view bytes,
                                       std::string_view name) {
  TAGFLOW_ASSIGN(auto table, parse_table(bytes, name));
  if (table.empty() || !table.front().first.empty())
    return broken_index(name, "it has no header");
  BundleIndex index;
  TAGFLOW_ASSIGN(index.num_shards,
                 parse_bundle_header(table.front().second, name));
  for (size_t i = 1; i < table.size(); ++i) {
    BundleEntry entry;
    entry.key = std::move(table[i].first);
    if (Status status =
            fill_bundle_entry(table[i].second, index.num_shards, entry);
        !status.ok())
      return broken_index(
          name, fmt::format("entry {:?} {}", entry.key, status.message()));
    table[i].second = std::string();
    index.entries.push_back(std::move(entry));
  }
  return index;
}

Result<std::string> format_bundle_index(const BundleIndex& index) {
  pb::Arena arena;
  auto& header =
      *pb::Arena::CreateMessage<tensorflow::BundleHeaderProto>(&arena);
  header.set_num_shards(index.num_shards);
  header.mutable_version()->set_producer(kBundleVersion);
  std::vector<TableEntry> table;
  table.emplace_back("", header.SerializeAsString());
  for (const BundleEntry& entry : index.entries)
    table.emplace_back(entry.key, format_bundle_entry(entry));
  return format_table(table);
}

std::string index_path(std::string_view prefix) {
  return fmt::format("{}.index", prefix);
}

std::string data_path(std::string_view prefix, int shard, int num_shards) {
  return fmt::format("{}.data-{:05}-of-{:05}", prefix, shard, num_shards);
}

}  // namespace tagflow::checkpoint
