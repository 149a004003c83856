#include "actors/watch/observer.h"

#include <doctest/doctest.h>

#include <map>
#include <mutex>
#include <set>
#include <string>

#include "actors/runtime/iteration_view.h"
#include "graph/builder/builder.h"
#include "tests/actors/sessions.h"

using namespace tagflow;
using namespace tagflow::graph;
namespace ta = tagflow::actors;

namespace {

// Notes what is said, and what of it contradicts itself.
class Witness : public ta::Observer {
 public:
  void on_fire(const ta::Location& location, const Node& node, bool) override {
    const std::lock_guard lock(mutex_);
    State& state = states_[key(location)];
    // The last of the ready ones is the next.
    if (state.next != node.name()) wrong_.insert("fires out of turn");
    if (state.pending[node.name()] != 0) wrong_.insert("fires too early");
  }
  void on_settle(const ta::Location& location,
                 const ta::IterationView& view) override {
    const std::lock_guard lock(mutex_);
    State& state = states_[key(location)];
    state.pending.clear();
    for (size_t i = 0; i < view.num_nodes(); ++i) {
      state.pending[view.node(i).name()] = view.pending(i);
      if (view.node(i).is_switch() && view.has_fired(i)) {
        taken[location.tag.iteration] = view.taken(i);
      }
    }
    state.next =
        view.ready().empty() ? "" : view.node(view.ready().back()).name();
    state.is_ready = !view.ready().empty();
  }
  void on_pause(const ta::Location& location) override {
    const std::lock_guard lock(mutex_);
    ++pauses;
    if (states_[key(location)].is_ready)
      wrong_.insert("pauses with ready nodes");
  }
  void on_frame_start(const ta::Location& location,
                      const ta::Location& caller) override {
    const std::lock_guard lock(mutex_);
    callers.emplace_back(std::string(location.frame),
                         std::string(caller.frame));
    tags.push_back(tag_text(location));
  }
  void on_compute(const ta::Location&, const Node& node) override {
    const std::lock_guard lock(mutex_);
    computing_.insert(node.name());
  }
  void on_computed(const ta::Location&, const Node& node) override {
    const std::lock_guard lock(mutex_);
    if (computing_.erase(node.name()) == 0) wrong_.insert("was not computing");
    ++computed;
  }

  std::set<std::string> wrong() const {
    std::set<std::string> all = wrong_;
    if (!computing_.empty()) all.insert("still computes");
    return all;
  }

  int pauses = 0;
  int computed = 0;
  std::map<int64_t, uint32_t> taken;  // of the Switch, by iteration
  std::vector<std::pair<std::string, std::string>> callers;
  std::vector<std::string> tags;  // of the frames that started

 private:
  struct State {
    std::map<std::string, uint32_t> pending;
    std::string next;
    bool is_ready = false;
  };
  using Key = std::tuple<uint64_t, uint64_t, int64_t>;
  static Key key(const ta::Location& location) {
    return {location.tag.frame_hi, location.tag.frame_lo,
            location.tag.iteration};
  }

  std::mutex mutex_;
  std::map<Key, State> states_;
  std::set<std::string> wrong_;
  std::set<std::string> computing_;
};

Outputs count_to(const Scope& s, int limit) {
  return while_loop(
      s,
      [limit](const Scope& in, const Outputs& v) {
        return ops::less(in, v[0], limit);
      },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1)};
      },
      {0});
}

void observe(const Graph& graph, const std::string& fetch, Witness& witness,
             int workers = 1) {
  ta::SessionOptions options;
  options.workers = workers;
  options.passes = PassSet::none();
  auto session = ta::make_session(options, graph);
  ta::RunOptions run;
  run.observer = &witness;
  const auto results = session->run({}, {fetch}, {}, run);
  INFO(results.status().to_string());
  REQUIRE(results.ok());
}

}  // namespace

TEST_CASE("a view says who is next, and who waits for how much") {
  Graph graph;
  const Scope s(graph);
  const Outputs last = count_to(s, 3);
  REQUIRE(s.ok());
  Witness witness;
  observe(graph, last[0].name(), witness);
  CHECK(witness.wrong() == std::set<std::string>());
  CHECK(witness.pauses >= 5);  // four iterations and the root
  CHECK(witness.taken ==
        std::map<int64_t, uint32_t>{{0, 1}, {1, 1}, {2, 1}, {3, 0}});
}

TEST_CASE("a frame's start names the frame that it was called from") {
  Graph graph;
  const Scope s(graph);
  const Outputs last = while_loop(
      s,
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 2); },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], ops::sub(in, count_to(in, 4)[0], 3))};
      },
      {0});
  REQUIRE(s.ok());
  Witness witness;
  observe(graph, last[0].name(), witness);
  // The inner one's last instance is entered by dead tokens.
  REQUIRE(witness.callers.size() == 5);
  CHECK(witness.callers[0] == std::pair<std::string, std::string>("", ""));
  CHECK(witness.callers[1].second.empty());
  const std::string outer = witness.callers[1].first;
  CHECK_FALSE(outer.empty());
  CHECK(witness.tags[0] == "root/0");
  CHECK(witness.tags[1] == outer + "/0");
  for (size_t i = 2; i < 5; ++i) {
    CHECK(witness.callers[i].second == outer);
    CHECK(witness.tags[i] == outer + "/" + std::to_string(i - 2) + "/" +
                                 witness.callers[i].first + "/0");
  }
}

TEST_CASE("a kernel that was put off is seen to compute, wherever it does") {
  Graph graph;
  const Scope s(graph);
  Inputs products;
  for (int i = 0; i < 4; ++i) {
    const Output big = ops::fill(s, {300, 300}, float(i));
    products.add(ops::matmul(s, big, big));
  }
  const Output sum = ops::add_n(s, products);
  REQUIRE(s.ok());
  Witness witness;
  observe(graph, sum.name(), witness, 2);
  CHECK(witness.wrong() == std::set<std::string>());
  CHECK(witness.computed >= 4);
}
