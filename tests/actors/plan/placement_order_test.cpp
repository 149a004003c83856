// The simulation ranks placements as runs do. A virtual clock measures a run:
// the engine runs the graph over its devices, and an observer counts the
// multiplications of each product on its device, in the order in which the
// engine computed them. A device computes one product after another, a product
// starts when its last input has arrived, and inputs from another device take
// kHop more. So nothing here depends on the speed or the load of the machine.
#include <doctest/doctest.h>

#include <map>
#include <mutex>

#include "actors/plan/distribute.h"
#include "actors/watch/cost_recorder.h"
#include "actors/watch/observer.h"
#include "tests/actors/sessions.h"

using namespace tagflow;
using namespace tagflow::graph::testing;
namespace ta = tagflow::actors;
namespace tg = tagflow::graph;

namespace {

// In multiplications, as all times of the clock.
constexpr double kHop = 20'000;

class VirtualClock final : public ta::Observer {
 public:
  void on_fired(const ta::Location& location, const tg::Node& node,
                std::span<const Tensor> outputs) override {
    const std::lock_guard lock(mutex_);
    double finish = 0;
    for (const tg::Endpoint& input : node.inputs())
      finish = std::max(finish, arrival(*input.node));
    if (node.op() == "MatMul") {
      const double rows = double(outputs[0].shape().dim(0));
      double& free = free_[std::string(location.device)];
      finish = std::max(finish, free) + rows * rows * rows;
      free = finish;
      places_[node.name()] = location.device;
      ++products_;
    }
    finish_[node.name()] = finish;
    makespan_ = std::max(makespan_, finish);
  }

  double makespan() const { return makespan_; }
  int products() const { return products_; }
  // How many devices computed products.
  size_t devices() const { return free_.size(); }
  // The device of each product.
  const std::map<std::string, std::string>& places() const { return places_; }

 private:
  // A Recv is named after what it receives.
  double arrival(const tg::Node& node) const {
    if (node.op() != "_Recv") return finish_of(node.name());
    const std::string tensor = must(node.attr<std::string>("tensor_name"));
    return finish_of(tensor.substr(0, tensor.find(':'))) + kHop;
  }
  double finish_of(const std::string& name) const {
    const auto found = finish_.find(name);
    return found == finish_.end() ? 0 : found->second;
  }

  std::mutex mutex_;
  std::map<std::string, double> finish_;       // by node
  std::map<std::string, double> free_;         // by device
  std::map<std::string, std::string> places_;  // by product
  double makespan_ = 0;
  int products_ = 0;
};

// What there is to know of one placement, in the units of each.
struct Outcome {
  double predicted = 0;
  double observed = 0;
  int products = 0;
  size_t devices = 0;
  std::map<std::string, std::string> places;  // of the products
};

Outcome try_out(const tg::Graph& graph, const tg::CostModel& costs = {}) {
  ta::SessionOptions options;
  options.devices = "stream:2";
  // Every node fires, and products of constants are computed in the run.
  options.passes = tg::PassSet::none();
  const auto session = ta::make_session(options, graph);
  CHECK(session->learn(costs).ok());
  Outcome outcome;
  outcome.predicted =
      must(session->explain({}, {"result"})).placement.makespan_ns;
  VirtualClock clock;
  ta::RunOptions run = ta::within_a_minute();
  run.observer = &clock;
  must(session->run({}, {"result"}, {}, run));
  outcome.observed = clock.makespan();
  outcome.products = clock.products();
  outcome.devices = clock.devices();
  outcome.places = clock.places();
  return outcome;
}

// Of two outcomes whose runs differ, the same one is predicted to be faster.
void check_order(const std::vector<Outcome>& outcomes) {
  for (const Outcome& a : outcomes)
    for (const Outcome& b : outcomes)
      if (a.observed < b.observed) {
        CAPTURE(a.observed);
        CAPTURE(b.observed);
        CHECK(a.predicted < b.predicted);
      }
}

std::string stream(int number) {
  return fmt::format("/device:STREAM:{}", number);
}

// `length` products, each of the one before it, on the device that `device`
// gives for its number; "" leaves it open.
template <class Device>
tg::Endpoint chain(tg::Graph& graph, const std::string& name, int64_t rows,
                   int length, const Device& device) {
  tg::Node* const matrix =
      constant(graph, name + "/matrix",
               Tensor::make(DataType::kFloat, Shape({rows, rows})));
  tg::Endpoint last{matrix, 0};
  for (int i = 0; i < length; ++i) {
    tg::Node* product = add(graph, fmt::format("{}/product_{}", name, i),
                            "MatMul", {last, {matrix, 0}});
    graph.set_device(product, device(i));
    last = {product, 0};
  }
  return last;
}

// Four chains that take about 8, 4, 2 and 1, and a node that waits for all.
template <class Device>
tg::Graph four_chains(const Device& device) {
  tg::Graph graph;
  std::vector<tg::Node*> ends;
  constexpr int64_t kRows[] = {64, 51, 40, 32};
  for (int i = 0; i < 4; ++i)
    ends.push_back(
        chain(graph, fmt::format("chain_{}", i), kRows[i], 2, [&](int) {
          return device(i);
        }).node);
  graph.set_device(
      add(graph, "result", "Const", {},
          {{"value", Tensor::scalar(1)}, {"dtype", DataType::kInt32}}, ends),
      "/cpu:0");
  return graph;
}

// A loop on one device that computes a product each time that it goes around.
tg::Node* loop_of_products(tg::Graph& graph, const std::string& name,
                           const std::string& device, int trips) {
  const size_t before = graph.size();
  const tg::Endpoint start{constant(graph, name + "/start", Tensor::scalar(0)),
                           0};
  const tg::Endpoint limit{
      constant(graph, name + "/trips", Tensor::scalar(trips)), 0};
  const Counter loop = counter(graph, name, start, limit);
  constexpr int64_t kRows = 40;
  tg::Node* matrix =
      constant(graph, name + "/matrix",
               Tensor::make(DataType::kFloat, Shape({kRows, kRows})));
  tg::Node* enter = add(graph, name + "/value/enter", "Enter", {{matrix, 0}},
                        {{"frame_name", name}});
  tg::Node* merge = add(graph, name + "/value", "Merge", {{enter, 0}, {}});
  graph.set_output_shape(merge, 0, {kRows, kRows});
  tg::Node* fork = add(graph, name + "/value/switch", "Switch",
                       {{merge, 0}, {loop.cond, 0}});
  tg::Node* product =
      add(graph, name + "/product", "MatMul", {{fork, 1}, {fork, 1}});
  tg::Node* next =
      add(graph, name + "/value/next", "NextIteration", {{product, 0}});
  must(graph.set_input(merge, 1, {next, 0}));
  tg::Node* exit = add(graph, name + "/value/exit", "Exit", {{fork, 0}});
  for (tg::Node* node : graph.nodes().subspan(before))
    graph.set_device(node, device);
  return exit;
}

// A chain of ten products on the first device, and two loops.
constexpr int kFewTrips = 2;
constexpr int kManyTrips = 20;
tg::Graph two_loops(int few, int many) {
  tg::Graph graph;
  const std::vector<tg::Node*> ends = {
      chain(graph, "chain", 40, 10, [](int) { return stream(0); }).node,
      loop_of_products(graph, "few", stream(few), kFewTrips),
      loop_of_products(graph, "many", stream(many), kManyTrips)};
  graph.set_device(
      add(graph, "result", "Const", {},
          {{"value", Tensor::scalar(1)}, {"dtype", DataType::kInt32}}, ends),
      "/cpu:0");
  return graph;
}

// The trips that a run is seen to make. What it took is left out: that depends
// on the machine.
tg::CostModel seen_trips(const tg::Graph& graph) {
  ta::SessionOptions options;
  options.devices = "stream:2";
  const auto session = ta::make_session(options, graph);
  ta::CostRecorder recorder(session->devices());
  ta::RunOptions run = ta::within_a_minute();
  run.observer = &recorder;
  must(session->run({}, {"result"}, {}, run));
  tg::CostModel seen;
  for (const char* frame : {"few", "many"})
    seen.measure_trips(frame, recorder.costs().trips(frame).value());
  return seen;
}

}  // namespace

TEST_CASE("the placement simulator orders all placements by their true time") {
  // The longest chain on one device; each of the others with it or not.
  std::vector<Outcome> outcomes;
  for (int together = 0; together < 8; ++together) {
    outcomes.push_back(try_out(four_chains([&](int i) {
      return stream(i == 0 || (together >> (i - 1) & 1) != 0 ? 0 : 1);
    })));
    CHECK(outcomes.back().products == 8);
    CHECK(outcomes.back().devices == (together == 7 ? 1 : 2));
  }
  check_order(outcomes);
  // All of them differ, by no less than a hop.
  std::vector<double> observed;
  for (const Outcome& outcome : outcomes) observed.push_back(outcome.observed);
  std::ranges::sort(observed);
  for (size_t i = 1; i < observed.size(); ++i)
    CHECK(observed[i] - observed[i - 1] >= kHop);
}

TEST_CASE("a chain that is cut more often is predicted to take longer") {
  std::vector<Outcome> outcomes;
  for (const int length : {6, 3, 2, 1}) {  // of the pieces
    tg::Graph graph;
    const tg::Endpoint end = chain(
        graph, "chain", 32, 6, [&](int i) { return stream(i / length % 2); });
    graph.set_device(add(graph, "result", "Identity", {end}), "/cpu:0");
    outcomes.push_back(try_out(graph));
  }
  check_order(outcomes);
  for (size_t i = 1; i < outcomes.size(); ++i)
    CHECK(outcomes[i].observed > outcomes[i - 1].observed);
}

TEST_CASE("the placer's choice is faster than one device") {
  // In whatever order the engine computes: it is far from that.
  const auto anywhere = [](int) { return std::string("/device:STREAM:*"); };
  const Outcome chosen = try_out(four_chains(anywhere));
  const Outcome alone = try_out(four_chains([](int) { return stream(0); }));
  CHECK(chosen.products == 8);
  CHECK(chosen.devices == 2);
  check_order({chosen, alone});
  CHECK(chosen.observed < alone.observed);
}

TEST_CASE("loops that were seen are predicted in their true order") {
  const tg::CostModel seen = seen_trips(two_loops(0, 0));
  CHECK(*seen.trips("few") == kFewTrips);
  CHECK(*seen.trips("many") == kManyTrips);
  std::vector<Outcome> outcomes, guesses;
  for (const auto& [few, many] : {std::pair(0, 1), {1, 0}, {0, 0}}) {
    guesses.push_back(try_out(two_loops(few, many)));
    outcomes.push_back(try_out(two_loops(few, many), seen));
    CHECK(outcomes.back().products == 10 + kFewTrips + kManyTrips);
  }
  check_order(outcomes);
  CHECK(outcomes[0].observed < outcomes[1].observed);
  CHECK(outcomes[1].observed < outcomes[2].observed);
  // Without that, a loop is a loop: they are thought to go around alike.
  CHECK(guesses[0].predicted == doctest::Approx(guesses[1].predicted));
  CHECK(outcomes[0].predicted != doctest::Approx(guesses[0].predicted));
}

TEST_CASE("costs that a session has measured count for earlier signatures") {
  const tg::Graph graph =
      four_chains([](int) { return std::string("/device:STREAM:*"); });
  // As if the shortest chain took longest: then the others are together.
  tg::CostModel costs;
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 2; ++k)
      costs.measure(fmt::format("chain_{}/product_{}", i, k), "STREAM",
                    i == 3 ? 1e9 : 1e3, 1);
  // Not the times: they depend on the order of products that cross devices.
  const auto before = try_out(graph).places;
  const auto after = try_out(graph, costs).places;
  REQUIRE(before != after);
  ta::SessionOptions options;
  options.devices = "stream:2";
  options.passes = tg::PassSet::none();
  const auto session = ta::make_session(options, graph);
  const auto places = [&] {
    VirtualClock clock;
    ta::RunOptions run = ta::within_a_minute();
    run.observer = &clock;
    must(session->run({}, {"result"}, {}, run));
    return clock.places();
  };
  CHECK(places() == before);
  CHECK(session->learn(costs).ok());
  CHECK(places() == after);
}
