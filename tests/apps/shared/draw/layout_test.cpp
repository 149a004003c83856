#include "apps/shared/draw/layout.h"

#include <doctest/doctest.h>

#include "apps/shared/draw/svg.h"
#include "graph/builder/builder.h"

using namespace tagflow;
using namespace tagflow::apps::draw;
namespace tg = tagflow::graph;

namespace {

// while i < 3: i = i + 1.
Drawing draw_loop() {
  tg::Graph graph;
  const tg::Scope s(graph);
  tg::while_loop(
      s,
      [](const tg::Scope& in, const tg::Outputs& v) {
        return tg::ops::less(in, v[0], 3);
      },
      [](const tg::Scope& in, const tg::Outputs& v) -> tg::Outputs {
        return {tg::ops::add(in, v[0], 1)};
      },
      {0});
  REQUIRE(s.ok());
  const auto frames = tg::FrameMap::build(graph);
  REQUIRE(frames.ok());
  return make_drawing(graph.nodes(), *frames);
}

// Two boxes in a frame, and an arrow between them.
Drawing draw_two() {
  Drawing drawing;
  drawing.frames.push_back({"loop", 0});
  drawing.nodes = {{"a", "NoOp", "", NodeStyle::kKernel, 1},
                   {"b", "Merge", "", NodeStyle::kMerge, 1}};
  drawing.edges = {{0, 0, 1, 0, false}};
  return drawing;
}

constexpr const char* kAnswer = R"({"bb": "0,0,100,80", "objects": [
  {"name": "cluster_1", "bb": "5,5,95,75"},
  {"name": "n0", "pos": "50,60", "width": "1", "height": "0.5"},
  {"name": "n1", "pos": "50,20", "width": "0.5", "height": "0.25"}],
  "edges": [{"id": "e0", "pos": "e,50,29 50,42 50,40 50,38 50,34"}]})";

}  // namespace

TEST_CASE("an Enter and an Exit are drawn in the loop") {
  const Drawing drawing = draw_loop();
  REQUIRE(drawing.frames.size() == 2);
  size_t back_edges = 0;
  for (const DrawnEdge& edge : drawing.edges) back_edges += edge.is_back;
  CHECK(back_edges == 1);
  for (const DrawnNode& node : drawing.nodes) {
    INFO(node.name);
    if (node.op == "Enter" || node.op == "Exit" || node.op == "Merge") {
      CHECK(node.frame == 1);
    }
  }
}

TEST_CASE("drawing: DOT has frames as clusters and turns back edges round") {
  const std::string dot = to_dot(draw_loop());
  CHECK(dot.find("subgraph cluster_1 {") != std::string::npos);
  CHECK(dot.find("dir=back") != std::string::npos);
  CHECK(dot.find("style=dashed") != std::string::npos);  // a control edge
}

TEST_CASE("quotes and backslashes in names do not end DOT's strings") {
  Drawing drawing;
  drawing.nodes = {{R"(a"\b)", "Op", "", NodeStyle::kKernel, 0}};
  CHECK(to_dot(drawing).find(R"(label="a\"\\b\nOp")") != std::string::npos);
}

TEST_CASE("a layout has its boxes with y downwards, and arrows to their tips") {
  const auto layout = parse_layout(kAnswer, draw_two());
  REQUIRE(layout.ok());
  CHECK(layout->width == 100);
  CHECK(layout->frames[1].top == 5);
  CHECK(layout->nodes[0].left == 14);
  CHECK(layout->nodes[0].top == 2);
  REQUIRE(layout->edges[0].size() == 7);
  CHECK(layout->edges[0].front().y == 38);
  CHECK(layout->edges[0].back().y == 51);
}

TEST_CASE("an arrow that was turned round for dot is turned back") {
  Drawing drawing = draw_two();
  drawing.edges[0].is_back = true;
  const auto layout = parse_layout(kAnswer, drawing);
  REQUIRE(layout.ok());
  CHECK(layout->edges[0].front().y == 51);
}

TEST_CASE("a layout that does not match the drawing is an error") {
  const Drawing drawing = draw_two();
  for (const char* text :
       {"", "[]", "{}", "no json", R"({"bb": "1,2"})", R"({"bb": 7})",
        R"({"bb": "0,0,1,1", "objects": [{"name": "n0"}]})",
        R"({"bb": "0,0,1,1", "objects": [{"name": "n7", "pos": "1,1",
            "width": "1", "height": "1"}]})",
        R"({"bb": "0,0,1,1", "objects": [{"name": "cluster_9", "bb": ""}]})",
        R"({"bb": "0,0,1,1", "edges": [{"id": "e5"}]})"}) {
    INFO(text);
    const auto layout = parse_layout(text, drawing);
    REQUIRE_FALSE(layout.ok());
    CHECK(layout.status().code() == Code::kDataLoss);
    CHECK(layout.status().message() ==
          "[draw] dot did not return a layout of these 2 nodes");
  }
}

TEST_CASE("drawing without Graphviz is an error that names the package") {
  const Status status =
      lay_out(draw_two(), std::chrono::seconds(5), "/no/such/dot").status();
  CHECK(status.code() == Code::kFailedPrecondition);
  CHECK(status.message() ==
        "[draw] drawing needs \"/no/such/dot\" of Graphviz, which is not "
        "installed: apt-get install graphviz");
}

TEST_CASE("a drawing that is too large is refused") {
  Drawing drawing;
  drawing.nodes.resize(kMaxDrawnNodes + 1);
  const Status status = lay_out(drawing).status();
  CHECK(status.code() == Code::kResourceExhausted);
  CHECK(status.message().find("[draw] 2001 nodes and 0 edges are too many") ==
        0);
}

TEST_CASE("drawing: long texts are shortened by whole characters") {
  CHECK(shorten_name("while/body/add", 8) == "…ody/add");
  CHECK(shorten_text("abcdefgh", 4) == "abc…");
  CHECK(shorten_text("äöü", 3) == "äöü");
  CHECK(shorten_text("äöüß", 3) == "äö…");
  CHECK(shorten_name("äöüß", 3) == "…üß");
}

TEST_CASE("a drawing shows a short value at an arrow, a long one elsewhere") {
  CHECK(short_value(Tensor::scalar(7)) == "7");
  CHECK(short_value(Tensor::scalar(true)) == "true");
  CHECK(short_value(Tensor::vector<float>({1, 2})) == "{1 2}");
  CHECK(short_value(Tensor::make(DataType::kFloat, {20, 30})) ==
        "float[20,30]");
  CHECK(short_value(Tensor()) == "none");
  CHECK(long_value(Tensor::scalar(7)) == "int32[] 7");
}

TEST_CASE("drawing: markup, control characters and bad UTF-8 are escaped") {
  CHECK(escape_markup("</script>&\"") == "&lt;/script&gt;&amp;&quot;");
  CHECK(escape_markup("a\x01") == "a\xef\xbf\xbd");
  CHECK(escape_markup("\xff\xc3") == "\xef\xbf\xbd\xef\xbf\xbd");
  CHECK(escape_markup("ä") == "ä");
}

TEST_CASE("SVG has a box for each node, an arrow for each edge, a frame") {
  const Drawing drawing = draw_two();
  const auto layout = parse_layout(kAnswer, drawing);
  REQUIRE(layout.ok());
  const std::string svg = to_svg(drawing, *layout);
  CHECK(svg.find("id=\"n0\"") != std::string::npos);
  CHECK(svg.find("id=\"n1\"") != std::string::npos);
  CHECK(svg.find("id=\"e0\"") != std::string::npos);
  CHECK(svg.find("id=\"f1\"><title>frame loop</title>") != std::string::npos);
  CHECK(svg.find("<style>") != std::string::npos);
  CHECK(to_svg(drawing, *layout, false).find("<style>") == std::string::npos);
}

TEST_CASE("a box leaves out the path that its name shares with the frame's") {
  Drawing drawing;
  drawing.frames.push_back({"a/while/context", 0});
  const auto title = [&](const char* name, int frame) {
    return title_of(drawing, {name, "Op", "", NodeStyle::kKernel, frame});
  };
  CHECK(title("a/while/add", 1) == "add");
  CHECK(title("a/while/cond/add", 1) == "cond/add");
  CHECK(title("a/wh", 1) == "wh");
  CHECK(title("b", 1) == "b");
  CHECK(title("a/while/add", 0) == "a/while/add");
}
