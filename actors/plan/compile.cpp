#include "actors/plan/compile.h"

#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>

#include "devices/kernel_registry.h"
#include "graph/budget.h"
#include "graph/file/program_file.h"

namespace tagflow::actors {
namespace {

// The objects that plans point to.
struct Compiled {
  std::vector<graph::Partition> partitions;
  std::vector<std::unique_ptr<devices::Kernel>> kernels;
};

// Writes the programs to bytes, and reads them back. Limits are for strangers:
// these programs may have any size that can be written.
Status pass_through_wire(std::vector<graph::Partition>& partitions,
                         graph::Budget* budget) {
  graph::Limits limits;
  limits.max_bytes = std::numeric_limits<size_t>::max();
  limits.max_nodes = std::numeric_limits<size_t>::max();
  limits.max_tensor_bytes = std::numeric_limits<int64_t>::max();
  limits.max_repeated_bytes = std::numeric_limits<int64_t>::max();
  limits.max_frame_depth = std::numeric_limits<int>::max();
  limits.budget = budget;
  for (graph::Partition& partition : partitions) {
    TAGFLOW_ASSIGN(const std::string bytes,
                   graph::write_program(partition.program));
    TAGFLOW_ASSIGN(partition.program, graph::read_program(bytes, limits));
  }
  return {};
}

// A transfer of an earlier incarnation of a device has no partner.
Status check_incarnations(const graph::Graph& graph, Devices devices) {
  std::unordered_map<std::string, uint64_t> incarnations;  // by name
  for (const graph::Node* node : graph.nodes()) {
    if (node->op() != "_Send" && node->op() != "_Recv") continue;
    if (incarnations.empty())
      for (const auto& device : devices)
        incarnations.emplace(device->info().name.to_string(),
                             device->info().incarnation);
    TAGFLOW_ASSIGN(const auto sender, node->attr<std::string>("send_device"));
    TAGFLOW_ASSIGN(const auto incarnation,
                   node->attr<int64_t>("send_device_incarnation"));
    const auto now = incarnations.find(sender);
    if (now != incarnations.end() && now->second != uint64_t(incarnation))
      return error(
          Code::kFailedPrecondition,
          "[{}] node \"{}\": the graph was cut for an earlier instance "
          "of device {} (incarnation {:x}, now {:x})",
          node->op(), node->name(), sender, uint64_t(incarnation), now->second);
  }
  return {};
}

// Copies constants into the device's memory.
Status upload_constants(Plan& plan, devices::Accelerator& accelerator) {
  // Several tensors may share a buffer, each with a shape of its own.
  using Key = std::tuple<const Buffer*, DataType, std::string>;
  std::map<Key, Tensor> uploaded;
  for (FramePlan& frame : plan.frames)
    for (ConstantSlot& constant : frame.constants) {
      Tensor& value = constant.value;
      if (value.buffer() == nullptr || !is_plain(value.dtype())) continue;
      Tensor& copy =
          uploaded[{value.buffer(), value.dtype(), value.shape().to_string()}];
      if (!copy.valid()) {
        TAGFLOW_ASSIGN(copy, accelerator.upload(value));
      }
      value = copy;
    }
  return {};
}

Result<std::unique_ptr<Plan>> plan_partition(Compiled& compiled,
                                             const graph::Partition& partition,
                                             const SessionOptions& options,
                                             devices::Device& device,
                                             graph::Budget* budget) {
  const PlanOptions how{
      .compile_edges = options.passes.has(graph::Pass::kEdges),
      .window = options.window,
      .launches = device.accelerator() != nullptr};
  const auto make_kernel =
      [&](const graph::Node& node) -> Result<const devices::Kernel*> {
    TAGFLOW_RETURN_IF_ERROR(graph::check_budget(budget));
    TAGFLOW_ASSIGN(auto kernel,
                   devices::KernelRegistry::global().make(node, device.type()));
    return compiled.kernels.emplace_back(std::move(kernel)).get();
  };
  TAGFLOW_ASSIGN(auto plan, compile_plan(partition.program, how, make_kernel));
  plan->device = partition.device;
  const graph::DeviceName& name = device.info().name;
  plan->device_name = name.to_string();
  graph::DeviceName label{.type = name.type, .id = name.id};
  if (name.job != "localhost") {
    label.job = name.job;
    label.task = name.task;
  }
  plan->device_label = label.to_string();
  if (devices::Accelerator* accelerator = device.accelerator())
    TAGFLOW_RETURN_IF_ERROR(upload_constants(*plan, *accelerator));
  return plan;
}

}  // namespace

Result<std::vector<std::unique_ptr<Plan>>> compile(
    std::vector<graph::Partition> partitions, const SessionOptions& options,
    Devices devices, graph::Budget* budget) {
  if (options.through_wire)
    TAGFLOW_RETURN_IF_ERROR(pass_through_wire(partitions, budget));
  graph::begin_stage(budget, "the plan was made");
  const auto compiled = std::make_shared<Compiled>();
  compiled->partitions = std::move(partitions);
  std::vector<std::unique_ptr<Plan>> plans;
  for (const graph::Partition& partition : compiled->partitions) {
    TAGFLOW_RETURN_IF_ERROR(
        check_incarnations(partition.program.graph, devices));
    TAGFLOW_ASSIGN(auto plan,
                   plan_partition(*compiled, partition, options,
                                  *devices[partition.device], budget));
    plan->owned = compiled;
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace tagflow::actors
