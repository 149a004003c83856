// Eight threads make sessions, run graphs in them in all ways, and destroy them
// meanwhile. This takes some seconds, or as long as TAGFLOW_SOAK_SECONDS says.
// It is meant for the sanitizers.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <thread>

#include "tests/actors/sessions.h"
#include "tests/actors/test_queue.h"
#include "tests/reference/random_graph.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using tagflow::reference::Case;
using tagflow::reference::SeededChoices;

namespace {

using Clock = std::chrono::steady_clock;

std::chrono::seconds soak_time() {
  const char* text = std::getenv("TAGFLOW_SOAK_SECONDS");
  return std::chrono::seconds(text == nullptr ? 4 : std::atoi(text));
}

int64_t resident_mib() {
  int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * 4096 >> 20;
}

// A graph with what it gives; nothing if that is an error.
struct Subject {
  Graph graph;
  std::vector<Feed> feeds;
  std::vector<std::string> fetches;
  std::optional<std::vector<Tensor>> wanted;
  bool ends = true;
};

bool same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::ranges::equal(a, b, [](const Tensor& x, const Tensor& y) {
    return x.describe() == y.describe() &&
           (x.bytes() == 0 || std::memcmp(x.raw(), y.raw(), x.bytes()) == 0);
  });
}

Subject random_subject(uint64_t seed) {
  Case made = graph::testing::must(reference::random_graph(seed));
  Subject subject{.graph = std::move(made.graph), .fetches = made.fetches};
  for (const auto& [port, value] : made.feeds)
    subject.feeds.push_back({port, value});
  SessionOptions options;
  options.passes = PassSet::none();
  auto session = make_session(options, subject.graph);
  auto out =
      session->run(subject.feeds, subject.fetches, {}, within_a_minute());
  if (out.ok()) subject.wanted = *std::move(out);
  return subject;
}

Subject endless() {
  Subject subject{.fetches = {"end"}, .ends = false};
  const Scope s(subject.graph);
  const Outputs last = while_loop(
      s,
      [](const Scope& in, const Outputs& v) {
        return ops::greater_equal(in, v[0], 0);
      },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return ops::sub(in, 1, v[0]);
      },
      {0});
  ops::identity(s.named("end"), last[0]);
  REQUIRE(s.status().ok());
  return subject;
}

Subject waiting() {
  Subject subject{.fetches = {"taken"}, .ends = false};
  const Scope s(subject.graph);
  ops::add(s.named("taken"), test_take(s), test_take(s));
  REQUIRE(s.status().ok());
  return subject;
}

Subject putting() {
  Subject subject{.fetches = {"put"}};
  const Scope s(subject.graph);
  ops::identity(s.named("put"), test_put(s, s.constant(Tensor::scalar(1))));
  REQUIRE(s.status().ok());
  subject.wanted = {Tensor::scalar(1)};
  return subject;
}

std::deque<Subject> subjects() {
  std::deque<Subject> all;
  for (uint64_t seed = 0; seed < 24; ++seed)
    all.push_back(random_subject(seed));
  all.push_back(endless());
  all.push_back(waiting());
  all.push_back(putting());
  return all;
}

// What the threads have in common.
struct Soak {
  explicit Soak(std::chrono::seconds time) : end(Clock::now() + time) {}

  const std::deque<Subject> all = subjects();
  const Clock::time_point end;
  std::atomic<int64_t> sessions{0}, runs{0}, answers{0}, wrong{0};
};

class SoakWorker {
 public:
  SoakWorker(Soak& soak, uint64_t seed) : soak_(soak), choices_(seed) {}

  void run() {
    while (Clock::now() < soak_.end) one_session();
  }

 private:
  bool one_in(uint32_t n) { return choices_.below(n) == 0; }

  SessionOptions any_options() {
    SessionOptions options;
    // One of its own is dear; most share that of the process.
    if (one_in(6)) options.workers = 1 + int(choices_.below(3));
    if (one_in(12)) options.hand_off = HandOff::kMailbox;
    if (one_in(3)) options.passes = PassSet::none();
    if (one_in(3)) options.window = 1 + int(choices_.below(4));
    if (one_in(4)) options.devices = one_in(2) ? "cpu:2" : "cpu:1,stream:1";
    if (one_in(3)) options.scatter = choices_.below(100);
    if (one_in(6)) options.max_active_runs = 1 + int(choices_.below(3));
    options.on_warning = [](const std::string&) {};
    return options;
  }

  void check(const Subject& subject, const Result<std::vector<Tensor>>& out) {
    ++soak_.answers;
    const Code code = out.status().code();
    const bool was_cut =
        code == Code::kCancelled || code == Code::kDeadlineExceeded;
    const bool right = out.ok() ? !subject.wanted || same(*out, *subject.wanted)
                                : was_cut || !subject.wanted;
    if (right) return;
    ++soak_.wrong;
    fmt::print(stderr, "{}\n", out.status().to_string());
  }

  void one_session() {
    const Subject& subject =
        soak_.all[choices_.below(uint32_t(soak_.all.size()))];
    auto made = Session::create(any_options());
    REQUIRE(made.ok());
    const std::shared_ptr<Session> session = std::move(*made);
    REQUIRE(session->extend(subject.graph).ok());
    ++soak_.sessions;
    const uint32_t runs = 1 + choices_.below(6);
    for (uint32_t i = 0; i < runs; ++i) one_run(session, subject);
    if (one_in(4)) (void)session->stalled();
    if (one_in(4)) (void)session->counters();
    if (one_in(3)) tokens_.clear();
    for (const CancelToken& token : tokens_) token_cancel(token);
    tokens_.clear();
    if (one_in(3)) CHECK(session->close().ok());
    if (one_in(6)) (void)session->close(std::chrono::microseconds(100));
  }

  static void token_cancel(CancelToken token) { token.cancel(); }

  void one_run(const std::shared_ptr<Session>& session,
               const Subject& subject) {
    ++soak_.runs;
    RunOptions run;
    if (one_in(3) || !subject.ends)
      run.timeout = std::chrono::microseconds(choices_.below(20'000) + 1);
    if (one_in(3)) {
      run.cancel.emplace();
      tokens_.push_back(*run.cancel);
    }
    if (one_in(4)) run.priority = Priority::kHigh;
    // Else the queue would grow for ever.
    if (subject.fetches[0] == "put" && TestQueue::global().size() > 100) return;
    if (one_in(2)) {
      check(subject, session->run(subject.feeds, subject.fetches, {}, run));
      return;
    }
    // Sometimes the last reference is that of `done`.
    auto kept = one_in(3) ? session : nullptr;
    const auto answered = std::make_shared<std::promise<void>>();
    answers_.push_back(answered->get_future());
    session->run_async(subject.feeds, subject.fetches, {}, run,
                       [this, kept, answered, &subject](auto out, RunStats) {
                         check(subject, out);
                         answered->set_value();
                       });
    while (answers_.size() > 64) {
      answers_.front().get();
      answers_.pop_front();
    }
  }

 public:
  void settle() {
    for (std::future<void>& answer : answers_) answer.get();
  }

 private:
  Soak& soak_;
  SeededChoices choices_;
  std::vector<CancelToken> tokens_;
  std::deque<std::future<void>> answers_;
};

}  // namespace

TEST_CASE("soak test: sessions are made, run, cut short, closed at random") {
  constexpr int kThreads = 8;
  const std::chrono::seconds time = soak_time();
  Soak soak(time);
  std::deque<SoakWorker> workers;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    SoakWorker& worker = workers.emplace_back(soak, uint64_t(i + 1));
    threads.emplace_back([&worker] { worker.run(); });
  }
  // When caches are warm, and the sanitizers hold back what they will.
  const auto warm = soak.end - time * 2 / 3;
  std::this_thread::sleep_until(warm);
  const int64_t before = resident_mib();
  for (std::thread& thread : threads) thread.join();
  const int64_t after = resident_mib();
  for (SoakWorker& worker : workers) worker.settle();
  MESSAGE(soak.sessions.load(), " sessions, ", soak.runs.load(), " runs, ",
          soak.answers.load(), " answers; ", before,
          " MiB after a third of the time, ", after, " MiB at the end");
  CHECK(soak.wrong == 0);
  if (time >= std::chrono::minutes(10)) CHECK(after <= before + before / 4);
}
