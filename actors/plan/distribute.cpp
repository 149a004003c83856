#include "actors/plan/distribute.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "actors/plan/evaluator.h"
#include "actors/plan/frozen_variables.h"
#include "actors/plan/lossy_transfers.h"
#include "actors/plan/state_homes.h"
#include "actors/shared_state.h"
#include "devices/kernel_catalog.h"
#include "devices/kernel_registry.h"
#include "devices/state/resource_manager.h"
#include "graph/analysis/dereference.h"
#include "graph/analysis/extract.h"
#include "graph/analysis/loop_shapes.h"
#include "graph/analysis/validate.h"
#include "graph/function.h"
#include "graph/functions/lower.h"
#include "graph/partition/readers_first.h"
#include "graph/partition/recv_schedule.h"
#include "graph/passes/passes.h"
#include "graph/placement/constraints.h"
#include "graph/placement/scatter.h"
#include "graph/program.h"

namespace tagflow::actors {
namespace {

Status check_outside_loops(const graph::FrameMap& frames,
                           const std::vector<graph::Endpoint>& endpoints,
                           std::string_view what, std::string_view instead) {
  for (const graph::Endpoint& endpoint : endpoints) {
    const graph::FrameId frame = frames.output_of(*endpoint.node);
    if (frame != graph::FrameId::kRoot)
      return invalid_argument(
          "[session] cannot {} \"{}\": it is inside the loop of frame \"{}\" "
          "and has a value per iteration; {}",
          what, endpoint.to_string(), frames.frame(frame).name, instead);
  }
  return {};
}

// Validates expanded functions, which are seen here for the first time.
Status lower(graph::Program& program) {
  const size_t end_id = program.graph.end_id();
  TAGFLOW_RETURN_IF_ERROR(graph::lower_functions(program));
  // The functions are not needed any more. If the program shared the library,
  // the graph would have to copy it before an addition.
  program.graph.library() = graph::FunctionLibrary();
  if (program.graph.end_id() == end_id) return {};
  TAGFLOW_RETURN_IF_ERROR(graph::validate(program.graph));
  for (const auto& body : program.bodies) {
    body->graph.library() = graph::FunctionLibrary();
    Status status = graph::validate(body->graph);
    if (!status.ok())
      return std::move(status).with_prefix(
          fmt::format("[function] \"{}\": ", body->name));
  }
  return {};
}

Result<graph::PlacementResult> place(const graph::Program& program,
                                     std::span<const graph::DeviceInfo> infos,
                                     const SessionOptions& options,
                                     const graph::CostModel& costs,
                                     bool explain) {
  const devices::RegisteredKernels catalog;
  if (!options.scatter)
    return graph::place(
        program, infos, catalog, costs,
        {.soft = options.soft_placement, .always_simulate = explain});
  TAGFLOW_ASSIGN(graph::Placement placement,
                 graph::scatter(program, infos, catalog, *options.scatter,
                                options.soft_placement));
  if (explain) return graph::simulate(program, infos, costs, placement);
  graph::PlacementResult result;
  result.placement = std::move(placement);
  return result;
}

// Why scatter() has put a node on its device.
std::string explain_drawn(const graph::Node& node) {
  constexpr std::string_view kDrawn = "drawn at random";
  if (node.device().empty()) return std::string(kDrawn);
  return fmt::format("{}, constraint \"{}\"", kDrawn, node.device());
}

// The device that has every node, if there is one.
std::optional<uint32_t> only_device(const graph::Program& program,
                                    const graph::Placement& placement) {
  std::optional<uint32_t> only;
  for (const graph::Node* node : program.graph.nodes()) {
    const uint32_t device = placement.device_of[node->id()];
    if (only.value_or(device) != device) return std::nullopt;
    only = device;
  }
  return only.value_or(0);
}

// Nodes that the cut has added may be shared and folded.
Status rewrite(graph::Partition& partition, const graph::PassSet& wanted) {
  using graph::Pass;
  graph::PassSet passes = graph::PassSet::none();
  for (const Pass pass : {Pass::kFold, Pass::kCse})
    if (wanted.has(pass)) passes = passes.with(pass);
  const KernelEvaluator evaluator;
  return graph::optimize(partition.program, passes, &evaluator);
}

Status set_feed_shapes(graph::Program& program, std::span<const Shape> shapes) {
  std::vector<graph::Node*> changed;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const graph::Endpoint& feed = program.feeds[i];
    program.graph.set_output_shape(feed.node, feed.port, shapes[i]);
    changed.push_back(feed.node);
  }
  return graph::infer_loop_shapes(program.graph, changed);
}

bool may_wait(const graph::Node& node) {
  return devices::KernelRegistry::global().has_async(node.op());
}

// Runs a pass whose new nodes have kernels on CPUs only.
Status run_on_cpus(std::vector<graph::Partition>& partitions,
                   std::span<const graph::DeviceInfo> infos,
                   const graph::PassSet& wanted, graph::Pass pass,
                   graph::PassFunction run) {
  if (!wanted.has(pass)) return {};
  for (graph::Partition& partition : partitions)
    if (infos[partition.device].name.type == "CPU")
      TAGFLOW_RETURN_IF_ERROR(run(partition.program, nullptr).status());
  return {};
}

// Costs in nanoseconds, on the device of the node; for a Recv, those of its
// transfer.
class PlacedCosts {
 public:
  PlacedCosts(std::span<const graph::DeviceInfo> infos,
              const graph::CostModel& costs)
      : infos_(infos), costs_(costs), times_(infos.size()) {
    for (const graph::DeviceInfo& info : infos)
      number_of_.emplace(info.name.to_string(), number_of_.size());
  }

  int64_t of(const graph::Node& node) {
    const size_t here = number_of_.at(node.device());
    double time = 0;
    if (node.op() != "_Recv") {
      costs_.find_times(node, costs_.work(node), infos_, times_);
      time = times_[here];
    } else if (const auto from = number_of_.find(
                   node.attr<std::string>("send_device").value());
               from != number_of_.end() && from->second != here) {
      time = graph::CostModel::transfer_ns(
          infos_[from->second], infos_[here],
          graph::CostModel::output_bytes(node, 0));
    }
    constexpr double kMost = 1e15;  // sums of such values do not overflow
    return int64_t(std::clamp(time, 0.0, kMost));
  }

 private:
  const std::span<const graph::DeviceInfo> infos_;
  const graph::CostModel& costs_;
  std::unordered_map<std::string, size_t> number_of_;
  std::vector<double> times_;  // of one node, by device
};

Status schedule_receives(std::vector<graph::Partition>& partitions,
                         std::span<const graph::DeviceInfo> infos,
                         const graph::CostModel& costs) {
  // Shorter waits are left out.
  constexpr int64_t kLeastNs = 1000;
  PlacedCosts placed(infos, costs);
  return graph::schedule_recvs(
             partitions,
             {.cost = [&](const graph::Node& node) { return placed.of(node); },
              .min_delay = kLeastNs})
      .status();
}

}  // namespace

Result<Distribution> distribute(const graph::Graph& graph,
                                const graph::FrameMap& frames,
                                const Request& request,
                                const SessionOptions& options, Devices devices,
                                const graph::CostModel& costs, Purpose purpose,
                                const StateGroups* groups) {
  const bool explain = purpose == Purpose::kExplanation;
  TAGFLOW_RETURN_IF_ERROR(check_outside_loops(
      frames, request.feeds, "feed", "feed what enters the loop instead"));
  TAGFLOW_RETURN_IF_ERROR(check_outside_loops(
      frames, request.fetches, "fetch", "fetch an Exit of the loop instead"));
  TAGFLOW_ASSIGN(
      graph::Program program,
      graph::extract(graph, request.feeds, request.fetches, request.targets));
  TAGFLOW_RETURN_IF_ERROR(lower(program));
  TAGFLOW_RETURN_IF_ERROR(graph::dereference(program));
  if (!request.feed_shapes.empty())
    TAGFLOW_RETURN_IF_ERROR(set_feed_shapes(program, request.feed_shapes));
  std::shared_ptr<FrozenVariables> frozen;
  if (purpose == Purpose::kFrozenRun && options.state != nullptr) {
    TAGFLOW_ASSIGN(FrozenVariables versions,
                   freeze_variables(program, options.state->resources()));
    frozen = std::make_shared<FrozenVariables>(std::move(versions));
    if (frozen->empty() && request.feed_shapes.empty())
      return Distribution{.frozen = std::move(frozen)};
  }
  std::vector<graph::DeviceInfo> infos;
  for (const auto& device : devices) infos.push_back(device->info());
  const devices::RegisteredKernels kernels;
  std::vector<std::string> pinned;
  devices::ResourceManager::Homes homes;
  std::optional<StateGroups> found;
  if (options.state != nullptr) {
    if (groups == nullptr) groups = &found.emplace(graph, infos, kernels);
    homes = options.state->resources().homes();
    TAGFLOW_ASSIGN(pinned, pin_state(program, *groups, infos, homes));
  }
  TAGFLOW_ASSIGN(std::vector<std::string> warnings,
                 graph::resolve_constraints(program, infos, kernels,
                                            options.soft_placement));
  warnings.insert(warnings.begin(), pinned.begin(), pinned.end());
  const KernelEvaluator evaluator;
  TAGFLOW_RETURN_IF_ERROR(graph::optimize(program, options.passes, &evaluator));

  Distribution result;
  result.frozen = std::move(frozen);
  TAGFLOW_ASSIGN(result.placement,
                 place(program, infos, options, costs, explain));
  auto& all_warnings = result.placement.warnings;
  all_warnings.insert(all_warnings.begin(), warnings.begin(), warnings.end());
  if (explain) {
    result.reasons.resize(program.graph.end_id());
    for (const graph::Node* node : program.graph.nodes())
      result.reasons[node->id()] =
          options.scatter
              ? explain_drawn(*node)
              : result.placement.explain(program.graph, infos, *node);
    result.placed = program.graph.clone();
  }
  if (options.state != nullptr)
    TAGFLOW_RETURN_IF_ERROR(request_homes(program, *groups, infos,
                                          result.placement.placement, homes,
                                          options.state->resources()));
  graph::ReadersFirstOptions turns{.odd_frames = {}, .may_wait = may_wait};
  TAGFLOW_ASSIGN(turns.odd_frames, graph::find_odd_frames(program));
  const graph::Placement& placement = result.placement.placement;
  LossyTransfers lossy(options.lossy);
  const auto only = only_device(program, placement);
  const bool is_whole = only && infos[*only].host_memory;
  if (is_whole) {
    result.partitions.push_back({*only, std::move(program)});
  } else {
    graph::PartitionOptions cut;
    if (!options.lossy.empty())
      cut.lossy = [&](const graph::Endpoint& source, bool is_fetched) {
        return lossy.is_meant(source, is_fetched);
      };
    TAGFLOW_ASSIGN(result.partitions,
                   graph::partition(std::move(program), infos, placement, cut));
  }
  TAGFLOW_ASSIGN(const std::vector<std::string> odd, lossy.warnings(graph));
  std::ranges::copy(odd, std::back_inserter(result.placement.warnings));
  if (!is_whole)
    for (graph::Partition& partition : result.partitions)
      TAGFLOW_RETURN_IF_ERROR(rewrite(partition, options.passes));
  TAGFLOW_RETURN_IF_ERROR(run_on_cpus(result.partitions, infos, options.passes,
                                      graph::Pass::kSums, graph::sum_products));
  TAGFLOW_RETURN_IF_ERROR(
      run_on_cpus(result.partitions, infos, options.passes, graph::Pass::kGroup,
                  [](graph::Program& part, const graph::Evaluator*) {
                    return graph::group_elementwise(part, may_wait);
                  }));
  TAGFLOW_RETURN_IF_ERROR(
      run_on_cpus(result.partitions, infos, options.passes, graph::Pass::kAhead,
                  [](graph::Program& part, const graph::Evaluator*) {
                    return graph::read_ahead(part, may_wait);
                  }));
  TAGFLOW_RETURN_IF_ERROR(run_on_cpus(result.partitions, infos, options.passes,
                                      graph::Pass::kSaved,
                                      graph::read_saved_constants));
  TAGFLOW_RETURN_IF_ERROR(run_on_cpus(result.partitions, infos, options.passes,
                                      graph::Pass::kPack, graph::pack_weights));
  TAGFLOW_RETURN_IF_ERROR(graph::put_readers_first(result.partitions, turns));
  if (!is_whole && options.schedule_receives)
    TAGFLOW_RETURN_IF_ERROR(schedule_receives(result.partitions, infos, costs));
  TAGFLOW_RETURN_IF_ERROR(run_on_cpus(result.partitions, infos, options.passes,
                                      graph::Pass::kLayer, graph::fuse_layers));
  if (is_whole) return result;
  // The limit applied to the program before the cut, which adds nodes.
  const graph::Limits limits{.max_nodes = std::numeric_limits<size_t>::max()};
  for (const graph::Partition& partition : result.partitions)
    TAGFLOW_RETURN_IF_ERROR(graph::validate(partition.program.graph, limits)
                                .with_prefix(fmt::format(
                                    "[partition] on {}: ",
                                    infos[partition.device].name.to_string())));
  return result;
}

}  // namespace tagflow::actors
