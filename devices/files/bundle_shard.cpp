#include "devices/files/bundle_shard.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <random>
#include <set>

#include "devices/files/crc32c.h"
#include "devices/files/string_elements.h"
#include "graph/temporary_file.h"

namespace tagflow::checkpoint {
namespace {

constexpr size_t kSample = size_t{64} << 10;
constexpr uint64_t kSamples = 64;
// Between two looks at whether the writer is to stop.
constexpr size_t kPiece = size_t{4} << 20;

Status stopped_error(const AtomicFile& file) {
  return error(Code::kCancelled, "[checkpoint] \"{}\" is not written any more",
               file.target());
}

std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const char* const begin = text.data();
  const auto [end, code] =
      std::from_chars(begin, begin + text.size(), number, 10);
  if (code != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(size_t(end - begin));
  return number;
}

}  // namespace

std::optional<ShardPlace> parse_data_path(std::string_view path) {
  constexpr std::string_view kData = ".data-", kOf = "-of-";
  const size_t at = path.rfind(kData);
  if (at == path.npos) return std::nullopt;
  std::string_view rest = path.substr(at + kData.size());
  const auto shard = take_number(rest);
  if (!shard || !rest.starts_with(kOf)) return std::nullopt;
  rest.remove_prefix(kOf.size());
  const auto num_shards = take_number(rest);
  if (!num_shards || *shard >= *num_shards ||
      data_path(path.substr(0, at), *shard, *num_shards) != path)
    return std::nullopt;
  return ShardPlace{*shard, *num_shards};
}

Status check_savable(std::string_view key, const Tensor& tensor) {
  if (key.empty() || key.front() == '\0')
    return invalid_argument("[checkpoint] {:?} is not a name of a tensor", key);
  if (!tensor.valid() ||
      (!is_plain(tensor.dtype()) && tensor.dtype() != DataType::kString))
    return error(Code::kUnimplemented,
                 "[checkpoint] tensor {:?} is {}, which cannot be saved", key,
                 tensor.describe());
  return {};
}

Result<BundleEntry> append_tensor(AtomicFile& file, std::string key, int shard,
                                  const Tensor& tensor,
                                  const std::atomic<bool>* stopped) {
  BundleEntry entry;
  entry.key = std::move(key);
  entry.dtype = int(tensor.dtype());
  entry.shape = tensor.shape();
  entry.shard = shard;
  entry.offset = file.size();
  const auto is_stopped = [stopped] { return stopped != nullptr && *stopped; };
  uint32_t crc = 0;
  if (tensor.dtype() == DataType::kString) {
    TAGFLOW_ASSIGN(
        crc,
        write_string_elements(tensor, [&](std::string_view bytes) -> Status {
          return is_stopped() ? stopped_error(file) : file.append(bytes);
        }));
  } else {
    std::string_view bytes(static_cast<const char*>(tensor.raw()),
                           tensor.bytes());
    while (!bytes.empty()) {
      if (is_stopped()) return stopped_error(file);
      const std::string_view piece = bytes.substr(0, kPiece);
      TAGFLOW_RETURN_IF_ERROR(file.append(piece, crc));
      bytes.remove_prefix(piece.size());
    }
  }
  entry.size = file.size() - entry.offset;
  entry.crc = mask_crc32c(crc);
  return entry;
}

Result<uint32_t> sampled_checksum(const ReadableFile& file, uint64_t size,
                                  uint64_t seed, std::string_view path) {
  std::vector<char> piece(kSample);
  uint32_t crc = 0;
  const auto add = [&](uint64_t offset, uint64_t count) -> Status {
    const std::span<char> bytes(piece.data(), size_t(count));
    TAGFLOW_RETURN_IF_ERROR(read_exactly(file, offset, bytes, path));
    crc = extend_crc32c(crc, {bytes.data(), bytes.size()});
    return {};
  };
  if (size <= kSamples * kSample) {
    for (uint64_t at = 0; at < size; at += kSample)
      TAGFLOW_RETURN_IF_ERROR(add(at, std::min<uint64_t>(size - at, kSample)));
    return crc;
  }
  TAGFLOW_RETURN_IF_ERROR(add(0, kSample));
  TAGFLOW_RETURN_IF_ERROR(add(size - kSample, kSample));
  // The numbers of this engine are the same everywhere.
  std::mt19937_64 random(seed);
  for (uint64_t i = 2; i < kSamples; ++i)
    TAGFLOW_RETURN_IF_ERROR(add(random() % (size - kSample), kSample));
  return crc;
}

Result<WrittenShard> write_shard(const std::string& path, uint64_t save,
                                 std::span<const std::string> keys,
                                 std::span<Tensor> tensors,
                                 const std::atomic<bool>& stopped,
                                 const WriteOptions& options) {
  const auto place = parse_data_path(path);
  if (!place)
    return invalid_argument("[checkpoint] {:?} is not the name of a shard",
                            path);
  if (keys.size() != tensors.size())
    return invalid_argument("[checkpoint] there are {} names for {} tensors",
                            keys.size(), tensors.size());
  std::set<std::string_view> known;
  for (size_t i = 0; i < keys.size(); ++i) {
    TAGFLOW_RETURN_IF_ERROR(check_savable(keys[i], tensors[i]));
    if (!known.insert(keys[i]).second)
      return invalid_argument("[checkpoint] tensor {:?} is added twice",
                              keys[i]);
  }
  WrittenShard written;
  TAGFLOW_ASSIGN(written.file, AtomicFile::create_as(temporary_name(path, save),
                                                     path, options));
  AtomicFile& file = *written.file;
  file.write_through();
  for (size_t i = 0; i < keys.size(); ++i) {
    TAGFLOW_ASSIGN(BundleEntry entry, append_tensor(file, keys[i], place->shard,
                                                    tensors[i], &stopped));
    written.entries.push_back(std::move(entry));
    tensors[i].reset();
  }
  TAGFLOW_RETURN_IF_ERROR(file.finish());
  if (stopped) return stopped_error(file);
  written.size = file.size();
  TAGFLOW_ASSIGN(const auto again,
                 options.file_system().open(file.temporary()));
  TAGFLOW_ASSIGN(written.checksum, sampled_checksum(*again, written.size, save,
                                                    file.temporary()));
  return written;
}

Status check_shard(const ForeignShard& shard, uint64_t save,
                   FileSystem& files) {
  const auto file = files.open(shard.path);
  if (file.status().code() == Code::kNotFound)
    return error(Code::kFailedPrecondition,
                 "[checkpoint] {} has written \"{}\", which is not there for "
                 "this process: the two do not see one file system at this "
                 "path",
                 shard.writer, shard.path);
  TAGFLOW_RETURN_IF_ERROR(file.status());
  if ((*file)->size() != shard.size)
    return error(Code::kDataLoss,
                 "[checkpoint] \"{}\" has {} bytes for {}, which has written "
                 "it, and {} for this process",
                 shard.path, shard.size, shard.writer, (*file)->size());
  TAGFLOW_ASSIGN(const uint32_t checksum,
                 sampled_checksum(**file, shard.size, save, shard.path));
  if (checksum == shard.checksum) return {};
  return error(Code::kDataLoss,
               "[checkpoint] \"{}\" has other bytes for {}, which has written "
               "it, than for this process",
               shard.path, shard.writer);
}

}  // namespace tagflow::checkpoint
