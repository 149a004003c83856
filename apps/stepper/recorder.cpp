#include "apps/stepper/recorder.h"

#include <algorithm>
#include <utility>

namespace tagflow::apps::stepper {
namespace {

bool leads_elsewhere(const graph::Node& node) {
  return node.is_enter() || node.is_exit() || node.is_next_iteration();
}

bool is_constant_enter(const graph::Node& node) {
  if (!node.is_enter()) return false;
  const Result<bool> is_constant = node.attr<bool>("is_constant");
  return is_constant.ok() && *is_constant;
}

}  // namespace

Recorder::Recorder(size_t limit, const std::vector<std::string>& fed,
                   actors::CancelToken cancel)
    : limit_(limit), cancel_(std::move(cancel)), table_(recording_) {
  for (const std::string& port : fed) {
    const auto parsed = graph::parse_endpoint(port);
    if (parsed.ok()) fed_ports_[parsed->first].push_back(parsed->second);
  }
}

Recording Recorder::take() {
  const std::lock_guard lock(mutex_);
  return std::move(recording_);
}

// --- Who is who
// ---------------------------------------------------------------

bool Recorder::has_room() {
  if (recording_.is_full) return false;
  if (recording_.steps.size() < limit_) return true;
  recording_.is_full = true;
  cancel_.cancel();
  return false;
}

void Recorder::add_instance(const actors::Place& place, int caller) {
  Instance instance;
  instance.frame = std::string(place.frame);
  instance.number = ++count_of_frame_[instance.frame];
  instance.caller = caller;
  instance_index_[{place.tag.frame_hi, place.tag.frame_lo}] =
      int(recording_.instances.size());
  recording_.instances.push_back(std::move(instance));
  instances_.emplace_back();
}

int Recorder::instance_of(const actors::Place& place) {
  const InstanceKey key{place.tag.frame_hi, place.tag.frame_lo};
  if (!instance_index_.contains(key)) add_instance(place, -1);
  return instance_index_.at(key);
}

int Recorder::scope_of(const actors::Place& place) {
  const int instance = instance_of(place);
  const auto [it, is_new] = scope_index_.try_emplace(
      ScopeKey{place.tag.frame_hi, place.tag.frame_lo, place.tag.iteration},
      int(scopes_.size()));
  if (is_new) {
    recording_.scopes.push_back({instance, place.tag.iteration});
    scopes_.emplace_back();
  }
  return it->second;
}

int Recorder::value_of(const Tensor& value) {
  if (!value.valid()) return kDead;
  Value shown{draw::short_value(value), draw::long_value(value)};
  const auto [it, is_new] =
      value_index_.try_emplace(shown.text, int(recording_.values.size()));
  if (is_new) recording_.values.push_back(std::move(shown));
  return it->second;
}

// --- What the engine says
// -----------------------------------------------------

void Recorder::on_frame_start(const actors::Place& place,
                              const actors::Place& caller) {
  const std::lock_guard lock(mutex_);
  if (!has_room()) return;
  const bool is_root = place.tag.frame_hi == caller.tag.frame_hi &&
                       place.tag.frame_lo == caller.tag.frame_lo;
  add_instance(place, is_root ? -1 : scope_of(caller));
}

void Recorder::on_iteration_start(const actors::Place& place) {
  const std::lock_guard lock(mutex_);
  if (!has_room()) return;
  const int scope = scope_of(place);
  ScopeState& state = scopes_[size_t(scope)];
  state = {};
  state.is_live = state.starts = true;
  instances_[size_t(recording_.scopes[size_t(scope)].instance)].last_scope =
      scope;
}

void Recorder::on_arrive(const actors::Place& place, const graph::Node& node,
                         const Tensor& value, bool dead) {
  const std::lock_guard lock(mutex_);
  if (!has_room()) return;
  scopes_[size_t(scope_of(place))].arrived.push_back(
      {&node, {}, {dead ? kDead : value_of(value)}, dead});
}

void Recorder::on_fire(const actors::Place& place, const graph::Node& node,
                       bool dead) {
  const std::lock_guard lock(mutex_);
  if (!has_room()) return;
  ScopeState& state = scopes_[size_t(scope_of(place))];
  state.fires = true;
  state.answers = false;
  state.fired = {&node, {}, {}, dead};
}

void Recorder::on_fired(const actors::Place& place, const graph::Node& node,
                        std::span<const Tensor> outputs) {
  const std::lock_guard lock(mutex_);
  if (!has_room()) return;
  ScopeState& state = scopes_[size_t(scope_of(place))];
  if (!state.fires || state.fired.node != &node) {
    state.fires = state.answers = true;
    state.fired = {&node, {}, {}, false};
  }
  for (const Tensor& output : outputs) {
    state.fired.values.push_back(value_of(output));
  }
}

void Recorder::on_settle(const actors::Place& place,
                         const actors::IterationView& view) {
  const std::lock_guard lock(mutex_);
  if (!has_room()) return;
  const int scope = scope_of(place);
  frame_ = &table_.frame(place.frame, view);
  view_ = &view;
  const int instance = recording_.scopes[size_t(scope)].instance;
  recording_.instances[size_t(instance)].drawn = frame_->drawn;
  settle(scope, view);
}

void Recorder::on_iteration_end(const actors::Place& place) {
  const std::lock_guard lock(mutex_);
  if (!has_room()) return;
  const int scope = scope_of(place);
  ScopeState& state = scopes_[size_t(scope)];
  Step step;
  step.kind = StepKind::kEnd;
  step.scope = scope;
  for (const auto& [edge, value] : state.tokens) {
    step.tokens.push_back({edge, scope, kGone});
  }
  state = {};
  recording_.steps.push_back(std::move(step));
}

void Recorder::on_frame_end(const actors::Place& place) {
  const std::lock_guard lock(mutex_);
  if (recording_.is_full) return;
  const int instance = instance_of(place);
  // The frame ends with its last iteration; others may have come between.
  const auto it = std::find_if(
      recording_.steps.rbegin(), recording_.steps.rend(),
      [&](const Step& step) {
        return recording_.scopes[size_t(step.scope)].instance == instance;
      });
  if (it == recording_.steps.rend()) return;
  it->ends_frame = true;
  // What its Enters kept for it, and what was never sent.
  for (auto held = held_.begin(); held != held_.end();) {
    const auto [node, scope] = held->first;
    const bool is_of_instance =
        recording_.scopes[size_t(scope)].instance == instance ||
        (instances_[size_t(instance)].constants.contains(node) &&
         recording_.instances[size_t(instance)].caller == scope);
    if (!is_of_instance || table_.node(node).is_exit()) {
      ++held;
      continue;
    }
    it->tokens.push_back({place_in_node(node), scope, kGone});
    held = held_.erase(held);
  }
}

// --- What follows for the tokens
// ----------------------------------------------

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
  const std::string& name =
      recording_.instances[size_t(recording_.scopes[size_t(scope)].instance)]
          .frame;
  step_ = {};
  step_.kind = StepKind::kArrive;
  step_.scope = scope;
  step_.starts = std::exchange(state.starts, false);
  touched_.clear();
  if (step_.starts) send_constants(scope);
  std::map<int, int> seen;
  for (const Event& arrival : std::exchange(state.arrived, {})) {
    const int node = table_.number(*arrival.node, name);
    release(scope, node);
    if (is_constant_enter(*arrival.node)) {
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

// Constants that all came at once are in place without having arrived.
void Recorder::send_constants(int scope) {
  const Scope& at = recording_.scopes[size_t(scope)];
  auto& constants = instances_[size_t(at.instance)].constants;
  const int caller = recording_.instances[size_t(at.instance)].caller;
  for (const auto& [key, value] : held_) {
    const int node = key.first;
    if (key.second == caller && is_constant_enter(table_.node(node)) &&
        recording_.drawing.nodes[size_t(node)].frame == frame_->drawn) {
      constants.emplace(node, value);
    }
  }
  for (const auto& [node, value] : constants) send(scope, node, 0, value);
}

// An Enter, Exit or NextIteration has one output; of others the outputs come
// in order, as far as they are fed.
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
  if (!leads_elsewhere(of) || is_constant_enter(of)) return;
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
  const std::string& name =
      recording_.instances[size_t(recording_.scopes[size_t(scope)].instance)]
          .frame;
  const Event fired = std::exchange(state.fired, {});
  const int node = table_.number(*fired.node, name);
  step_ = {};
  step_.kind = state.answers   ? StepKind::kAnswer
               : fired.is_dead ? StepKind::kSkip
                               : StepKind::kFire;
  state.fires = state.answers = false;
  step_.scope = scope;
  step_.node = node;
  step_.outputs = fired.values;
  touched_ = {node};
  take_inputs(scope, node);
  if (fired.is_dead) {
    send_all(scope, node, kDead);
  } else {
    send_outputs(scope, node, fired.values, view);
  }
  note_pending(view);
  recording_.steps.push_back(std::exchange(step_, {}));
}

void Recorder::take_inputs(int scope, int node) {
  for (const int edge : table_.edges_to(node)) put(edge, scope, kGone);
}

void Recorder::send_outputs(int scope, int node, const std::vector<int>& values,
                            const actors::IterationView& view) {
  const graph::Node& of = table_.node(node);
  // A kernel that was put off, or failed.
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

// The same to all out-edges; or to another iteration, where a dead
// NextIteration starts nothing, and a dead Exit is one that is not live yet.
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
  // Nodes that were compiled to edges pass on what they get.
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
  const std::span<const uint32_t> ready = view.ready();
  for (size_t i = ready.size(); i > 0; --i) {
    step_.ready.push_back(frame_->node_of[ready[i - 1]]);
  }
}

}  // namespace tagflow::apps::stepper
