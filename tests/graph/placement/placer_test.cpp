#include "graph/placement/placer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "graph/analysis/validate.h"
#include "tests/graph/placement/check_placement.h"
#include "tests/graph/placement/random_program.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

// A graph, and where its nodes go.
struct Placing {
  Graph graph;
  Kernels kernels = Kernels::on_both({"MatMul", "Tanh", "Const", "Identity"});
  std::vector<DeviceInfo> devices = make_devices(2);
  CostModel costs;
  PlacementOptions options;
  std::vector<std::string> fetches;

  Node* matrix(std::string name, int64_t size) {
    return constant(graph, std::move(name),
                    Tensor::make(DataType::kFloat, {size, size}));
  }
  Node* fed(std::string name, PartialShape shape) {
    return add(graph, std::move(name), "Placeholder", {},
               {{"dtype", DataType::kFloat}, {"shape", std::move(shape)}});
  }
  Node* matmul(std::string name, Node* a, Node* b) {
    return add(graph, std::move(name), "MatMul", {{a, 0}, {b, 0}});
  }
  Program program() const {
    Program made = whole(graph.clone());
    for (const std::string& name : fetches)
      made.fetches.push_back(must(made.graph.endpoint(name)));
    return made;
  }
  PlacementResult place() const {
    const Program made = program();
    return must(graph::place(made, devices, kernels, costs, options));
  }
  std::string explain(const PlacementResult& result, Node* node) const {
    return result.explain(graph, devices, *node);
  }
};

uint32_t device_of(const PlacementResult& result, const Node* node) {
  return result.placement.device_of[node->id()];
}

const SimulatedRun& run_of(const PlacementResult& result, const Node* node) {
  for (const SimulatedRun& run : result.runs)
    if (run.node == node->id()) return run;
  FAIL("no run of ", node->name());
  return result.runs[0];
}

}  // namespace

TEST_CASE("the placer has nothing to choose on one device") {
  Placing p;
  p.devices = make_devices(1);
  Node* a = p.matrix("a", 8);
  Node* b = p.matmul("b", a, a);
  const PlacementResult result = p.place();
  CHECK(device_of(result, b) == 0);
  CHECK(p.kernels.questions == 0);
  CHECK(result.runs.empty());
  CHECK(p.explain(result, b) == "the only device");
  p.options.always_simulate = true;
  const PlacementResult simulated = p.place();
  CHECK(simulated.runs.size() == 2);
  CHECK(simulated.makespan_ns > 100);
  CHECK(p.explain(simulated, b) == "the only device");
}

TEST_CASE("the placer checks constraints on one device, too") {
  Placing p;
  p.devices = make_devices(1);
  Node* a = on(p.graph, p.matrix("a", 8), "/device:GPU:0");
  const Program program = p.program();
  CHECK(message_of(place(program, p.devices, p.kernels, p.costs, {}).status(),
                   Code::kInvalidArgument) ==
        "[placement] node \"a\" asks for \"/device:GPU:0\", and there is no "
        "such device; the devices are "
        "/job:localhost/replica:0/task:0/device:CPU:0; --devices "
        "(SessionOptions::devices) makes others, and --soft-placement "
        "(SessionOptions::soft_placement) takes a CPU instead");
  p.options.soft = true;
  const PlacementResult result = p.place();
  CHECK(device_of(result, a) == 0);
  CHECK(result.warnings.size() == 1);
}

TEST_CASE("the placer spreads independent work over the devices") {
  Placing p;
  Node* x = p.fed("x", {256, 256});
  Node* a = p.matmul("a", x, x);
  Node* b = p.matmul("b", x, x);
  Node* c = p.matmul("c", a, b);
  const PlacementResult result = p.place();
  CHECK(device_of(result, a) == 0);
  CHECK(device_of(result, b) == 1);
  // Each takes 4.2 ms; one of them is handed over.
  CHECK(result.makespan_ns < 2.1 * run_of(result, a).finish_ns);
  CHECK(run_of(result, c).start_ns ==
        run_of(result, a).finish_ns + CostModel::kHandOverNs);
  CHECK(result.runs.size() == 4);
  CHECK(result.transfers.size() == 2);
  CHECK(p.explain(result, x) == "where its reader is, \"a\"");
  CHECK(p.explain(result, a) ==
        "finishes first: 4194.4 us, on CPU:1 4194.4 us");
}

TEST_CASE("the placer keeps a chain of dependent nodes on one device") {
  Placing p;
  Node* last = p.fed("x", {16, 16});
  for (int i = 0; i < 20; ++i)
    last = p.matmul(fmt::format("m{}", i), last, last);
  const PlacementResult result = p.place();
  CHECK(result.transfers.empty());
}

TEST_CASE("the placer uses a faster device if there is enough to do") {
  for (const int64_t size : {4, 512}) {
    CAPTURE(size);
    Placing p;
    p.devices = make_devices(1, 1);
    Node* x = p.fed("x", {size, size});
    Node* a = p.matmul("a", x, x);
    Node* b = p.matmul("b", a, x);
    const PlacementResult result = p.place();
    const uint32_t expected = size == 4 ? 0 : 1;
    CHECK(device_of(result, x) == 0);
    CHECK(device_of(result, a) == expected);
    CHECK(device_of(result, b) == expected);
    // x is sent once, though it is read twice there.
    REQUIRE(result.transfers.size() == expected);
    if (size == 4) continue;
    CHECK(result.transfers[0].node == x->id());
    CHECK(result.transfers[0].bytes == 4. * 512 * 512);
    CHECK(result.transfers[0].finish_ns ==
          CostModel().transfer_ns(p.devices[0], p.devices[1], 4. * 512 * 512));
  }
}

TEST_CASE("the placer uses another task only for work that its link is for") {
  for (const int64_t size : {4, 512}) {
    CAPTURE(size);
    Placing p;
    p.devices = make_workers(2);
    Node* x = p.fed("x", {size, size});
    Node* a = p.matmul("a", x, x);
    Node* b = p.matmul("b", x, x);
    const PlacementResult result = p.place();
    CHECK((device_of(result, a) == device_of(result, b)) == (size == 4));
  }
}

TEST_CASE("the placer puts constants beside their first reader") {
  Placing p;
  p.devices = make_devices(1, 1);
  Node* weights = p.matrix("weights", 512);
  Node* same = add(p.graph, "same", "Identity", {{weights, 0}});
  Node* a = p.matmul("a", same, weights);
  Node* alone = p.matrix("alone", 8);
  const PlacementResult result = p.place();
  CHECK(device_of(result, a) == 1);
  CHECK(device_of(result, weights) == 1);
  CHECK(device_of(result, same) == 1);
  CHECK(device_of(result, alone) == 0);
  CHECK(result.transfers.empty());
  CHECK(p.explain(result, weights) == "where its reader is, \"a\"");
  CHECK(p.explain(result, same) == "where its data is, from \"weights\"");
  CHECK(p.explain(result, alone) == "anywhere, it costs nothing");
}

TEST_CASE("the placer gives constraints, kernels and colocation as reasons") {
  Placing p;
  p.kernels.types["Neg"] = {"STREAM"};
  p.devices = make_devices(2, 1);
  Node* x = p.fed("x", {8, 8});
  Node* a = on(p.graph, p.matmul("a", x, x), "/cpu:1");
  Node* b = add(p.graph, "b", "Neg", {{a, 0}});
  Node* c = p.matmul("c", x, x);
  p.graph.set_attr(c, "_class", std::vector<std::string>{"loc:@a"});
  Node* d = p.matmul("d", x, x);
  Node* e = p.matmul("e", x, x);
  p.graph.set_attr(e, "_class", std::vector<std::string>{"loc:@d"});
  const PlacementResult result = p.place();
  CHECK(device_of(result, a) == 1);
  CHECK(device_of(result, b) == 2);
  CHECK(device_of(result, c) == 1);
  CHECK(device_of(result, d) == device_of(result, e));
  CHECK(p.explain(result, a) == "constraint \"/cpu:1\"");
  CHECK(p.explain(result, b) == "no other device can run it");
  CHECK(p.explain(result, c) == "colocated with \"a\"");
  CHECK(p.explain(result, e) == "colocated with \"d\"");
}

TEST_CASE("the placer names another node of a group as a reason") {
  Placing p;
  Node* x = p.fed("x", {8, 8});
  Node* a = p.matmul("a", x, x);
  Node* b = on(p.graph, p.matmul("b", a, x), "/cpu:1");
  p.graph.set_attr(b, "_class", std::vector<std::string>{"loc:@a"});
  const PlacementResult result = p.place();
  CHECK(device_of(result, a) == 1);
  CHECK(p.explain(result, a) == "colocated with \"b\"");
  CHECK(p.explain(result, b) == "constraint \"/cpu:1\"");
}

TEST_CASE("the placer keeps a chain of small scalars beside its source") {
  Placing p;
  p.devices = make_devices(3);
  Node* x = p.fed("x", {64, 64});
  for (int i = 0; i < 3; ++i) p.matmul(fmt::format("m{}", i), x, x);
  Node* size = add(p.graph, "size", "Size", {{x, 0}});
  Node* one = constant(p.graph, "one", Tensor::scalar(1));
  Node* last = size;
  for (int i = 0; i < 10; ++i)
    last = add(p.graph, fmt::format("s{}", i), "AddV2", {{last, 0}, {one, 0}});
  const PlacementResult result = p.place();
  for (const Node* node : p.graph.nodes()) {
    if (node->op() == "AddV2")
      CHECK(device_of(result, node) == device_of(result, size));
  }
  CHECK(p.explain(result, last) == "where its data is, from \"s8\"");
}

TEST_CASE("the placer puts a loop where its body is, with its variables") {
  Placing p;
  p.devices = make_devices(1, 1);
  Graph& graph = p.graph;
  Node* start = constant(graph, "start", Tensor::scalar(0));
  Node* limit = constant(graph, "limit", Tensor::scalar(9));
  const Counter loop = counter(graph, "loop", {start, 0}, {limit, 0});
  Node* zeros = p.matrix("zeros", 512);
  Node* enter =
      add(graph, "enter", "Enter", {{zeros, 0}}, {{"frame_name", "loop"}});
  Node* merge = add(graph, "merge", "Merge", {{enter, 0}, {}});
  graph.set_output_shape(merge, 0, {512, 512});
  Node* fork = add(graph, "fork", "Switch", {{merge, 0}, {loop.cond, 0}});
  Node* body = add(graph, "body", "Identity", {{fork, 1}});
  Node* next = add(graph, "next", "NextIteration",
                   {{p.matmul("product", body, body), 0}});
  must(graph.set_input(merge, 1, {next, 0}));
  Node* exit = add(graph, "exit", "Exit", {{fork, 0}});
  must(validate(graph));
  const PlacementResult result = p.place();
  for (Node* node : {zeros, enter, merge, fork, body, next, exit})
    CHECK(device_of(result, node) == 1);
  for (Node* node : {loop.add, loop.merge, loop.less, loop.cond})
    CHECK(device_of(result, node) == 0);
  // All iterations at once; the predicate is what is sent.
  CHECK(result.makespan_ns > CostModel::kAssumedTrips * 2. * 512 * 512 * 512 /
                                 p.devices[1].flops_per_ns);
  REQUIRE(result.transfers.size() == 1);
  CHECK(result.transfers[0].node == loop.cond->id());
  CHECK(result.transfers[0].bytes == 1);
}

TEST_CASE("the placer puts a stack where its values are computed") {
  Placing p;
  p.devices = make_devices(1, 1);
  for (const char* op :
       {"PersistentStack", "PersistentStackPush", "PersistentStackPop"})
    p.kernels.types[op] = {"CPU", "STREAM"};
  Graph& graph = p.graph;
  const AttrMap type = {{"elem_type", DataType::kFloat}};
  Node* stack = add(graph, "stack", "PersistentStack", {}, type);
  Node* matrix = p.matrix("matrix", 512);
  Node* product = p.matmul("product", matrix, matrix);
  Node* square = p.matmul("square", product, product);
  Node* push =
      add(graph, "push", "PersistentStackPush", {{stack, 0}, {product, 0}});
  Node* again =
      add(graph, "again", "PersistentStackPush", {{push, 0}, {square, 0}});
  Node* pop = add(graph, "pop", "PersistentStackPop", {{again, 0}}, type);
  must(validate(graph));
  const PlacementResult result = p.place();
  for (Node* node : {product, square, stack, push, again, pop})
    CHECK(device_of(result, node) == 1);
  CHECK(result.transfers.empty());
}

TEST_CASE("the placer uses measurements of earlier runs") {
  Placing p;
  p.devices = make_devices(1, 1);
  Node* x = p.fed("x", {512, 512});
  Node* a = p.matmul("a", x, x);
  CHECK(device_of(p.place(), a) == 1);
  p.costs.measure("a", "STREAM", 1e9, 4);
  p.costs.measure("a", "CPU", 10, 4);
  const PlacementResult result = p.place();
  CHECK(device_of(result, a) == 0);
  CHECK(p.explain(result, a) ==
        "finishes first: 0.0 us, on STREAM:0 1000115.9 us");
}

TEST_CASE("the placer counts all measured bytes for one Switch output") {
  Placing p;
  p.kernels = Kernels::on_both({"Switch", "Identity"});
  Node* x = p.fed("x", {16, 16});
  Node* pred = constant(p.graph, "p", Tensor::scalar(true));
  Node* fork = add(p.graph, "fork", "Switch", {{x, 0}, {pred, 0}});
  Node* taken = add(p.graph, "taken", "Identity", {{fork, 1}});
  on(p.graph, fork, "/cpu:0");
  on(p.graph, taken, "/cpu:1");
  p.costs.measure("fork", "CPU", 10, 512);
  const PlacementResult result = p.place();
  REQUIRE(result.transfers.size() == 1);
  CHECK(result.transfers[0].node == fork->id());
  CHECK(result.transfers[0].bytes == 512);
}

TEST_CASE("the placer passes over a device without room") {
  Placing p;
  p.devices = make_devices(1, 1);
  Node* x = p.fed("x", {512, 512});
  Node* a = p.matmul("a", x, x);
  const int64_t bytes = 4 * 512 * 512;
  p.devices[1].memory_limit = 2 * bytes;
  CHECK(device_of(p.place(), a) == 1);
  // x and a at once are too much.
  p.devices[1].memory_limit = 2 * bytes - 1;
  CHECK(device_of(p.place(), a) == 0);
  CHECK(p.explain(p.place(), a) == "no other device has room");
  // Nothing is large enough: the larger one, with a warning.
  p.devices[0].memory_limit = 10;
  const PlacementResult result = p.place();
  CHECK(device_of(result, a) == 1);
  CHECK(p.explain(result, a) == "no device has room, this one has the most");
  CHECK(result.warnings ==
        std::vector<std::string>{
            "by estimate, no device has room for the inputs and outputs of 1 "
            "nodes; the first is \"a\""});
}

TEST_CASE("the placer frees memory when the last reader has been placed") {
  Placing p;
  p.devices = make_devices(1, 1);
  Node* last = p.matmul("m", p.fed("x", {512, 512}), p.fed("y", {512, 512}));
  for (int i = 0; i < 9; ++i)
    last = p.matmul(fmt::format("m{}", i), last, last);
  p.devices[1].memory_limit = 3 * 4 * 512 * 512;
  const PlacementResult result = p.place();
  for (const Node* node : p.graph.nodes())
    CHECK(device_of(result, node) == (node->op() == "MatMul" ? 1 : 0));
  CHECK(result.warnings.empty());
  // What is fetched stays.
  p.fetches = {"m", "m0", "m1"};
  CHECK(device_of(p.place(), last) == 0);
}

TEST_CASE("the placer uses a device that runs several kernels at once") {
  Placing p;
  p.devices[0].kernels_at_once = 3;
  Node* x = p.fed("x", {256, 256});
  for (int i = 0; i < 3; ++i) p.matmul(fmt::format("m{}", i), x, x);
  const PlacementResult result = p.place();
  for (const Node* node : p.graph.nodes()) CHECK(device_of(result, node) == 0);
  CHECK(result.transfers.empty());
}

TEST_CASE("the placer's simulation is consistent on random programs") {
  const Kernels kernels =
      Kernels::on_both({"AddV2", "MatMul", "Neg", "Tanh", "Identity", "StackV2",
                        "StackPushV2", "StackPopV2", "Reshape", "Const"});
  auto devices = make_devices(2, 2);
  devices[3].memory_limit = 4'000;
  int placed = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    const Program program = RandomProgram(seed).make(60, seed % 2 == 1);
    const Graph& graph = program.graph;
    const auto made = place(program, devices, kernels, CostModel(), {});
    if (!made.ok()) {
      const std::string text =
          message_of(made.status(), Code::kInvalidArgument);
      CHECK(seed % 2 == 1);
      CHECK(contains(text, "must be on one device"));
      must(place(program, devices, kernels, CostModel(), {.soft = true}));
      continue;
    }
    ++placed;
    const PlacementResult& result = *made;
    check_placement(program, devices, kernels, result.placement);
    // Each node once, on the device where it was placed, after its inputs.
    REQUIRE(result.runs.size() == graph.size());
    std::vector<double> finish(graph.end_id(), -1);
    std::set<std::pair<NodeId, uint32_t>> sent;
    for (const SimulatedTransfer& transfer : result.transfers) {
      CHECK(transfer.from != transfer.to);
      CHECK(transfer.from == result.placement.device_of[transfer.node]);
      CHECK(transfer.finish_ns > transfer.start_ns);
      sent.emplace(transfer.node, transfer.to);
    }
    double last = 0;
    for (const SimulatedRun& run : result.runs) {
      const Node& node = *graph.node(run.node);
      CAPTURE(node.name());
      CHECK(run.device == result.placement.device_of[run.node]);
      CHECK(finish[run.node] == -1);
      CHECK(run.finish_ns >= run.start_ns);
      for (size_t i = 0; i < node.inputs().size(); ++i) {
        const Node* source = node.inputs()[i].node;
        if (node.is_merge() && source->is_next_iteration()) continue;
        REQUIRE(finish[source->id()] >= 0);
        CHECK(finish[source->id()] <= run.start_ns);
        if (result.placement.device_of[source->id()] != run.device)
          CHECK(sent.contains({source->id(), run.device}));
      }
      finish[run.node] = run.finish_ns;
      last = std::max(last, run.finish_ns);
      CHECK_FALSE(result.explain(graph, devices, node).empty());
    }
    CHECK(result.makespan_ns == last);
    // Whoever made the placement, the prediction is of this kind.
    const PlacementResult again =
        must(simulate(program, devices, CostModel(), result.placement));
    CHECK(again.placement.device_of == result.placement.device_of);
    CHECK(again.runs.size() == graph.size());
    CHECK(again.transfers.size() == result.transfers.size());
    // A second run places nodes alike.
    CHECK(must(place(program, devices, kernels, CostModel(), {}))
              .placement.device_of == result.placement.device_of);
  }
  CHECK(placed >= 100);
}

TEST_CASE("the placer places a long chain of nodes without a certain place") {
  Placing p;
  Node* last = p.matrix("c", 2);
  for (int i = 0; i < 20'000; ++i)
    last = add(p.graph, fmt::format("i{}", i), "Identity", {{last, 0}});
  const PlacementResult free = p.place();
  CHECK(device_of(free, last) == 0);
  Node* a = on(p.graph, p.matmul("a", last, last), "/cpu:1");
  const PlacementResult result = p.place();
  CHECK(device_of(result, a) == 1);
  CHECK(device_of(result, p.graph.find("c")) == 1);
  CHECK(result.transfers.empty());
}

TEST_CASE("the placer predicts a better time for a better placement") {
  Placing p;
  Node* x = p.fed("x", {256, 256});
  for (int i = 0; i < 8; ++i) p.matmul(fmt::format("m{}", i), x, x);
  const Program program = p.program();
  const PlacementResult good = p.place();
  Placement all_on_one = good.placement;
  std::ranges::fill(all_on_one.device_of, 0u);
  const auto predict = [&](const Placement& placement) {
    return must(simulate(program, p.devices, p.costs, placement)).makespan_ns;
  };
  CHECK(predict(good.placement) == good.makespan_ns);
  CHECK(p.explain(must(simulate(program, p.devices, p.costs, all_on_one)), x) ==
        "as it was given");
  CHECK(predict(all_on_one) > 1.9 * good.makespan_ns);
}
