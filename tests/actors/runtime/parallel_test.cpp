// Kernels whose loops are split over the workers.
#include "actors/runtime/parallel.h"

#include <doctest/doctest.h>

#include <atomic>
#include <optional>
#include <semaphore>
#include <thread>
#include <vector>

#include "actors/runtime/engine.h"
#include "actors/runtime/job.h"
#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::actors;

namespace {

constexpr int kWorkers = 2;
constexpr int64_t kTotal = 64;
constexpr double kMuch = 1e6;  // nanoseconds, of one unit

// All workers of an engine have something else to do until it goes.
class BusyWorkers {
 public:
  explicit BusyWorkers(Engine& engine) {
    for (int i = 0; i < kWorkers; ++i)
      run_on_worker(engine.scheduler(), [this] {
        begun_.release();
        go_on_.acquire();
        ended_.release();
      });
    for (int i = 0; i < kWorkers; ++i) begun_.acquire();
  }
  ~BusyWorkers() {
    go_on_.release(kWorkers);
    for (int i = 0; i < kWorkers; ++i) ended_.acquire();
  }
  BusyWorkers(const BusyWorkers&) = delete;
  BusyWorkers& operator=(const BusyWorkers&) = delete;

 private:
  std::counting_semaphore<> begun_{0}, go_on_{0}, ended_{0};
};

}  // namespace

TEST_CASE("parallel work: each unit is computed once, with any helpers") {
  const auto engine =
      graph::testing::must(Engine::create({.workers = kWorkers}));
  for (const bool are_busy : {false, true})
    for (const double cost : {0., kMuch}) {
      CAPTURE(are_busy);
      CAPTURE(cost);
      std::optional<BusyWorkers> busy;
      if (are_busy) busy.emplace(*engine);
      std::vector<std::atomic<int>> times(kTotal);
      engine->parallel()->run(kTotal, cost, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++times[size_t(i)];
      });
      for (const auto& of_one : times) CHECK(of_one == 1);
    }
}

TEST_CASE("parts that have not begun when another one throws are left out") {
  const auto engine =
      graph::testing::must(Engine::create({.workers = kWorkers}));
  const BusyWorkers busy(*engine);
  int begun = 0;
  int last = 0;
  const auto run = [&](int thrown_by) {
    begun = 0;
    engine->parallel()->run(kTotal, kMuch, [&](int64_t, int64_t) {
      last = ++begun;
      if (begun == thrown_by) throw begun;
    });
  };
  run(0);
  const int parts = begun;
  REQUIRE(parts > 2);
  for (int i = 1; i <= parts; ++i) {
    CHECK_THROWS_AS(run(i), int);
    CHECK(last == i);
  }
}

TEST_CASE("a worker that helps with a long call serves others in between") {
  const auto engine =
      graph::testing::must(Engine::create({.workers = kWorkers}));
  std::counting_semaphore<> go_on{0}, busy{0}, served{0};
  // One worker is busy; the other one helps.
  run_on_worker(engine->scheduler(), [&] {
    busy.release();
    go_on.acquire();
    served.release();
  });
  busy.acquire();
  std::atomic<bool> is_asked{false};
  std::atomic<bool> is_served{false};
  const std::thread::id caller = std::this_thread::get_id();
  constexpr double kVeryLong = 1e9;
  engine->parallel()->run(kTotal, kVeryLong, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (std::this_thread::get_id() != caller) {
        // It has this worker only if the next part does not begin before.
        if (is_asked.exchange(true)) {
          CHECK(is_served);
        } else {
          run_on_worker(engine->scheduler(), [&] { is_served = true; });
        }
      } else {
        // The caller leaves work for the helper.
        while (!is_served) std::this_thread::yield();
      }
    }
  });
  CHECK(is_served);
  go_on.release();
  served.acquire();
}
