#include "graph/partition/cutter.h"

#include <algorithm>

#include "graph/analysis/whole_loops.h"
#include "graph/passes/rewriting.h"

namespace tagflow::graph {
namespace {

bool can_be_sent(DataType type) {
  return !is_ref(type) && type != DataType::kResource;
}

// A copied node runs on every device that reads it; its inputs are sent
// instead. Constants are cheap to duplicate. A token of an Enter, or of a
// NextIteration, is for the first, or for later, iterations only; a Merge
// distinguishes them by the kind of their source.
bool is_copied(const Node& node) {
  if (node.is_const()) return node.control_inputs().empty();
  return (node.is_enter() || node.is_next_iteration()) &&
         can_be_sent(node.output_dtypes()[0]);
}

}  // namespace

Cutter::Cutter(Program& program, std::span<const DeviceInfo> devices,
               const Placement& placement, const PartitionOptions& options)
    : program_(program),
      graph_(program.graph),
      devices_(devices),
      options_(options),
      device_(placement.device_of),
      arrived_(devices.size()),
      starts_of_loops_(devices.size()) {
  for (const DeviceInfo& device : devices)
    device_names_.push_back(device.name.to_string());
  device_.resize(graph_.end_id());
}

Status Cutter::run() {
  TAGFLOW_ASSIGN(frames_, FrameMap::build(graph_));
  if (frames_.frames().size() > 1) whole_ = find_whole_loops(program_, frames_);
  for (const Endpoint& feed : program_.feeds) need(feed.node);
  TAGFLOW_RETURN_IF_ERROR(fetch());
  for (Node* target : program_.targets) need(target);
  TAGFLOW_RETURN_IF_ERROR(drain());
  return apply();
}

void Cutter::need(Node* node) {
  if (needed_.insert(*node)) visits_.push_back({node, node});
}

Status Cutter::drain() {
  while (visited_ < visits_.size()) {
    while (visited_ < visits_.size())
      TAGFLOW_RETURN_IF_ERROR(visit(Visit(visits_[visited_++])));
    TAGFLOW_RETURN_IF_ERROR(drive_constant_readers());
  }
  return {};
}

Status Cutter::visit(const Visit& visit) {
  Node* node = visit.node;
  const uint32_t device = device_of(*node);
  for (size_t i = 0; i < node->inputs().size(); ++i) {
    const Endpoint source = node->inputs()[i];
    if (device_of(*source.node) == device) {
      need(source.node);
    } else {
      TAGFLOW_ASSIGN(const Endpoint here, bring(source, node, device));
      rewires_.push_back({node, int(i), here});
    }
  }
  bool waits = false;
  for (Node* source : node->control_inputs()) {
    if (device_of(*source) == device) {
      need(source);
    } else {
      TAGFLOW_RETURN_IF_ERROR(announce_control(source, node, device));
      waits = true;
    }
  }
  if (waits) waits_.push_back(node);
  note_share(visit);
  return {};
}

Status Cutter::fetch() {
  for (Endpoint& fetch : program_.fetches) {
    // Handles are always in host memory.
    const DeviceInfo& device = devices_[device_of(*fetch.node)];
    if (device.host_memory ||
        !can_be_sent(fetch.node->output_dtypes()[size_t(fetch.port)])) {
      need(fetch.node);
      continue;
    }
    const auto host =
        std::ranges::find_if(devices_, [&](const DeviceInfo& other) {
          return other.host_memory && in_one_task(other.name, device.name);
        });
    if (host == devices_.end())
      return invalid_argument(
          "[partition] \"{}\" cannot be fetched from {}: no device of its "
          "process has host memory",
          fetch.to_string(), device.name.to_string());
    TAGFLOW_ASSIGN(fetch,
                   bring(fetch, nullptr, uint32_t(host - devices_.begin())));
  }
  return {};
}

Cutter::Reading Cutter::reading(Node* source, const Node* reader,
                                uint32_t device) const {
  return {frames_.output_of(*source), source, reader, device};
}

Result<Endpoint> Cutter::bring(const Endpoint& source, const Node* reader,
                               uint32_t device) {
  const uint64_t wanted = key(*source.node, source.port);
  Arrived& arrived = arrived_[device];
  if (const auto known = arrived.find(wanted); known != arrived.end())
    return known->second;
  const DataType type = source.node->output_dtypes()[size_t(source.port)];
  if (!can_be_sent(type))
    return invalid_argument(
        "[partition] \"{}\" on {} is a {}, which cannot be sent to {} on {}",
        source.to_string(), device_names_[device_of(*source.node)],
        is_ref(type) ? "reference" : "resource",
        reader == nullptr ? "the fetch" : fmt::format("\"{}\"", reader->name()),
        device_names_[device]);
  if (is_copied(*source.node)) {
    TAGFLOW_ASSIGN(Node * made, copy(source.node, device));
    return Endpoint{made, source.port};
  }
  need(source.node);
  TAGFLOW_ASSIGN(Node * started_by,
                 starter(reading(source.node, reader, device)));
  // The control loop has brought its predicate.
  if (const auto known = arrived.find(wanted); known != arrived.end())
    return known->second;
  TAGFLOW_ASSIGN(const Endpoint made,
                 transfer(source, reader == nullptr, device, started_by));
  arrived[wanted] = made;
  if (control_tells_deadness(source))
    arrived.try_emplace(key(*source.node, kControl), made);
  return made;
}

Status Cutter::announce_control(Node* source, const Node* reader,
                                uint32_t device) {
  if (is_copied(*source)) return copy(source, device).status();
  need(source);
  return starter(reading(source, reader, device)).status();
}

Result<Node*> Cutter::bring_control(Node* source, const Node* reader,
                                    uint32_t device) {
  Endpoint& arrived = arrived_[device][key(*source, kControl)];
  if (arrived.node != nullptr) return arrived.node;
  if (is_plain_identity(*source)) {
    // Has the input, which is equally dead, been sent already?
    const Endpoint& value = source->inputs()[0];
    const auto known = arrived_[device].find(key(*value.node, value.port));
    if (known != arrived_[device].end()) return (arrived = known->second).node;
  }
  TAGFLOW_ASSIGN(Node * started_by, starter(reading(source, reader, device)));
  AttrMap attrs{{"dtype", DataType::kBool},
                {"value", Tensor::make(DataType::kBool, Shape({0}))}};
  TAGFLOW_ASSIGN(Node * token, add(device_of(*source), *source, "/control",
                                   "Const", {}, std::move(attrs), {source}));
  TAGFLOW_ASSIGN(arrived, transfer({token, 0}, false, device, started_by));
  return arrived.node;
}

Result<Node*> Cutter::copy(Node* node, uint32_t device) {
  Arrived& arrived = arrived_[device];
  if (const auto known = arrived.find(key(*node, kControl));
      known != arrived.end())
    return known->second.node;
  const auto inputs = node->inputs();
  const auto controls = node->control_inputs();
  TAGFLOW_ASSIGN(Node * made, add(device, *node, "", node->op(),
                                  {inputs.begin(), inputs.end()}, node->attrs(),
                                  {controls.begin(), controls.end()}));
  graph_.set_output_shape(made, 0, node->output_shape(0));
  arrived[key(*node, 0)] = arrived[key(*node, kControl)] = {made, 0};
  visits_.push_back({made, node});
  return made;
}

Result<Endpoint> Cutter::transfer(const Endpoint& source, bool is_fetched,
                                  uint32_t device, Node* start) {
  const Node& origin = *source.node;
  const uint32_t from = device_of(origin);
  const PartialShape& shape = origin.output_shape(source.port);
  const bool is_lossy =
      origin.output_dtypes()[size_t(source.port)] == DataType::kFloat &&
      options_.lossy && options_.lossy(source, is_fetched);
  Endpoint sent = source;
  if (is_lossy) {
    TAGFLOW_ASSIGN(sent.node,
                   add(from, origin, "/round", "Cast", {sent},
                       {{"DstT", DataType::kBFloat16}, {"Truncate", true}}));
    sent.port = 0;
  }
  AttrMap attrs{
      {"tensor_name", source.to_string()},
      {"send_device", device_names_[from]},
      {"send_device_incarnation", int64_t(devices_[from].incarnation)},
      {"recv_device", device_names_[device]}};
  TAGFLOW_ASSIGN(Node * send,
                 add(from, origin, "/send", "_Send", {sent}, attrs));
  sends_.push_back(send);
  attrs["tensor_type"] = sent.node->output_dtypes()[size_t(sent.port)];
  std::vector<Node*> controls;
  if (start != nullptr) controls.push_back(start);
  TAGFLOW_ASSIGN(Node * recv, add(device, origin, "/recv", "_Recv", {},
                                  std::move(attrs), std::move(controls)));
  graph_.set_output_shape(recv, 0, shape);
  if (!is_lossy) return Endpoint{recv, 0};
  TAGFLOW_ASSIGN(Node * widened,
                 add(device, origin, "/widen", "Cast", {{recv, 0}},
                     {{"DstT", DataType::kFloat}}));
  return Endpoint{widened, 0};
}

Result<Node*> Cutter::add(uint32_t device, const Node& origin,
                          std::string_view ending, std::string_view op,
                          std::vector<Endpoint> inputs, AttrMap attrs,
                          std::vector<Node*> controls) {
  TAGFLOW_ASSIGN(Node * made, graph_.add(name_after(graph_, origin, ending), op,
                                         inputs, std::move(attrs), controls));
  device_.resize(graph_.end_id());
  device_[made->id()] = device;
  needed_.insert(*made);
  return made;
}

Status Cutter::apply() {
  for (Node* node : waits_) {
    const uint32_t device = device_of(*node);
    std::vector<Node*> sources;
    for (Node* source : node->control_inputs()) {
      if (device_of(*source) != device) {
        TAGFLOW_ASSIGN(source, bring_control(source, node, device));
      }
      sources.push_back(source);
    }
    graph_.set_control_inputs(node, sources);
  }
  for (const auto& [reader, merge] : drives_)
    graph_.add_control_input(reader, merge);
  for (const Rewire& rewire : rewires_)
    TAGFLOW_RETURN_IF_ERROR(
        graph_.set_input(rewire.node, rewire.index, rewire.source));
  return {};
}

}  // namespace tagflow::graph
