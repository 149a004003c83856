#include "net/transfer/reports.h"

#include <algorithm>
#include <utility>

namespace tagflow::net {
namespace {

Result<graph::DeviceInfo> info_of(const Devices::Device& device) {
  graph::DeviceInfo info;
  TAGFLOW_ASSIGN(info.name, graph::DeviceName::parse(device.name));
  if (!info.name.is_full())
    return error(Code::kDataLoss, "[net] {:?} is not the full name of a device",
                 device.name);
  info.incarnation = device.incarnation;
  info.host_memory = device.host_memory;
  info.memory_limit = int64_t(device.memory_limit);
  info.flops_per_ns = device.flops_per_ns;
  info.bytes_per_ns = device.bytes_per_ns;
  info.launch_ns = device.launch_ns;
  info.kernels_at_once = int(device.kernels_at_once);
  info.link_latency_ns = device.link_latency_ns;
  info.link_bytes_per_ns = device.link_bytes_per_ns;
  return info;
}

}  // namespace

Outcome outcome_of(const Status& status, std::string task) {
  return {.code = status.code(),
          .message = std::string(status.message()),
          .task = std::move(task)};
}

Status status_of(const Outcome& outcome) {
  if (outcome.code == Code::kOk) return {};
  return Status(outcome.code, outcome.message);
}

std::vector<uint64_t> numbers_of(const actors::RunStats& stats) {
  std::vector<uint64_t> numbers;
  for (const auto count : actors::RunStats::kSums)
    numbers.push_back(stats.*count);
  numbers.push_back(uint64_t(stats.max_in_flight));
  return numbers;
}

actors::RunStats stats_of(const std::vector<uint64_t>& numbers) {
  constexpr auto& kSums = actors::RunStats::kSums;
  actors::RunStats stats;
  for (size_t i = 0; i < std::min(std::size(kSums), numbers.size()); ++i)
    stats.*kSums[i] = numbers[i];
  if (numbers.size() > std::size(kSums))
    stats.max_in_flight = int(numbers[std::size(kSums)]);
  return stats;
}

Devices devices_of(std::span<const graph::DeviceInfo> infos) {
  Devices message;
  for (const graph::DeviceInfo& info : infos)
    message.devices.push_back(
        {.name = info.name.to_string(),
         .incarnation = info.incarnation,
         .host_memory = info.host_memory,
         .kernels_at_once = uint32_t(info.kernels_at_once),
         .memory_limit = uint64_t(info.memory_limit),
         .flops_per_ns = info.flops_per_ns,
         .bytes_per_ns = info.bytes_per_ns,
         .launch_ns = info.launch_ns,
         .link_latency_ns = info.link_latency_ns,
         .link_bytes_per_ns = info.link_bytes_per_ns});
  return message;
}

Result<std::vector<graph::DeviceInfo>> infos_of(const Devices& devices) {
  std::vector<graph::DeviceInfo> infos;
  for (const Devices::Device& device : devices.devices) {
    TAGFLOW_ASSIGN(graph::DeviceInfo info, info_of(device));
    infos.push_back(std::move(info));
  }
  return infos;
}

}  // namespace tagflow::net
