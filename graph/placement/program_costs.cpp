#include "graph/placement/program_costs.h"

#include <algorithm>
#include <optional>

#include "graph/analysis/frames.h"
#include "graph/analysis/node_queries.h"
#include "graph/placement/op_work.h"

namespace tagflow::graph {
namespace {

// In loops nested deeper than this, unknown trip counts are taken as 1:
// products of guesses are meaningless.
constexpr int kMaxAssumedDepth = 3;
// A node that never ran still needs a best device.
constexpr double kLeastTrips = 0.01;

// How often the nodes of each frame run.
std::vector<double> repeats_of(const FrameMap& frames, const CostModel& model) {
  struct Frame {
    double repeats = 1;
    int assumed = 0;  // enclosing loops with assumed counts, and itself
  };
  std::vector<Frame> found(1);
  for (const StaticFrame& frame : std::span(frames.frames()).subspan(1)) {
    Frame made = found[size_t(frame.parent)];  // parents come first
    if (const std::optional<double> trips = model.trips(frame.name)) {
      made.repeats *= std::max(*trips, kLeastTrips);
    } else if (made.assumed++ < kMaxAssumedDepth) {
      made.repeats *= CostModel::kAssumedTrips;
    }
    found.push_back(made);
  }
  std::vector<double> repeats;
  for (const Frame& frame : found) repeats.push_back(frame.repeats);
  return repeats;
}

// Whether its outputs are scalars for control rather than data; also if the
// rank is unknown, as it often is for a loop's counter.
bool is_bookkeeping(const Node& node) {
  for (int port = 0; port < node.num_outputs(); ++port) {
    const DataType type = node.output_dtypes()[size_t(port)];
    if (!is_integer(type) && type != DataType::kBool) return false;
    const PartialShape& shape = node.output_shape(port);
    if (shape.has_rank() && shape.num_elements() != 1) return false;
  }
  return node.num_outputs() > 0;
}

}  // namespace

Result<ProgramCosts> ProgramCosts::build(const Program& program,
                                         std::span<const DeviceInfo> devices,
                                         const CostModel& model) {
  ProgramCosts costs(devices, model);
  std::vector<double> of_node(devices.size());
  for (const auto& body : program.bodies) {
    std::vector<double>& sum = costs.of_bodies_.emplace_back(devices.size());
    for (const Node* node : body->graph.nodes()) {
      if (is_call(*node)) continue;
      model.find_times(*node, model.work(*node), devices, of_node);
      for (size_t d = 0; d < sum.size(); ++d) sum[d] += of_node[d];
    }
  }
  const Graph& graph = program.graph;
  costs.works_.resize(graph.end_id());
  costs.light_.resize(graph.end_id());
  costs.repeats_.assign(graph.end_id(), 1);
  bool has_loops = false;
  for (const Node* node : graph.nodes()) {
    const NodeWork work = model.work(*node);
    costs.works_[node->id()] = work;
    costs.light_[node->id()] = (work.is_free && !is_call(*node)) ||
                               is_bookkeeping(*node) || only_holds(*node);
    has_loops |= node->is_enter();
  }
  if (!has_loops) return costs;
  TAGFLOW_ASSIGN(const FrameMap frames, FrameMap::build(graph));
  const std::vector<double> repeats = repeats_of(frames, model);
  for (const Node* node : graph.nodes())
    costs.repeats_[node->id()] = repeats[size_t(frames.of(*node))];
  return costs;
}

void ProgramCosts::add_times(const Node& node,
                             std::span<double> nanoseconds) const {
  std::vector<double> once(devices_.size());
  model_.find_times(node, work(node), devices_, once);
  if (is_call(node)) {
    const auto body = node.attr<int64_t>("body");
    if (body.ok() && size_t(*body) < of_bodies_.size())
      once = of_bodies_[size_t(*body)];
  }
  for (size_t d = 0; d < once.size(); ++d)
    nanoseconds[d] += repeats(node) * once[d];
}

}  // namespace tagflow::graph
