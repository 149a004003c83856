// Cutting a graph does not change its meaning: random graphs, cut along random
// placements and joined again, are compared with the originals.
#include "graph/partition/partition.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "graph/analysis/extract.h"
#include "graph/analysis/validate.h"
#include "graph/analysis/whole_loops.h"
#include "graph/file/program_file.h"
#include "graph/function.h"
#include "graph/functions/lower.h"
#include "graph/partition/recv_schedule.h"
#include "graph/partition/transfer_name.h"
#include "tests/graph/partition/cut.h"
#include "tests/graph/same_program.h"
#include "tests/reference/interpreter.h"
#include "tests/reference/odd_loops.h"
#include "tests/reference/random_graph.h"

namespace tagflow::reference {

using graph::DeviceInfo;
using graph::Endpoint;
using graph::Graph;
using graph::Node;
using graph::NodeDef;
using graph::Partition;
using graph::Placement;
using graph::Program;
using graph::testing::cpus;
using graph::testing::text_of;

namespace {

// What a Send and its Recv agree on.
std::string key_of(const Node& node) {
  return graph::transfer_name_of(node).value().key;
}

// What is counted beside: how often something is sent, or a Recv started.
enum class Counted : uint8_t { kSends, kRecvs };

// One graph again: each Recv becomes an Identity of what is sent to it. A
// ControlTrigger in front of it fires, dead or not, whenever something is sent
// or, as is asked, whenever the Recv is started.
struct Joined {
  Graph graph;
  std::vector<std::pair<std::string, Tensor>> feeds;
  std::vector<std::string> fetches;
};

Joined join(const std::vector<Partition>& parts,
            const std::vector<DeviceInfo>& devices,
            const std::vector<Tensor>& fed, Counted counted) {
  std::map<std::string, std::string> sent;  // by key, the Send's input
  for (const Partition& part : parts) {
    for (const Node* node : part.program.graph.nodes()) {
      CHECK(node->device() == devices[part.device].name.to_string());
      if (node->op() != "_Send") continue;
      CHECK(text_of(*node, "send_device") == node->device());
      CHECK(node->control_inputs().empty());
      CHECK(std::ranges::count(part.program.targets, node) == 1);
      CHECK(sent.emplace(key_of(*node), node->inputs()[0].to_string()).second);
    }
  }
  Joined joined;
  std::vector<NodeDef> defs;
  std::set<std::string> received;
  for (const Partition& part : parts) {
    for (const Node* node : part.program.graph.nodes()) {
      if (node->op() == "_Send") continue;
      NodeDef def = Graph::to_def(*node);
      if (node->op() == "_Recv") {
        CHECK(text_of(*node, "recv_device") == node->device());
        const std::string key = key_of(*node);
        CHECK(received.insert(key).second);
        REQUIRE(sent.contains(key));
        const std::string& input = sent[key];
        NodeDef trigger{
            def.name + "/counted", "ControlTrigger", def.inputs, "", {}};
        if (counted == Counted::kSends)
          trigger.inputs = {"^" + input.substr(0, input.rfind(':'))};
        def.op = "Identity";
        def.attrs = {};
        def.inputs.insert(def.inputs.begin(), input);
        def.inputs.push_back("^" + trigger.name);
        defs.push_back(std::move(trigger));
      }
      defs.push_back(std::move(def));
    }
    const Program& program = part.program;
    for (size_t i = 0; i < program.feeds.size(); ++i)
      if (program.feeds[i].node != nullptr)
        joined.feeds.emplace_back(program.feeds[i].to_string(), fed[i]);
    joined.fetches.resize(program.fetches.size());
    for (size_t i = 0; i < program.fetches.size(); ++i) {
      if (program.fetches[i].node == nullptr) continue;
      CHECK(joined.fetches[i].empty());
      CHECK(devices[part.device].host_memory);
      joined.fetches[i] = program.fetches[i].to_string();
    }
  }
  CHECK(received.size() == sent.size());
  const Status status = joined.graph.extend(std::move(defs));
  REQUIRE_MESSAGE(status.ok(), status.to_string());
  return joined;
}

// Any device for any node; what must stay together stays.
Placement scatter(const Program& program, Choices& choices,
                  const std::vector<DeviceInfo>& devices,
                  const graph::FrameMap& frames,
                  const std::vector<std::string>& whole) {
  Placement placement;
  placement.device_of.resize(program.graph.end_id());
  std::vector<uint32_t> device_of_frame;
  for (const graph::StaticFrame& frame : frames.frames()) {
    const size_t parent = size_t(frame.parent);
    device_of_frame.push_back(whole[parent].empty()
                                  ? choices.below(uint32_t(devices.size()))
                                  : device_of_frame[parent]);
  }
  for (const Node* node : program.graph.nodes()) {
    uint32_t& device = placement.device_of[node->id()];
    const size_t frame = size_t(frames.of(*node));
    device = whole[frame].empty() ? choices.below(uint32_t(devices.size()))
                                  : device_of_frame[frame];
    for (const Endpoint& input : node->inputs())
      if (input.node->output_dtypes()[size_t(input.port)] ==
          DataType::kResource)
        device = placement.device_of[input.node->id()];
    if (node->op() == "Placeholder") device = 0;
  }
  return placement;
}

void expect_same(const Interpretation& cut, const Interpretation& whole) {
  CHECK(!cut.is_ambiguous);
  REQUIRE(cut.fetches.size() == whole.fetches.size());
  for (size_t i = 0; i < cut.fetches.size(); ++i) {
    CAPTURE(i);
    REQUIRE(cut.fetches[i].state == whole.fetches[i].state);
    if (cut.fetches[i].state == State::kLive)
      CHECK(identical(cut.fetches[i].value, whole.fetches[i].value));
  }
}

// The program of a case, cut along a placement that the seed chooses.
struct RandomCut {
  RandomCut(const Case& made, uint64_t seed) {
    SeededChoices choices(seed);
    devices = cpus(2 + int(seed % 4));
    for (size_t i = 1; i < devices.size(); ++i)
      devices[i].host_memory = choices.below(3) > 0;
    std::vector<Endpoint> feeds, fetches;
    for (const auto& [name, value] : made.feeds) {
      feeds.push_back(made.graph.endpoint(name).value());
      fed.push_back(value);
    }
    for (const std::string& name : made.fetches)
      fetches.push_back(made.graph.endpoint(name).value());
    Program program = graph::extract(made.graph, feeds, fetches, {}).value();
    graph::testing::must(graph::lower_functions(program));
    program.graph.library() = graph::FunctionLibrary();
    can_be_interpreted = program.bodies.empty();
    for (const Node* node : program.graph.nodes())
      if (node->op() == "_SwitchN") can_be_interpreted = false;
    const auto frames = graph::FrameMap::build(program.graph).value();
    const auto reasons = graph::find_whole_loops(program, frames);
    cuttable = size_t(std::ranges::count(reasons, "")) - 1;
    whole = reasons.size() - 1 - cuttable;
    const Placement placement =
        scatter(program, choices, devices, frames, reasons);
    auto cut = partition(std::move(program), devices, placement);
    REQUIRE_MESSAGE(cut.ok(), cut.status().to_string());
    parts = std::move(*cut);
  }

  size_t count(std::string_view op) const {
    size_t count = 0;
    for (const Partition& part : parts)
      for (const Node* node : part.program.graph.nodes())
        count += node->op() == op;
    return count;
  }

  // Its meaning is that of the case.
  void check(const Case& made) const {
    for (const Partition& part : parts) {
      const Status valid = graph::validate(part.program.graph);
      REQUIRE_MESSAGE(valid.ok(), valid.to_string());
    }
    const auto expected = interpret(made.graph, made.feeds, made.fetches);
    REQUIRE_MESSAGE(expected.ok(), expected.status().to_string());
    InterpreterOptions options;
    options.max_depth = 10'000;
    std::vector<int64_t> fired;
    for (const Counted counted : {Counted::kSends, Counted::kRecvs}) {
      const Joined joined = join(parts, devices, fed, counted);
      const auto cut =
          interpret(joined.graph, joined.feeds, joined.fetches, options);
      REQUIRE_MESSAGE(cut.ok(), cut.status().to_string());
      expect_same(*cut, *expected);
      fired.push_back(cut->counts.computed);
    }
    // A Recv that is started once too often would never end.
    CHECK(fired[0] == fired[1]);
  }

  std::vector<DeviceInfo> devices;
  std::vector<Tensor> fed;
  std::vector<Partition> parts;
  // Loops that can be cut, and those that cannot.
  size_t cuttable = 0;
  size_t whole = 0;
  // The interpreter knows nothing that only lowering makes.
  bool can_be_interpreted = false;
};

}  // namespace

TEST_CASE("odd loops mean the same when they are cut") {
  size_t cuttable = 0, transfers = 0;
  for (const auto& make : kOddLoops) {
    const Case made = make();
    for (uint64_t seed = 0; seed < 60; ++seed) {
      CAPTURE(seed);
      const RandomCut cut(made, seed);
      cut.check(made);
      transfers += cut.count("_Send");
      if (seed == 0) cuttable += cut.cuttable;
    }
  }
  CHECK(cuttable == 6);
  CHECK(transfers > 5'000);
}

TEST_CASE("random odd loops mean the same when they are cut") {
  size_t cuttable = 0, whole = 0, transfers = 0;
  for (uint64_t seed = 0; seed < 1'000; ++seed) {
    CAPTURE(seed);
    const Case made = random_odd_loops(seed);
    const RandomCut cut(made, seed);
    cut.check(made);
    cuttable += cut.cuttable;
    whole += cut.whole;
    transfers += cut.count("_Send");
  }
  CHECK(cuttable > 1'000);
  CHECK(whole > 1'000);
  CHECK(transfers > 20'000);
}

TEST_CASE("random graphs mean the same when they are cut") {
  size_t transfers = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    const Result<Case> made = random_graph(seed, {.functions = false});
    REQUIRE_MESSAGE(made.ok(), made.status().to_string());
    const RandomCut cut(*made, seed);
    cut.check(*made);
    transfers += cut.count("_Send");
  }
  CHECK(transfers > 12'000);
}

TEST_CASE("random graphs with functions mean the same when they are cut") {
  size_t checked = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    const Result<Case> made = random_graph(seed);
    REQUIRE_MESSAGE(made.ok(), made.status().to_string());
    const RandomCut cut(*made, seed);
    if (!cut.can_be_interpreted) continue;
    cut.check(*made);
    ++checked;
  }
  CHECK(checked > 100);
}

namespace {

// Checks the case with Recvs held back, and counts them. The schedule is
// random: what is safe must not depend on the times.
size_t check_late(const Case& made, uint64_t seed) {
  RandomCut cut(made, seed);
  SeededChoices choices(seed + 1);
  graph::RecvScheduleOptions options;
  options.cost = [&](const Node&) { return int64_t(choices.below(9)); };
  options.min_delay = 0;
  options.min_bytes = 0;
  const auto count = graph::schedule_recvs(cut.parts, options);
  REQUIRE_MESSAGE(count.ok(), count.status().to_string());
  cut.check(made);
  return *count;
}

}  // namespace

TEST_CASE("random graphs mean the same when their Recvs start late") {
  size_t held_back = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    const Result<Case> made = random_graph(seed, {.functions = false});
    REQUIRE_MESSAGE(made.ok(), made.status().to_string());
    held_back += check_late(*made, seed);
  }
  CHECK(held_back > 2'500);
}

TEST_CASE("odd loops mean the same when their Recvs start late") {
  size_t held_back = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    held_back += check_late(random_odd_loops(seed), seed);
  }
  CHECK(held_back > 1'000);
}

namespace {

// Puts programs that were written and read in place of all parts.
void rewrite(RandomCut& cut) {
  for (Partition& part : cut.parts) {
    const std::string bytes =
        graph::testing::must(graph::write_program(part.program));
    Program again = graph::testing::must(graph::read_program(bytes));
    graph::testing::check_same(part.program, again);
    CHECK(graph::testing::must(graph::write_program(again)) == bytes);
    part.program = std::move(again);
  }
}

}  // namespace

TEST_CASE("random graphs mean the same when their parts are written and read") {
  size_t checked = 0, bodies = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    const Result<Case> made = random_graph(seed);
    REQUIRE_MESSAGE(made.ok(), made.status().to_string());
    RandomCut cut(*made, seed);
    rewrite(cut);
    for (const Partition& part : cut.parts)
      bodies += part.program.bodies.size();
    if (!cut.can_be_interpreted) continue;
    cut.check(*made);
    ++checked;
  }
  CHECK(checked > 150);
  CHECK(bodies > 5);
}

TEST_CASE("odd loops mean the same when their parts are written and read") {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    const Case made = random_odd_loops(seed);
    RandomCut cut(made, seed);
    rewrite(cut);
    cut.check(made);
  }
}

}  // namespace tagflow::reference
