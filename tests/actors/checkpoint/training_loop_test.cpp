// The loop of a training's steps: what it restores, restarts and saves.
#include "actors/checkpoint/training_loop.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/actors/checkpoint/saver_fixture.h"

using namespace tagflow;
using namespace tagflow::actors;
using graph::testing::must;

namespace {

Status lost() { return error(Code::kUnavailable, "a worker is lost"); }

// Counts to `steps`, with a session for each start. `before` is called before
// each step, and may fail it.
struct Counting {
  Counting(const Folder& folder, int64_t steps,
           std::function<Status(int64_t)> before)
      : before_step(std::move(before)) {
    options.make_session = [this]() -> Result<std::unique_ptr<Session>> {
      ++num_sessions;
      return make_session({}, counting());
    };
    options.init = [this](Session& session) {
      ++num_inits;
      return session.run({}, {}, {"init"}, within_a_minute()).status();
    };
    options.make_step =
        [this](Session& session) -> Result<TrainingOptions::Step> {
      return TrainingOptions::Step([this, &session](int64_t step) -> Status {
        TAGFLOW_RETURN_IF_ERROR(before_step(step));
        ran.push_back(step);
        TAGFLOW_RETURN_IF_ERROR(
            session.run({}, {}, {"step"}, within_a_minute()).status());
        last_count = count_of(session);
        return {};
      });
    };
    options.on_restart = [this](int restart, const Status& loss) {
      CHECK(error_of(loss) == error_of(lost()));
      restarts.push_back(restart);
    };
    options.saver = {.folder = folder.path(), .every_steps = 3, .sync = false};
    options.steps = steps;
  }

  TrainingOptions options;
  std::function<Status(int64_t)> before_step;
  int num_sessions = 0, num_inits = 0;
  int64_t last_count = 0;
  std::vector<int64_t> ran;
  std::vector<int> restarts;
};

}  // namespace

TEST_CASE("a training goes on after the last checkpoint when a step is lost") {
  const Folder folder("training_lost");
  bool is_lost = false;
  Counting counting(folder, 8, [&](int64_t step) {
    return step == 6 && !std::exchange(is_lost, true) ? lost() : Status();
  });
  counting.options.restarts = 1;
  must(run_training(counting.options));
  CHECK(counting.ran == std::vector<int64_t>{1, 2, 3, 4, 5, 4, 5, 6, 7, 8});
  CHECK(counting.last_count == 8);
  CHECK(counting.num_sessions == 2);
  CHECK(counting.num_inits == 1);
  CHECK(counting.restarts == std::vector<int>{1});
  // Nothing is left to do for the next one.
  Counting again(folder, 8, [](int64_t) { return Status(); });
  must(run_training(again.options));
  CHECK(again.ran.empty());
}

TEST_CASE("a training begins again if it is lost before its first checkpoint") {
  const Folder folder("training_begin");
  int losses = 0;
  Counting counting(folder, 2, [](int64_t) { return Status(); });
  const auto init = counting.options.init;
  counting.options.init = [&](Session& session) {
    return losses++ < 2 ? lost() : init(session);
  };
  counting.options.restarts = 2;
  must(run_training(counting.options));
  CHECK(counting.ran == std::vector<int64_t>{1, 2});
  CHECK(counting.restarts == std::vector<int>{1, 2});
}

TEST_CASE("a training survives as many losses as it may, and no other error") {
  const Folder folder("training_ends");
  Counting losing(folder, 5,
                  [](int64_t step) { return step == 2 ? lost() : Status(); });
  losing.options.restarts = 3;
  CHECK(error_of(run_training(losing.options)) == error_of(lost()));
  CHECK(losing.num_sessions == 4);
  const Status wrong = invalid_argument("a wrong feed");
  Counting failing(folder, 5, [&](int64_t) { return wrong; });
  failing.options.restarts = 3;
  CHECK(error_of(run_training(failing.options)) == error_of(wrong));
  CHECK(failing.num_sessions == 1);
}

TEST_CASE("a checkpoint that cannot be written does not end the training") {
  const Folder folder("training_full");
  std::vector<Status> failures;
  Counting counting(folder, 9, [&](int64_t step) -> Status {
    // The folder is gone for a while: saves of steps 3 and 6 fail.
    if (step == 3) fs::rename(folder.path(), folder.path() + "_away");
    if (step == 8) fs::rename(folder.path() + "_away", folder.path());
    return {};
  });
  counting.options.on_failed_save = [&](const Status& failure) {
    failures.push_back(failure);
  };
  must(run_training(counting.options));
  CHECK(counting.last_count == 9);
  REQUIRE(!failures.empty());
  CHECK(contains(failures[0].to_string(), "the checkpoint of step 3"));
}
