#include "devices/kernel_catalog.h"

#include <doctest/doctest.h>

#include <new>
#include <stdexcept>

#include "graph/graph.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

namespace {

class NothingKernel : public Kernel {
 public:
  explicit NothingKernel(const KernelInfo&) {}
  Status compute(KernelContext&) const override { return {}; }
};

class WaitingKernel : public AsyncKernel {
 public:
  explicit WaitingKernel(const KernelInfo&) {}
  void compute_async(KernelContext&, Completion done) const override {
    done({});
  }
};

// Kernels of device types "A" and "B"; "B" inherits from "A".
class TwoTypes {
 public:
  TwoTypes() {
    add("Neg", "A", {DataType::kFloat, DataType::kInt32});
    add("Neg", "B", {DataType::kHalf});
    add("Abs", "A", {DataType::kFloat});
    registry.add<WaitingKernel>("Square");  // of "CPU"
    registry.inherit("B", "A");
    registry.inherit("C", "CPU");
  }
  void add(std::string op, std::string device_type,
           std::vector<DataType> types) {
    registry.add({.op = std::move(op),
                  .device_type = std::move(device_type),
                  .types = {{"T", std::move(types)}},
                  .factory = [](const KernelInfo& info)
                      -> Result<std::unique_ptr<Kernel>> {
                    return std::unique_ptr<Kernel>(
                        std::make_unique<NothingKernel>(info));
                  }});
  }
  const graph::Node& node(std::string_view op, DataType dtype) {
    graph::Node* input = *graph.add(graph.unique_name("input"), "Placeholder",
                                    {}, {{"dtype", dtype}});
    const std::vector<graph::Endpoint> inputs = {{input, 0}};
    return **graph.add(graph.unique_name("node"), op, inputs, {});
  }

  graph::Graph graph;
  KernelRegistry registry;
};

using Types = std::vector<std::string>;

}  // namespace

TEST_CASE("a device type runs its own kernels and those it inherits") {
  TwoTypes types;
  const RegisteredKernels catalog(types.registry);
  const graph::Node& in_float = types.node("Neg", DataType::kFloat);
  const graph::Node& in_half = types.node("Neg", DataType::kHalf);
  CHECK(catalog.has_kernel(in_float, "A"));
  CHECK(catalog.has_kernel(in_float, "B"));
  CHECK_FALSE(catalog.has_kernel(in_half, "A"));
  CHECK(catalog.has_kernel(in_half, "B"));
  CHECK_FALSE(catalog.has_kernel(in_half, "C"));
  CHECK(types.registry.make(in_float, "B").ok());
  CHECK(types.registry.has_op("Abs", "B"));
  CHECK(catalog.types_of("Neg") == Types{"A", "B"});
  CHECK(catalog.types_of("Abs") == Types{"A", "B"});
  CHECK(catalog.types_of("MatMul").empty());
}

TEST_CASE("a kernel for types of an attribute needs a node that has it") {
  TwoTypes types;
  types.registry.add(
      {.op = "Neg",
       .device_type = "D",
       .types = {{"Tother", {DataType::kFloat}}},
       .factory =
           [](const KernelInfo& info) -> Result<std::unique_ptr<Kernel>> {
         return std::unique_ptr<Kernel>(std::make_unique<NothingKernel>(info));
       }});
  const graph::Node& node = types.node("Neg", DataType::kFloat);
  CHECK_FALSE(types.registry.has_kernel(node, "D"));
  CHECK(types.registry.has_op("Neg", "D"));
  expect_error(types.registry.make(node, "D"), Code::kUnimplemented,
               "no kernel on D for T=float; there are Tother=float");
}

TEST_CASE("asynchronous kernels are not inherited") {
  TwoTypes types;
  const RegisteredKernels catalog(types.registry);
  const graph::Node& node = types.node("Square", DataType::kFloat);
  CHECK(catalog.has_kernel(node, "CPU"));
  CHECK_FALSE(catalog.has_kernel(node, "C"));
  CHECK_FALSE(types.registry.has_op("Square", "C"));
  CHECK(catalog.types_of("Square") == Types{"CPU"});
  expect_error(types.registry.make(node, "C"), Code::kUnimplemented,
               "there is no kernel for this op on C, only on CPU");
}

TEST_CASE("a missing kernel's message says which there are") {
  TwoTypes types;
  expect_error(types.registry.make(types.node("Exp", DataType::kFloat), "A"),
               Code::kUnimplemented,
               "[Exp] node \"node\": there is no kernel for this op on A");
  expect_error(types.registry.make(types.node("Abs", DataType::kFloat), "GPU"),
               Code::kUnimplemented,
               "there is no kernel for this op on GPU, only on A, B");
  expect_error(types.registry.make(types.node("Neg", DataType::kDouble), "A"),
               Code::kUnimplemented,
               "no kernel on A for T=double; there are T=float, T=int32");
  expect_error(
      types.registry.make(types.node("Neg", DataType::kDouble), "B"),
      Code::kUnimplemented,
      "no kernel on B for T=double; there are T=float, T=half, T=int32");
}

TEST_CASE("a registry explains why an op has no kernel at all") {
  TwoTypes types;
  types.registry.explain_missing("a small build");
  CHECK(RegisteredKernels(types.registry).why_missing() == "a small build");
  expect_error(types.registry.make(types.node("Exp", DataType::kFloat), "A"),
               Code::kUnimplemented,
               "there is no kernel for this op on A; a small build");
  const Status elsewhere =
      types.registry.make(types.node("Abs", DataType::kFloat), "GPU").status();
  CHECK(elsewhere.message().find("a small build") == std::string::npos);
}

TEST_CASE("a limit excludes nodes from a device type, control flow included") {
  TwoTypes types;
  types.registry.limit(
      "A",
      [](const graph::Node& node) {
        return node.input_dtypes()[0] == DataType::kFloat;
      },
      "float inputs");
  const RegisteredKernels catalog(types.registry);
  const graph::Node& node = types.node("Neg", DataType::kInt32);
  CHECK_FALSE(catalog.has_kernel(node, "A"));
  CHECK(catalog.has_kernel(node, "B"));
  expect_error(types.registry.make(node, "A"), Code::kUnimplemented,
               "[Neg] node \"node\": A runs only nodes with float inputs");
  const graph::Node& next = types.node("NextIteration", DataType::kInt32);
  CHECK_FALSE(catalog.has_kernel(next, "A"));
  CHECK(catalog.has_kernel(next, "B"));
  CHECK(catalog.has_kernel(next, "anything"));
}

TEST_CASE("an exception of a kernel's factory is an error with the node") {
  TwoTypes types;
  const auto failure = [&](std::string op, KernelFactory factory) {
    const graph::Node& node = types.node(op, DataType::kFloat);
    KernelDef def;
    def.op = std::move(op);
    def.factory = std::move(factory);
    types.registry.add(std::move(def));
    return types.registry.make(node, "CPU").status().to_string();
  };
  using Made = Result<std::unique_ptr<Kernel>>;
  CHECK(failure("Sin", [](const KernelInfo&) -> Made {
          throw std::runtime_error("as thrown");
        }) == "Internal: [Sin] node \"node\": unexpected exception: as thrown");
  CHECK(failure("Cos", [](const KernelInfo&) -> Made { throw 3; }) ==
        "Internal: [Cos] node \"node_1\": unexpected exception of type int");
  CHECK(failure("Tan", [](const KernelInfo&) -> Made {
          throw std::bad_alloc();
        }) == "ResourceExhausted: [Tan] node \"node_2\": out of memory");
  CHECK(failure("Sinh", [](const KernelInfo&) -> Made {
          return std::unique_ptr<Kernel>();
        }) == "Internal: [Sinh] node \"node_3\": the factory made no kernel");
}

}  // namespace tagflow::devices
