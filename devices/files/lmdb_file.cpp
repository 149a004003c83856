#include "devices/files/lmdb_file.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "devices/files/byte_reader.h"
#include "graph/counted.h"

namespace tagflow::checkpoint {

namespace {

// The machine is little-endian, too, and the structures have no gaps.
struct PageHead {
  uint64_t number;
  uint16_t unused, flags;
  uint16_t lower, upper;  // of an overflow page: the number of pages
};
static_assert(sizeof(PageHead) == 16);

struct NodeHead {
  uint16_t low, high, flags, key_bytes;
};
static_assert(sizeof(NodeHead) == 8);

struct Tree {
  uint32_t pad;
  uint16_t flags, depth;
  uint64_t branches, leaves, overflow_pages, records, root;
};

struct MetaPage {
  PageHead head;
  uint32_t magic, version;
  uint64_t address, map_bytes;
  Tree free, main;  // `free.pad` is the size of pages
  uint64_t last_page, transaction;
};
static_assert(sizeof(MetaPage) == 152);

// Flags of pages and nodes.
constexpr uint16_t kBranch = 0x01, kLeaf = 0x02, kOverflow = 0x04, kMeta = 0x08;
constexpr uint16_t kKinds = 0x6f;  // of those, and of pages of several values
constexpr uint16_t kBig = 0x01, kDatabase = 0x02, kValues = 0x04;

constexpr uint32_t kMagic = 0xbeefc0de, kVersion = 1;
constexpr uint64_t kFewestPageBytes = 512, kMostPageBytes = 32768;
constexpr uint64_t kNoPage = UINT64_MAX, kFirstPage = 2;
constexpr size_t kMostDepth = 32;  // LMDB's own limit

template <class... Args>
Status damaged(fmt::format_string<Args...> text, Args&&... args) {
  return error(Code::kDataLoss, text, std::forward<Args>(args)...);
}

// At `offset`, if a page of this kind is there. The second one lies at the size
// of a page.
bool is_meta(const MetaPage& meta, uint64_t offset) {
  const uint64_t bytes = meta.free.pad;
  return meta.magic == kMagic && meta.version == kVersion &&
         (meta.head.flags & kKinds) == kMeta && std::has_single_bit(bytes) &&
         bytes >= kFewestPageBytes && bytes <= kMostPageBytes &&
         (offset == 0 || offset == bytes);
}

// The second page is found even if the first is damaged.
Result<MetaPage> newest_meta(const ReadableFile& file) {
  std::optional<MetaPage> newest;
  for (uint64_t offset = 0; offset <= kMostPageBytes;
       offset = std::max(2 * offset, kFewestPageBytes)) {
    char bytes[sizeof(MetaPage)];
    TAGFLOW_ASSIGN(const size_t count, file.read(offset, bytes));
    if (count < sizeof bytes) break;
    const auto meta = load_number<MetaPage>({bytes, sizeof bytes});
    if (!is_meta(meta, offset) || (newest && meta.free.pad != newest->free.pad))
      continue;
    if (!newest || meta.transaction > newest->transaction) newest = meta;
  }
  if (newest) return *newest;
  return damaged(
      "the file is no database of LMDB, version {}, of a 64-bit machine",
      kVersion);
}

}  // namespace

struct LmdbFile::Node {
  NodeHead head;
  std::string_view key, value;  // of a big value: the number of its page

  uint64_t size() const { return head.low | uint64_t(head.high) << 16; }
  uint64_t child() const { return size() | uint64_t(head.flags) << 32; }
};

Result<LmdbFile> LmdbFile::open(std::unique_ptr<ReadableFile> file) {
  TAGFLOW_ASSIGN(const MetaPage meta, newest_meta(*file));
  LmdbFile made;
  made.page_bytes_ = meta.free.pad;
  // The file may be shorter, if its last pages are free.
  made.pages_ = std::min(file->size() / made.page_bytes_, meta.last_page + 1);
  made.unused_ = made.pages_;
  made.file_ = std::move(file);
  made.depth_ = meta.main.depth;
  made.records_ = meta.main.records;
  if (meta.main.root == kNoPage) return made;
  if (made.depth_ == 0 || made.depth_ > kMostDepth)
    return damaged("the database cannot have {} levels of pages", made.depth_);
  TAGFLOW_RETURN_IF_ERROR(made.enter(meta.main.root));
  return made;
}

Status LmdbFile::read(uint64_t offset, std::span<char> bytes) const {
  TAGFLOW_ASSIGN(const size_t count, file_->read(offset, bytes));
  if (count == bytes.size()) return {};
  return damaged("the file ends after {} bytes", offset + count);
}

Status LmdbFile::use(uint64_t page, uint64_t count) {
  if (page < kFirstPage || page >= pages_ || count > pages_ - page)
    return damaged("the file has {}, so not {} from page {} on",
                   counted(pages_, "page"), counted(count, "page"), page);
  if (count > unused_)
    return damaged("page {} follows more pages than there are", page);
  unused_ -= count;
  return {};
}

Status LmdbFile::enter(uint64_t number) {
  TAGFLOW_RETURN_IF_ERROR(use(number, 1));
  Level level{std::string(page_bytes_, '\0')};
  TAGFLOW_RETURN_IF_ERROR(read(number * page_bytes_, level.page));
  const auto head = load_number<PageHead>(level.page);
  const uint16_t kind = path_.size() + 1 < depth_ ? kBranch : kLeaf;
  if (head.number != number || (head.flags & kKinds) != kind ||
      head.lower <= sizeof head || head.lower % sizeof(uint16_t) != 0 ||
      head.lower > head.upper || head.upper > page_bytes_)
    return damaged("page {} is damaged: it is no {}", number,
                   kind == kLeaf ? "leaf" : "branch");
  level.nodes = (head.lower - sizeof head) / sizeof(uint16_t);
  level.left = page_bytes_ - head.upper;
  path_.push_back(std::move(level));
  return {};
}

Result<LmdbFile::Node> LmdbFile::next_node() {
  Level& level = path_.back();
  const std::string_view page = level.page;
  const size_t place = sizeof(PageHead) + level.next++ * sizeof(uint16_t);
  const size_t begin = load_number<uint16_t>(page.substr(place));
  if (begin + sizeof(NodeHead) <= page.size()) {
    Node node{load_number<NodeHead>(page.substr(begin)), {}, {}};
    const size_t key_end = sizeof(NodeHead) + node.head.key_bytes;
    const uint64_t bytes = path_.size() < depth_     ? 0
                           : node.head.flags == kBig ? sizeof(uint64_t)
                                                     : node.size();
    const uint64_t end = key_end + bytes;
    if (end <= level.left && end <= page.size() - begin) {
      level.left -= size_t(end);
      node.key = page.substr(begin + sizeof(NodeHead), node.head.key_bytes);
      node.value = page.substr(begin + key_end, size_t(bytes));
      return node;
    }
  }
  return damaged("page {} is damaged: node {} does not fit",
                 load_number<uint64_t>(page), level.next - 1);
}

Status LmdbFile::read_overflow(uint64_t page, size_t bytes,
                               std::string& value) {
  TAGFLOW_RETURN_IF_ERROR(
      use(page, (sizeof(PageHead) + bytes + page_bytes_ - 1) / page_bytes_));
  const uint64_t offset = page * page_bytes_;
  char start[sizeof(PageHead)];
  TAGFLOW_RETURN_IF_ERROR(read(offset, start));
  const auto head = load_number<PageHead>({start, sizeof start});
  const uint64_t pages = head.lower | uint64_t(head.upper) << 16;
  if (head.number != page || (head.flags & kKinds) != kOverflow ||
      pages * page_bytes_ < sizeof head + bytes)
    return damaged("page {} is damaged: no value of {} bytes begins there",
                   page, bytes);
  value.resize(bytes);
  return read(offset + sizeof head, value);
}

Status LmdbFile::read_value(const Node& node, std::string& value) {
  if ((node.head.flags & (kDatabase | kValues)) != 0)
    return error(Code::kUnimplemented,
                 "the key {:?} has several values, or is the name of a "
                 "database; only keys with one value are read",
                 node.key);
  if (node.head.flags == kBig)
    return read_overflow(load_number<uint64_t>(node.value), size_t(node.size()),
                         value);
  value.assign(node.value);
  if (node.head.flags == 0) return {};
  return damaged("the value of the key {:?} is damaged", node.key);
}

Result<bool> LmdbFile::next(std::string& key, std::string& value) {
  while (!path_.empty()) {
    if (path_.back().next == path_.back().nodes) {
      path_.pop_back();
      continue;
    }
    TAGFLOW_ASSIGN(const Node node, next_node());
    if (path_.size() < depth_) {
      TAGFLOW_RETURN_IF_ERROR(enter(node.child()));
      continue;
    }
    if (node.key.empty())
      return damaged("page {} is damaged: a key is empty",
                     load_number<uint64_t>(path_.back().page));
    TAGFLOW_RETURN_IF_ERROR(read_value(node, value));
    key.assign(node.key);
    ++given_;
    return true;
  }
  if (given_ == records_) return false;
  return damaged("the database has {}, but says {}", counted(given_, "record"),
                 records_);
}

}  // namespace tagflow::checkpoint
