// BulkOutput: the objects that leave by a bulk link, without its socket.
#pragma once

#include <sys/uio.h>

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"
#include "net/link/chunk_sums.h"
#include "net/wire/messages.h"

namespace tagflow::net {

// Gives out the bytes of objects, chunk by chunk, in turns:
//
//   n = writev(socket, output.parts());
//   output.add(n);
//
// Other frames go before the next chunk. Thread-compatible.
class BulkOutput {
 public:
  // What is sent: begin.bytes bytes, which live, unchanged, as long as `owner`.
  struct Object {
    Begin begin;
    std::string_view bytes;
    std::shared_ptr<const void> owner;
  };
  // Bytes of an object in a chunk: they stay in the cache of a core, and the
  // receiver is at work on one while the next one is made. Measured over
  // loopback, half and twice as many were slower.
  static constexpr size_t kChunkBytes = size_t{128} << 10;

  // What the checksums of chunks cover: those of the BulkInput at the other
  // side.
  explicit BulkOutput(ChunkSums sums = ChunkSums::kAll) : sums_(sums) {}

  // An error if its Begin cannot be sent. REQUIRES: its id is not that of
  // another object that is here, and bytes.size() == begin.bytes
  Status push(Object object);
  // A frame of frame_of().
  void push(std::string frame) { frames_.push_back(std::move(frame)); }
  // Frames that are not begun, without those of objects.
  size_t waiting() const { return frames_.size(); }
  // Takes an object out of the line. Whether it was there; if its last frame is
  // under way, it is not any more. The receiver is told the cause.
  Result<bool> cancel(ObjectId object, const Status& cause);

  // The next bytes; nothing if there are none. Valid until the next call.
  Result<std::span<iovec>> parts();
  // So many bytes of parts() are written. The object that ended with them.
  std::optional<ObjectId> add(size_t count);
  // How many frames were begun, modulo 2^32.
  uint32_t sequence() const { return sequence_; }
  // Forgets all of it; returns the objects.
  std::vector<ObjectId> clear();

 private:
  struct Outgoing {
    ObjectId id{};
    std::string begin;  // the frame; empty once it was given out
    std::string_view bytes;
    std::shared_ptr<const void> owner;
    uint64_t sent = 0;
  };

  // Makes the next frame the one under way; whether there is one.
  Result<bool> begin_next();
  Status begin_chunk();

  ChunkSums sums_;
  std::deque<std::string> frames_;
  std::deque<Outgoing> objects_;  // the next one first
  uint32_t sequence_ = 0;
  // The frame under way: a head, and of a chunk a body behind it.
  std::string head_;
  std::string_view body_;
  std::shared_ptr<const void> owner_;  // of the body
  std::optional<ObjectId> ends_;       // the object whose last frame it is
  size_t written_ = 0;
  std::array<iovec, 2> parts_{};
};

}  // namespace tagflow::net
