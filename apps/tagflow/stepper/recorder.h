// Records a run token by token, as its observer.
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
#include "apps/tagflow/stepper/node_table.h"
#include "apps/tagflow/stepper/recording.h"

namespace tagflow::apps::stepper {

// Keeps the first `limit` steps, then cancels the run and ignores the rest.
// Thread-safe; with one worker and no lent thread a run gives the same
// recording each time.
//
// Note [Where tokens are]
// The engine reports firings, arrivals and what nodes wait for; the places of
// tokens follow from these. A firing takes the tokens of its node's in-edges
// and puts one on each out-edge. Enter, Exit and NextIteration keep their token
// until it arrives in the other iteration, where it goes on along the edges.
// The Enter of a loop constant keeps its token as long as the frame lives, and
// each iteration gets a copy. Tokens that reach a Merge that has fired are
// dropped, and so are all that are left when an iteration ends. Tokens pass
// through nodes that were compiled to edges (these are in no view).
//
// An Exit is dead in most iterations. The recording follows the formal rules:
// dead tokens are kept until the frame ends, when each Exit that was never live
// sends one; a live token drops them. (The engine keeps no tokens for that: it
// notes which Exits were live.)
class Recorder : public actors::Observer {
 public:
  // `fed`: the fed tensors, "name:port", since a fed token has no port.
  Recorder(size_t limit, const std::vector<std::string>& fed,
           actors::CancelToken cancel);

  // REQUIRES: the run is over, and, if it was cancelled, its session, too.
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
  // An event of an iteration since it last settled.
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
  // The tokens that Enter, Exit and NextIteration keep: node, scope -> value.
  using Held = std::map<std::pair<int, int>, int>;
  // A frame has an instance on each device where it has nodes.
  using InstanceKey = std::tuple<std::string, uint64_t, uint64_t>;
  using ScopeKey = std::pair<InstanceKey, int64_t>;

  // REQUIRES for all of these: the lock is held.
  static InstanceKey key_of(const actors::Location& location);
  // The suffix of names on the device: Instance::device.
  std::string suffix_of(std::string_view device);
  int scope_of(const actors::Location& location);
  int instance_of(const actors::Location& location);
  int value_of(const Tensor& value);
  void add_instance(const actors::Location& location, int caller);
  // Returns false, and ends the recording, if it is full.
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
  // Whether a token to the node is kept; decrements its pending count.
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
  Step step_;  // the step that is being made
  const NodeTable::Frame* frame_ = nullptr;
  const actors::IterationView* view_ = nullptr;
  std::set<int> touched_;  // nodes whose pending counts may have changed
};

}  // namespace tagflow::apps::stepper
