// Frames of a peer that knows the format, and keeps to no other rule.
#pragma once

#include <fcntl.h>

#include <random>
#include <string>

#include "net/transfer/pairing.h"
#include "tests/net/link/loopback.h"
#include "tests/net/wire/numbered.h"
#include "tests/net/wire/random_message.h"

namespace tagflow::net {

// Both connections of such a peer, by local doors. Most of its numbers are
// small, so that it names what is there.
class RandomPeer {
 public:
  RandomPeer(Pairing::Pair pair, Role role, uint64_t seed)
      : pair_(std::move(pair)), role_(role), random_(seed) {
    for (const Socket* socket : {&pair_.small, &pair_.bulk})
      REQUIRE(::fcntl(socket->descriptor(), F_SETFL, 0) == 0);
  }

  // Sends a frame of the small link; false if that is lost. Now and then it is
  // one that nobody expects of this peer.
  bool send_small() {
    if (random_() % 32 == 0) return send_wrong();
    const auto which = random_() % 16;
    if (role_ == Role::kWorker)
      return which < 8    ? small(Tokens())
             : which < 15 ? small(Pull())
                          : small(Credit());
    if (which < 6) return small(Run());
    if (which < 9) return small(Abort());
    if (which < 12) return small(Release());
    if (which < 13) return small(Reset());
    if (which < 14) return small(Look());
    if (which < 15) return small(Steer());
    return small(Pong());
  }
  // The same of the bulk link.
  bool send_bulk() {
    switch (random_() % 8) {
      case 0:
        return bulk(Cancel());
      case 1:
        return bulk(Ping());
      case 2:
      case 3:
      case 4:
        return bulk(Begin());
      default:
        return send_chunk();
    }
  }

 private:
  bool send_wrong() {
    switch (random_() % 8) {
      case 0:
        return small(Done());
      case 1:
        return small(Report());
      case 2:
        return small(PairLost());
      case 3:
        return small(Reply());
      case 4:
        return small(Drain());
      case 5:
        return small(Devices());
      case 6:
        return random_() % 2 == 0 ? small(Ask()) : small(Seen());
      default:
        return small(Bye());
    }
  }
  uint64_t small_number() { return random_() % 6; }

  // What the peer names exists, maybe.
  void aim(Run& run) {
    run.executable = small_number();
    run.step = ++step_;
    for (Run::Feed& feed : run.feeds)
      if (auto* object = std::get_if<ObjectId>(&feed.value))
        *object = ObjectId(small_number());
  }
  void aim(Abort& abort) { abort.step = step_ + small_number(); }
  void aim(Ask& ask) { ask.step = step_; }
  void aim(Look& look) {
    look.step = step_;
    look.patience_us %= 100;
  }
  void aim(Steer& steer) { steer.step = step_; }
  void aim(Tokens& tokens) { tokens.step = step_ + small_number(); }
  void aim(Pull& pull) { pull.step = step_; }
  void aim(Release& release) { release.executable = small_number(); }
  void aim(Cancel& cancel) { cancel.object = ObjectId(small_number()); }
  void aim(Begin& begin) {
    begin.object = ObjectId(small_number());
    if (begin.kind == ObjectKind::kRegister) begin.bytes %= 300;
  }
  template <class Message>
  void aim(Message&) {}

  template <class Message>
  std::string frame_of(Message message, uint32_t number) {
    fill(random_, message);
    if (random_() % 8 != 0) aim(message);
    std::string frame = numbered(message, number);
    if (random_() % 16 == 0 && frame.size() > kFrameHeader) {
      frame[kFrameHeader + random_() % (frame.size() - kFrameHeader)] =
          char(random_());
      number_frame(frame, number);
    }
    return frame;
  }
  template <class Message>
  bool small(Message message) {
    return write_all(pair_.small, frame_of(std::move(message), small_sent_++));
  }
  template <class Message>
  bool bulk(Message message) {
    return write_all(pair_.bulk, frame_of(std::move(message), bulk_sent_++));
  }
  // Through a local door, which has no sums of the bytes.
  bool send_chunk() {
    const std::string rest(random_() % 200, '\1');
    Writer head(kFrameHeader);
    Chunk{ObjectId(small_number()), 0}.write(head);
    REQUIRE(begin_frame(FrameKind::kChunk, head.bytes(), rest.size()).ok());
    number_frame(head.bytes(), bulk_sent_++);
    return write_all(pair_.bulk, head.bytes() + rest);
  }

  Pairing::Pair pair_;
  const Role role_;  // of this peer
  std::mt19937_64 random_;
  uint32_t small_sent_ = 0, bulk_sent_ = 0;
  uint64_t step_ = 0;
};

}  // namespace tagflow::net
