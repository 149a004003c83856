// How soon a step ends when a worker is killed, stopped or cut off: with
// Unavailable and the right name, and the others go on. TAGFLOW_DETECTIONS=N
// does each N times; the last lines are the rows of the table in
// docs/processes.md.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <random>

#include "tests/net/master/works.h"
#include "tests/repeats.h"
#include "tests/skip.h"

namespace tagflow::net {
namespace {

using namespace works;  // NOLINT: for tests

// What happens to task 1.
struct Loss {
  std::string name;
  int signal = 0;
  // Who sends to whom in vain; the master is host 3.
  std::vector<std::pair<uint32_t, uint32_t>> cuts;
  bool is_of_pair = false;  // of tasks 0 and 1, which both live
};

std::vector<Loss> losses() {
  constexpr uint32_t kMaster = 3;
  return {
      {"it is killed", SIGKILL, {}},
      {"it is stopped (SIGSTOP)", SIGSTOP, {}},
      {"cut off from all",
       0,
       {{1, 0}, {0, 1}, {1, 2}, {2, 1}, {1, kMaster}, {kMaster, 1}}},
      {"cut off from the master", 0, {{1, kMaster}, {kMaster, 1}}},
      {"only from the master to it", 0, {{kMaster, 1}}},
      {"only from it to the master", 0, {{1, kMaster}}},
      {"cut off from another worker", 0, {{0, 1}, {1, 0}}, true},
      {"only from that worker to it", 0, {{0, 1}}, true},
      {"only from it to that worker", 0, {{1, 0}}, true},
  };
}

// The least time that such a part of them does not exceed.
double quantile(const std::vector<double>& sorted, double part) {
  return sorted[size_t(std::ceil(part * double(sorted.size()))) - 1];
}

// `next`: of the step of the others that follows.
std::string row(const std::string& name, std::vector<double> times,
                std::vector<double> next) {
  std::ranges::sort(times);
  std::ranges::sort(next);
  return fmt::format("| {} | {:.0f} | {:.0f} | {:.0f} | {:.0f} |\n", name,
                     quantile(times, 0.5), quantile(times, 0.95), times.back(),
                     next.back());
}

}  // namespace

TEST_CASE("a worker that is lost in any way is named, and the others go on") {
  const auto made = Network::make(4);
  if (!made.ok()) return skip_test_case(made.status().message());
  Network* const network = made->get();
  WorkerProcesses processes(3, network);
  const char* const told = std::getenv("TAGFLOW_DETECTIONS");
  const int count = told == nullptr ? 1 : std::atoi(told);
  // Links look for signs of life now and then: the moment matters.
  std::mt19937 random(1);
  std::string rows;
  const std::vector<Loss> all = losses();
  for (size_t k = 0; k < all.size(); k += size_t(tagflow::testing::stride(1))) {
    const Loss& loss = all[k];
    std::vector<double> times, next;
    for (int i = 0; i < count; ++i) {
      CAPTURE(loss.name);
      CAPTURE(i);
      const auto work = endless_loop();
      const auto session = work->session(processes);
      const auto [status, took] =
          harmed([&] { return run(*session, *work); },
                 std::chrono::milliseconds(100 + random() % 300),
                 [&] {
                   if (loss.signal != 0)
                     processes.workers[1]->signal(loss.signal);
                   for (const auto& [from, to] : loss.cuts)
                     network->cut(from, to);
                 });
      times.push_back(took);
      check_lost(status, 1);
      const auto begin = Clock::now();
      check_work(processes, {0, 2});
      next.push_back(in_ms(begin, Clock::now()));
      if (loss.is_of_pair) {
        check_lost(status, 0);
        check_work(processes, {1, 2});
      }
      network->heal_all();
      if (loss.signal == SIGKILL) processes.restart(1);
      if (loss.signal == SIGSTOP) processes.workers[1]->signal(SIGCONT);
      check_return(processes);
    }
    rows += row(loss.name, std::move(times), std::move(next));
  }
  MESSAGE("ms until the answer: median, 95 %, the longest of "
          << count << "; until the next answer to the others: the longest\n"
          << rows);
}

}  // namespace tagflow::net
