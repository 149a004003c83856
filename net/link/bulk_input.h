// BulkInput: the objects that come by a bulk link, without its socket.
#pragma once

#include <sys/uio.h>

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/status.h"
#include "net/link/chunk_sums.h"
#include "net/wire/messages.h"

namespace tagflow::net {

// Takes the bytes of a link, and puts those of an object where its receiver
// wants them:
//
//   n = readv(socket, input.space());
//   status = input.add(n);
//
// A chunk is read straight into its destination, and its checksum is made while
// it is in cache. All else goes through a small stage, into which no more is
// read than the next frame, or the head of the next chunk, needs: so hardly a
// byte of an object is copied. Thread-compatible; it calls its handlers in
// add() and end_all().
class BulkInput {
 public:
  // Where an object goes: its `bytes`, which live as long as `owner`.
  struct Destination {
    std::span<char> bytes;
    std::shared_ptr<void> owner;
  };
  struct Handlers {
    // As those of a BulkLink.
    std::function<Result<Destination>(const Begin&)> on_begin;
    std::function<void(ObjectId, const Status&)> on_end;
    // A frame that is not of an object. An error ends the input.
    std::function<Status(const Frame&)> on_frame;
  };
  // Objects that may come at a time; more are an error.
  static constexpr size_t kMostObjects = 4096;

  explicit BulkInput(Handlers handlers, ChunkSums sums = ChunkSums::kAll);

  // Where the next bytes go; there is room for one at least. Valid until the
  // next call. REQUIRES: add() has never failed
  std::span<iovec> space();
  // So many bytes are now in space(). DataLoss if the peer broke the format,
  // and the error of a handler.
  Status add(size_t count);
  // Frames that have come, modulo 2^32. A chunk is one.
  uint32_t sequence() const { return sequence_; }
  // Ignores the rest of an object, if it comes, and on_end is not called.
  void drop(ObjectId object);
  // All objects that come end with the error.
  void end_all(const Status& status);
  // Forgets all objects; no handler is called any more, though one may have
  // called this.
  void stop();

 private:
  struct Incoming {
    uint64_t bytes = 0;  // of the whole object
    uint64_t got = 0;
    Destination to;
    bool is_dropped = false;
  };

  std::string_view staged() const {
    return {stage_.data() + begin_, end_ - begin_};
  }
  // Where the next bytes of the chunk go.
  std::span<char> chunk_space();
  Status take_chunk_bytes(size_t count);
  Status take_staged();
  Result<bool> take_chunk_head(const FrameHeader& header);
  Result<bool> take_frame(const FrameHeader& header);
  Status begin_chunk(const FrameHeader& header, std::string_view head);
  Status take_begin(const Begin& begin);
  void end_object(ObjectId object, const Status& status);

  Handlers handlers_;
  ChunkSums sums_;
  bool is_stopped_ = false;
  std::array<iovec, 2> space_{};
  size_t chunk_room_ = 0;  // bytes of space_ that are of the chunk
  std::string stage_;      // what was read, but is not of a chunk
  size_t begin_ = 0;       // of what was not taken out of it
  size_t end_ = 0;
  size_t wanted_;  // bytes to have in the stage next
  uint32_t sequence_ = 0;
  std::unordered_map<uint64_t, Incoming> incoming_;
  // The chunk whose bytes come, if any are left.
  size_t chunk_left_ = 0;
  uint64_t chunk_object_ = 0;
  FrameHeader chunk_header_{};
  uint32_t chunk_checksum_ = 0;
  std::vector<char> waste_;  // takes what is dropped
};

}  // namespace tagflow::net
