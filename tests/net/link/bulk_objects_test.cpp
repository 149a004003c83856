// The two halves of bulk links, without sockets: what a BulkOutput gives out
// goes into a BulkInput, in pieces of any size.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>

#include "net/link/bulk_input.h"
#include "net/link/bulk_output.h"

namespace tagflow::net {
namespace {

using Bytes = std::shared_ptr<std::string>;

// Both halves, and what a plain model says of their objects.
class Halves {
 public:
  explicit Halves(uint64_t seed) : random_(seed), input_(handlers()) {}

  void push() {
    const size_t size =
        random_() % 4 == 0 ? random_() % 400'000 : random_() % 300;
    const auto bytes = std::make_shared<std::string>(size, '\0');
    for (char& byte : *bytes) byte = char(random_());
    const uint64_t id = next_id_++;
    is_ok_ &= output_
                  .push({{ObjectId(id), ObjectKind::kRegister, size, {}},
                         *bytes,
                         bytes})
                  .ok();
    sent_[id] = bytes;
  }
  void ping() { output_.push(*frame_of(Ping{++pings_, 0})); }
  void cancel() {
    const uint64_t id = next_id_ == 0 ? 0 : random_() % next_id_;
    const auto was_there =
        output_.cancel(ObjectId(id), error(Code::kAborted, "enough of it"));
    if (*was_there) given_up_.insert(id);
  }
  void drop() {
    if (open_.empty()) return;
    const uint64_t id = open_.begin()->first;
    input_.drop(ObjectId(id));
    open_.erase(id);
    dropped_.insert(id);
  }
  // Moves up to `most` bytes; whether there were any.
  bool move(size_t most) {
    const auto from = output_.parts();
    is_ok_ &= from.ok();
    if (!is_ok_ || from->empty()) return false;
    std::string bytes;
    for (const iovec& part : *from)
      bytes.append(static_cast<const char*>(part.iov_base), part.iov_len);
    bytes.resize(std::min(bytes.size(), most));
    if (const auto ended = output_.add(bytes.size())) written_.insert(*ended);
    std::string_view rest = bytes;
    while (!rest.empty() && is_ok_) {
      size_t count = 0;
      for (const iovec& part : input_.space()) {
        const size_t here = std::min(part.iov_len, rest.size());
        std::copy_n(rest.data(), here, static_cast<char*>(part.iov_base));
        rest.remove_prefix(here);
        count += here;
      }
      is_ok_ &= count > 0 && input_.add(count).ok();
    }
    return true;
  }

  // Whether all is as it should be, once nothing is left to be moved.
  bool is_right() const {
    bool right = is_ok_ && open_.empty() && pongs_ == pings_;
    for (const auto& [id, bytes] : sent_) {
      if (dropped_.contains(id)) {
        right &= !arrived_.contains(id);
      } else if (given_up_.contains(id)) {
        right &= !arrived_.contains(id) && !written_.contains(ObjectId(id));
      } else {
        right &= arrived_.contains(id) && *arrived_.at(id) == *bytes &&
                 written_.contains(ObjectId(id));
      }
    }
    return right;
  }

  uint64_t draw(uint64_t below) { return random_() % below; }

 private:
  BulkInput::Handlers handlers() {
    BulkInput::Handlers handlers;
    handlers.on_begin = [this](const Begin& begin) {
      const auto bytes = std::make_shared<std::string>(begin.bytes, '\0');
      open_[uint64_t(begin.object)] = bytes;
      return Result<BulkInput::Destination>({*bytes, bytes});
    };
    handlers.on_end = [this](ObjectId object, const Status& status) {
      const auto id = uint64_t(object);
      if (status.ok()) {
        arrived_[id] = open_.at(id);
      } else {
        is_ok_ &= given_up_.contains(id) && status.message() == "enough of it";
      }
      open_.erase(id);
    };
    handlers.on_frame = [this](const Frame& frame) {
      // In the order in which they were sent.
      is_ok_ &= parse_body<Ping>(frame.body)->nonce == ++pongs_;
      return Status();
    };
    return handlers;
  }

  std::mt19937_64 random_;
  BulkInput input_;
  BulkOutput output_;
  bool is_ok_ = true;
  uint64_t next_id_ = 0, pings_ = 0, pongs_ = 0;
  std::map<uint64_t, Bytes> sent_, open_, arrived_;
  std::set<uint64_t> given_up_, dropped_;
  std::set<ObjectId> written_;
};

TEST_CASE("objects arrive as they were sent, whatever happens beside them") {
  const bool holds = rc::check([](uint32_t seed) {
    Halves halves(seed);
    for (int i = 0; i < 200; ++i) {
      switch (halves.draw(12)) {
        case 0:
        case 1:
          halves.push();
          break;
        case 2:
          halves.ping();
          break;
        case 3:
          halves.cancel();
          break;
        case 4:
          halves.drop();
          break;
        default:
          halves.move(1 + halves.draw(halves.draw(2) == 0 ? 50 : 100'000));
          break;
      }
    }
    while (halves.move(1 + halves.draw(70'000))) {
    }
    RC_ASSERT(halves.is_right());
  });
  CHECK(holds);
}

TEST_CASE("what an output forgets is what it had not given out") {
  BulkOutput output;
  const std::string bytes(1000, 'x');
  for (uint64_t id = 1; id <= 3; ++id)
    CHECK(output
              .push({{ObjectId(id), ObjectKind::kRegister, bytes.size(), {}},
                     bytes,
                     nullptr})
              .ok());
  CHECK(output.parts()->front().iov_len > 0);
  CHECK(output.clear().size() == 3);
  CHECK(output.parts()->empty());
  CHECK(output.clear().empty());
}

TEST_CASE("an input that was stopped calls no handler any more") {
  int ended = 0;
  BulkInput* self = nullptr;
  BulkInput::Handlers handlers;
  handlers.on_begin = [](const Begin&) {
    return Result<BulkInput::Destination>(BulkInput::Destination{});
  };
  handlers.on_end = [&](ObjectId, const Status&) {
    ++ended;
    self->stop();
  };
  BulkInput input(handlers);
  self = &input;
  BulkOutput output;
  for (uint64_t id = 1; id <= 3; ++id)
    CHECK(output.push({{ObjectId(id), ObjectKind::kRegister, 0, {}}, {}, {}})
              .ok());
  std::string bytes;
  for (auto parts = output.parts(); !parts->empty(); parts = output.parts()) {
    bytes.append(static_cast<const char*>((*parts)[0].iov_base),
                 (*parts)[0].iov_len);
    output.add((*parts)[0].iov_len);
  }
  const iovec space = input.space().front();
  const size_t count = std::min(space.iov_len, bytes.size());
  std::copy_n(bytes.data(), count, static_cast<char*>(space.iov_base));
  CHECK(input.add(count).ok());
  input.end_all(error(Code::kUnavailable, "over"));
  CHECK(ended == 1);
}

}  // namespace
}  // namespace tagflow::net
