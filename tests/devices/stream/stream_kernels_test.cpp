// The CPU's kernels on the stream device: the same results, bit by bit.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "tests/devices/recorded_cases.h"
#include "tests/devices/stream/launching.h"

namespace tagflow::devices {

namespace {

struct Computed {
  bool made;  // the kernel
  Status status;
  std::vector<Tensor> outputs;
};

Computed on_cpu(const RecordedCase& recorded) {
  graph::Graph graph;
  std::vector<graph::Endpoint> endpoints;
  for (const Tensor& input : recorded.inputs)
    endpoints.push_back({*graph.add(graph.unique_name("input"), "Placeholder",
                                    {}, {{"dtype", input.dtype()}}),
                         0});
  graph::Node* node = *graph.add("op", recorded.op, endpoints, recorded.attrs);
  auto kernel = KernelRegistry::global().make(*node, "CPU");
  if (!kernel.ok()) return {false, kernel.status(), {}};
  std::vector<Tensor> inputs = recorded.inputs;
  std::vector<Tensor> outputs(size_t(node->num_outputs()));
  const StepInfo step;
  const Tag tag;
  KernelContext context(node, inputs, outputs, &step, &tag);
  return {true, (*kernel)->compute(context), outputs};
}

// A copy in a buffer of the device, whatever its size.
Tensor in_buffer(StreamDevice& device, const Tensor& tensor) {
  Tensor copy =
      *Tensor::allocate(tensor.dtype(), tensor.shape(), device.allocator());
  if (tensor.bytes() > 0)
    std::memcpy(copy.mutable_raw(), tensor.raw(), tensor.bytes());
  return copy;
}

Computed on_stream(StreamDevice& device, const RecordedCase& recorded,
                   bool buffers) {
  std::vector<Tensor> inputs = recorded.inputs;
  if (buffers)
    for (Tensor& input : inputs) input = in_buffer(device, input);
  Launch launch(recorded.op, inputs, recorded.attrs);
  inputs.clear();
  Computed computed{true, launch.on(device).answer(), {}};
  if (computed.status.ok())
    for (const Tensor& output : launch.outputs)
      computed.outputs.push_back(*to_host(device, output));
  return computed;
}

bool is_plain_case(const RecordedCase& recorded) {
  const auto plain = [](const Tensor& tensor) {
    return is_plain(tensor.dtype());
  };
  return std::ranges::all_of(recorded.inputs, plain) &&
         std::ranges::all_of(recorded.outputs, plain);
}

// Runs all plain cases of the file on both, and says how many.
int compare(const std::string& file) {
  const auto cases = read_recorded_cases(file);
  REQUIRE_MESSAGE(cases.ok(), cases.status().to_string());
  StreamDevice device(stream_info());
  int compared = 0;
  for (const RecordedCase& recorded : *cases) {
    if (!is_plain_case(recorded)) continue;
    INFO(file, ":", recorded.line, ": ", recorded.op);
    const Computed expected = on_cpu(recorded);
    if (!expected.made) continue;
    for (const bool buffers : {false, true}) {
      CAPTURE(buffers);
      const Computed actual = on_stream(device, recorded, buffers);
      CHECK(actual.status.to_string() == expected.status.to_string());
      if (!expected.status.ok() || !actual.status.ok()) continue;
      REQUIRE(actual.outputs.size() == expected.outputs.size());
      for (size_t i = 0; i < actual.outputs.size(); ++i)
        CHECK_MESSAGE(identical(actual.outputs[i], expected.outputs[i]),
                      actual.outputs[i].to_string(), " is not ",
                      expected.outputs[i].to_string());
    }
    ++compared;
  }
  CHECK(device.memory().in_use == 0);
  return compared;
}

}  // namespace

TEST_CASE("stream device: element-wise kernels give the CPU's results") {
  CHECK(compare("elementwise.txt") > 500);
}

TEST_CASE("stream device: array kernels give the CPU's results") {
  CHECK(compare("array.txt") > 300);
}

}  // namespace tagflow::devices
