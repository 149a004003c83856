#include "graph/placement/simulation.h"

#include <algorithm>
#include <utility>

namespace tagflow::graph {

Simulation::Simulation(const Program& program,
                       std::span<const DeviceInfo> devices,
                       const ProgramCosts& costs)
    : graph_(program.graph),
      costs_(costs),
      timeline_(devices, costs.model()),
      nodes_(graph_.end_id()),
      times_(devices.size()) {
  result_.placement.device_of.resize(graph_.end_id());
  result_.runs.reserve(graph_.size());
  number_outputs();
  list_readers(program.fetches);
}

void Simulation::number_outputs() {
  for (const Node* node : graph_.nodes()) {
    nodes_[node->id()].output = uint32_t(outputs_.size());
    double estimated = 0;
    for (int port = 0; port < node->num_outputs(); ++port) {
      Output& output = outputs_.emplace_back();
      output.bytes = CostModel::output_bytes(*node, port);
      // One output of a Switch has the measured size.
      estimated = node->is_switch() ? std::max(estimated, output.bytes)
                                    : estimated + output.bytes;
    }
    // Measurements are of all outputs together, if there are any.
    const double factor =
        estimated > 0 ? costs_.work(*node).output_bytes / estimated : 1;
    for (Output& output : std::span(outputs_).last(size_t(node->num_outputs())))
      output.bytes *= factor;
    outputs_.emplace_back();
  }
}

void Simulation::list_readers(std::span<const Endpoint> fetches) {
  Precedence sources(graph_.end_id(), outputs_.size());
  for (NodeId id = 0; id < graph_.end_id(); ++id) {
    if (const Node* node = graph_.node(id))
      visit_sources(*node, [&](const Source& source) {
        ++output_of(source).readers;
        ++nodes_[id].pending;
        sources.add(source.node->id());
      });
    sources.end_list();
  }
  readers_ = sources.reversed();
  // A fetch keeps its tensor.
  for (const Endpoint& fetch : fetches)
    if (fetch.node != nullptr) ++output_of({fetch.node, fetch.port}).readers;
}

Simulation::Output& Simulation::output_of(const Source& source) {
  const int port = source.port == Source::kControl ? source.node->num_outputs()
                                                   : source.port;
  return outputs_[nodes_[source.node->id()].output + uint32_t(port)];
}

// --- The order --------------------------------------------------------------

void Simulation::make_ready(const Node& node) {
  double ready = 0;
  visit_sources(node, [&](const Source& source) {
    ready = std::max(ready, nodes_[source.node->id()].finish_ns);
  });
  nodes_[node.id()].finish_ns = ready;
  ready_.emplace_back(ready, node.id());
  std::ranges::push_heap(ready_, std::greater<>());
}

Status Simulation::walk(const std::function<void(const Node&)>& visit) {
  for (const Node* node : graph_.nodes())
    if (nodes_[node->id()].pending == 0) make_ready(*node);
  while (!ready_.empty()) {
    std::ranges::pop_heap(ready_, std::greater<>());
    const NodeId id = ready_.back().second;
    ready_.pop_back();
    visited_.push_back(id);
    visit(*graph_.node(id));
    for (const uint32_t reader : readers_.of(id))
      if (--nodes_[reader].pending == 0) make_ready(*graph_.node(reader));
  }
  // There is a cycle; this reports it.
  if (visited_.size() < graph_.size())
    return topological_order(graph_).status();
  return {};
}

// --- Time and memory --------------------------------------------------------

void Simulation::put(const Node& node, uint32_t device) {
  const double repeats = costs_.repeats(node);
  double ready = 0;
  visit_sources(node, [&](const Source& source) {
    ready = std::max(ready, bring(source, device, repeats));
  });
  std::ranges::fill(times_, 0.0);
  costs_.add_times(node, times_);
  const Span span = times_[device] > 0
                        ? timeline_.run(device, ready, times_[device])
                        : Span{ready, ready};
  result_.runs.push_back({node.id(), device, span.start_ns, span.finish_ns});
  result_.makespan_ns = std::max(result_.makespan_ns, span.finish_ns);
  result_.placement.device_of[node.id()] = device;
  nodes_[node.id()].has_run = true;
  nodes_[node.id()].finish_ns = span.finish_ns;
  hold_outputs(node, device);
  visit_sources(node, [&](const Source& source) {
    Output& output = output_of(source);
    if (--output.readers == 0) release(output, device_of(*source.node));
  });
}

Simulation::Arrival Simulation::arrival(
    const Node& node, uint32_t device,
    const std::function<uint32_t(const Node&)>& device_of_other) {
  Arrival all;
  ++question_;
  visit_sources(node, [&](const Source& source) {
    double arrival = nodes_[source.node->id()].finish_ns;
    const uint32_t from = has_run(*source.node) ? device_of(*source.node)
                                                : device_of_other(*source.node);
    Output& output = output_of(source);
    const Copy* copy = from == device ? nullptr : find_copy(output, device);
    if (copy != nullptr) {
      arrival = copy->arrival_ns;
    } else if (from != device) {
      arrival = timeline_
                    .foresee({from, device, output.bytes, arrival,
                              costs_.repeats(node)})
                    .finish_ns;
      // Counted once, even if the node reads it several times.
      if (std::exchange(output.question, question_) != question_)
        all.bytes += output.bytes;
    }
    all.time_ns = std::max(all.time_ns, arrival);
  });
  return all;
}

double Simulation::bring(const Source& source, uint32_t device,
                         double repeats) {
  const uint32_t from = device_of(*source.node);
  const double ready = nodes_[source.node->id()].finish_ns;
  if (from == device) return ready;
  Output& output = output_of(source);
  if (const Copy* copy = find_copy(output, device)) return copy->arrival_ns;
  const Span span =
      timeline_.send({from, device, output.bytes, ready, repeats});
  copies_.push_back({device, output.copies, span.finish_ns});
  output.copies = uint32_t(copies_.size());
  timeline_.hold(device, output.bytes);
  result_.transfers.push_back({source.node->id(), source.port, from, device,
                               output.bytes, span.start_ns, span.finish_ns});
  return span.finish_ns;
}

const Simulation::Copy* Simulation::find_copy(const Output& output,
                                              uint32_t device) const {
  for (uint32_t i = output.copies; i != 0; i = copies_[i - 1].next)
    if (copies_[i - 1].device == device) return &copies_[i - 1];
  return nullptr;
}

void Simulation::hold_outputs(const Node& node, uint32_t device) {
  for (int port = 0; port < node.num_outputs(); ++port) {
    const Output& output = output_of({&node, port});
    if (output.readers > 0) timeline_.hold(device, output.bytes);
  }
}

void Simulation::release(const Output& output, uint32_t device) {
  timeline_.release(device, output.bytes);
  for (uint32_t i = output.copies; i != 0; i = copies_[i - 1].next)
    timeline_.release(copies_[i - 1].device, output.bytes);
}

}  // namespace tagflow::graph
