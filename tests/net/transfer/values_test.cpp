#include "net/transfer/values.h"

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <future>
#include <optional>

namespace tagflow::net {
namespace {

Tensor floats(int64_t count) {
  return *Tensor::allocate(DataType::kFloat, Shape({count}));
}

}  // namespace

TEST_CASE("a message that cannot be sent leaves no object at its receiver") {
  constexpr int64_t kMany = int64_t{1} << 18;  // too long for a message
  std::promise<Shape> promise;
  std::future<Shape> first = promise.get_future();
  const IoThreads threads = std::move(*IoThreads::start());
  int sockets[2][2];
  for (auto& pair : sockets)
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
  Channel sends(threads, Socket(sockets[0][0]), Socket(sockets[1][0]), "one");
  Channel takes(threads, Socket(sockets[0][1]), Socket(sockets[1][1]), "two");
  sends.start({.on_frame = [](const Frame&) { return Status(); },
               .on_lost = [](const Status&) {}});
  takes.start(
      {.on_frame = [](const Frame&) { return Status(); },
       .on_begin = [&](const Begin& begin) -> Result<BulkLink::Destination> {
         promise.set_value(begin.tensor.shape);
         return error(Code::kCancelled, "one is enough");
       },
       .on_lost = [](const Status&) {}});
  Done done;
  Done::Fetch fetch;
  {
    ValueSender sender(sends);
    REQUIRE(sender.put(floats(kMany), "x", fetch.value).ok());
    const Status refused = sender.put(
        *Tensor::allocate(DataType::kVariant, Shape()), "v", fetch.value);
    CHECK(refused.code() == Code::kUnimplemented);
  }
  // Objects come in the order in which they are sent.
  ValueSender sender(sends);
  REQUIRE(sender.put(floats(kMany + 1), "x", fetch.value).ok());
  done.fetches.push_back(fetch);
  REQUIRE(sender.send(done).ok());
  CHECK(first.get() == Shape({kMany + 1}));
}

}  // namespace tagflow::net
