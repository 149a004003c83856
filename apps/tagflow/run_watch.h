// --watch of `tagflow run`: shows tensors inside of loops. And several
// observers as one.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "actors/watch/observer.h"
#include "apps/shared/runs/run_names.h"
#include "apps/tagflow/model/watch_choice.h"
#include "graph/graph.h"

namespace tagflow::apps {

// Prints chosen tensors when their nodes have fired, or writes them to files.
// Thread-safe.
class TensorWatch final : public actors::Observer {
 public:
  // `out` is a folder for files, NODE_PORT@TAG.npy (strings: .json); empty: the
  // tensors are printed, with `is_quiet` to stderr. InvalidArgument for what is
  // not a choice; errors of RunNames::check_tensor(), and of making the folder.
  static Result<std::shared_ptr<TensorWatch>> make(
      const std::vector<std::string>& choices, const RunNames& names,
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
