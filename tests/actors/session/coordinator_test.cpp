// Threads that end together: why they end, and which waits for which.
#include "actors/session/coordinator.h"

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

#include "tests/failing_new.h"
#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::actors;
using graph::testing::contains;
using graph::testing::message_of;
using graph::testing::must;

namespace {

constexpr std::chrono::seconds kMinute{60};

// A thread that ends when it is asked to.
std::function<Status()> until_stop(const Coordinator& threads) {
  return [&threads]() -> Status {
    while (!threads.wait_for_stop(kMinute)) {
    }
    return {};
  };
}

}  // namespace

TEST_CASE("coordinator: join waits for threads that end by themselves") {
  Coordinator threads;
  std::atomic<int> done{0};
  for (int i = 0; i < 4; ++i)
    must(threads.start("a", [&]() -> Status {
      ++done;
      return {};
    }));
  must(threads.join());
  CHECK(done == 4);
  CHECK_FALSE(threads.should_stop());
}

TEST_CASE("coordinator: join returns the first error, which stops all") {
  Coordinator threads;
  must(threads.start("waits", until_stop(threads)));
  must(threads.start("fails", [] { return invalid_argument("broken"); }));
  CHECK(message_of(threads.join(), Code::kInvalidArgument) == "broken");
  CHECK(threads.should_stop());
  threads.request_stop(error(Code::kInternal, "later"));
  CHECK(message_of(threads.join(), Code::kInvalidArgument) == "broken");
}

TEST_CASE(
    "coordinator: the end of the input or a cancellation is not an error") {
  for (const Code code : {Code::kOutOfRange, Code::kCancelled}) {
    Coordinator threads;
    must(threads.start("waits", until_stop(threads)));
    must(threads.start("ends", [&] { return error(code, "enough"); }));
    must(threads.join());
    CHECK(threads.should_stop());
  }
}

TEST_CASE("coordinator: an exception of a thread is an error") {
  Coordinator threads;
  must(threads.start("throws",
                     []() -> Status { throw std::runtime_error("thrown"); }));
  CHECK(contains(message_of(threads.join(), Code::kInternal), "thrown"));
}

TEST_CASE("coordinator: join names the threads that run after the grace") {
  std::promise<void> goes_on;
  Coordinator threads;
  must(threads.start("slow", [&]() -> Status {
    goes_on.get_future().wait();
    return {};
  }));
  must(threads.start("quick", until_stop(threads)));
  threads.request_stop();
  std::string message;
  // Until the quick one is over, which may take its time.
  do {
    message = message_of(threads.join(std::chrono::milliseconds(1)),
                         Code::kDeadlineExceeded);
  } while (contains(message, "quick"));
  CHECK(message ==
        "[coordinator] threads still run after 0.001 s of grace: slow");
  goes_on.set_value();
  must(threads.join());
}

TEST_CASE("coordinator: no thread is started after a stop") {
  Coordinator threads;
  threads.request_stop();
  CHECK(message_of(threads.start("late", until_stop(threads)),
                   Code::kFailedPrecondition) ==
        "[coordinator] cannot start thread \"late\" after a stop");
  must(threads.join());
}

TEST_CASE("coordinator: a thread cannot wait for itself") {
  Coordinator threads;
  Status status;
  must(threads.start("self", [&]() -> Status {
    status = threads.join();
    return {};
  }));
  must(threads.join());
  CHECK(message_of(status, Code::kFailedPrecondition) ==
        "[coordinator] the thread \"self\" cannot wait for itself");
}

TEST_CASE("coordinator: hooks hear of a stop once, late ones at once") {
  Coordinator threads;
  int before = 0, after = 0;
  threads.on_stop([&] { ++before; });
  CHECK(before == 0);
  threads.request_stop();
  threads.request_stop();
  CHECK(before == 1);
  threads.on_stop([&] { ++after; });
  CHECK(after == 1);
}

TEST_CASE("coordinator: a wait for a stop ends at its time-out") {
  const Coordinator threads;
  CHECK_FALSE(threads.wait_for_stop(std::chrono::milliseconds(1)));
}

TEST_CASE("the end of a coordinator stops its threads") {
  std::atomic<bool> ended{false};
  {
    Coordinator threads;
    must(threads.start("waits", [&]() -> Status {
      TAGFLOW_RETURN_IF_ERROR(until_stop(threads)());
      ended = true;
      return {};
    }));
  }
  CHECK(ended);
}

TEST_CASE("coordinator: a thread without memory to start is not waited for") {
  const std::array<char, 64> large{};
  for (int64_t k = 1;; ++k) {
    CAPTURE(k);
    Coordinator threads;
    std::function<Status()> body = [large]() -> Status {
      return large[0] == 0 ? Status() : invalid_argument("it is not the same");
    };
    FailAllocation fail(k);
    const Status status = threads.start("a", std::move(body));
    fail.stop();
    if (!status.ok()) CHECK(status.code() == Code::kResourceExhausted);
    must(threads.join());
    if (!fail.failed()) {
      CHECK(status.ok());
      CHECK(k > 2);
      break;
    }
  }
}

TEST_CASE("coordinator: many threads may start and stop at once") {
  for (int round = 0; round < 50; ++round) {
    Coordinator threads;
    std::atomic<int> hooks{0};
    threads.on_stop([&] { ++hooks; });
    for (int i = 0; i < 8; ++i)
      (void)threads
          .start("one",
                 [&, i]() -> Status {
                   if (i % 2 == 0) return until_stop(threads)();
                   while (!threads.should_stop()) threads.request_stop();
                   return {};
                 })
          .ok();
    must(threads.join());
    CHECK(hooks == 1);
  }
}
