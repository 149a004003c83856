// --check-numerics of `tagflow run`.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>

#include "actors/watch/observer.h"
#include "graph/node.h"

namespace tagflow::apps {

// Ends the run where a node first makes a NaN or an infinity, by an error that
// names the node, its tag and its inputs. It keeps what tensors were in each
// iteration that goes on, since several do at a time. Thread-safe.
class NumericsCheck final : public actors::Observer {
 public:
  void on_fired(const actors::Location& location, const graph::Node& node,
                std::span<const Tensor> outputs) override;
  void on_arrive(const actors::Location& location, const graph::Node& node,
                 const Tensor& value, bool dead) override;
  void on_iteration_end(const actors::Location& location) override;
  void on_frame_end(const actors::Location& location) override;

 private:
  // An iteration of an instance of a frame, or, for loop constants, all.
  static constexpr int64_t kAll = -1;
  struct Place {
    const actors::FrameInstance* instance = nullptr;
    int64_t iteration = 0;
    bool operator==(const Place&) const = default;
  };
  struct PlaceHash {
    size_t operator()(const Place& place) const {
      return std::hash<const void*>()(place.instance) * 31 +
             std::hash<int64_t>()(place.iteration);
    }
  };
  // In words, by the name of the tensor.
  using Values = std::unordered_map<std::string, std::string>;

  // The text of what the node's input is there. REQUIRES: mutex_ is held.
  std::string describe_input(const actors::Location& location,
                             const graph::Endpoint& input) const;

  std::mutex mutex_;  // guards the below
  std::unordered_map<Place, Values, PlaceHash> values_;
};

}  // namespace tagflow::apps
