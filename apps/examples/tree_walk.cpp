// A tree walk: the sum and the depth of a binary tree, by a function that
// calls itself for both children. The tree is data, fed when the graph runs.
//
//            0: 5                index   0  1  2  3  4
//           /    \               value   5  3  8  1  4
//        1: 3    2: 8            left    1  3 -1 -1 -1
//        /  \                    right   2  4 -1 -1 -1
//     3: 1  4: 4
//
//   walk(i):  i < 0 ? --yes--> (0, 0)
//                     --no--> a = walk(left[i]), b = walk(right[i])
//                             (value[i] + a.sum + b.sum,
//                              1 + max(a.depth, b.depth))
//
// The calls for the two children do not wait for each other: branches of the
// tree are walked at the same time.
#include <vector>

#include "apps/examples/run.h"

using namespace tagflow;              // NOLINT: an example
using namespace tagflow::graph;       // NOLINT
using namespace tagflow::graph::ops;  // NOLINT

namespace {

struct Walk {
  Output sum, depth;
  TAGFLOW_FIELDS(sum, depth)
};

// Arguments and results of a function are lists.
Walk walk(const Scope& s, const Output& i, const Outputs& tree) {
  const Outputs results = call(s, "walk", {i, tree[0], tree[1], tree[2]});
  return {results[0], results[1]};
}

Outputs walk_body(const Scope& s, const Outputs& args) {
  const Output i = args[0], value = args[1], left = args[2], right = args[3];
  const Outputs tree = {value, left, right};
  const Walk result = cond(
      s, less(s, i, 0),
      [](const Scope& yes) {
        return Walk{constant(yes, 0), constant(yes, 0)};
      },
      [&](const Scope& no) {
        const Walk a = walk(no, gather(no, left, i), tree);
        const Walk b = walk(no, gather(no, right, i), tree);
        const Output below = add(no, a.sum, b.sum);
        return Walk{add(no, gather(no, value, i), below),
                    add(no, maximum(no, a.depth, b.depth), 1)};
      });
  return {result.sum, result.depth};
}

FunctionSpec walk_function() {
  const DataType type = DataType::kInt32;
  const PartialShape scalar = PartialShape::scalar();
  return {.name = "walk",
          .args = {{"i", type, scalar},
                   {"value", type},
                   {"left", type},
                   {"right", type}},
          .results = {{type, scalar}, {type, scalar}},
          .body = walk_body};
}

Tensor vector_of(const std::vector<int>& values) {
  return Tensor::of<int>({int64_t(values.size())},
                         std::span<const int>(values));
}

}  // namespace

int main() {
  Graph graph;
  const Scope s(graph);
  define_function(s, walk_function());
  Outputs tree;
  for (const char* name : {"value", "left", "right"})
    tree.push_back(placeholder(s.named(name), DataType::kInt32, {-1}));
  const Walk whole = walk(s, constant(s, 0), tree);
  const auto results = examples::run(s,
                                     {{"value", vector_of({5, 3, 8, 1, 4})},
                                      {"left", vector_of({1, 3, -1, -1, -1})},
                                      {"right", vector_of({2, 4, -1, -1, -1})}},
                                     {whole.sum, whole.depth});
  const int sum = results[0].item<int>().value();
  const int depth = results[1].item<int>().value();
  std::printf("the sum is %d, the depth is %d\n", sum, depth);
  return sum == 21 && depth == 3 ? 0 : 1;
}
