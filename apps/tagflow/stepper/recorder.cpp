#include "apps/tagflow/stepper/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "graph/device_name.h"
#include "graph/node_name.h"

namespace tagflow::apps::stepper {
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

// --- Who is who --------------------------------------------------------------

bool Recorder::has_room() {
  if (recording_.is_full) return false;
  if (recording_.steps.size() < limit_) return true;
  recording_.is_full = true;
  cancel_.cancel();
  return false;
}

Recorder::InstanceKey Recorder::key_of(const actors::Location& location) {
  return {std::string(location.device), location.tag.frame_hi,
          location.tag.frame_lo};
}

std::string Recorder::suffix_of(std::string_view device) {
  if (first_device_.empty()) first_device_ = device;
  if (device == first_device_) return {};
  return fmt::format(" on {}", graph::short_device_name(device));
}

void Recorder::add_instance(const actors::Location& location, int caller) {
  Instance instance;
  instance.frame = std::string(location.frame);
  instance.device = suffix_of(location.device);
  instance.number =
      ++count_of_frame_[{caller, instance.frame + instance.device}];
  instance.caller = caller;
  instance_index_[key_of(location)] = int(recording_.instances.size());
  recording_.instances.push_back(std::move(instance));
  instances_.emplace_back();
}

int Recorder::instance_of(const actors::Location& location) {
  const InstanceKey key = key_of(location);
  if (!instance_index_.contains(key)) add_instance(location, -1);
  return instance_index_.at(key);
}

int Recorder::scope_of(const actors::Location& location) {
  const int instance = instance_of(location);
  const auto [it, is_new] = scope_index_.try_emplace(
      ScopeKey{key_of(location), location.tag.iteration}, int(scopes_.size()));
  if (is_new) {
    recording_.scopes.push_back({instance, location.tag.iteration});
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

// --- What the engine says ----------------------------------------------------

void Recorder::on_frame_start(const actors::Location& location,
                              const actors::Location& caller) {
  const std::lock_guard lock(mutex_);
  if (!has_room()) return;
  const bool is_root = location.tag.frame_hi == caller.tag.frame_hi &&
                       location.tag.frame_lo == caller.tag.frame_lo;
  add_instance(location, is_root ? -1 : scope_of(caller));
  instances_.back().starts = true;
}

void Recorder::on_iteration_start(const actors::Location& location) {
  const std::lock_guard lock(mutex_);
  if (!has_room()) return;
  const int scope = scope_of(location);
  ScopeState& state = scopes_[size_t(scope)];
  state = {};
  state.is_live = state.starts = true;
  instances_[size_t(recording_.scopes[size_t(scope)].instance)].last_scope =
      scope;
}

void Recorder::on_arrive(const actors::Location& location,
                         const graph::Node& node, const Tensor& value,
                         bool dead) {
  const std::lock_guard lock(mutex_);
  if (!has_room()) return;
  scopes_[size_t(scope_of(location))].arrived.push_back(
      {&node, {}, {dead ? kDead : value_of(value)}, dead});
}

void Recorder::on_fire(const actors::Location& location,
                       const graph::Node& node, bool dead) {
  const std::lock_guard lock(mutex_);
  if (!has_room()) return;
  ScopeState& state = scopes_[size_t(scope_of(location))];
  state.fires = true;
  state.answers = false;
  state.fired = {&node, {}, {}, dead};
}

void Recorder::on_fired(const actors::Location& location,
                        const graph::Node& node,
                        std::span<const Tensor> outputs) {
  const std::lock_guard lock(mutex_);
  if (!has_room()) return;
  ScopeState& state = scopes_[size_t(scope_of(location))];
  if (!state.fires || state.fired.node != &node) {
    state.fires = state.answers = true;
    state.fired = {&node, {}, {}, false};
  }
  for (const Tensor& output : outputs) {
    state.fired.values.push_back(value_of(output));
  }
}

void Recorder::on_settle(const actors::Location& location,
                         const actors::IterationView& view) {
  const std::lock_guard lock(mutex_);
  if (!has_room()) return;
  const int scope = scope_of(location);
  frame_ = &table_.frame(location.frame, suffix_of(location.device), view);
  view_ = &view;
  const int instance = recording_.scopes[size_t(scope)].instance;
  recording_.instances[size_t(instance)].drawn = frame_->drawn;
  settle(scope, view);
}

void Recorder::on_iteration_end(const actors::Location& location) {
  const std::lock_guard lock(mutex_);
  if (!has_room()) return;
  const int scope = scope_of(location);
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

void Recorder::on_frame_end(const actors::Location& location) {
  const std::lock_guard lock(mutex_);
  if (recording_.is_full) return;
  const int instance = instance_of(location);
  // The frame ends with its last iteration; others may have come between.
  const auto it = std::find_if(
      recording_.steps.rbegin(), recording_.steps.rend(),
      [&](const Step& step) {
        return recording_.scopes[size_t(step.scope)].instance == instance;
      });
  if (it == recording_.steps.rend()) return;
  it->ends_frame = true;
  for (const auto& [exit, state] : instances_[size_t(instance)].exits)
    if (!state.was_live) it->dead_exits.push_back(exit);
  // Drops the tokens that its Enters kept, and those that were never sent.
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

}  // namespace tagflow::apps::stepper
