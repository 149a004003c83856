// CPU kernels that serve a GPU, on memory that only a mover can access: if a
// kernel reads an element itself that does not steer it, the process ends.
// Needs no GPU.
#include <doctest/doctest.h>

#include <map>

#include "devices/cuda/cuda_kernel.h"
#include "devices/device.h"
#include "devices/state/guard.h"
#include "devices/step_resources.h"
#include "graph/graph.h"
#include "graph/op_registry.h"
#include "tests/devices/recorded_cases.h"
#include "tests/devices/remote_memory.h"
#include "tests/devices/state_fixture.h"

namespace tagflow::devices {
namespace {

// Where kernels run: on the host, or as a GPU would have them run.
class Place {
 public:
  explicit Place(RemoteMemory* memory) : memory_(memory) {
    step_.resources = &resources_;
  }

  // What there is for kernels on a GPU.
  static bool serves(const graph::Node& node) {
    const auto kernel = KernelRegistry::global().make(node, "GPU");
    if (!kernel.ok()) return false;
    const auto* cuda = dynamic_cast<const CudaKernel*>(kernel->get());
    return cuda == nullptr || cuda->runs() == CudaKernel::Runs::kByMover;
  }

  // A node over the inputs, which become variables if they are handles.
  static graph::Node* node_of(graph::Graph& graph, std::string_view op,
                              const std::vector<Tensor>& inputs,
                              AttrMap attrs) {
    const auto def = graph::OpRegistry::global().find(op);
    REQUIRE(def.ok());
    std::vector<graph::Endpoint> endpoints;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool is_reference =
          (*def)->inputs.size() == inputs.size() && (*def)->inputs[i].is_ref;
      AttrMap made = {{"dtype", inputs[i].dtype()}};
      if (is_reference)
        made = {{"dtype", variable_of(inputs[i]).dtype()},
                {"shape", PartialShape()}};
      const auto node = graph.add(graph.unique_name("input"),
                                  is_reference ? "VariableV2" : "Placeholder",
                                  {}, std::move(made));
      REQUIRE_MESSAGE(node.ok(), node.status().to_string());
      endpoints.push_back({*node, 0});
    }
    const auto node = graph.add("op", op, endpoints, std::move(attrs));
    REQUIRE_MESSAGE(node.ok(), node.status().to_string());
    return *node;
  }

  Result<Outputs> run(std::string_view op, std::vector<Tensor> inputs,
                      AttrMap attrs = {}) {
    graph::Graph graph;
    const graph::Node* node = node_of(graph, op, inputs, std::move(attrs));
    Outputs outputs(size_t(node->num_outputs()));
    const Tag tag;
    if (memory_ == nullptr) {
      TAGFLOW_ASSIGN(const auto kernel,
                     KernelRegistry::global().make(*node, "CPU"));
      KernelContext context(node, inputs, outputs, &step_, &tag);
      TAGFLOW_RETURN_IF_ERROR(run_kernel(*kernel, context));
      return outputs;
    }
    INFO(op);
    REQUIRE(serves(*node));
    TAGFLOW_ASSIGN(const auto kernel,
                   KernelRegistry::global().make(*node, "GPU"));
    const auto* cuda = dynamic_cast<const CudaKernel*>(kernel.get());
    for (size_t i = 0; cuda != nullptr && i < inputs.size(); ++i) {
      Tensor& input = inputs[i];
      if (!is_plain(input.dtype())) continue;
      const bool stays = cuda->hands_on() && is_small_value(input);
      if (cuda->steers(int(i)))
        input = memory_->fetch(input);
      else if (!memory_->holds(input) && input.buffer() != nullptr && !stays)
        input = memory_->send(input);
    }
    KernelContext context(node, inputs, outputs, &step_, &tag, memory_);
    TAGFLOW_RETURN_IF_ERROR(run_kernel(kernel->inner(), context));
    return outputs;
  }
  Outputs must(std::string_view op, std::vector<Tensor> inputs,
               AttrMap attrs = {}) {
    auto outputs = run(op, std::move(inputs), std::move(attrs));
    REQUIRE_MESSAGE(outputs.ok(), outputs.status().to_string());
    return *outputs;
  }
  Tensor read(const Tensor& tensor) {
    return memory_ == nullptr ? tensor : memory_->fetch(tensor);
  }

 private:
  RemoteMemory* const memory_;
  StepResources resources_;
  StepInfo step_;
};

// Runs the program at both places, which must give the same.
void compare(const std::function<std::vector<Tensor>(Place&)>& program) {
  RemoteMemory memory;
  Place host(nullptr);
  const std::vector<Tensor> expected = program(host);
  std::vector<Tensor> actual;
  {
    Place remote(&memory);
    for (const Tensor& result : program(remote))
      actual.push_back(remote.read(result));
  }
  CHECK(memory.num_calls() > 0);
  REQUIRE(actual.size() == expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    CAPTURE(i);
    expect_close(actual[i], expected[i]);
  }
}

// 0, 1, 2, ... in that shape.
Tensor counted(const Shape& shape, DataType dtype = DataType::kFloat) {
  Tensor made = Tensor::make(dtype, shape);
  for (int64_t i = 0; i < made.num_elements(); ++i) {
    if (dtype == DataType::kFloat) made.mutable_data<float>()[i] = float(i);
    if (dtype == DataType::kInt32) made.mutable_data<int32_t>()[i] = int(i);
  }
  return made;
}

Tensor ints(std::initializer_list<int32_t> values) {
  return Tensor::vector<int32_t>(values);
}

const AttrMap kOfFloat = {{"element_dtype", DataType::kFloat}};
const Tensor kRow = Tensor::vector<int32_t>({10});

}  // namespace

TEST_CASE("borrowed memory: kernels give TensorFlow's recorded results") {
  std::map<std::string, int> compared;
  for (const char* file : {"array.txt", "elementwise.txt"}) {
    const auto cases = read_recorded_cases(file);
    REQUIRE_MESSAGE(cases.ok(), cases.status().to_string());
    for (const RecordedCase& recorded : *cases) {
      if (recorded.op.find("MatMul") != std::string::npos) continue;
      graph::Graph graph;
      const graph::Node* node =
          Place::node_of(graph, recorded.op, recorded.inputs, recorded.attrs);
      if (!Place::serves(*node)) continue;
      INFO(file, ":", recorded.line, ": ", recorded.op);
      RemoteMemory memory;
      {
        Place host(nullptr), remote(&memory);
        const auto expected =
            host.run(recorded.op, recorded.inputs, recorded.attrs);
        const auto actual =
            remote.run(recorded.op, recorded.inputs, recorded.attrs);
        REQUIRE(actual.status().to_string() == expected.status().to_string());
        for (size_t i = 0; actual.ok() && i < actual->size(); ++i)
          expect_close(remote.read((*actual)[i]), (*expected)[i]);
      }
      ++compared[recorded.op];
    }
  }
  CHECK(compared.size() > 15);
}

TEST_CASE("borrowed memory: variables are changed as TensorFlow changes them") {
  const auto cases = read_recorded_cases("state.txt");
  REQUIRE_MESSAGE(cases.ok(), cases.status().to_string());
  std::map<std::string, int> compared;
  for (const RecordedCase& recorded : *cases)
    for (const bool is_shared : {false, true}) {
      const auto def = graph::OpRegistry::global().find(recorded.op);
      REQUIRE(def.ok());
      RemoteMemory memory;
      {
        std::vector<Tensor> inputs = recorded.inputs, kept;
        size_t states = 0;
        for (; states < inputs.size() &&
               (*def)->inputs[states].dtype == DataType::kResource;
             ++states) {
          inputs[states] = make_variable((*def)->inputs[states].name,
                                         recorded.inputs[states]);
          const Tensor& value = value_of(inputs[states]);
          if (value.buffer() != nullptr && is_plain(value.dtype()))
            REQUIRE(variable_of(inputs[states]).set(memory.send(value)).ok());
          if (is_shared) kept.push_back(value_of(inputs[states]));
        }
        graph::Graph graph;
        if (!Place::serves(
                *Place::node_of(graph, recorded.op, inputs, recorded.attrs)))
          continue;
        INFO("line ", recorded.line, ", ", recorded.op);
        Place remote(&memory);
        remote.must(recorded.op, inputs, recorded.attrs);
        const DataType dtype = recorded.inputs[0].dtype();
        for (size_t i = 0; i < states; ++i)
          expect_close(memory.fetch(value_of(inputs[i])), recorded.outputs[i],
                       dtype == DataType::kFloat      ? 5e-6
                       : dtype == DataType::kDouble   ? 1e-12
                       : dtype == DataType::kHalf     ? 1.0 / 128
                       : dtype == DataType::kBFloat16 ? 1.0 / 16
                                                      : 0);
        for (size_t i = 0; i < kept.size(); ++i)
          expect_close(memory.fetch(kept[i]), recorded.inputs[i]);
      }
      ++compared[recorded.op];
    }
  CHECK(compared.size() > 15);
}

TEST_CASE("a scalar variable leaves its token when a mover changes it") {
  RemoteMemory memory;
  {
    const Tensor variable = make_variable("v", Tensor::scalar(2.5F));
    Place remote(&memory);
    for (int i = 0; i < 2; ++i)
      remote.must("AssignAddVariableOp", {variable, Tensor::scalar(0.5F)});
    CHECK(memory.holds(value_of(variable)));
    expect_close(memory.fetch(value_of(variable)), Tensor::scalar(3.5F));
  }
}

TEST_CASE("a variable that is the host's is read, and leaves when it changes") {
  RemoteMemory memory;
  {
    const Tensor start = Tensor::of<int32_t>({2, 1}, {3, 4});
    const Tensor variable = make_variable("v", start);
    Place remote(&memory);
    expect_close(remote.must("ReadVariableOp", {variable},
                             {{"dtype", DataType::kInt32}})[0],
                 start);
    remote.must("AssignSubVariableOp",
                {variable, Tensor::of<int32_t>({2, 1}, {1, 1})});
    CHECK(memory.holds(value_of(variable)));
    expect_close(memory.fetch(value_of(variable)),
                 Tensor::of<int32_t>({2, 1}, {2, 3}));
  }
}

TEST_CASE("borrowed memory: lists hold tensors in it") {
  compare([](Place& at) -> std::vector<Tensor> {
    Tensor list = at.must("TensorListFromTensor", {counted({4, 10}), kRow})[0];
    const Tensor item = at.must("TensorListGetItem",
                                {list, Tensor::scalar(2), kRow}, kOfFloat)[0];
    list = at.must("TensorListSetItem", {list, Tensor::scalar(0), item})[0];
    list = at.must("TensorListPushBack", {list, item})[0];
    list = at.must("TensorListResize", {list, Tensor::scalar(7)})[0];
    const Tensor stacked =
        at.must("TensorListStack", {list, kRow}, kOfFloat)[0];
    const Tensor unset = at.must("TensorListGetItem",
                                 {list, Tensor::scalar(6), kRow}, kOfFloat)[0];
    const Tensor gathered = at.must(
        "TensorListGather", {list, ints({6, 1, 4, 1}), kRow}, kOfFloat)[0];
    const Outputs popped = at.must("TensorListPopBack", {list, kRow}, kOfFloat);
    const Tensor length = at.must("TensorListLength", {popped[0]})[0];
    const Tensor shape = at.must("TensorListElementShape", {list},
                                 {{"shape_type", DataType::kInt32}})[0];
    const Tensor scattered =
        at.must("TensorListScatterV2",
                {counted({2, 10}), ints({3, 1}), kRow, Tensor::scalar(5)})[0];
    const Tensor more = at.must("TensorListScatterIntoExistingList",
                                {scattered, counted({1, 10}), ints({4})})[0];
    return {stacked,
            unset,
            gathered,
            popped[1],
            length,
            shape,
            at.must("TensorListStack", {more, kRow}, kOfFloat)[0]};
  });
}

TEST_CASE("borrowed memory: small integers in lists stay with the host") {
  compare([](Place& at) -> std::vector<Tensor> {
    const AttrMap of_int = {{"element_dtype", DataType::kInt32}};
    const Tensor shape = ints({8});
    Tensor list =
        at.must("TensorListReserve", {shape, Tensor::scalar(3)}, of_int)[0];
    for (int i = 0; i < 3; ++i)
      list = at.must("TensorListSetItem", {list, Tensor::scalar(i),
                                           counted({8}, DataType::kInt32)})[0];
    const Tensor item = at.must("TensorListGetItem",
                                {list, Tensor::scalar(1), shape}, of_int)[0];
    CHECK(host_readable(item));
    return {at.must("TensorListStack", {list, shape}, of_int)[0], item};
  });
}

TEST_CASE("borrowed memory: lists in it are joined and split") {
  compare([](Place& at) -> std::vector<Tensor> {
    const Tensor rows = Tensor::vector<int32_t>({-1, 10});
    const Tensor list = at.must(
        "TensorListSplit",
        {counted({6, 10}), rows, Tensor::vector<int64_t>({1, 3, 2})})[0];
    Outputs joined =
        at.must("TensorListConcatV2", {list, rows, Tensor::vector<int64_t>({})},
                kOfFloat);
    return joined;
  });
}

TEST_CASE("borrowed memory: stacks and lists of gradients are added in it") {
  compare([](Place& at) -> std::vector<Tensor> {
    Tensor stack =
        at.must("PersistentStack", {}, {{"elem_type", DataType::kFloat}})[0];
    for (int i = 0; i < 20; ++i)
      stack = at.must("PersistentStackPush", {stack, counted({10})})[0];
    const Tensor sum = at.must("AddN", {stack, stack})[0];
    const Outputs popped =
        at.must("PersistentStackPop", {sum}, {{"elem_type", DataType::kFloat}});
    const Tensor size = at.must("PersistentStackSize", {popped[0]})[0];
    Tensor list = at.must("ZeroVariant", {})[0];
    list =
        at.must("GradientListAdd", {list, Tensor::scalar(1), counted({10})})[0];
    list = at.must("GradientListAddRows",
                   {list, ints({0, 1}), counted({2, 10})})[0];
    const Tensor rows =
        at.must("GradientListGetRows", {list, ints({0, 1, 2}), kRow},
                {{"T", DataType::kFloat}})[0];
    return {popped[1], size, rows};
  });
}

TEST_CASE("borrowed memory: tensor arrays hold tensors in it") {
  compare([](Place& at) -> std::vector<Tensor> {
    const Tensor flow = Tensor::scalar(0.0F);
    const Outputs made =
        at.must("TensorArrayV3", {Tensor::scalar(4)},
                {{"dtype", DataType::kFloat}, {"clear_after_read", false}});
    at.must("TensorArrayScatterV3",
            {made[0], ints({0, 1, 2}), counted({3, 10}), flow});
    at.must("TensorArrayWriteV3",
            {made[0], Tensor::scalar(3), counted({10}), flow});
    const AttrMap dtype = {{"dtype", DataType::kFloat}};
    const Tensor one = at.must("TensorArrayReadV3",
                               {made[0], Tensor::scalar(2), flow}, dtype)[0];
    const Tensor all = at.must("TensorArrayGatherV3",
                               {made[0], ints({3, 2, 1, 0}), flow}, dtype)[0];
    const Outputs joined =
        at.must("TensorArrayConcatV3", {made[0], flow}, dtype);
    const Outputs gradient =
        at.must("TensorArrayGradV3", {made[0], flow}, {{"source", "g"}});
    for (int i = 0; i < 2; ++i)
      at.must("TensorArrayWriteV3",
              {gradient[0], Tensor::scalar(1), counted({10}), flow});
    const Tensor sums = at.must("TensorArrayGatherV3",
                                {gradient[0], ints({0, 1}), flow}, dtype)[0];
    const Tensor size = at.must("TensorArraySizeV3", {made[0], flow})[0];
    return {one, all, joined[0], joined[1], sums, size};
  });
}

}  // namespace tagflow::devices
