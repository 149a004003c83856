// The effects of a run's steps on its tokens.
#include <algorithm>

#include "apps/tagflow/stepper/recorder.h"

namespace tagflow::apps::stepper {
namespace {

bool leads_elsewhere(const graph::Node& node) {
  return node.is_enter() || node.is_exit() || node.is_next_iteration();
}

}  // namespace

void Recorder::settle(int scope, const actors::IterationView& view) {
  ScopeState& state = scopes_[size_t(scope)];
  if (state.starts || !state.arrived.empty()) {
    settle_arrivals(scope, view);
  }
  if (!state.fires || !has_room()) return;
  settle_firing(scope, view);
}

void Recorder::settle_arrivals(int scope, const actors::IterationView& view) {
  ScopeState& state = scopes_[size_t(scope)];
  const Instance& instance =
      recording_.instances[size_t(recording_.scopes[size_t(scope)].instance)];
  step_ = {};
  step_.kind = StepKind::kArrive;
  step_.scope = scope;
  step_.starts = std::exchange(state.starts, false);
  if (step_.starts) {
    const int number = recording_.scopes[size_t(scope)].instance;
    step_.starts_frame =
        std::exchange(instances_[size_t(number)].starts, false);
  }
  touched_.clear();
  if (step_.starts) send_constants(scope);
  std::map<int, int> seen;
  for (const Event& arrival : std::exchange(state.arrived, {})) {
    const int node =
        table_.number(*arrival.node, instance.frame, instance.device);
    release(scope, node);
    if (arrival.node->is_constant_enter()) {
      instances_[size_t(recording_.scopes[size_t(scope)].instance)]
          .constants[node] = arrival.values[0];
    }
    step_.arrivals.push_back({node, arrival.values[0]});
    send(scope, node, port_of(arrival, seen, node), arrival.values[0]);
  }
  if (step_.starts) {
    for (const int node : frame_->node_of) touched_.insert(node);
  }
  note_pending(view);
  recording_.steps.push_back(std::exchange(step_, {}));
}

// Constants that came all at once are in place without an arrival.
void Recorder::send_constants(int scope) {
  const Scope& at = recording_.scopes[size_t(scope)];
  auto& constants = instances_[size_t(at.instance)].constants;
  const int caller = recording_.instances[size_t(at.instance)].caller;
  for (const auto& [key, value] : held_) {
    const int node = key.first;
    if (key.second == caller && table_.node(node).is_constant_enter() &&
        recording_.drawing.nodes[size_t(node)].frame == frame_->drawn) {
      constants.emplace(node, value);
    }
  }
  for (const auto& [node, value] : constants) send(scope, node, 0, value);
}

// An Enter, Exit or NextIteration has one output; the fed outputs of other
// nodes arrive in order.
int Recorder::port_of(const Event& arrival, std::map<int, int>& seen,
                      int node) const {
  if (leads_elsewhere(*arrival.node)) return 0;
  const int count = seen[node]++;
  const auto it = fed_ports_.find(arrival.node->name());
  if (it == fed_ports_.end() || count >= int(it->second.size()) ||
      it->second[size_t(count)] >= arrival.node->num_outputs()) {
    return count;
  }
  return it->second[size_t(count)];
}

// The token that arrived is no longer on its way.
void Recorder::release(int scope, int node) {
  const graph::Node& of = table_.node(node);
  if (!leads_elsewhere(of) || of.is_constant_enter()) return;
  const Scope& at = recording_.scopes[size_t(scope)];
  for (auto held = held_.lower_bound({node, 0});
       held != held_.end() && held->first.first == node; ++held) {
    const int source = held->first.second;
    const Scope& from = recording_.scopes[size_t(source)];
    const bool is_it =
        of.is_next_iteration()
            ? from.instance == at.instance && from.iteration + 1 == at.iteration
        : of.is_enter()
            ? recording_.instances[size_t(at.instance)].caller == source
            : recording_.instances[size_t(from.instance)].caller == scope;
    if (!is_it) continue;
    step_.tokens.push_back({place_in_node(node), source, kGone});
    held_.erase(held);
    return;
  }
}

void Recorder::settle_firing(int scope, const actors::IterationView& view) {
  ScopeState& state = scopes_[size_t(scope)];
  const Instance& instance =
      recording_.instances[size_t(recording_.scopes[size_t(scope)].instance)];
  const Event fired = std::exchange(state.fired, {});
  const int node = table_.number(*fired.node, instance.frame, instance.device);
  step_ = {};
  step_.kind = state.answers   ? StepKind::kAnswer
               : fired.is_dead ? StepKind::kSkip
                               : StepKind::kFire;
  state.fires = state.answers = false;
  step_.scope = scope;
  step_.node = node;
  step_.outputs = fired.values;
  touched_ = {node};
  if (fired.node->is_exit()) note_exit(scope, node, fired.is_dead);
  take_inputs(scope, node);
  if (fired.is_dead) {
    send_all(scope, node, kDead);
  } else {
    send_outputs(scope, node, fired.values, view);
  }
  note_pending(view);
  recording_.steps.push_back(std::exchange(step_, {}));
}

void Recorder::note_exit(int scope, int node, bool is_dead) {
  const int instance = recording_.scopes[size_t(scope)].instance;
  ExitState& exit = instances_[size_t(instance)].exits[node];
  if (!is_dead) {
    exit.was_live = true;
    step_.dropped = std::exchange(exit.kept, 0);
  } else if (exit.was_live) {
    step_.dropped = 1;
  } else {
    step_.kept = ++exit.kept;
  }
}

void Recorder::take_inputs(int scope, int node) {
  for (const int edge : table_.edges_to(node)) put(edge, scope, kGone);
}

void Recorder::send_outputs(int scope, int node, const std::vector<int>& values,
                            const actors::IterationView& view) {
  const graph::Node& of = table_.node(node);
  // A kernel that was deferred, or failed.
  if (values.empty() && of.num_outputs() > 0) return;
  if (leads_elsewhere(of)) return send_all(scope, node, values[0]);
  if (of.is_switch()) {
    const auto place = frame_->fires.find(node);
    const int taken =
        place == frame_->fires.end() ? 0 : int(view.taken(place->second));
    step_.outputs.assign(size_t(of.num_outputs()), kDead);
    for (int port = 0; port < of.num_outputs(); ++port) {
      if (port == taken) step_.outputs[size_t(port)] = values[0];
      send(scope, node, port, step_.outputs[size_t(port)]);
    }
  } else {
    for (size_t i = 0; i < values.size(); ++i) {
      send(scope, node, int(i), values[i]);
    }
  }
  send(scope, node, -1, kControl);
}

// Sends a token to all out-edges, or to another iteration. A dead NextIteration
// starts nothing, and a dead Exit is not live yet.
void Recorder::send_all(int scope, int node, int value) {
  const graph::Node& of = table_.node(node);
  if (leads_elsewhere(of)) {
    if (value == kDead && !of.is_enter()) return;
    held_[{node, scope}] = value;
    step_.tokens.push_back({place_in_node(node), scope, value});
    return;
  }
  for (int port = -1; port < of.num_outputs(); ++port) {
    send(scope, node, port, value);
  }
}

void Recorder::send(int scope, int node, int port, int value) {
  // Nodes that were compiled to edges forward tokens.
  std::vector<std::pair<int, int>> sources{{node, port}};
  while (!sources.empty()) {
    const auto [from, from_port] = sources.back();
    sources.pop_back();
    for (const int number : table_.edges_from(from)) {
      const draw::DrawnEdge& edge = table_.edge(number);
      if (edge.port != from_port) continue;
      if (is_compiled(edge.to)) {
        if (!edge.is_control()) sources.emplace_back(edge.to, 0);
      } else if (accepts(edge.to, value)) {
        put(number, scope, value);
      }
    }
  }
}

// Or not needed at all.
bool Recorder::is_compiled(int node) const {
  return !frame_->fires.contains(node) && !leads_elsewhere(table_.node(node));
}

bool Recorder::accepts(int node, int value) {
  const graph::Node& of = table_.node(node);
  const auto place = frame_->fires.find(node);
  if (place == frame_->fires.end()) return value != kDead || of.is_enter();
  touched_.insert(node);
  return !of.is_merge() || !view_->has_fired(place->second);
}

void Recorder::put(int place, int scope, int value) {
  std::map<int, int>& tokens = scopes_[size_t(scope)].tokens;
  if (value == kGone) {
    if (tokens.erase(place) == 0) return;
  } else {
    tokens[place] = value;
  }
  step_.tokens.push_back({place, scope, value});
}

void Recorder::note_pending(const actors::IterationView& view) {
  for (const int node : touched_) {
    const auto place = frame_->fires.find(node);
    if (place == frame_->fires.end()) continue;
    step_.pending.push_back({node, view.has_fired(place->second)
                                       ? kFired
                                       : int(view.pending(place->second))});
  }
  step_.running = view.running();
  step_.children = view.children();
  const std::span<const uint32_t> ready = view.ready();
  const size_t kept = std::min(ready.size(), Step::kMaxReady);
  step_.more_ready = ready.size() - kept;
  for (size_t i = 0; i < kept; ++i) {
    step_.ready.push_back(frame_->node_of[ready[ready.size() - 1 - i]]);
  }
}

}  // namespace tagflow::apps::stepper
