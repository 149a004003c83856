// A network with the structure of its input: it learns what a formula of
// "and", "or" and "xor" is worth, by a function that calls itself.
//
//            xor       encode(i):  node i is a leaf? --yes--> tanh(b[kind])
//           /   \                                    --no --> tanh(b[kind] +
//         and    1         (encode(left of i), encode(right of i)) w[kind])
//        /   \                encode(root) --> logit --> true or false
//       1     0
//
// The gradient is a recursion, too: each call has a record of what it computed,
// with the records of its own two calls in it, and goes back along that. Trees
// are data: those of one batch have other shapes than those of the next.
#include <cstdio>
#include <random>

#include "actors/session/session.h"
#include "autodiff/train/loss.h"
#include "autodiff/train/optimizers.h"
#include "graph/builder/builder.h"

using namespace tagflow;              // NOLINT: an example
using namespace tagflow::autodiff;    // NOLINT
using namespace tagflow::graph;       // NOLINT
using namespace tagflow::graph::ops;  // NOLINT

namespace {

constexpr int kUnits = 8, kSteps = 400;
enum Kind { kFalse, kTrue, kAnd, kOr, kXor };

// Trees: rows of a kind, and the rows of what is on the left and on the right.
struct Forest {
  std::vector<int> nodes, roots;
  std::vector<float> worth;  // of the roots
  std::mt19937 random;

  Forest(int trees, int depth, int seed) : random(unsigned(seed)) {
    while (int(roots.size()) < trees) worth.push_back(grow(depth) ? 1 : 0);
  }
  bool grow(int depth) {
    const bool a = depth > 0 ? grow(depth - 1) : random() % 2 == 1;
    const bool b = depth > 0 && grow(int(random() % unsigned(depth)));
    const int kind = depth > 0 ? kAnd + int(random() % 3) : int(a);
    nodes.insert(nodes.end(), {kind, -1, -1});
    const int row = int(nodes.size()) / 3 - 1;
    for (int side = 2; depth > 0 && side > 0; --side) {
      nodes[size_t(3 * row + side)] = roots.back();
      roots.pop_back();
    }
    roots.push_back(row);
    return kind == kAnd ? a && b : kind == kXor ? a != b : a || b;
  }
  std::vector<actors::Feed> feeds() const {
    const auto trees = int64_t(roots.size()), rows = int64_t(nodes.size() / 3);
    return {{"nodes", Tensor::of<int32_t>({rows, 3}, nodes)},
            {"roots", Tensor::of<int32_t>({trees}, roots)},
            {"worth", Tensor::of<float>({trees, 1}, worth)}};
  }
};

// encode(i, nodes, w, b)
Outputs encode(const Scope& s, const Outputs& a) {
  const Output node = gather(s, a[1], a[0]), kind = gather(s, node, 0);
  const Output sum = cond(
      s, less(s, kind, int(kAnd)),
      [&](const Scope& leaf) -> Outputs { return gather(leaf, a[3], kind); },
      [&](const Scope& in) -> Outputs {
        const auto below = [&](int side) {
          const Output i = gather(in, node, side);
          return call(in, "encode", {i, a[1], a[2], a[3]})[0];
        };
        const Output both = concat(in, {below(1), below(2)}, 1);
        const Output w = gather(in, a[2], sub(in, kind, int(kAnd)));
        return add(in, matmul(in, both, w), gather(in, a[3], kind));
      })[0];
  return tanh(s, sum);
}

// "train", "loss", and "right": the share of formulas whose worth is found.
Status build(const Scope& s) {
  const DataType ints = DataType::kInt32, floats = DataType::kFloat;
  const PartialShape any_rows{-1, 3};
  const Shape w_shape{3, 2 * kUnits, kUnits}, b_shape{5, 1, kUnits};
  define_function(s, {.name = "encode",
                      .args = {{"i", ints, PartialShape::scalar()},
                               {"nodes", ints, any_rows},
                               {"w", floats, w_shape},
                               {"b", floats, b_shape}},
                      .results = {{floats, {1, kUnits}}},
                      .body = encode});
  const Output nodes = placeholder(s.named("nodes"), ints, any_rows);
  const Output roots = placeholder(s.named("roots"), ints, {-1});
  const Output worth = placeholder(s.named("worth"), floats, {-1, 1});
  const VariableScope vars;
  const Output w = vars.get(s, "w", w_shape).read(s);
  const Output b = vars.get(s, "b", b_shape).read(s);
  const auto code = [&](const Scope& in, const Output& root) {
    return squeeze(in, call(in, "encode", {root, nodes, w, b})[0], {0});
  };
  const Output out = vars.get(s, "out", {kUnits, 1}).read(s);
  const Output logits = matmul(s, map_fn(s, code, roots), out);
  const Output loss = losses::sigmoid_cross_entropy(s, logits, worth);
  identity(s.named("loss"), loss);
  const Output is_true = cast(s, greater(s, logits, 0.0f), floats);
  reduce_mean(s.named("right"), cast(s, equal(s, is_true, worth), floats));
  optimizers::adam(vars, 0.02f)
      .minimize(s.named("train"), loss, vars.trainable_variables());
  vars.initialize(s.named("init"));
  return s.status();
}

Result<bool> run() {
  Graph graph;
  TAGFLOW_RETURN_IF_ERROR(build(Scope(graph)));
  TAGFLOW_ASSIGN(auto session, actors::Session::create({.seed = 1}));
  TAGFLOW_RETURN_IF_ERROR(session->extend(graph));
  TAGFLOW_RETURN_IF_ERROR(session->run({}, {}, {"init"}).status());
  for (int i = 0; i < kSteps; ++i) {
    const auto feeds = Forest(24, 1 + i % 3, i).feeds();
    TAGFLOW_RETURN_IF_ERROR(session->run(feeds, {}, {"train"}).status());
  }
  // Deeper than all that it has learned from.
  const Forest deep(200, 5, kSteps);
  TAGFLOW_ASSIGN(const auto results, session->run(deep.feeds(), {"right"}));
  const float right = results[0].scalar_value<float>();
  std::printf("%.0f %% of deeper formulas are right\n", 100 * double(right));
  return right > 0.95f;
}

}  // namespace

int main() {
  const auto good = run();
  if (!good.ok())
    std::fprintf(stderr, "%s\n", good.status().to_string().c_str());
  return good.ok() && *good ? 0 : 1;
}
