// The values of a variable that concurrent runs see, by their whole history.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "graph/builder/builder.h"
#include "tests/actors/sessions.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::must;

namespace {

// A run that wrote or read the value, between two moments of one clock. Values
// that are written are unique.
struct Event {
  int64_t begin = 0, end = 0;
  int64_t value = 0;
  bool is_write = false;
};

// Why there is no order of all events that explains what was read, or "". If
// written values are unique, it is enough to look at one read at a time: its
// write must not begin after the read ended, no other write may lie wholly
// between the two, and reads that follow one another must not go back.
std::string fault_of(const std::vector<Event>& events) {
  std::vector<Event> writes, reads;
  for (const Event& event : events)
    (event.is_write ? writes : reads).push_back(event);
  const auto write_of = [&](int64_t value) {
    return std::ranges::find(writes, value, &Event::value);
  };
  for (const Event& read : reads) {
    const auto write = write_of(read.value);
    if (write == writes.end())
      return fmt::format("{} was read, but never written", read.value);
    if (write->begin > read.end)
      return fmt::format("{} was read before it was written", read.value);
    for (const Event& other : writes)
      if (other.begin > write->end && other.end < read.begin)
        return fmt::format("{} was read after {} had replaced it", read.value,
                           other.value);
    for (const Event& later : reads) {
      if (later.begin <= read.end || later.value == read.value) continue;
      const auto newer = write_of(later.value);
      if (newer != writes.end() && newer->end < write->begin)
        return fmt::format("{} was read after {}, which replaced it",
                           later.value, read.value);
    }
  }
  return {};
}

constexpr int64_t kSize = 5000;

// "write" sets all elements of v to "x", "move" adds to all of w at once; "v"
// and "w" are their values. The writers are a run's only effects.
Graph writing(const std::string& kind) {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::placeholder(s.named("x"), DataType::kInt64, {});
  const Output all = ops::fill(s, {int32_t(kSize)}, x);
  const Output ones = s.constant([] {
    Tensor made = Tensor::make(DataType::kInt64, {kSize});
    std::ranges::fill(made.mutable_flat<int64_t>(), 1);
    return made;
  }());
  const auto build = [&](const auto& make, const auto& read) {
    const auto v = make("of_v");
    const auto w = make("of_w");
    ops::assign(s.named("write"), v, all);
    ops::assign(s.named("init_w"), w, all);
    ops::assign_add(s.named("move"), w, ones);
    ops::identity(s.named("v"), read(v));
    ops::identity(s.named("w"), read(w));
  };
  const PartialShape shape({kSize});
  if (kind == "handle") {
    build(
        [&](const char* name) {
          return ops::variable(s.named(name), DataType::kInt64, shape);
        },
        [&](const ops::Variable& v) { return ops::read(s, v); });
  } else {
    build(
        [&](const char* name) {
          return ops::reference_variable(s.named(name), DataType::kInt64,
                                         shape);
        },
        [&](const Output& v) { return v; });
  }
  INFO(s.status().to_string());
  REQUIRE(s.status().ok());
  return graph;
}

// Runs, and what they had to do with the variable.
class History {
 public:
  explicit History(Session& session) : session_(session) {}

  void write(int64_t value) {
    Event event{.begin = clock_++, .value = value, .is_write = true};
    must(session_.run({{"x", Tensor::scalar(value)}}, {}, {"write"},
                      within_a_minute()));
    event.end = clock_++;
    add(event);
  }
  void read() {
    Event event{.begin = clock_++};
    const Tensor seen = must_run(session_, {}, {"v"})[0];
    event.end = clock_++;
    const auto elements = seen.flat<int64_t>();
    event.value = elements[0];
    // One use sees one version.
    if (std::ranges::any_of(elements,
                            [&](int64_t x) { return x != elements[0]; }))
      ++torn;
    add(event);
  }
  std::vector<Event> take() { return std::move(events_); }

  std::atomic<int> torn{0};

 private:
  void add(const Event& event) {
    std::lock_guard lock(mutex_);
    events_.push_back(event);
  }

  Session& session_;
  std::atomic<int64_t> clock_{0};
  std::mutex mutex_;  // guards the below
  std::vector<Event> events_;
};

}  // namespace

TEST_CASE("the history checker finds values that no order explains") {
  const Event one{0, 1, 1, true}, two{2, 3, 2, true};
  CHECK(fault_of({one, two, {4, 5, 2, false}}) == "");
  CHECK(fault_of({one, two, {1, 4, 1, false}}) == "");
  CHECK(fault_of({one, two, {4, 5, 1, false}}) ==
        "1 was read after 2 had replaced it");
  CHECK(fault_of({one, two, {0, 1, 2, false}}) ==
        "2 was read before it was written");
  CHECK(fault_of({one, {4, 5, 7, false}}) == "7 was read, but never written");
  // Two reads during one write that do not agree on the order.
  const Event late{2, 9, 2, true};
  CHECK(fault_of({one, late, {3, 4, 2, false}, {5, 6, 2, false}}) == "");
  CHECK(fault_of({one, late, {3, 4, 2, false}, {5, 6, 1, false}}) ==
        "1 was read after 2, which replaced it");
}

TEST_CASE("the history of a variable has an order that explains it") {
  for (const char* kind : {"handle", "reference"})
    for (const SessionOptions& options : configurations()) {
      INFO(kind);
      const auto session = make_session(options, writing(kind));
      History history(*session);
      history.write(0);
      constexpr int kWriters = 2, kReaders = 2, kEach = 60;
      std::vector<std::thread> threads;
      for (int t = 0; t < kWriters; ++t)
        threads.emplace_back([&, t] {
          for (int i = 0; i < kEach; ++i)
            history.write(1 + t + int64_t(i) * kWriters);
        });
      for (int t = 0; t < kReaders; ++t)
        threads.emplace_back([&] {
          for (int i = 0; i < kEach; ++i) history.read();
        });
      for (std::thread& thread : threads) thread.join();
      history.read();
      CHECK(history.torn == 0);
      CHECK(fault_of(history.take()) == "");
    }
}

TEST_CASE("dense updates of many runs are each applied once, and seen whole") {
  for (const char* kind : {"handle", "reference"})
    for (const int workers : {1, 2, 4}) {
      INFO(kind);
      SessionOptions options;
      options.workers = workers;
      const auto session = make_session(options, writing(kind));
      must(session->run({{"x", Tensor::scalar(int64_t{0})}}, {}, {"init_w"},
                        within_a_minute()));
      constexpr int kThreads = 3, kEach = 100;
      std::atomic<int64_t> begun{0}, ended{0};
      std::atomic<int> faults{0};
      std::vector<std::thread> threads;
      for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&] {
          for (int i = 0; i < kEach; ++i) {
            ++begun;
            must(session->run({}, {}, {"move"}, within_a_minute()));
            ++ended;
            const int64_t least = ended;
            const Tensor seen = must_run(*session, {}, {"w"})[0];
            const int64_t most = begun;
            for (const int64_t x : seen.flat<int64_t>())
              if (x != seen.flat<int64_t>()[0] || x < least || x > most)
                ++faults;
          }
        });
      for (std::thread& thread : threads) thread.join();
      CHECK(faults == 0);
      CHECK(must_run(*session, {}, {"w"})[0].flat<int64_t>()[0] ==
            kThreads * kEach);
    }
}
