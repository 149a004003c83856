// Shape inference of pools and their gradients.
#include "tests/graph/ops/infer.h"

namespace tagflow::graph {
namespace {

AttrMap windows(std::vector<int64_t> size, std::vector<int64_t> stride) {
  return {{"ksize", std::move(size)},
          {"strides", std::move(stride)},
          {"padding", "VALID"}};
}

TEST_CASE("shapes of pools have an element for each place of the window") {
  const AttrMap attrs = windows({1, 2, 2, 1}, {1, 2, 1, 1});
  for (const char* op : {"MaxPool", "AvgPool"}) {
    CHECK(infer(op, {{kAny, 4, 4, 3}}, attrs) == "[?,2,3,3]");
    expect_refused(infer(op, {{1, 1, 4, 3}}, attrs),
                   "a window over 2 elements does not fit into 1");
  }
  // Over channels, too, if it takes a maximum.
  CHECK(infer("AvgPool", {{1, 4, 4, 0}}, attrs) == "[1,2,3,0]");
  expect_refused(infer("MaxPool", {{1, 4, 4, 0}}, attrs),
                 "does not fit into 0");
}

TEST_CASE("a second gradient fits the pool") {
  const AttrMap attrs = windows({1, 2, 2, 1}, {1, 2, 1, 1});
  const auto second = [&](PartialShape in, PartialShape out,
                          PartialShape grad) {
    return infer("MaxPoolGradGrad",
                 {std::move(in), std::move(out), std::move(grad)}, attrs);
  };
  CHECK(second({1, 4, 4, 3}, {1, 2, kAny, 3}, {1, 4, 4, kAny}) == "[1,2,3,3]");
  CHECK(second(PartialShape(), {1, 2, kAny, 3}, PartialShape()) == "[1,2,?,3]");
  expect_refused(second({1, 4, 4, 3}, {1, 2, 2, 3}, {1, 4, 4, 3}),
                 "orig_output is [1,2,2,3], but the pool's [1,2,3,3]");
  expect_refused(second({1, 4, 4, 3}, {1, 2, 3, 3}, {1, 4, 4, 2}),
                 "grad is [1,4,4,2], orig_input [1,4,4,3]");
  CHECK(infer("MaxPoolGradGradV2",
              {{1, 4, 4, 3},
               {1, 2, 3, 3},
               {1, 4, 4, 3},
               ints({1, 2, 2, 1}),
               ints({1, 2, 1, 1})},
              {{"padding", "VALID"}}) == "[1,2,3,3]");
  expect_refused(infer("MaxPool3DGradGrad",
                       {{1, 2, 2, 2, 1}, {1, 2, 2, 2, 1}, {1, 2, 2, 2, 1}},
                       windows({1, 2, 2, 2, 1}, {1, 1, 1, 1, 1})),
                 "but the pool's [1,1,1,1,1]");
}

}  // namespace
}  // namespace tagflow::graph
