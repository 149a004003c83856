// A node's inputs and outputs when it fires, or is skipped.
#include <doctest/doctest.h>

#include "devices/kernel_registry.h"
#include "graph/builder/builder.h"
#include "graph/op_registry.h"
#include "graph/shape_context.h"
#include "tests/actors/sessions.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

namespace {

// Forgets its output.
class NothingKernel : public devices::Kernel {
 public:
  explicit NothingKernel(const devices::KernelInfo&) {}
  Status compute(devices::KernelContext&) const override { return {}; }
};

// Sets it to another type than the op declares.
class OtherTypeKernel : public devices::Kernel {
 public:
  explicit OtherTypeKernel(const devices::KernelInfo&) {}
  Status compute(devices::KernelContext& context) const override {
    context.set_output(0, Tensor::scalar(1.5));
    return {};
  }
};

// What a run says of a node "bad" of the op, in each configuration.
template <class K>
void check_fault(const char* op, const std::string& message) {
  REQUIRE(OpRegistry::global()
              .add(OpDefBuilder(op)
                       .input("x: int32")
                       .output("y: int32")
                       .stateful()
                       .shape(unchanged_shape)
                       .build())
              .ok());
  devices::KernelRegistry::global().add<K>(op);
  Graph graph;
  Scope s(graph);
  const Output x = ops::placeholder(s.named("x"), DataType::kInt32, {});
  ops::neg(s.named("z"), s.named("bad").op(op, {x}));
  REQUIRE(s.ok());
  for (const SessionOptions& options : configurations()) {
    auto session = make_session(options, graph);
    for (const char* fetch : {"z", "bad"}) {
      const auto out = session->run({{"x", Tensor::scalar(1)}}, {fetch}, {},
                                    within_a_minute());
      CHECK(out.status().code() == Code::kInternal);
      CHECK(out.status().message() ==
            message + " (node \"bad\", device /device:CPU:0)");
    }
  }
}

}  // namespace

TEST_CASE("a kernel that sets no output is told so") {
  check_fault<NothingKernel>("TestNothing",
                             "[TestNothing] the kernel did not set output 0");
}

TEST_CASE("a kernel that sets an output of another type is told so") {
  check_fault<OtherTypeKernel>(
      "TestOtherType",
      "[TestOtherType] the kernel set output 0 to a tensor of type double, but "
      "the op declares int32");
}

TEST_CASE("a node that is skipped lets go of its live inputs") {
  Graph graph;
  Scope s(graph);
  const Output x = ops::placeholder(s.named("x"), DataType::kFloat, {100});
  const Output p = ops::placeholder(s.named("p"), DataType::kBool, {});
  const OpResult sw = s.op("Switch", {1.f, p});
  ops::add(s.named("dead"), x, sw[1]);
  ops::neg(s.named("alive"), x);
  REQUIRE(s.ok());
  const std::vector<float> values(100, 2.f);
  for (const SessionOptions& options : configurations()) {
    auto session = make_session(options, graph);
    const Tensor fed = Tensor::of<float>({100}, std::span<const float>(values));
    const auto out = session->run({{"x", fed}, {"p", Tensor::scalar(false)}},
                                  {"alive"}, {"dead"}, within_a_minute());
    REQUIRE(out.ok());
    CHECK((*out)[0].flat<float>()[0] == -2);
    CHECK(fed.unique());
  }
}

TEST_CASE("run statistics count skipped nodes apart from those that ran") {
  Graph graph;
  Scope s(graph);
  const Output x = ops::placeholder(s.named("x"), DataType::kInt32, {});
  const Output p = ops::placeholder(s.named("p"), DataType::kBool, {});
  const OpResult sw = s.op("Switch", {x, p});
  const Output no = ops::neg(s, sw[0]);
  const Output yes = ops::neg(s, ops::neg(s, sw[1]));
  s.named("merge").op("Merge", {no, yes});
  REQUIRE(s.ok());
  for (const HandOff hand_off : kHandOffs) {
    SessionOptions options;
    options.hand_off = hand_off;
    options.passes = PassSet::only(Pass::kEdges);
    auto session = make_session(options, graph);
    for (const bool taken : {false, true}) {
      RunStats stats;
      must_run(*session,
               {{"x", Tensor::scalar(3)}, {"p", Tensor::scalar(taken)}},
               {"merge"}, &stats);
      CHECK(stats.fired == (taken ? 4 : 3));
      CHECK(stats.dead == (taken ? 1 : 2));
    }
  }
}
