#include "apps/shared/runs/progress.h"

#include <doctest/doctest.h>

namespace tagflow::apps {
namespace {

TEST_CASE("progress text tells the number, the speed and the time left") {
  CHECK(progress_text("step", 120, 1000, 35.2) ==
        "step 120 of 1000, 35 steps/s, 25 s left");
  CHECK(progress_text("step", 1, 2, 0.25) ==
        "step 1 of 2, 0.25 steps/s, 4 s left");
  CHECK(progress_text("step", 10, 1000, 10) ==
        "step 10 of 1000, 10 steps/s, 1 min 39 s left");
  CHECK(progress_text("step", 0, 100000, 10) ==
        "step 0 of 100000, 10 steps/s, 2 h 46 min left");
  CHECK(progress_text("step", 0, 100, 0) == "step 0 of 100, 0.00 steps/s");
  CHECK(progress_text("case", 3, 4, 20) == "case 3 of 4, 20 cases/s, 0 s left");
}

}  // namespace
}  // namespace tagflow::apps
