#include <snappy.h>

#include <optional>

#include "devices/files/byte_reader.h"
#include "devices/files/crc32c.h"
#include "devices/files/table.h"

namespace tagflow::checkpoint {
namespace {

constexpr uint64_t kTableMagic = 0xdb4775248b80fb57;
constexpr size_t kFooterBytes = 48;
constexpr size_t kTrailerBytes = 5;  // the type of compression, the checksum
constexpr char kNotCompressed = 0, kSnappy = 1;
// A bound on compression: snappy needs at least a byte and a half for each copy
// of 64 bytes.
constexpr size_t kMaxSnappyRatio = 64;

Status broken_table(std::string_view name, std::string_view what) {
  return error(Code::kDataLoss, "[checkpoint] the index \"{}\" is damaged: {}",
               name, what);
}

struct BlockPlace {
  uint64_t offset = 0, size = 0;
};

std::optional<BlockPlace> take_place(std::string_view& bytes) {
  const auto offset = take_varint(bytes);
  const auto size = take_varint(bytes);
  if (!offset || !size) return std::nullopt;
  return BlockPlace{*offset, *size};
}

// A block's bytes: within those of the file, or, if it was compressed, in
// `storage`.
Result<std::string_view> read_block(std::string_view file, BlockPlace place,
                                    std::string_view name,
                                    std::string& storage) {
  const size_t end = file.size() - kFooterBytes;
  if (place.offset > end || end - place.offset < kTrailerBytes ||
      place.size > end - place.offset - kTrailerBytes)
    return broken_table(name, "a block is outside of the file");
  const auto size = size_t(place.size);
  const std::string_view checked = file.substr(size_t(place.offset), size + 1);
  const auto wanted =
      load_number<uint32_t>(file.substr(size_t(place.offset) + size + 1));
  if (mask_crc32c(crc32c(checked)) != wanted)
    return broken_table(name, "the checksum of a block is wrong");
  const std::string_view block = checked.substr(0, size);
  if (checked.back() == kNotCompressed) return block;
  size_t whole = 0;
  if (checked.back() != kSnappy ||
      !snappy::GetUncompressedLength(block.data(), block.size(), &whole) ||
      whole / kMaxSnappyRatio > block.size())
    return broken_table(name, "a block is compressed in an unknown way");
  if (!snappy::Uncompress(block.data(), block.size(), &storage))
    return broken_table(name, "a compressed block is broken");
  return std::string_view(storage);
}

// Calls visit(key, value) -> Status with each entry of a block.
template <class Visit>
Status visit_block(std::string_view block, std::string_view name, Visit visit) {
  constexpr size_t kWord = sizeof(uint32_t);
  if (block.size() < kWord) return broken_table(name, "a block is too short");
  const auto starts = load_number<uint32_t>(block.substr(block.size() - kWord));
  if (starts > block.size() / kWord - 1)
    return broken_table(name, "a block is too short");
  std::string_view rest =
      block.substr(0, block.size() - kWord - starts * kWord);
  std::string key;
  while (!rest.empty()) {
    const auto shared = take_varint(rest);
    const auto key_bytes = take_varint(rest);
    const auto value_bytes = take_varint(rest);
    if (!shared || !key_bytes || !value_bytes || *shared > key.size() ||
        *key_bytes > rest.size() || *value_bytes > rest.size() - *key_bytes)
      return broken_table(name, "an entry of a block is wrong");
    key.resize(size_t(*shared));
    key += rest.substr(0, size_t(*key_bytes));
    rest.remove_prefix(size_t(*key_bytes));
    TAGFLOW_RETURN_IF_ERROR(visit(key, rest.substr(0, size_t(*value_bytes))));
    rest.remove_prefix(size_t(*value_bytes));
  }
  return {};
}

// Keys share prefixes: a small file can expand to a large one.
class TableLimit {
 public:
  TableLimit(std::string_view file, std::string_view name)
      : name_(name), left_(kBase + kRatio * file.size()) {}
  Status take(size_t bytes) {
    if (bytes > left_) return broken_table(name_, "its keys are too long");
    left_ -= bytes;
    return {};
  }

 private:
  static constexpr size_t kBase = size_t{64} << 20;
  static constexpr size_t kRatio = 256;
  const std::string_view name_;
  size_t left_;
};

}  // namespace

bool is_table(std::string_view bytes) {
  return bytes.size() >= kFooterBytes &&
         load_number<uint64_t>(bytes.substr(bytes.size() - sizeof(uint64_t))) ==
             kTableMagic;
}

Result<std::vector<TableEntry>> parse_table(std::string_view bytes,
                                            std::string_view name) {
  if (!is_table(bytes))
    return broken_table(name, "it does not end like a LevelDB table");
  std::string_view footer = bytes.substr(bytes.size() - kFooterBytes);
  const auto unused = take_place(footer);  // the block of filters
  const auto index_place = take_place(footer);
  if (!unused || !index_place) return broken_table(name, "its footer is wrong");

  std::vector<TableEntry> entries;
  TableLimit limit(bytes, name);
  const auto add = [&](const std::string& key, std::string_view value) {
    if (!entries.empty() && key <= entries.back().first)
      return broken_table(name, "its keys are not ascending");
    TAGFLOW_RETURN_IF_ERROR(
        limit.take(sizeof(TableEntry) + key.size() + value.size()));
    entries.emplace_back(key, value);
    return Status();
  };
  std::string index_storage, storage;
  // Otherwise a small file could have many entries for one large block.
  uint64_t read_until = 0;
  TAGFLOW_ASSIGN(const std::string_view index,
                 read_block(bytes, *index_place, name, index_storage));
  TAGFLOW_RETURN_IF_ERROR(visit_block(
      index, name, [&](const std::string&, std::string_view value) -> Status {
        const auto place = take_place(value);
        if (!place) return broken_table(name, "the place of a block is wrong");
        if (place->offset < read_until)
          return broken_table(name, "its blocks are not ascending");
        TAGFLOW_ASSIGN(const std::string_view block,
                       read_block(bytes, *place, name, storage));
        read_until = place->offset + place->size + kTrailerBytes;
        return visit_block(block, name, add);
      }));
  return entries;
}

}  // namespace tagflow::checkpoint
