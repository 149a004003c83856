#include "tests/devices/cuda/gpu.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "graph/dtype_visit.h"
#include "tests/devices/kernel_fixture.h"
#include "tests/skip.h"

namespace tagflow::devices {

std::unique_ptr<Device> gpu_or_skip(const CudaOptions& options) {
  graph::DeviceInfo info;
  info.name = {"localhost", 0, 0, "GPU", 0};
  auto device = make_cuda_device(std::move(info), options);
  if (device.ok()) return std::move(*device);
  REQUIRE_MESSAGE(device.status().code() == Code::kNotFound,
                  device.status().to_string());
  skip_test_case(device.status().message());
  return nullptr;
}

// Cut out of something too large to be left with the host.
Tensor in_gpu(Device& gpu, const Tensor& tensor) {
  if (tensor.num_elements() == 0)
    return *Tensor::allocate(tensor.dtype(), tensor.shape(), gpu.allocator());
  constexpr int64_t kPadding = 1024;
  Tensor padded =
      Tensor::make(tensor.dtype(), {tensor.num_elements() + kPadding});
  std::memset(padded.mutable_raw(), 0, padded.bytes());
  std::memcpy(padded.mutable_raw(), tensor.raw(), tensor.bytes());
  const auto uploaded = to_device(*gpu.accelerator(), padded);
  REQUIRE_MESSAGE(uploaded.ok(), uploaded.status().to_string());
  GpuLaunch cut("Slice", {*uploaded, Tensor::vector<int64_t>({0}),
                          Tensor::vector<int64_t>({tensor.num_elements()})});
  const Tensor part = cut.on(*gpu.accelerator()).output();
  REQUIRE_FALSE(host_readable(part));
  return *part.reshaped(tensor.shape());
}

Computed on_cpu(std::string_view op, std::vector<Tensor> inputs,
                AttrMap attrs) {
  graph::Graph graph;
  std::vector<graph::Endpoint> endpoints;
  for (const Tensor& input : inputs)
    endpoints.push_back({*graph.add(graph.unique_name("input"), "Placeholder",
                                    {}, {{"dtype", input.dtype()}}),
                         0});
  const auto node = graph.add("op", op, endpoints, std::move(attrs));
  REQUIRE_MESSAGE(node.ok(), node.status().to_string());
  // If GPUs have none there is nothing to compare.
  if (!KernelRegistry::global().make(**node, "GPU").ok())
    return {false, {}, {}};
  auto kernel = KernelRegistry::global().make(**node, "CPU");
  if (!kernel.ok()) return {false, kernel.status(), {}};
  std::vector<Tensor> outputs(size_t((*node)->num_outputs()));
  const StepInfo step;
  const Tag tag;
  KernelContext context(*node, inputs, outputs, &step, &tag);
  return {true, (*kernel)->compute(context), outputs};
}

Computed on_gpu(Device& gpu, std::string_view op, std::vector<Tensor> inputs,
                AttrMap attrs, bool in_memory) {
  if (in_memory)
    for (Tensor& input : inputs) input = in_gpu(gpu, input);
  GpuLaunch launch(op, std::move(inputs), std::move(attrs));
  Computed computed{true, launch.on(*gpu.accelerator()).answer(), {}};
  if (!computed.status.ok()) return computed;
  for (const Tensor& output : launch.outputs) {
    auto fetched = to_host(*gpu.accelerator(), output);
    REQUIRE_MESSAGE(fetched.ok(), fetched.status().to_string());
    computed.outputs.push_back(std::move(*fetched));
  }
  return computed;
}

bool expect_as_on_cpu(Device& gpu, std::string_view op,
                      const std::vector<Tensor>& inputs, const AttrMap& attrs,
                      double tolerance) {
  const Computed expected = on_cpu(op, inputs, attrs);
  if (!expected.made) return false;
  for (const bool in_memory : {false, true}) {
    CAPTURE(in_memory);
    const Computed actual = on_gpu(gpu, op, inputs, attrs, in_memory);
    CHECK(actual.status.to_string() == expected.status.to_string());
    if (!actual.status.ok() || !expected.status.ok()) continue;
    REQUIRE(actual.outputs.size() == expected.outputs.size());
    for (size_t i = 0; i < actual.outputs.size(); ++i)
      expect_close(actual.outputs[i], expected.outputs[i], tolerance);
  }
  return true;
}

Tensor random_tensor(DataType dtype, const Shape& shape, uint32_t seed,
                     bool whole) {
  Tensor tensor = Tensor::make(dtype, shape);
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> small(-4, 4);
  std::uniform_real_distribution<float> between(-2, 2);
  const bool known = visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_same_v<T, bool>) {
      for (T& element : tensor.mutable_flat<T>()) element = random() % 2 == 1;
    } else if constexpr (!std::is_same_v<T, std::string>) {
      for (T& element : tensor.mutable_flat<T>())
        element = whole || std::is_integral_v<T> ? T(float(small(random)))
                                                 : T(between(random));
    }
  });
  REQUIRE(known);
  return tensor;
}

}  // namespace tagflow::devices
