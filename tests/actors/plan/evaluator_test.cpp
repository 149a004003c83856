#include "actors/plan/evaluator.h"

#include <doctest/doctest.h>

#include <atomic>

#include "devices/kernel_registry.h"
#include "graph/graph.h"
#include "graph/op_registry.h"
#include "graph/shape_context.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

namespace {

std::atomic<int> computed{0};

// Says nothing about its cost.
class SilentKernel : public devices::Kernel {
 public:
  explicit SilentKernel(const devices::KernelInfo&) {}
  Status compute(devices::KernelContext& context) const override {
    ++computed;
    context.set_output(0, context.input(0));
    return {};
  }
};

// Costs as much as one node may.
class SlowKernel : public SilentKernel {
 public:
  using SilentKernel::SilentKernel;
  double cost(const devices::KernelContext&) const override {
    return kMostFoldedNanoseconds;
  }
};

// A thousand of them leave something of a second.
class LongKernel : public SilentKernel {
 public:
  using SilentKernel::SilentKernel;
  double cost(const devices::KernelContext&) const override {
    return 0.7 * kMostFoldedNanoseconds;
  }
};

class ShortKernel : public SilentKernel {
 public:
  using SilentKernel::SilentKernel;
  double cost(const devices::KernelContext&) const override { return 1000; }
};

class ThrowingKernel : public devices::CheapKernel {
 public:
  explicit ThrowingKernel(const devices::KernelInfo&) {}
  Status compute(devices::KernelContext&) const override { throw 3; }
};

// Throws where it is made.
class UnmadeKernel : public SilentKernel {
 public:
  explicit UnmadeKernel(const devices::KernelInfo& info) : SilentKernel(info) {
    throw 3;
  }
};

// A graph with a node whose kernel is a K.
template <class K>
struct OneNode {
  explicit OneNode(const std::string& op) {
    static_cast<void>(OpRegistry::global().add(OpDefBuilder(op)
                                                   .input("x: float")
                                                   .output("y: float")
                                                   .shape(unchanged_shape)
                                                   .build()));
    devices::KernelRegistry::global().add<K>(op);
    Node* x = *graph.add("x", "Placeholder", {}, {{"dtype", one.dtype()}});
    const std::vector<Endpoint> inputs = {{x, 0}};
    node = *graph.add("node", op, inputs, {});
  }
  std::string evaluate(const KernelEvaluator& by = KernelEvaluator()) const {
    return by.evaluate(*node, {&one, 1}, size_t(1) << 20).status().to_string();
  }

  Graph graph;
  const Tensor one = Tensor::scalar(1.0f);
  const Node* node = nullptr;
};

template <class K>
std::string evaluate(const std::string& op) {
  return OneNode<K>(op).evaluate();
}

}  // namespace

TEST_CASE("a kernel of unknown cost does not run when a graph is compiled") {
  CHECK(evaluate<SilentKernel>("TestEvaluateSilent") ==
        "ResourceExhausted: [TestEvaluateSilent] the kernel takes too long");
  CHECK(computed == 0);
}

TEST_CASE("nodes that are folded take a second in all, however many they are") {
  const OneNode<SlowKernel> slow("TestEvaluateSlow");
  const KernelEvaluator evaluator;
  computed = 0;
  const auto most = int(KernelEvaluator::kMostNanosecondsInAll /
                        int64_t(devices::Kernel::kMostFoldedNanoseconds));
  for (int i = 0; i < most; ++i) CHECK(slow.evaluate(evaluator) == "OK");
  CHECK(slow.evaluate(evaluator) ==
        "ResourceExhausted: [TestEvaluateSlow] the kernel takes too long");
  CHECK(computed == most);
  computed = 0;
  CHECK(slow.evaluate() == "OK");
}

TEST_CASE("nodes that are not folded take nothing of that second") {
  const OneNode<LongKernel> almost("TestEvaluateLong");
  const OneNode<SlowKernel> slow("TestEvaluateSlowest");
  const KernelEvaluator evaluator;
  while (almost.evaluate(evaluator) == "OK") {
  }
  // What is left is too little for these, and enough for others.
  for (int i = 0; i < 3; ++i) CHECK(slow.evaluate(evaluator) != "OK");
  CHECK(OneNode<ShortKernel>("TestEvaluateShort").evaluate(evaluator) == "OK");
}

TEST_CASE("the text of what is folded counts, and is in the host's memory") {
  const auto join = [](size_t size) {
    Graph graph;
    Node* x =
        *graph.add("x", "Placeholder", {}, {{"dtype", DataType::kString}});
    const std::vector<Endpoint> inputs = {{x, 0}, {x, 0}};
    const Node* node = *graph.add("node", "StringJoin", inputs, {});
    const Tensor text = Tensor::scalar(std::string(size, 'x'));
    const std::vector<Tensor> values = {text, text};
    return KernelEvaluator().evaluate(*node, values, 10'000);
  };
  const auto joined = join(1000);
  REQUIRE(joined.ok());
  CHECK((*joined)[0].scalar_value<std::string>() == std::string(2000, 'x'));
  CHECK((*joined)[0].buffer()->allocator == &host_allocator());
  CHECK(join(10'000).status().code() == Code::kResourceExhausted);
}

TEST_CASE("an exception of a kernel in compilation is an error") {
  CHECK(evaluate<ThrowingKernel>("TestEvaluateThrowing") ==
        "Internal: [TestEvaluateThrowing] unexpected exception of type int");
  CHECK(evaluate<UnmadeKernel>("TestEvaluateUnmade") ==
        "Internal: [TestEvaluateUnmade] node \"node\": unexpected exception of "
        "type int");
}
