// Whether the state of the workers may be updated: Note [Torn state].
#include "net/protocol/torn_state.h"

#include <doctest/doctest.h>

using namespace tagflow;
using namespace tagflow::net;
using Effect = TornState::Effect;

namespace {

Status why(int step) { return error(Code::kInternal, "step {} failed", step); }

}  // namespace

TEST_CASE("smoke: state that is whole may be updated") {
  const TornState state(false);
  for (Effect effect : {Effect::kReads, Effect::kUpdates})
    CHECK(state.check(effect).ok());
}

TEST_CASE("smoke: torn state is read, but not updated") {
  TornState state(false);
  state.on_torn(why(3));
  CHECK(state.is_torn());
  CHECK(state.check(Effect::kReads).ok());
  const Status status = state.check(Effect::kUpdates);
  CHECK(status.code() == Code::kFailedPrecondition);
  CHECK(status.message() ==
        "[run] the state of the workers is torn, so it is not updated until "
        "all of it is reset: step 3 failed");
}

TEST_CASE("smoke: a snapshot of torn state is none, unless that is tolerated") {
  TornState strict(false), tolerant(true);
  for (TornState* state : {&strict, &tolerant}) {
    CHECK(state->check_snapshot().ok());
    state->on_torn(why(3));
  }
  CHECK(strict.check_snapshot().code() == Code::kUnavailable);
  CHECK(tolerant.check_snapshot().ok());
}

TEST_CASE("smoke: a snapshot lacks what is lost, until a reset") {
  for (const bool is_tolerated : {false, true}) {
    TornState state(is_tolerated);
    state.on_torn(why(3));
    state.on_lost(why(4));
    CHECK(state.check_snapshot().code() == Code::kUnavailable);
    CHECK(state.check_snapshot().message() ==
          "[run] the state of the workers is torn, so it cannot be saved until "
          "all of it is reset: step 4 failed");
    state.on_mended(state.num_torn());
    CHECK(state.check_snapshot().ok());
  }
}

TEST_CASE("smoke: the first reason is told") {
  TornState state(false);
  state.on_torn(why(3));
  state.on_torn(why(4));
  const Status status = state.check(Effect::kUpdates);
  CHECK(status.message().find("step 3") != status.message().npos);
}

TEST_CASE("smoke: a restore mends what was torn before it began") {
  TornState state(false);
  state.on_torn(why(3));
  const uint64_t begin = state.num_torn();
  state.on_mended(begin);
  CHECK_FALSE(state.is_torn());
  CHECK(state.check(Effect::kUpdates).ok());
}

TEST_CASE("smoke: a restore does not mend what is torn meanwhile") {
  TornState state(false);
  state.on_torn(why(3));
  const uint64_t begin = state.num_torn();
  state.on_torn(why(5));
  state.on_mended(begin);
  CHECK(state.is_torn());
  state.on_mended(state.num_torn());
  CHECK_FALSE(state.is_torn());
}

TEST_CASE("smoke: state that is torn again tells the new reason") {
  TornState state(false);
  state.on_torn(why(3));
  state.on_mended(state.num_torn());
  state.on_torn(why(7));
  const Status status = state.check(Effect::kUpdates);
  CHECK(status.message().find("step 7") != status.message().npos);
}

TEST_CASE("smoke: a session may tolerate torn state") {
  TornState state(true);
  state.on_torn(why(3));
  CHECK(state.is_torn());
  CHECK(state.check(Effect::kUpdates).ok());
}
