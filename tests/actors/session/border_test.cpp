// What a run that ends before it starts gives back: the border, for the next
// snapshot and the next update.
#include <doctest/doctest.h>

#include <deque>
#include <future>
#include <random>

#include "actors/checkpoint/snapshot.h"
#include "actors/shared_state.h"
#include "tests/actors/holding_op.h"
#include "tests/actors/pending.h"
#include "tests/failing_new.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::must;
using Mode = devices::StateLock::Mode;

namespace {

// "y" blocks, and updates nothing. "step" adds one to "count".
Graph blocked_and_counting() {
  Graph graph = blocked_graph();
  const Scope s(graph);
  const Output count = ops::reference_variable(
      s.named("count"), DataType::kInt64, PartialShape::scalar());
  ops::group(s.named("init"),
             {ops::assign(s, count, Tensor::scalar<int64_t>(0))});
  ops::group(s.named("step"),
             {ops::assign_add(s, count, Tensor::scalar<int64_t>(1))});
  INFO(s.status().to_string());
  REQUIRE(s.status().ok());
  return graph;
}

Status run_step(Session& session, RunOptions options = within_a_minute()) {
  return session.run({}, {}, {"step"}, options).status();
}

// An asynchronous run of "step".
struct Update {
  explicit Update(Session& session, RunOptions options = within_a_minute()) {
    options.cancel = token;
    session.run_async({}, {}, {"step"}, options, [this](auto answer, auto&&) {
      promise.set_value(answer.status().code());
    });
  }
  Code code() { return future.get(); }

  CancelToken token;
  std::promise<Code> promise;
  std::future<Code> future = promise.get_future();
};

// Whether nobody holds the border.
bool is_border_free(const Session& session) {
  devices::StateLock& border = session.shared_state()->border();
  if (!border.try_lock(Mode::kExclusive)) return false;
  border.unlock(Mode::kExclusive);
  return true;
}

int64_t count_in(Session& session) {
  const auto snapshot =
      must(must(Snapshots::create(session))->take(std::chrono::seconds(60)));
  return snapshot.variables.at("count").scalar_value<int64_t>();
}

RunOptions within_a_millisecond() {
  RunOptions options;
  options.timeout = std::chrono::milliseconds(1);
  return options;
}

}  // namespace

TEST_CASE("a queued run that ends gives the border back") {
  auto session = make_session({.max_active_runs = 1, .max_queued_runs = 1},
                              blocked_and_counting());
  must(session->run({}, {}, {"init"}, within_a_minute()));
  (void)must(session->make_callable({}, {}, {"step"}));
  Blockade blockade;
  Pending blocked(*session, "y");
  blockade.until_begun(1);
  CHECK(is_border_free(*session));
  SUBCASE("late, with a thread that waits") {
    CHECK(run_step(*session, within_a_millisecond()).code() ==
          Code::kDeadlineExceeded);
  }
  SUBCASE("late") {
    Update update(*session, within_a_millisecond());
    CHECK(update.code() == Code::kDeadlineExceeded);
  }
  SUBCASE("cancelled") {
    Update update(*session);
    CHECK_FALSE(is_border_free(*session));
    update.token.cancel();
    CHECK(update.code() == Code::kCancelled);
  }
  SUBCASE("cancelled before it is queued") {
    RunOptions options = within_a_minute();
    options.cancel.emplace();
    options.cancel->cancel();
    CHECK(run_step(*session, options).code() == Code::kCancelled);
  }
  SUBCASE("refused, since too many are queued") {
    Pending queued(*session, "y");
    Update update(*session);
    CHECK(update.code() == Code::kResourceExhausted);
    queued.token.cancel();
    CHECK(queued.get().status().code() == Code::kCancelled);
  }
  SUBCASE("without memory to queue it") {
    const Callable call = must(session->make_callable({}, {}, {"step"}));
    const RunOptions options = within_a_millisecond();
    for (int64_t k = 1;; ++k) {
      CAPTURE(k);
      FailAllocation fail(k);
      const Status status = call({}, options).status();
      fail.stop();
      CHECK_FALSE(status.ok());
      CHECK(is_border_free(*session));
      CHECK(session->counters().queued == 0);
      CHECK(session->counters().waiting == 0);
      if (!fail.failed()) break;
    }
  }
  CHECK(is_border_free(*session));
  CHECK(count_in(*session) == 0);
  blockade.let_go();
  CHECK(blocked.get().ok());
  CHECK(run_step(*session).ok());
  CHECK(count_in(*session) == 1);
  CHECK(session->close().ok());
}

TEST_CASE("a queued run that closing ends gives the border back") {
  auto session = make_session({.max_active_runs = 1}, blocked_and_counting());
  const auto state = session->shared_state();
  const auto other = make_session({.state = state}, blocked_and_counting());
  must(other->run({}, {}, {"init"}, within_a_minute()));
  const Callable call = must(session->make_callable({}, {}, {"step"}));
  Blockade blockade;
  Pending blocked(*session, "y");
  blockade.until_begun(1);
  Update update(*session);
  CHECK_FALSE(is_border_free(*other));
  CHECK(session->close(std::chrono::milliseconds(0)).code() ==
        Code::kDeadlineExceeded);
  CHECK(update.code() == Code::kCancelled);
  CHECK(is_border_free(*other));
  // What comes after is refused, and keeps nothing either.
  CHECK(call().status().code() == Code::kFailedPrecondition);
  CHECK(is_border_free(*other));
  CHECK(state->border().try_lock(Mode::kExclusive));
  CHECK(call().status().code() == Code::kFailedPrecondition);
  state->border().unlock(Mode::kExclusive);
  CHECK(run_step(*other).ok());
  CHECK(count_in(*other) == 1);
  blockade.let_go();
  CHECK(blocked.get().status().code() == Code::kCancelled);
  CHECK(session->close().ok());
}

TEST_CASE("a run that waits at the border and ends is not counted any more") {
  auto session = make_session({.max_active_runs = 1, .max_queued_runs = 1},
                              blocked_and_counting());
  must(session->run({}, {}, {"init"}, within_a_minute()));
  const Callable call = must(session->make_callable({}, {}, {"step"}));
  devices::StateLock& border = session->shared_state()->border();
  REQUIRE(border.try_lock(Mode::kExclusive));
  SUBCASE("late") {
    CHECK(run_step(*session, within_a_millisecond()).code() ==
          Code::kDeadlineExceeded);
  }
  SUBCASE("cancelled") {
    Update update(*session);
    CHECK(session->counters().waiting == 1);
    update.token.cancel();
    CHECK(update.code() == Code::kCancelled);
  }
  SUBCASE("cancelled before it waits") {
    RunOptions options = within_a_minute();
    options.cancel.emplace();
    options.cancel->cancel();
    CHECK(call({}, options).status().code() == Code::kCancelled);
  }
  SUBCASE("without memory to wait") {
    // The line of those that wait needs memory from time to time.
    const RunOptions options = within_a_millisecond();
    std::deque<Update> waiting;
    std::minstd_rand random;
    for (int64_t i = 0; i < 100; ++i) {
      for (int64_t k = 1;; ++k) {
        CAPTURE(i);
        CAPTURE(k);
        FailAllocation fail(k);
        const Status status = call({}, options).status();
        fail.stop();
        CHECK_FALSE(status.ok());
        CHECK(session->counters().waiting == int64_t(waiting.size()));
        if (!fail.failed()) break;
      }
      // Where the line needs more of it depends on how many came before.
      for (auto more = random() % 8; more > 0; --more)
        waiting.emplace_back(*session);
    }
    for (Update& update : waiting) {
      update.token.cancel();
      CHECK(update.code() == Code::kCancelled);
    }
  }
  CHECK(session->counters().waiting == 0);
  border.unlock(Mode::kExclusive);
  CHECK(is_border_free(*session));
  CHECK(run_step(*session).ok());
  CHECK(count_in(*session) == 1);
  CHECK(session->close().ok());
}

TEST_CASE("a run that is refused its turn after the border gives that back") {
  auto session = make_session({.max_active_runs = 1, .max_queued_runs = 1},
                              blocked_and_counting());
  must(session->run({}, {}, {"init"}, within_a_minute()));
  devices::StateLock& border = session->shared_state()->border();
  REQUIRE(border.try_lock(Mode::kExclusive));
  Update first(*session), second(*session);
  Blockade blockade;
  Pending blocked(*session, "y");
  blockade.until_begun(1);
  border.unlock(Mode::kExclusive);
  // One place is left for the two.
  CHECK(second.code() == Code::kResourceExhausted);
  CHECK_FALSE(is_border_free(*session));
  first.token.cancel();
  CHECK(first.code() == Code::kCancelled);
  CHECK(is_border_free(*session));
  CHECK(session->counters().queued == 0);
  blockade.let_go();
  CHECK(blocked.get().ok());
  CHECK(run_step(*session).ok());
  CHECK(count_in(*session) == 1);
}

TEST_CASE("a snapshot that was given up leaves the border to those behind it") {
  auto session = make_session({}, blocked_and_counting());
  must(session->run({}, {}, {"init"}, within_a_minute()));
  const auto snapshots = must(Snapshots::create(*session));
  devices::StateLock& border = session->shared_state()->border();
  REQUIRE(border.try_lock(Mode::kShared));
  CHECK(snapshots->take(std::chrono::milliseconds(1)).status().code() ==
        Code::kDeadlineExceeded);
  // The mark of a waiting writer would keep the next reader out.
  CHECK(border.try_lock(Mode::kShared));
  border.unlock(Mode::kShared);
  CHECK(run_step(*session).ok());
  border.unlock(Mode::kShared);
  CHECK(is_border_free(*session));
  CHECK(must(snapshots->take()).variables.at("count").scalar_value<int64_t>() ==
        1);
}
