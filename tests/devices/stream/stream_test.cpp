#include "devices/stream/stream.h"

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/devices/stream/launching.h"
#include "tests/failing_new.h"

namespace tagflow::devices {

TEST_CASE("a stream runs tasks in the order in which they came") {
  std::vector<int> order;
  Stream stream;
  StreamEvent last;
  for (int i = 0; i < 1000; ++i)
    last = stream.enqueue([&order, i](Stream::Fate fate) {
      if (fate == Stream::Fate::kRun) order.push_back(i);
    });
  last.wait();
  REQUIRE(order.size() == 1000);
  for (int i = 0; i < 1000; ++i) CHECK(order[size_t(i)] == i);
}

TEST_CASE("an event without a stream has passed, and a wait for it ends") {
  StreamEvent().wait();
}

TEST_CASE("an event passes with the tasks before it, not with later ones") {
  Stream stream;
  Gate first, second;
  std::atomic<bool> is_open = false;
  const StreamEvent event = stream.enqueue([&](Stream::Fate) { first.wait(); });
  const StreamEvent later = stream.enqueue([&](Stream::Fate) {
    second.wait();
    is_open = true;
  });
  first.open();
  event.wait();
  CHECK_FALSE(is_open);
  second.open();
  later.wait();
  CHECK(is_open);
}

TEST_CASE("a stream waits for an event of another one") {
  Stream producer, consumer;
  Gate gate;
  int value = 0;
  const StreamEvent made = producer.enqueue([&](Stream::Fate) {
    gate.wait();
    value = 7;
  });
  int seen = 0;
  const StreamEvent taken = consumer.enqueue([&, made](Stream::Fate) {
    made.wait();
    seen = value;
  });
  gate.open();
  taken.wait();
  CHECK(seen == 7);
}

TEST_CASE("a stream frees a task before the task's event passes") {
  Stream stream;
  auto held = std::make_shared<int>(1);
  stream.enqueue([copy = held](Stream::Fate) { (void)copy; }).wait();
  CHECK(held.use_count() == 1);
}

TEST_CASE("a stopped stream abandons what is queued, in order") {
  std::vector<int> run, abandoned;
  Gate running, gate;
  Stream stream;
  stream.enqueue([&](Stream::Fate) {
    running.open();
    gate.wait();
    run.push_back(-1);
  });
  running.wait();
  StreamEvent last;
  for (int i = 0; i < 10; ++i)
    last = stream.enqueue([&, i](Stream::Fate fate) {
      (fate == Stream::Fate::kRun ? run : abandoned).push_back(i);
    });
  stream.stop();
  gate.open();
  stream.join();
  CHECK(run == std::vector<int>{-1});
  CHECK(abandoned == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  last.wait();
}

TEST_CASE("a task for a stream that has ended is abandoned at once") {
  Stream stream;
  stream.stop();
  stream.join();
  bool abandoned = false;
  const StreamEvent event = stream.enqueue(
      [&](Stream::Fate fate) { abandoned = fate == Stream::Fate::kAbandon; });
  CHECK(abandoned);
  event.wait();
}

TEST_CASE("a task may enqueue another one, also while the stream stops") {
  Stream stream;
  Gate gate;
  int abandoned = 0;
  stream.enqueue([&](Stream::Fate) {
    gate.wait();
    stream.enqueue([&](Stream::Fate fate) {
      abandoned += fate == Stream::Fate::kAbandon;
      stream.enqueue([&](Stream::Fate again) {
        abandoned += again == Stream::Fate::kAbandon;
      });
    });
  });
  stream.stop();
  gate.open();
  stream.join();
  CHECK(abandoned == 2);
}

TEST_CASE(
    "many threads enqueue: every task is run once, those of a thread in "
    "order") {
  constexpr int kThreads = 4, kTasks = 2000;
  std::vector<std::vector<int>> order(kThreads);
  Stream stream;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kTasks; ++i) {
        const StreamEvent event = stream.enqueue(
            [&order, t, i](Stream::Fate) { order[size_t(t)].push_back(i); });
        if (i % 100 == 0) event.wait();
      }
    });
  for (std::thread& thread : threads) thread.join();
  stream.enqueue([](Stream::Fate) {}).wait();
  for (const std::vector<int>& tasks : order) {
    REQUIRE(tasks.size() == kTasks);
    for (int i = 0; i < kTasks; ++i) REQUIRE(tasks[size_t(i)] == i);
  }
}

TEST_CASE("a stream outlives what its tasks throw") {
  Stream stream;
  stream.enqueue([](Stream::Fate) { throw 3; });
  stream.enqueue([](Stream::Fate) { throw std::runtime_error("a task"); });
  bool ran = false;
  stream.enqueue([&](Stream::Fate) { ran = true; }).wait();
  CHECK(ran);
}

TEST_CASE("a task for which there is no memory is not enqueued") {
  Stream stream;
  int runs = 0;
  const auto held = std::make_shared<int>(1);
  {
    FailAllocation fail(1);
    CHECK_THROWS_AS(stream.enqueue([&runs, held](Stream::Fate) { ++runs; }),
                    std::bad_alloc);
  }
  CHECK(held.use_count() == 1);
  auto task = Stream::task([&runs, held](Stream::Fate) { ++runs; });
  {
    FailAllocation fail(1);
    stream.enqueue(std::move(task)).wait();
    CHECK(!fail.failed());
  }
  CHECK(runs == 1);
  CHECK(held.use_count() == 1);
}

}  // namespace tagflow::devices
