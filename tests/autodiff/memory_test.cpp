#include "tests/autodiff/swapping.h"

TEST_CASE("gradients of loops need a third of the memory, with the same bits") {
  tagflow::autodiff::expect_swapping("STREAM", "stream");
}
