#include "net/link/bulk_output.h"

#include <algorithm>

#include "net/link/system_io.h"

namespace tagflow::net {

Status BulkOutput::push(Object object) {
  TAGFLOW_ASSIGN(std::string begin, frame_of(object.begin));
  objects_.push_back({object.begin.object, std::move(begin), object.bytes,
                      std::move(object.owner), 0});
  return {};
}

Result<bool> BulkOutput::cancel(ObjectId object, const Status& cause) {
  const auto found = std::ranges::find(objects_, object, &Outgoing::id);
  if (found == objects_.end()) return false;
  if (found->begin.empty()) {
    Outcome outcome;
    outcome.code = cause.code();
    outcome.message = cause.message();
    TAGFLOW_ASSIGN(std::string frame, frame_of(Cancel{object, outcome}));
    push(std::move(frame));
  }
  objects_.erase(found);
  return true;
}

Result<std::span<iovec>> BulkOutput::parts() {
  if (written_ == head_.size() + body_.size()) {
    TAGFLOW_ASSIGN(const bool has_next, begin_next());
    if (!has_next) return std::span<iovec>();
  }
  const size_t of_head = std::min(written_, head_.size());
  parts_ = {part(std::string_view(head_).substr(of_head)),
            part(body_.substr(written_ - of_head))};
  return std::span<iovec>(parts_);
}

std::optional<ObjectId> BulkOutput::add(size_t count) {
  written_ += count;
  if (written_ < head_.size() + body_.size()) return {};
  owner_.reset();
  return std::exchange(ends_, {});
}

Result<bool> BulkOutput::begin_next() {
  if (frames_.empty() && objects_.empty()) return false;
  written_ = 0;
  body_ = {};
  if (frames_.empty()) {
    TAGFLOW_RETURN_IF_ERROR(begin_chunk());
  } else {
    head_ = std::move(frames_.front());
    frames_.pop_front();
  }
  number_frame(head_, sequence_++, summed(sums_, body_));
  return true;
}

// The next frame of the object whose turn it is: its Begin, or a chunk.
Status BulkOutput::begin_chunk() {
  Outgoing next = std::move(objects_.front());
  objects_.pop_front();
  if (!next.begin.empty()) {
    head_ = std::exchange(next.begin, {});
  } else {
    body_ = next.bytes.substr(next.sent, kChunkBytes);
    Writer head(kFrameHeader);
    Chunk{next.id, next.sent}.write(head);
    TAGFLOW_RETURN_IF_ERROR(
        begin_frame(FrameKind::kChunk, head.bytes(), body_.size()));
    head_ = std::move(head.bytes());
    owner_ = next.owner;
    next.sent += body_.size();
  }
  if (next.sent == next.bytes.size()) {
    ends_ = next.id;
  } else {
    objects_.push_back(std::move(next));
  }
  return {};
}

std::vector<ObjectId> BulkOutput::clear() {
  std::vector<ObjectId> forgotten;
  if (ends_) forgotten.push_back(*ends_);
  for (const Outgoing& outgoing : objects_) forgotten.push_back(outgoing.id);
  *this = BulkOutput(sums_);
  return forgotten;
}

}  // namespace tagflow::net
