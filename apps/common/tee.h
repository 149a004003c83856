// Several observers of one run.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "actors/observer.h"

namespace tagflow::apps {

// Hands everything on to each, in their order. They must outlive it.
class Tee final : public actors::Observer {
 public:
  explicit Tee(std::vector<actors::Observer*> observers)
      : observers_(std::move(observers)) {}

  void on_fire(const actors::Place& place, const graph::Node& node,
               bool dead) override {
    for (auto* each : observers_) each->on_fire(place, node, dead);
  }
  void on_fired(const actors::Place& place, const graph::Node& node,
                std::span<const Tensor> outputs) override {
    for (auto* each : observers_) each->on_fired(place, node, outputs);
  }
  void on_compute(const actors::Place& place,
                  const graph::Node& node) override {
    for (auto* each : observers_) each->on_compute(place, node);
  }
  void on_computed(const actors::Place& place,
                   const graph::Node& node) override {
    for (auto* each : observers_) each->on_computed(place, node);
  }
  void on_arrive(const actors::Place& place, const graph::Node& node,
                 const Tensor& value, bool dead) override {
    for (auto* each : observers_) each->on_arrive(place, node, value, dead);
  }
  void on_settle(const actors::Place& place,
                 const actors::IterationView& view) override {
    for (auto* each : observers_) each->on_settle(place, view);
  }
  void on_pause(const actors::Place& place) override {
    for (auto* each : observers_) each->on_pause(place);
  }
  void on_iteration_start(const actors::Place& place) override {
    for (auto* each : observers_) each->on_iteration_start(place);
  }
  void on_iteration_end(const actors::Place& place) override {
    for (auto* each : observers_) each->on_iteration_end(place);
  }
  void on_frame_start(const actors::Place& place,
                      const actors::Place& caller) override {
    for (auto* each : observers_) each->on_frame_start(place, caller);
  }
  void on_frame_end(const actors::Place& place) override {
    for (auto* each : observers_) each->on_frame_end(place);
  }

 private:
  std::vector<actors::Observer*> observers_;
};

}  // namespace tagflow::apps
