#include "apps/chaos/schedule.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

namespace tagflow::chaos {
namespace {

constexpr Chances kAll{true, true, true};
constexpr int64_t kSteps = 50;

std::string text_of(const std::vector<Fault>& faults) {
  std::string text;
  for (const Fault& fault : faults) text += fault.to_string() + "\n";
  return text;
}

TEST_CASE(
    "a seed determines the faults of a schedule, and another one others") {
  CHECK(text_of(draw_faults(7, kSteps, kAll)) ==
        text_of(draw_faults(7, kSteps, kAll)));
  CHECK(text_of(draw_faults(7, kSteps, kAll)) !=
        text_of(draw_faults(8, kSteps, kAll)));
}

TEST_CASE("faults of many seeds are of all kinds, in all phases, in order") {
  std::set<Kind> kinds;
  std::set<Phase> phases;
  std::set<uint32_t> hosts;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    const auto faults = draw_faults(seed, kSteps, kAll);
    CHECK(!faults.empty());
    CHECK(std::ranges::is_sorted(faults, {}, &Fault::step));
    for (const Fault& fault : faults) {
      CAPTURE(fault.to_string());
      CHECK(fault.step >= 1);
      CHECK(fault.step <= kSteps);
      CHECK(fault.host <= kMaster);
      CHECK((fault.kind == Kind::kFullDisk || fault.other <= kMaster));
      if (fault.kind == Kind::kCut || fault.kind == Kind::kCutOneWay ||
          fault.kind == Kind::kBadLine)
        CHECK(fault.other != fault.host);
      kinds.insert(fault.kind);
      phases.insert(fault.phase);
      hosts.insert(fault.host);
    }
  }
  CHECK(kinds.size() == size_t(Kind::kAskDrain) + 1);
  CHECK(phases.size() == size_t(Phase::kEnd) + 1);
  CHECK(hosts.size() == kWorkers + 1);
}

TEST_CASE("the phases that begin with a kill have it before them") {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const auto faults = draw_faults(seed, kSteps, kAll);
    for (size_t k = 0; k < faults.size(); ++k) {
      if (faults[k].phase > Phase::kRestore) continue;
      CAPTURE(seed);
      CAPTURE(k);
      REQUIRE(k > 0);
      CHECK(faults[k - 1].kind == Kind::kKill);
      CHECK(faults[k - 1].step == faults[k].step);
      if (faults[k].phase == Phase::kStart)
        CHECK(faults[k - 1].host == kMaster);
    }
  }
}

TEST_CASE("without a network no line is harmed, and no clock is ahead") {
  for (uint64_t seed = 1; seed <= 200; ++seed)
    for (const Fault& fault : draw_faults(seed, kSteps, {}))
      CHECK((fault.kind <= Kind::kFullDisk || fault.kind >= Kind::kDrain));
}

}  // namespace
}  // namespace tagflow::chaos
