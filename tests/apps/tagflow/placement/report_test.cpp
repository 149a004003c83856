#include "apps/tagflow/placement/report.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/actors/sessions.h"
#include "tests/graph/passes/whole_program.h"

using namespace tagflow;
using namespace tagflow::apps;
using namespace tagflow::graph::testing;
namespace tg = tagflow::graph;

namespace {

// x -> double on one CPU; x and that -> sum on another.
tg::Graph two_places() {
  tg::Graph graph;
  tg::Node* x = placeholder(graph, "x", DataType::kFloat,
                            PartialShape({int64_t(1000), int64_t(1000)}));
  tg::Node* twice = add(graph, "twice", "AddV2", {{x, 0}, {x, 0}});
  tg::Node* sum = add(graph, "sum", "AddV2", {{x, 0}, {twice, 0}});
  graph.set_device(x, "/cpu:0");
  graph.set_device(twice, "/cpu:0");
  graph.set_device(sum, "/cpu:1");
  return graph;
}

PlacementReport report_of(const tg::Graph& graph, const std::string& devices,
                          const std::vector<std::string>& fetches,
                          std::optional<uint64_t> scatter = std::nullopt) {
  actors::SessionOptions options;
  options.devices = devices;
  options.passes = tg::PassSet::none();
  options.scatter = scatter;
  const auto session = actors::make_session(options, graph);
  const auto distribution = must(session->explain({}, fetches));
  return must(report_placement(distribution, session->device_infos()));
}

const PlacedNode& node_of(const PlacementReport& report,
                          const std::string& name) {
  for (const PlacedNode& node : report.nodes)
    if (node.name == name) return node;
  FAIL("no node ", name);
  return report.nodes[0];
}

}  // namespace

TEST_CASE("a report says where each node is, why, and when") {
  const PlacementReport report = report_of(two_places(), "cpu:2", {"sum"});
  REQUIRE(report.devices.size() == 2);
  CHECK(report.devices[1].name ==
        "/job:localhost/replica:0/task:0/device:CPU:1");
  CHECK(report.devices[1].short_name == "CPU:1");
  CHECK(report.devices[0].nodes == 2);
  CHECK(report.devices[1].nodes == 1);
  const PlacedNode& sum = node_of(report, "sum");
  CHECK(sum.device == 1);
  CHECK(sum.op == "AddV2");
  CHECK(sum.frame == "");
  CHECK(sum.reason == "constraint \"/cpu:1\"");
  CHECK(sum.start_us >= node_of(report, "twice").finish_us);
  CHECK(sum.finish_us == doctest::Approx(report.makespan_us));
  const double busy = sum.finish_us - sum.start_us;
  CHECK(report.devices[1].busy_us == doctest::Approx(busy));
  CHECK(report.devices[1].share ==
        doctest::Approx(busy / report.makespan_us /
                        report.devices[1].kernels_at_once));
}

TEST_CASE("a report names what is sent, and the first to read it") {
  const PlacementReport report = report_of(two_places(), "cpu:2", {"sum"});
  REQUIRE(report.transfers.size() == 2);
  std::vector<std::string> tensors;
  for (const PlacedTransfer& transfer : report.transfers) {
    tensors.push_back(transfer.tensor);
    CHECK(transfer.from == 0);
    CHECK(transfer.to == 1);
    CHECK(transfer.bytes == 4e6);
    CHECK(report.nodes[transfer.reader].name == "sum");
    CHECK(report.nodes[transfer.source].name + ":0" == transfer.tensor);
    CHECK(transfer.finish_us > transfer.start_us);
  }
  std::ranges::sort(tensors);
  CHECK(tensors == std::vector<std::string>{"twice:0", "x:0"});
  CHECK(report.transferred_bytes == 8e6);
}

TEST_CASE("a control edge that crosses is named after its node") {
  tg::Graph graph;
  tg::Node* first = add(graph, "first", "NoOp");
  tg::Node* last =
      add(graph, "last", "Const", {},
          {{"value", Tensor::scalar(1)}, {"dtype", DataType::kInt32}}, {first});
  graph.set_device(first, "/cpu:0");
  graph.set_device(last, "/cpu:1");
  const PlacementReport report = report_of(graph, "cpu:2", {"last"});
  REQUIRE(report.transfers.size() == 1);
  CHECK(report.transfers[0].tensor == "^first");
}

TEST_CASE("a placement report for one device has a prediction only") {
  tg::Graph graph;
  add(graph, "sum", "AddV2",
      {{constant(graph, "a", Tensor::scalar(1.5F)), 0},
       {constant(graph, "b", Tensor::scalar(2.5F)), 0}});
  const PlacementReport report = report_of(graph, "", {"sum"});
  CHECK(report.devices.size() == 1);
  CHECK(report.notes ==
        std::vector<std::string>{"there is one device, and nothing to choose"});
  for (const PlacedNode& node : report.nodes)
    CHECK(node.reason == "the only device");
}

TEST_CASE("a placement at random is simulated too") {
  tg::Graph graph;
  tg::Endpoint last{placeholder(graph, "x", DataType::kFloat), 0};
  for (int i = 0; i < 30; ++i)
    last = {add(graph, fmt::format("n{}", i), "Neg", {last}), 0};
  const PlacementReport report = report_of(graph, "cpu:3", {"n29"}, 5);
  CHECK(report.nodes.size() == 31);
  CHECK(report.makespan_us > 0);
  CHECK(!report.transfers.empty());
  for (const PlacedNode& node : report.nodes)
    CHECK(node.reason == "drawn at random");
}

TEST_CASE("a report says of loops how often they count") {
  tg::Graph graph;
  tg::Node* start = constant(graph, "start", Tensor::scalar(0));
  tg::Node* limit = placeholder(graph, "limit", DataType::kInt32);
  counter(graph, "while", {start, 0}, {limit, 0});
  const PlacementReport report = report_of(graph, "cpu:2", {"while/exit"});
  CHECK(node_of(report, "while/add").frame == "while");
  CHECK(report.notes ==
        std::vector<std::string>{
            "a loop counts as 10 iterations, one after another, or, if it "
            "was measured, as many as it made; a transfer in it counts once"});
}

TEST_CASE("the schedule has a track for each device and each link in use") {
  const PlacementReport report = report_of(two_places(), "cpu:3", {"sum"});
  const draw::Schedule schedule = make_schedule(report);
  REQUIRE(schedule.tracks.size() == 4);
  CHECK(schedule.tracks[2].name == "CPU:2");
  CHECK(schedule.tracks[2].items.empty());
  CHECK(schedule.tracks[3].name == "CPU:0 → CPU:1");
  CHECK(schedule.tracks[3].is_link);
  CHECK(schedule.tracks[3].items.size() == 2);
  // From each source to its transfer, from there to the reader.
  REQUIRE(schedule.lines.size() == 4);
  for (const auto& [from, to] : schedule.lines)
    CHECK(schedule.tracks[from.track].items[from.item].finish_us <=
          schedule.tracks[to.track].items[to.item].start_us + 1e-9);
  CHECK(draw::to_svg(schedule).ok());
}

TEST_CASE("text and JSON of a report have the same numbers") {
  PlacementReport report = report_of(two_places(), "cpu:2", {"sum"});
  report.warnings = {"odd"};
  report.measured = MeasuredRuns{3, 12.5};
  const std::string text = format_placement(report);
  CHECK(contains(text, "\nmeasured    12.5 us, median of 3 runs\n"));
  CHECK(contains(text, "\ntransfers   2, 8000000 bytes\n"));
  CHECK(contains(text, "\nwarning     odd\n"));
  CHECK(contains(text, "\n  sum  AddV2  constraint \"/cpu:1\"\n"));
  const auto json = nlohmann::json::parse(format_placement_json(report));
  CHECK(json["measured"]["median_us"] == 12.5);
  CHECK(json["transfers"].size() == 2);
  CHECK(json["nodes"][0]["device"] == report.devices[0].name);
  CHECK(json["makespan_us"] == report.makespan_us);
  CHECK(json["warnings"][0] == "odd");
}
