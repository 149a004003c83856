// A part of a step waits for peers until its partitions have ended, or the step
// has failed.
#include "actors/runtime/peer_wait.h"

#include <doctest/doctest.h>

#include "actors/runtime/step.h"
#include "graph/status.h"

using namespace tagflow;
using namespace tagflow::actors;

namespace {

// The step's units are those of its PeerWait alone, and of end_partition().
struct Part {
  explicit Part(size_t partitions) {
    step->on_quiet = [this](Step&) { ++ended; };
    step->add_activity();
    peers.emplace(*step, partitions, [] { return std::string("the others"); });
    step->drop_activity();
  }
  void end_partition() {
    REQUIRE(step->try_enter());
    peers->end_partition();
    step->drop_activity();
  }

  int ended = 0;
  std::shared_ptr<Step> step = std::make_shared<Step>(1, 0);
  std::optional<PeerWait> peers;
};

}  // namespace

TEST_CASE("a part waits for peers until all of its partitions have ended") {
  Part part(2);
  CHECK(part.step->is_waiting());
  CHECK(part.step->describe_waits() == "the others");
  part.end_partition();
  CHECK(part.ended == 0);
  CHECK(part.step->is_waiting());
  part.end_partition();
  CHECK(part.ended == 1);
  CHECK_FALSE(part.step->try_enter());
}

TEST_CASE("a part that has failed does not wait for its peers") {
  for (const size_t ended_before : {0, 1}) {
    CAPTURE(ended_before);
    Part part(2);
    for (size_t i = 0; i < ended_before; ++i) part.end_partition();
    part.step->fail(error(Code::kUnavailable, "as asked"));
    CHECK(part.ended == 1);
    CHECK_FALSE(part.step->try_enter());
  }
}

TEST_CASE("a part of a step that has failed before it began is over") {
  auto step = std::make_shared<Step>(1, 0);
  int ended = 0;
  step->on_quiet = [&](Step&) { ++ended; };
  step->fail(error(Code::kUnavailable, "as asked"));
  step->add_activity();
  const PeerWait peers(*step, 1, [] { return std::string("the others"); });
  CHECK(ended == 0);
  step->drop_activity();
  CHECK(ended == 1);
}
