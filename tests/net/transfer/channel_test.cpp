#include "net/transfer/channel.h"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "tests/graph/hand_made.h"
#include "tests/net/link/loopback.h"

namespace tagflow::net {

using graph::testing::must;

TEST_CASE("a handler may use its channel until that is stopped") {
  // The handler is of the small link in one round, of the bulk link in another.
  for (const bool is_small : {true, false}) {
    CAPTURE(is_small);
    const auto threads = must(IoThreads::start());
    const auto others = must(IoThreads::start());
    auto [our_small, their_small] = connected_sockets();
    auto [our_bulk, their_bulk] = connected_sockets();
    auto ours = std::make_unique<Channel>(threads, std::move(our_small),
                                          std::move(our_bulk), "theirs");
    Channel theirs(others, std::move(their_small), std::move(their_bulk),
                   "ours");
    std::promise<void> inside;
    std::atomic<bool> is_over = false;
    Channel* const channel = ours.get();
    const auto use = [&] {
      inside.set_value();
      // The owner stops it meanwhile.
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      for (int i = 0; i < 3; ++i) {
        CHECK(channel->send(Credit{1}).ok());
        channel->send(
            {{channel->next_object(), ObjectKind::kDead, 0, {}}, {}, nullptr});
      }
      is_over = true;
    };
    ours->start({.on_frame =
                     [&](const Frame&) {
                       use();
                       return Status();
                     },
                 .on_begin = [](const Begin&) -> Result<BulkLink::Destination> {
                   return BulkLink::Destination();
                 },
                 .on_end = [&](ObjectId, const Status&) { use(); }});
    theirs.start(
        {.on_frame = [](const Frame&) { return Status(); },
         .on_begin = [](const Begin&) -> Result<BulkLink::Destination> {
           return BulkLink::Destination();
         },
         .on_end = [](ObjectId, const Status&) {}});
    if (is_small) {
      CHECK(theirs.send(Credit{1}).ok());
    } else {
      theirs.send(
          {{theirs.next_object(), ObjectKind::kDead, 0, {}}, {}, nullptr});
    }
    inside.get_future().wait();
    ours.reset();
    CHECK(is_over);
  }
}

}  // namespace tagflow::net
