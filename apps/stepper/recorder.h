// Records a run token by token, from what its observer sees.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <unordered_map>

#include "actors/runtime/iteration_view.h"
#include "actors/session/session.h"
#include "actors/watch/observer.h"
#include "apps/stepper/node_table.h"
#include "apps/stepper/recording.h"

namespace tagflow::apps::stepper {

// Keeps the first `limit` steps, then cancels the run and looks away.
// Thread-safe; with one worker and no lent thread a run gives the same
// recording each time.
//
// Note [Where tokens are]
// The engine says what fires, what arrives and what nodes wait for; a token's
// whereabouts follow. A firing takes the tokens of its node's in-edges and
// puts one on each out-edge. Enter, Exit and NextIteration keep theirs until
// it arrives in the other iteration, whose edges it then goes on along. The
// Enter of a loop constant keeps it as long as the frame lives, and each
// iteration gets a copy. What a fired Merge gets is dropped, and so is all
// that is left when an iteration ends. Where nodes were compiled to edges
// (they are in no view), tokens go through them.
//
// An Exit is dead in most iterations. It is shown as the rules have it: dead
// tokens are kept until the frame ends, where each Exit that was never live
// sends one; a live one drops them. (The engine keeps no token for that: it
// notes which Exits were live.)
class Recorder : public actors::Observer {
 public:
  // `fed`: the fed tensors, "name:port"; a token that is fed does not say of
  // which port it is.
  Recorder(size_t limit, const std::vector<std::string>& fed,
           actors::CancelToken cancel);

  // REQUIRES: the run is over; where it was cut short, so is its session.
  Recording take();

  void on_fire(const actors::Location& location, const graph::Node& node,
               bool dead) override;
  void on_fired(const actors::Location& location, const graph::Node& node,
                std::span<const Tensor> outputs) override;
  void on_arrive(const actors::Location& location, const graph::Node& node,
                 const Tensor& value, bool dead) override;
  void on_settle(const actors::Location& location,
                 const actors::IterationView& view) override;
  void on_iteration_start(const actors::Location& location) override;
  void on_iteration_end(const actors::Location& location) override;
  void on_frame_start(const actors::Location& location,
                      const actors::Location& caller) override;
  void on_frame_end(const actors::Location& location) override;

 private:
  // What happened to an iteration since it settled last.
  struct Event {
    const graph::Node* node = nullptr;
    std::string frame;
    std::vector<int> values;
    bool is_dead = false;
  };
  struct ScopeState {
    bool is_live = false;
    bool starts = false;
    bool fires = false;  // `fired` is, or was, fired since
    bool answers = false;
    Event fired;
    std::vector<Event> arrived;
    std::map<int, int> tokens;  // from edge to value
  };
  struct ExitState {
    int kept = 0;  // dead tokens
    bool was_live = false;
  };
  struct InstanceState {
    std::map<int, int> constants;  // from Enter to value
    std::map<int, ExitState> exits;
    int last_scope = -1;
    bool starts = false;
  };
  // What Enter, Exit and NextIteration keep: node, scope -> value.
  using Held = std::map<std::pair<int, int>, int>;
  // A frame has an instance on each device where it has nodes.
  using InstanceKey = std::tuple<std::string, uint64_t, uint64_t>;
  using ScopeKey = std::pair<InstanceKey, int64_t>;

  // All of these: with the lock held.
  static InstanceKey key_of(const actors::Location& location);
  // What names on the device end with: Instance::device.
  std::string suffix_of(std::string_view device);
  int scope_of(const actors::Location& location);
  int instance_of(const actors::Location& location);
  int value_of(const Tensor& value);
  void add_instance(const actors::Location& location, int caller);
  // Ends the recording where it is full; false then.
  bool has_room();

  void settle(int scope, const actors::IterationView& view);
  void settle_arrivals(int scope, const actors::IterationView& view);
  void settle_firing(int scope, const actors::IterationView& view);
  void send_constants(int scope);
  void send_outputs(int scope, int node, const std::vector<int>& values,
                    const actors::IterationView& view);
  void send_all(int scope, int node, int value);
  void send(int scope, int node, int port, int value);
  void note_exit(int scope, int node, bool is_dead);
  void take_inputs(int scope, int node);
  void put(int place, int scope, int value);
  void release(int scope, int node);
  bool is_compiled(int node) const;
  // Whether a token to it is kept; notes that it waits for one less.
  bool accepts(int node, int value);
  void note_pending(const actors::IterationView& view);
  int port_of(const Event& arrival, std::map<int, int>& seen, int node) const;

  const size_t limit_;
  actors::CancelToken cancel_;
  std::map<std::string, std::vector<int>> fed_ports_;
  std::mutex mutex_;  // guards the below
  Recording recording_;
  NodeTable table_;
  std::string first_device_;
  std::map<InstanceKey, int> instance_index_;
  std::map<ScopeKey, int> scope_index_;
  std::vector<InstanceState> instances_;
  std::vector<ScopeState> scopes_;
  std::map<std::pair<int, std::string>, int> count_of_frame_;  // by caller
  std::unordered_map<std::string, int> value_index_;
  Held held_;
  Step step_;  // that is made up
  const NodeTable::Frame* frame_ = nullptr;
  const actors::IterationView* view_ = nullptr;
  std::set<int> touched_;  // nodes whose pending counts may have changed
};

}  // namespace tagflow::apps::stepper
