#include "net/link/bulk_input.h"

#include <algorithm>

#include "net/link/system_io.h"

namespace tagflow::net {
namespace {

constexpr size_t kChunkHead = kFrameHeader + Chunk::kFields;
// Room for every frame but chunks.
constexpr size_t kStageBytes = size_t{64} << 10;

Status status_of(const Outcome& cause) {
  const Code code = cause.code == Code::kOk ? Code::kCancelled : cause.code;
  return Status(code, cause.message);
}

}  // namespace

BulkInput::BulkInput(Handlers handlers, ChunkSums sums)
    : handlers_(std::move(handlers)),
      sums_(sums),
      stage_(kStageBytes, '\0'),
      wanted_(kChunkHead) {}

std::span<iovec> BulkInput::space() {
  std::copy_n(stage_.begin() + ptrdiff_t(begin_), end_ - begin_,
              stage_.begin());
  end_ -= std::exchange(begin_, 0);
  size_t count = 0;
  chunk_room_ = 0;
  if (chunk_left_ > 0) {
    const std::span<char> space = chunk_space();
    chunk_room_ = space.size();
    space_[count++] = part(space);
  }
  if (chunk_room_ == chunk_left_)
    space_[count++] = part(std::span(stage_).subspan(end_, wanted_ - end_));
  return std::span(space_).first(count);
}

Status BulkInput::add(size_t count) {
  const size_t of_chunk = std::min(count, chunk_room_);
  end_ += count - of_chunk;
  if (of_chunk > 0) TAGFLOW_RETURN_IF_ERROR(take_chunk_bytes(of_chunk));
  return take_staged();
}

std::span<char> BulkInput::chunk_space() {
  const Incoming& object = incoming_.find(chunk_object_)->second;
  if (!object.is_dropped)
    return object.to.bytes.subspan(object.got, chunk_left_);
  waste_.resize(std::min(chunk_left_, kStageBytes));
  return waste_;
}

// The bytes are in chunk_space().
Status BulkInput::take_chunk_bytes(size_t count) {
  chunk_checksum_ = extend_checksum(
      chunk_checksum_, summed(sums_, {chunk_space().data(), count}));
  Incoming& object = incoming_.find(chunk_object_)->second;
  object.got += count;
  chunk_left_ -= count;
  if (chunk_left_ > 0) return {};
  TAGFLOW_RETURN_IF_ERROR(check_checksum(chunk_header_, chunk_checksum_));
  if (object.got == object.bytes) end_object(ObjectId(chunk_object_), {});
  return {};
}

// Takes whole frames out of the stage, up to one that is not whole, or to the
// bytes of a chunk.
Status BulkInput::take_staged() {
  bool is_whole = true;
  while (is_whole && chunk_left_ == 0 && !is_stopped_) {
    wanted_ = kChunkHead;
    if (staged().size() < kFrameHeader) break;
    TAGFLOW_ASSIGN(const FrameHeader header,
                   read_frame_header(staged().substr(0, kFrameHeader),
                                     Purpose::kBulk, sequence_));
    TAGFLOW_ASSIGN(is_whole, header.kind == FrameKind::kChunk
                                 ? take_chunk_head(header)
                                 : take_frame(header));
    if (is_whole) ++sequence_;
  }
  return {};
}

Result<bool> BulkInput::take_chunk_head(const FrameHeader& header) {
  if (staged().size() < kChunkHead) return false;
  const std::string_view head = staged().substr(0, kChunkHead);
  begin_ += kChunkHead;
  TAGFLOW_RETURN_IF_ERROR(begin_chunk(header, head));
  // What the stage has of its bytes.
  while (chunk_left_ > 0 && begin_ < end_) {
    const std::span<char> space = chunk_space();
    const size_t count = std::min(space.size(), end_ - begin_);
    std::copy_n(stage_.data() + begin_, count, space.data());
    begin_ += count;
    TAGFLOW_RETURN_IF_ERROR(take_chunk_bytes(count));
  }
  return true;
}

Result<bool> BulkInput::take_frame(const FrameHeader& header) {
  wanted_ = kFrameHeader + header.length;
  if (wanted_ > kStageBytes)
    return error(Code::kDataLoss,
                 "[net|frame] frame {}: {} of {} bytes is too long", sequence_,
                 kind_name(header.kind), header.length);
  if (staged().size() < wanted_) return false;
  const std::string_view head = staged().substr(0, kFrameHeader);
  const std::string_view body = staged().substr(kFrameHeader, header.length);
  TAGFLOW_RETURN_IF_ERROR(
      check_checksum(header, extend_checksum(header_checksum(head), body)));
  begin_ += wanted_;
  if (header.kind == FrameKind::kBegin) {
    TAGFLOW_ASSIGN(const Begin begin, parse_body<Begin>(body));
    TAGFLOW_RETURN_IF_ERROR(take_begin(begin));
  } else if (header.kind == FrameKind::kCancel) {
    TAGFLOW_ASSIGN(const Cancel cancel, parse_body<Cancel>(body));
    // It may have been dropped here, and be over there.
    if (incoming_.contains(uint64_t(cancel.object)))
      end_object(cancel.object, status_of(cancel.cause));
  } else {
    TAGFLOW_RETURN_IF_ERROR(handlers_.on_frame({header.kind, body}));
  }
  return true;
}

Status BulkInput::begin_chunk(const FrameHeader& header,
                              std::string_view head) {
  Reader reader(head.substr(kFrameHeader), "Chunk");
  const Chunk chunk = Chunk::read(reader);
  const auto wrong = [&](std::string_view what) {
    return error(Code::kDataLoss, "[net|Chunk] object {}: {}",
                 uint64_t(chunk.object), what);
  };
  const auto found = incoming_.find(uint64_t(chunk.object));
  if (found == incoming_.end()) return wrong("it has not begun");
  const Incoming& object = found->second;
  if (chunk.offset != object.got)
    return wrong(fmt::format("byte {} comes instead of byte {}", chunk.offset,
                             object.got));
  if (header.length <= Chunk::kFields) return wrong("a chunk is empty");
  const size_t count = header.length - Chunk::kFields;
  if (count > object.bytes - object.got)
    return wrong(fmt::format("it has more than {} bytes", object.bytes));
  chunk_left_ = count;
  chunk_object_ = uint64_t(chunk.object);
  chunk_header_ = header;
  chunk_checksum_ = extend_checksum(
      header_checksum(head.substr(0, kFrameHeader)), head.substr(kFrameHeader));
  return {};
}

Status BulkInput::take_begin(const Begin& begin) {
  const auto id = uint64_t(begin.object);
  const bool is_known = incoming_.contains(id);
  if (is_known || incoming_.size() >= kMostObjects)
    return error(Code::kDataLoss, "[net|Begin] object {}: {}", id,
                 is_known ? "it has begun already" : "too many come at a time");
  Result<Destination> to = handlers_.on_begin(begin);
  if (is_stopped_) return {};
  Incoming object;
  object.bytes = begin.bytes;
  object.is_dropped = !to.ok();
  if (to.ok()) {
    object.to = std::move(*to);
    if (object.to.bytes.size() != begin.bytes)
      return error(Code::kInternal, "[net|link] {} bytes for object {} of {}",
                   object.to.bytes.size(), id, begin.bytes);
  }
  incoming_.emplace(id, std::move(object));
  if (begin.bytes == 0) end_object(begin.object, {});
  return {};
}

void BulkInput::end_object(ObjectId object, const Status& status) {
  // Its owner goes first: then the receiver is the only one that has the bytes.
  const bool is_dropped =
      incoming_.extract(uint64_t(object)).mapped().is_dropped;
  if (!is_dropped && handlers_.on_end) handlers_.on_end(object, status);
}

void BulkInput::drop(ObjectId object) {
  const auto found = incoming_.find(uint64_t(object));
  if (found == incoming_.end()) return;
  found->second.is_dropped = true;
  found->second.to = {};
}

void BulkInput::end_all(const Status& status) {
  while (!incoming_.empty())
    end_object(ObjectId(incoming_.begin()->first), status);
}

void BulkInput::stop() {
  is_stopped_ = true;
  incoming_.clear();
}

}  // namespace tagflow::net
