// Recursion in a static graph: Fibonacci numbers, the slow way.
//
//   fib(n):           +--yes--> n -------------------------+
//              n < 2 ?|                                    v
//                     +--no--> fib(n - 1) + fib(n - 2) --> value
//
// A call runs the body in a frame of its own. In the branch that is not taken
// the calls are dead, and so the recursion ends.
#include "apps/examples/run.h"

using namespace tagflow;              // NOLINT: an example
using namespace tagflow::graph;       // NOLINT
using namespace tagflow::graph::ops;  // NOLINT

namespace {

FunctionSpec fib_function() {
  return {.name = "fib",
          .args = {{"n", DataType::kInt64, PartialShape::scalar()}},
          .results = {{DataType::kInt64, PartialShape::scalar()}},
          .body = [](const Scope& in, const Outputs& args) {
            const Output n = args[0];
            return cond(
                in, less(in, n, 2), [&](const Scope&) { return n; },
                [&](const Scope& no) {
                  return add(no, call(no, "fib", {sub(no, n, 1)})[0],
                             call(no, "fib", {sub(no, n, 2)})[0]);
                });
          }};
}

int64_t fib(int64_t n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

}  // namespace

int main() {
  Graph graph;
  const Scope s(graph);
  define_function(s, fib_function());
  const Output n =
      placeholder(s.named("n"), DataType::kInt64, PartialShape::scalar());
  const Output value = call(s, "fib", {n})[0];
  bool right = true;
  for (const int64_t number : {0, 1, 2, 7, 15}) {
    const int64_t result =
        examples::run(s, {{"n", Tensor::scalar(number)}}, {value})[0]
            .item<int64_t>()
            .value();
    std::printf("fib(%d) = %d\n", int(number), int(result));
    right = right && result == fib(number);
  }
  return right ? 0 : 1;
}
