// Finds the GPUs of the machine, and the costs that placement uses.
#include "devices/cuda/cuda_device.h"
#include "devices/cuda/status.h"
#include "graph/counted.h"

namespace tagflow::devices {
namespace {

// The engine's cost of a launch: a thread is woken, enqueues, and answers.
constexpr double kLaunchNanoseconds = 6000;
constexpr double kCopyNanoseconds = 10000;
constexpr double kHostBytesPerNanosecond = 10;  // through pinned memory
constexpr double kFlopsPerClock = 2 * 128;      // per multiprocessor

Result<int> attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  TAGFLOW_RETURN_IF_ERROR(
      cuda_status(cudaDeviceGetAttribute(&value, which, device),
                  "asking for a device's attributes"));
  return value;
}

Status fill_in_costs(graph::DeviceInfo& info, int device) {
  TAGFLOW_ASSIGN(const int processors,
                 attribute(cudaDevAttrMultiProcessorCount, device));
  TAGFLOW_ASSIGN(const int kilohertz, attribute(cudaDevAttrClockRate, device));
  TAGFLOW_ASSIGN(const int memory_kilohertz,
                 attribute(cudaDevAttrMemoryClockRate, device));
  TAGFLOW_ASSIGN(const int bus_bits,
                 attribute(cudaDevAttrGlobalMemoryBusWidth, device));
  info.host_memory = false;
  info.flops_per_ns =
      kFlopsPerClock * double(processors) * double(kilohertz) / 1e6;
  // Memory transfers twice per clock.
  info.bytes_per_ns = 2 * double(memory_kilohertz) / 1e6 * double(bus_bits) / 8;
  info.launch_ns = kLaunchNanoseconds;
  info.link_latency_ns = kCopyNanoseconds;
  info.link_bytes_per_ns = kHostBytesPerNanosecond;
  return {};
}

}  // namespace

Result<std::unique_ptr<Device>> make_cuda_device(graph::DeviceInfo info,
                                                 const CudaOptions& options) {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result != cudaSuccess || count == 0) {
    cudaGetLastError();
    // A driver that is not there counts as one that is too old.
    int driver = 0;
    if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
      return error(Code::kNotFound,
                   "[cuda] this machine has no GPU, or NVIDIA's driver is not "
                   "installed");
    return error(Code::kNotFound, "[cuda] no GPU can be used here: {}",
                 cudaGetErrorString(count == 0 && result == cudaSuccess
                                        ? cudaErrorNoDevice
                                        : result));
  }
  const int device = *info.name.id;
  if (device >= count)
    return error(Code::kNotFound, "[cuda] no GPU {}: this machine has {}",
                 device, counted(size_t(count), "GPU"));
  return CudaDevice::make(std::move(info), options);
}

Result<std::unique_ptr<Device>> CudaDevice::make(graph::DeviceInfo info,
                                                 const CudaOptions& options) {
  const int device = *info.name.id;
  const OnDevice on(device);
  TAGFLOW_RETURN_IF_ERROR(
      cuda_status(cudaSetDevice(device), "starting a device"));
  TAGFLOW_RETURN_IF_ERROR(fill_in_costs(info, device));
  size_t free = 0, total = 0;
  TAGFLOW_RETURN_IF_ERROR(
      cuda_status(cudaMemGetInfo(&free, &total), "starting a device"));
  info.memory_limit = options.memory > 0 ? options.memory : int64_t(total);
  TAGFLOW_ASSIGN(
      CudaMemory::Owner memory,
      CudaMemory::make({info.name.to_string(), device, options.memory}));
  std::unique_ptr<CudaDevice> made(
      new CudaDevice(std::move(info), std::move(memory)));
  TAGFLOW_RETURN_IF_ERROR(made->open());
  return std::unique_ptr<Device>(std::move(made));
}

}  // namespace tagflow::devices
