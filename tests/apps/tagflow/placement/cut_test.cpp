#include "apps/tagflow/placement/cut.h"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "apps/shared/draw/layout.h"
#include "apps/shared/draw/svg.h"
#include "graph/builder/builder.h"
#include "graph/file/graphdef.h"
#include "tests/actors/sessions.h"
#include "tests/graph/builder/dump.h"
#include "tests/graph/hand_made.h"
#include "tests/temp_folder.h"

using namespace tagflow;
using namespace tagflow::apps;
using namespace tagflow::graph::testing;
namespace tg = tagflow::graph;
namespace fs = std::filesystem;

namespace {

constexpr const char* kFirst = "/job:localhost/replica:0/task:0/device:CPU:0";
constexpr const char* kFirstFile =
    "job_localhost_replica_0_task_0_device_CPU_0.pb";

// A graph, cut along the constraints of its nodes.
struct CutGraph {
  CutGraph(const tg::Graph& graph, const std::vector<std::string>& fetches) {
    actors::SessionOptions options;
    options.devices = "cpu:3";
    options.passes = tg::PassSet::none();
    session = actors::make_session(options, graph);
    distribution = must(session->explain({}, fetches));
    report = must(report_cut(distribution, session->device_infos()));
    drawing = must(draw_cut(distribution, session->device_infos()));
  }

  std::unique_ptr<actors::Session> session;
  actors::Distribution distribution;
  CutReport report;
  draw::Drawing drawing;
};

// while i < 3: i = i + 1, with the sum on a second device.
tg::Graph cut_loop() {
  tg::Graph graph;
  tg::Node* start = constant(graph, "start", Tensor::scalar(0));
  tg::Node* limit = constant(graph, "limit", Tensor::scalar(3));
  counter(graph, "while", {start, 0}, {limit, 0});
  for (tg::Node* node : graph.nodes())
    graph.set_device(node,
                     node->name() == "while/add" || node->name() == "while/one"
                         ? "/cpu:1"
                         : "/cpu:0");
  return graph;
}

// A call of a recursive function on each of two devices.
tg::Graph recursion() {
  tg::Graph graph;
  const tg::Scope s(graph);
  tg::define_function(
      s, {.name = "down-to/zero>",
          .args = {{"n", DataType::kInt32, PartialShape::scalar()}},
          .results = {{DataType::kInt32, PartialShape::scalar()}},
          .body = [](const tg::Scope& in, const tg::Outputs& args) {
            return tg::cond(
                in, tg::ops::less(in, args[0], 1),
                [&](const tg::Scope&) { return args[0]; },
                [&](const tg::Scope& no) {
                  return tg::call(no, "down-to/zero>",
                                  {tg::ops::sub(no, args[0], 1)})[0];
                });
          }});
  const tg::Output n = tg::ops::placeholder(s.named("n"), DataType::kInt32,
                                            PartialShape::scalar());
  const tg::Output result = tg::call(s.named("call"), "down-to/zero>", {n})[0];
  tg::ops::identity(s.named("result"), result);
  must(s.status());
  return graph;
}

// Nodes in any order.
std::multiset<std::string> lines_of(const tg::Graph& graph) {
  std::istringstream text(dump(graph));
  std::multiset<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.insert(line);
  return lines;
}

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream(path) << text;
}

}  // namespace

TEST_CASE("a report of a cut counts what was added, by partition and frame") {
  const CutGraph cut(cut_loop(), {"while/exit"});
  REQUIRE(cut.report.partitions.size() == 2);
  const CutPartition& first = cut.report.partitions[0];
  const CutPartition& second = cut.report.partitions[1];
  CHECK(first.device == kFirst);
  CHECK(first.file == kFirstFile);
  // The predicate, and what is added to; the sum comes back.
  CHECK(first.sends == 2);
  CHECK(first.recvs == 1);
  CHECK(second.sends == 1);
  CHECK(second.recvs == 2);
  CHECK(second.control_loops == 1);
  CHECK(cut.report.transfers ==
        std::vector<std::pair<std::string, size_t>>{{"while", 3}});
}

TEST_CASE("text and JSON of a cut have the same numbers") {
  CutReport report = CutGraph(cut_loop(), {"while/exit"}).report;
  report.warnings = {"odd"};
  report.transfers.insert(report.transfers.begin(), {"", 2});
  report.partitions[1].bodies.push_back({"f", 7, "f.pb"});
  const std::string text = format_cut(report);
  CHECK(contains(text, fmt::format("partition   {}: ", kFirst)));
  CHECK(contains(text, " nodes, 1 Send, 2 Recvs, 1 control loop\n"));
  CHECK(contains(text, fmt::format("\n  file      {}\n", kFirstFile)));
  CHECK(contains(text, "\n  function  \"f\": 7 nodes, f.pb\n"));
  CHECK(contains(text,
                 "\ntransfers   2 per run, 3 per iteration of \"while\"\n"));
  CHECK(contains(text, "\nwarning     odd\n"));
  const auto json = nlohmann::json::parse(format_cut_json(report));
  CHECK(json["partitions"][1]["control_loops"] == 1);
  CHECK(json["partitions"][1]["bodies"][0]["file"] == "f.pb");
  CHECK(json["transfers"][1]["frame"] == "while");
  CHECK(json["warnings"][0] == "odd");
}

TEST_CASE("a cut for one device is one partition without transfers") {
  tg::Graph graph;
  constant(graph, "one", Tensor::scalar(1));
  const CutGraph cut(graph, {"one"});
  REQUIRE(cut.report.partitions.size() == 1);
  CHECK(cut.report.transfers.empty());
  CHECK(contains(format_cut(cut.report), "\ntransfers   none\n"));
}

TEST_CASE("a cut's drawing has frames for partitions, joined by transfers") {
  const CutGraph cut(cut_loop(), {"while/exit"});
  const auto& frames = cut.drawing.frames;
  REQUIRE(frames.size() == 5);  // two partitions, each with its loop
  CHECK(frames[1].is_partition);
  CHECK(frames[1].name == kFirst);
  CHECK(frames[2].name == "while");
  CHECK(frames[2].parent == 1);
  CHECK(frames[3].is_partition);
  CHECK(frames[4].parent == 3);
  size_t transfers = 0;
  for (const draw::DrawnEdge& edge : cut.drawing.edges) {
    if (!edge.is_transfer) continue;
    ++transfers;
    const draw::DrawnNode& send = cut.drawing.nodes[size_t(edge.from)];
    const draw::DrawnNode& recv = cut.drawing.nodes[size_t(edge.to)];
    CHECK(send.op == "_Send");
    CHECK(recv.op == "_Recv");
    CHECK(send.style == draw::NodeStyle::kTransfer);
    CHECK(send.is_added);
    CHECK(send.frame != recv.frame);
    CHECK_FALSE(edge.is_control());
  }
  CHECK(transfers == 3);
  for (const draw::DrawnNode& node : cut.drawing.nodes)
    if (contains(node.name, "control_loop")) CHECK(node.is_added);
}

TEST_CASE("DOT and SVG tell transfers and partitions from all else") {
  const CutGraph cut(cut_loop(), {"while/exit"});
  CHECK(contains(draw::to_dot(cut.drawing), "style=dashed, color=orange"));
  draw::Layout layout;
  layout.nodes.resize(cut.drawing.nodes.size());
  layout.frames.resize(cut.drawing.frames.size(), {0, 0, 10, 10});
  layout.edges.resize(cut.drawing.edges.size(),
                      {{0, 0}, {1, 1}, {2, 2}, {3, 3}});
  const std::string svg = draw::to_svg(cut.drawing, layout);
  CHECK(contains(svg, "class=\"frame partition\""));
  CHECK(contains(svg, fmt::format("<title>device {}</title>", kFirst)));
  CHECK(contains(svg, "<title>frame while</title>"));
  CHECK(contains(svg, "class=\"edge transfer\""));
  CHECK(contains(svg, "class=\"node merge added\""));
  CHECK(contains(svg, "class=\"node transfer added\""));
}

TEST_CASE("a cut's files are named after devices and functions") {
  CHECK(file_of_partition(kFirst) == kFirstFile);
  CHECK(file_of_body(kFirst, 2, "../<f>\x1b") ==
        "job_localhost_replica_0_task_0_device_CPU_0_body_2_..__f__.pb");
  CHECK(file_of_body(kFirst, 0, std::string(1000, 'f')).size() < 200);
  for (const char* name : {kFirstFile, "partitions.svg",
                           "job_w_replica_0_task_3_device_GPU_1_body_0_f.pb"})
    CHECK(is_partition_file(name));
  for (const char* name :
       {"", "graph.pb", "job_w.pb", "picture.svg", "job_w_device_GPU_1.pb",
        "job_w_replica_0_task_3_device_GPU_1.txt"})
    CHECK_FALSE(is_partition_file(name));
}

TEST_CASE("a cut's partitions are written, and read back as they were") {
  const CutGraph cut(cut_loop(), {"while/exit"});
  const tagflow::testing::TempFolder folder("cut");
  must(write_partitions(cut.distribution, cut.report, folder.path()));
  for (size_t i = 0; i < 2; ++i) {
    const tg::Graph& written = cut.distribution.partitions[i].program.graph;
    const tg::Graph read =
        must(tg::load_graph(folder.path() / cut.report.partitions[i].file));
    CHECK(lines_of(read) == lines_of(written));
  }
}

TEST_CASE("a cut removes the files of an earlier cut, and nothing else") {
  const CutGraph cut(cut_loop(), {"while/exit"});
  const tagflow::testing::TempFolder temp("stale");
  const fs::path& folder = temp.path();
  const std::string stale = "job_localhost_replica_0_task_0_device_CPU_7.pb";
  const std::string subfolder = "job_x_replica_0_task_0_device_CPU_9.pb";
  fs::create_directories(folder / subfolder);
  for (const std::string& name :
       {stale, std::string("partitions.svg"), std::string("graph.pb")})
    write_text(folder / name, "text");
  must(write_partitions(cut.distribution, cut.report, folder));
  CHECK_FALSE(fs::exists(folder / stale));
  CHECK_FALSE(fs::exists(folder / "partitions.svg"));
  CHECK(fs::exists(folder / "graph.pb"));
  CHECK(fs::exists(folder / subfolder));
  CHECK(fs::exists(folder / kFirstFile));
}

TEST_CASE("a cut has files for functions that run in frames") {
  const CutGraph cut(recursion(), {"result"});
  const tagflow::testing::TempFolder temp("bodies");
  must(write_partitions(cut.distribution, cut.report, temp.path()));
  size_t calls = 0;
  for (const CutPartition& part : cut.report.partitions) {
    const tg::Graph graph = must(tg::load_graph(temp.path() / part.file));
    for (const tg::Node* node : graph.nodes()) {
      if (node->op() != "_Call") continue;
      ++calls;
      const auto body = size_t(must(node->attr<int64_t>("body")));
      REQUIRE(body < part.bodies.size());
      CHECK(part.bodies[body].function == "down-to/zero>");
      CHECK(part.bodies[body].file.ends_with("_body_0_down-to_zero_.pb"));
      const tg::Graph function =
          must(tg::load_graph(temp.path() / part.bodies[body].file));
      CHECK(function.size() == part.bodies[body].nodes);
    }
  }
  CHECK(calls == 1);
}
