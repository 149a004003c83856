#include "actors/plan/distribute.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <unordered_map>

#include "actors/plan/evaluator.h"
#include "actors/plan/frozen_variables.h"
#include "actors/plan/lossy_transfers.h"
#include "actors/plan/state_homes.h"
#include "actors/shared_state.h"
#include "devices/kernel_registry.h"
#include "devices/state/resource_manager.h"
#include "graph/analysis/dereference.h"
#include "graph/analysis/extract.h"
#include "graph/analysis/loop_shapes.h"
#include "graph/analysis/validate.h"
#include "graph/budget.h"
#include "graph/function_uses.h"
#include "graph/functions/lower.h"
#include "graph/partition/readers_first.h"
#include "graph/partition/recv_schedule.h"
#include "graph/partition/unreceived.h"
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
Status lower(graph::Program& program, const graph::Limits& limits) {
  const size_t end_id = program.graph.end_id();
  TAGFLOW_RETURN_IF_ERROR(graph::lower_functions(program, limits));
  // If the program shared the library, the graph would have to copy it before
  // an addition.
  program.graph.library() =
      graph::functions_of_kernels(program, program.graph.library());
  for (const auto& body : program.bodies)
    body->graph.library() = graph::FunctionLibrary();
  if (program.graph.end_id() == end_id) return {};
  TAGFLOW_RETURN_IF_ERROR(graph::validate(program.graph, limits));
  for (const auto& body : program.bodies) {
    Status status = graph::validate(body->graph, limits);
    if (!status.ok())
      return std::move(status).with_prefix(
          fmt::format("[function] \"{}\": ", body->name));
  }
  return {};
}

Result<graph::PlacementResult> place(const graph::Program& program,
                                     std::span<const graph::DeviceInfo> infos,
                                     const graph::KernelCatalog& catalog,
                                     const SessionOptions& options,
                                     const graph::CostModel& costs,
                                     bool explain) {
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

Status set_feed_shapes(graph::Program& program, std::span<const Shape> shapes,
                       graph::Budget* budget) {
  std::vector<graph::Node*> changed;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const graph::Endpoint& feed = program.feeds[i];
    program.graph.set_output_shape(feed.node, feed.port, shapes[i]);
    changed.push_back(feed.node);
  }
  return graph::infer_loop_shapes(program.graph, changed, budget);
}

bool may_wait(const graph::Node& node) {
  return devices::KernelRegistry::global().has_async(node.op());
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
      time = costs_.transfer_ns(infos_[from->second], infos_[here],
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

// The stages of one distribution, in order.
class Distributor {
 public:
  Distributor(const SessionContext& session, const Request& request,
              Purpose purpose)
      : session_(session),
        options_(session.options),
        request_(request),
        purpose_(purpose),
        infos_(session.devices),
        groups_(session.groups) {}

  Result<Distribution> run() {
    TAGFLOW_RETURN_IF_ERROR(begin("the needed nodes were copied"));
    TAGFLOW_RETURN_IF_ERROR(extract());
    TAGFLOW_RETURN_IF_ERROR(freeze());
    if (result_.frozen != nullptr && result_.frozen->empty() &&
        request_.feed_shapes.empty())
      return std::move(result_);
    TAGFLOW_RETURN_IF_ERROR(begin("constraints were resolved"));
    TAGFLOW_RETURN_IF_ERROR(constrain());
    TAGFLOW_RETURN_IF_ERROR(
        graph::optimize(program_, options_.passes, context_));
    TAGFLOW_RETURN_IF_ERROR(begin("nodes were placed"));
    TAGFLOW_RETURN_IF_ERROR(place_nodes());
    TAGFLOW_RETURN_IF_ERROR(begin("the program was cut"));
    graph::ReadersFirstOptions order{.odd_frames = {}, .may_wait = may_wait};
    TAGFLOW_ASSIGN(order.odd_frames, graph::find_odd_frames(program_));
    TAGFLOW_RETURN_IF_ERROR(cut());
    TAGFLOW_RETURN_IF_ERROR(run_stage(graph::Stage::kCut));
    TAGFLOW_RETURN_IF_ERROR(run_stage(graph::Stage::kCpu));
    if (is_cut_) graph::drop_unreceived(result_.partitions);
    TAGFLOW_RETURN_IF_ERROR(begin("readers got their order"));
    TAGFLOW_RETURN_IF_ERROR(
        graph::put_readers_first(result_.partitions, order));
    if (is_cut_ && options_.schedule_receives)
      TAGFLOW_RETURN_IF_ERROR(
          schedule_receives(result_.partitions, infos_, session_.costs));
    TAGFLOW_RETURN_IF_ERROR(run_stage(graph::Stage::kLast));
    if (is_cut_) TAGFLOW_RETURN_IF_ERROR(check());
    return std::move(result_);
  }

 private:
  // Each stage takes time for each node, so the budget is asked before it.
  Status begin(const char* stage) const {
    graph::begin_stage(session_.budget, stage);
    return session_.budget == nullptr ? Status() : session_.budget->look();
  }

  // Copies the needed nodes, and replaces functions and references.
  Status extract() {
    TAGFLOW_RETURN_IF_ERROR(
        check_outside_loops(session_.frames, request_.feeds, "feed",
                            "feed what enters the loop instead"));
    TAGFLOW_RETURN_IF_ERROR(
        check_outside_loops(session_.frames, request_.fetches, "fetch",
                            "fetch an Exit of the loop instead"));
    TAGFLOW_ASSIGN(program_,
                   graph::extract(session_.graph, request_.feeds,
                                  request_.fetches, request_.targets));
    TAGFLOW_RETURN_IF_ERROR(lower(program_, {.max_nodes = options_.max_nodes,
                                             .budget = session_.budget}));
    TAGFLOW_RETURN_IF_ERROR(graph::dereference(program_));
    if (request_.feed_shapes.empty()) return {};
    return set_feed_shapes(program_, request_.feed_shapes, session_.budget);
  }

  Status freeze() {
    if (purpose_ != Purpose::kFrozenRun || options_.state == nullptr) return {};
    TAGFLOW_ASSIGN(FrozenVariables versions,
                   freeze_variables(program_, options_.state->resources()));
    result_.frozen = std::make_shared<FrozenVariables>(std::move(versions));
    return {};
  }

  // Resolves the constraints of nodes, which include the homes of their state.
  Status constrain() {
    if (options_.state != nullptr) {
      if (groups_ == nullptr)
        groups_ =
            &found_groups_.emplace(session_.graph, infos_, session_.kernels);
      homes_ = options_.state->resources().homes();
      TAGFLOW_ASSIGN(warnings_, pin_state(program_, *groups_, infos_, homes_,
                                          options_.soft_placement));
    }
    TAGFLOW_ASSIGN(
        const std::vector<std::string> resolved,
        graph::resolve_constraints(program_, infos_, session_.kernels,
                                   options_.soft_placement));
    std::ranges::copy(resolved, std::back_inserter(warnings_));
    return {};
  }

  Status place_nodes() {
    const bool explain = purpose_ == Purpose::kExplanation;
    TAGFLOW_ASSIGN(result_.placement, place(program_, infos_, session_.kernels,
                                            options_, session_.costs, explain));
    std::vector<std::string>& all = result_.placement.warnings;
    all.insert(all.begin(), warnings_.begin(), warnings_.end());
    if (explain) give_reasons();
    if (options_.state == nullptr) return {};
    return request_homes(program_, *groups_, infos_,
                         result_.placement.placement, homes_,
                         options_.state->resources());
  }

  void give_reasons() {
    result_.reasons.resize(program_.graph.end_id());
    for (const graph::Node* node : program_.graph.nodes())
      result_.reasons[node->id()] =
          options_.scatter
              ? explain_drawn(*node)
              : result_.placement.explain(program_.graph, infos_, *node);
    result_.placed = program_.graph.clone();
  }

  // A program that is on one device with host memory needs no cut.
  Status cut() {
    const graph::Placement& placement = result_.placement.placement;
    LossyTransfers lossy(options_.lossy);
    const auto only = only_device(program_, placement);
    is_cut_ = !only || !infos_[*only].host_memory;
    if (is_cut_) {
      graph::PartitionOptions options;
      if (!options_.lossy.empty())
        options.lossy = [&](const graph::Endpoint& source, bool is_fetched) {
          return lossy.is_meant(source, is_fetched);
        };
      TAGFLOW_ASSIGN(
          result_.partitions,
          graph::partition(std::move(program_), infos_, placement, options));
    } else {
      result_.partitions.push_back({*only, std::move(program_)});
    }
    TAGFLOW_ASSIGN(const std::vector<std::string> odd,
                   lossy.warnings(session_.graph));
    std::ranges::copy(odd, std::back_inserter(result_.placement.warnings));
    return {};
  }

  // Runs the passes of a stage on the partitions that it is for.
  Status run_stage(graph::Stage stage) {
    for (graph::Partition& partition : result_.partitions) {
      const bool is_cpu = infos_[partition.device].name.type == "CPU";
      if (stage == graph::Stage::kCut ? is_cut_ : is_cpu)
        TAGFLOW_RETURN_IF_ERROR(graph::run_stage(stage, partition.program,
                                                 options_.passes, context_));
    }
    return {};
  }

  Status check() const {
    // The limit applied to the program before the cut, which adds nodes.
    const graph::Limits limits{.max_nodes = std::numeric_limits<size_t>::max()};
    for (const graph::Partition& partition : result_.partitions)
      TAGFLOW_RETURN_IF_ERROR(
          graph::validate(partition.program.graph, limits)
              .with_prefix(
                  fmt::format("[partition] on {}: ",
                              infos_[partition.device].name.to_string())));
    return {};
  }

  const SessionContext& session_;
  const SessionOptions& options_;
  const Request& request_;
  const Purpose purpose_;
  const KernelEvaluator evaluator_;
  const graph::PassContext context_{&evaluator_, may_wait, session_.budget};
  const std::span<const graph::DeviceInfo> infos_;
  const StateGroups* groups_;
  std::optional<StateGroups> found_groups_;  // if the session has none
  devices::ResourceManager::Homes homes_;    // when the nodes were placed
  std::vector<std::string> warnings_;        // about constraints
  graph::Program program_;
  bool is_cut_ = false;
  Distribution result_;
};

}  // namespace

Result<Distribution> distribute(const SessionContext& session,
                                const Request& request, Purpose purpose) {
  return Distributor(session, request, purpose).run();
}

}  // namespace tagflow::actors
