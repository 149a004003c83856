// Observers of `tagflow run`: --watch shows tensors inside of loops, and
// --check-numerics finds the first NaN or infinity.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/watch/observer.h"
#include "apps/tagflow/model/watch_choice.h"
#include "graph/graph.h"

namespace tagflow::apps {

// Prints chosen tensors when their nodes have fired, or writes them to files.
// Thread-safe.
class TensorWatch final : public actors::Observer {
 public:
  // `out` is a folder for files, NODE_PORT@TAG.npy (strings: .json); empty: the
  // tensors are printed, with `is_quiet` to stderr. InvalidArgument for what is
  // not a choice; NotFound for a node that the graph does not have, unless it
  // may be in a function; errors of making the folder.
  static Result<std::shared_ptr<TensorWatch>> make(
      const std::vector<std::string>& choices, const graph::Graph& graph,
      std::string out, bool is_quiet);

  // The tensors that were not seen in any iteration of their tags.
  std::vector<std::string> unseen() const;

  void on_fired(const actors::Location& location, const graph::Node& node,
                std::span<const Tensor> outputs) override;

 private:
  struct Watched {
    WatchChoice choice;
    std::atomic<bool> is_seen{false};
  };

  void show(const Watched& watched, const std::string& tag,
            const Tensor& value);

  // By node. Not changed while a run is active.
  std::multimap<std::string, Watched, std::less<>> watched_;
  std::string out_;
  bool is_quiet_ = false;
  std::mutex mutex_;  // guards the output
};

// Ends the run where a node first makes a NaN or an infinity, by an error that
// names the node, its tag and its inputs. Thread-safe.
class NumericsCheck final : public actors::Observer {
 public:
  void on_fired(const actors::Location& location, const graph::Node& node,
                std::span<const Tensor> outputs) override;
  void on_arrive(const actors::Location& location, const graph::Node& node,
                 const Tensor& value, bool dead) override;

 private:
  // The text of what the node's input was last.
  std::string describe_input(const graph::Endpoint& input) const;

  mutable std::mutex mutex_;  // guards the below
  // What the outputs were last, by the name of their tensor.
  std::unordered_map<std::string, std::string> last_;
};

// Several observers, in their order; none of them is null.
class ObserverGroup final : public actors::Observer {
 public:
  void add(std::shared_ptr<actors::Observer> observer) {
    all_.push_back(std::move(observer));
  }
  bool empty() const { return all_.empty(); }

  void on_fire(const actors::Location& location, const graph::Node& node,
               bool dead) override;
  void on_fired(const actors::Location& location, const graph::Node& node,
                std::span<const Tensor> outputs) override;
  void on_compute(const actors::Location& location,
                  const graph::Node& node) override;
  void on_computed(const actors::Location& location,
                   const graph::Node& node) override;
  void on_arrive(const actors::Location& location, const graph::Node& node,
                 const Tensor& value, bool dead) override;
  void on_iteration_start(const actors::Location& location) override;
  void on_iteration_end(const actors::Location& location) override;
  void on_frame_start(const actors::Location& location,
                      const actors::Location& caller) override;
  void on_frame_end(const actors::Location& location) override;

 private:
  std::vector<std::shared_ptr<actors::Observer>> all_;
};

}  // namespace tagflow::apps
