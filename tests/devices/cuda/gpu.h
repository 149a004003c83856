// A GPU for tests, if this machine has one, and tensors on it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "devices/cuda_type.h"
#include "tests/devices/stream/launching.h"

namespace tagflow::devices {

// A new device on the first GPU; null if there is none, and the running
// test case counts as skipped. Fails the case if the GPU does not work.
std::unique_ptr<Device> gpu_or_skip(const CudaOptions& options = {});

// A launch of the op's kernel for GPUs.
class GpuLaunch : public Launch {
 public:
  GpuLaunch(std::string_view op, std::vector<Tensor> values, AttrMap attrs = {})
      : Launch(op, std::move(values), std::move(attrs), "GPU") {}
};

// A copy in the GPU's memory, also of what would be left with the host.
Tensor in_gpu(Device& gpu, const Tensor& tensor);

// What a kernel made of some inputs.
struct Computed {
  bool made = true;  // the kernel
  Status status;
  std::vector<Tensor> outputs;
};
Computed on_cpu(std::string_view op, std::vector<Tensor> inputs,
                AttrMap attrs = {});
// With the inputs as they are, or all of them in the GPU's memory; outputs are
// brought back.
Computed on_gpu(Device& gpu, std::string_view op, std::vector<Tensor> inputs,
                AttrMap attrs = {}, bool in_memory = true);

// Fails the test case if both do not give the same, errors included.
// Elements may differ by `tolerance`, as with expect_close(). False if
// there is no kernel for GPUs.
bool expect_as_on_cpu(Device& gpu, std::string_view op,
                      const std::vector<Tensor>& inputs,
                      const AttrMap& attrs = {}, double tolerance = 0);

// Of small integers, so that sums of many are exact in every type but the
// 16-bit ones, or of numbers between -2 and 2.
Tensor random_tensor(DataType dtype, const Shape& shape, uint32_t seed,
                     bool whole = true);

}  // namespace tagflow::devices
