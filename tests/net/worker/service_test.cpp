#include "net/worker/service.h"

#include <doctest/doctest.h>

#include <atomic>
#include <future>

#include "net/transfer/identity.h"
#include "tests/net/local_worker.h"

namespace tagflow::net {

TEST_CASE("a step above the limit of a worker is refused without its link") {
  constexpr uint64_t kMost = 4096;
  const WorkerOptions options = local_worker(0);
  const auto worker = std::move(*Worker::start(options));
  const IoThreads threads = std::move(*IoThreads::start());
  const Identity identity = *make_identity(Role::kMaster, {"master", 0},
                                           options.cluster, options.secret);
  auto pair =
      connect_pair(*threads.bulk, {"localhost", worker->port()}, identity, 0);
  REQUIRE(pair.ok());
  std::promise<Result<Done>> promise;
  std::atomic<bool> is_first{true};
  std::future<Result<Done>> answer = promise.get_future();
  Channel master(threads, std::move(pair->small), std::move(pair->bulk),
                 "the worker");
  master.start({.on_frame =
                    [&](const Frame& frame) {
                      if (frame.kind == FrameKind::kDone &&
                          is_first.exchange(false))
                        promise.set_value(parse_body<Done>(frame.body));
                      return Status();
                    },
                .on_lost =
                    [&](const Status& status) {
                      if (is_first.exchange(false)) promise.set_value(status);
                    }});
  // They wait for feeds that do not come.
  for (uint64_t step = 1; step <= kMost; ++step)
    REQUIRE(
        master.send(Run{.step = step, .feeds = {{0, ObjectId(step)}}}).ok());
  REQUIRE(master.send(Run{.step = kMost + 1}).ok());
  const Result<Done> done = answer.get();
  REQUIRE(done.ok());
  CHECK(done->step == kMost + 1);
  CHECK(done->outcome.message == "[net] a worker runs 4096 steps at a time");
  CHECK(master.lost().ok());
}

}  // namespace tagflow::net
