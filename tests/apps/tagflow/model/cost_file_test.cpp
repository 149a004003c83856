#include "apps/tagflow/model/cost_file.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/temp_path.h"

using namespace tagflow;
using namespace tagflow::apps;
using graph::CostModel;

namespace {

CostModel measured() {
  CostModel costs;
  costs.measure("y", "CPU", 5210.5, 16384);
  costs.measure("y", "CPU", 1.0 / 3, 16384);
  costs.measure("y", "GPU", 7, 16384);
  costs.measure("\"a\\b\"", "CPU", 0, 0);
  costs.measure_trips("while", 20);
  return costs;
}

// The message for a file with these fields beside format and version.
std::string refusal(const std::string& fields) {
  const auto costs = parse_costs(
      R"({"format": "tagflow costs", "version": 1, )" + fields + "}");
  return costs.ok() ? "accepted" : std::string(costs.status().message());
}

std::string refusal_of_time(const std::string& mean) {
  return refusal(R"("nodes": [{"name": "y", "nanoseconds": {"CPU": )" + mean +
                 "}}]");
}

}  // namespace

TEST_CASE("costs that are written and read again are the same") {
  const CostModel costs = measured();
  const auto again = parse_costs(format_costs(costs));
  REQUIRE_MESSAGE(again.ok(), again.status().to_string());
  CHECK(again->node_costs() == costs.node_costs());
  CHECK(again->loop_costs() == costs.loop_costs());
  CHECK(again->node_costs().size() == 2);
  CHECK(*again->trips("while") == 20);
}

TEST_CASE("a cost file that was read can be measured further") {
  CostModel costs = parse_costs(format_costs(measured())).value();
  CostModel whole = measured();
  costs.measure("y", "CPU", 100, 0);
  whole.measure("y", "CPU", 100, 0);
  CHECK(costs.node_costs() == whole.node_costs());
}

TEST_CASE("a cost file with deep nesting is refused before it is copied") {
  const std::string deep(200'000, '[');
  CHECK(refusal(R"("nodes": )" + deep + std::string(200'000, ']') +
                R"(, "loops": [], "x": 1)") ==
        "[costs] it is nested too deeply");
}

TEST_CASE("many costs are read in a time that grows with their number only") {
  // A parser that keeps all items looks at all of them again after each one:
  // this would take minutes.
  constexpr size_t kMany = 300'000;
  std::string nodes;
  for (size_t i = 0; i < kMany; ++i)
    nodes += fmt::format(
        R"({}{{"name": "{}", "output_bytes": {{"mean": {}, "count": 1}}}})",
        i == 0 ? "" : ",", i, i);
  const auto costs =
      parse_costs(R"({"nodes": [)" + nodes +
                  R"(], "version": 1, "format": "tagflow costs"})");
  REQUIRE_MESSAGE(costs.ok(), costs.status().to_string());
  const auto read = costs->node_costs();
  REQUIRE(read.size() == kMany);
  CHECK(read.back().node == "99999");
  CHECK(read.back().output_bytes == CostModel::Mean{99999, 1});
}

TEST_CASE("a cost file of version 2 has the links between tasks") {
  const std::string from = "/job:worker/replica:0/task:0";
  const std::string to = "/job:worker/replica:0/task:1";
  graph::CostModel costs;
  REQUIRE(costs.set(graph::CostModel::LinkCosts{from, to, {1500, 2.5}}).ok());
  const std::string text = format_costs(costs);
  CHECK(text.find("\"version\": 2") != text.npos);
  CHECK(parse_costs(text)->link_costs() == costs.link_costs());
  const auto refused = [&](const std::string& version,
                           const std::string& links) {
    return std::string(
        parse_costs(R"({"format": "tagflow costs", "version": )" + version +
                    R"(, "links": )" + links + "}")
            .status()
            .message());
  };
  const std::string link = R"({"from": ")" + from + R"(", "to": ")" + to +
                           R"(", "latency_ns": 1, "bytes_per_ns": )";
  CHECK(refused("1", "[]") ==
        "[costs] the file has an unknown field \"links\"");
  CHECK(refused("2", "5") == "[costs] \"links\" is not a list");
  for (const std::string& name :
       {to, std::string("/job:worker/replica:0/task:01")})
    CHECK(refused("2", "[" + link + R"(1}, {"from": ")" + from +
                           R"(", "to": ")" + name +
                           R"(", "latency_ns": 1, "bytes_per_ns": 1}])") ==
          "[costs] the link from \"" + from + "\" to \"" + name +
              "\" is there twice");
  CHECK(refused("2", "[" + link + "\"x\"}]") ==
        "[costs] the \"bytes_per_ns\" of the link from \"" + from + "\" to \"" +
            to + "\" is not a number");
  CHECK(refused("2", "[" + link + "0}]")
            .starts_with("[costs] the link from " + from + " to " + to +
                         " has a latency of 1 ns"));
}

TEST_CASE("a cost file's own version is checked before its items") {
  CHECK(
      parse_costs(R"({"nodes": [5], "format": "tagflow costs", "version": 3})")
          .status()
          .message() == "[costs] it is of version 3, not 1 or 2");
  for (const char* item : {"5", "[]", "[{}]", "null"})
    CHECK(refusal(fmt::format(R"("nodes": [{}, {{}}])", item)) ==
          "[costs] an item of \"nodes\" is not an object");
  CHECK(refusal(R"("loops": [5])") ==
        "[costs] an item of \"loops\" is not an object");
}

TEST_CASE("newer costs are added to those of a file") {
  const auto path = tagflow::testing::temp_path("costs.json");
  const Status first = add_to_costs(path, measured());
  REQUIRE_MESSAGE(first.ok(), first.to_string());
  CHECK(read_costs(path)->node_costs() == measured().node_costs());
  CostModel newer;
  newer.measure("y", "CPU", 100, 0);
  newer.measure_trips("other", 3);
  CHECK(add_to_costs(path, newer).ok());
  CostModel whole = measured();
  whole.measure("y", "CPU", 100, 0);
  const auto read = read_costs(path);
  REQUIRE(read.ok());
  CHECK(read->node_costs() == whole.node_costs());
  CHECK(*read->trips("other") == 3);
  std::ofstream(path) << "my notes";
  CHECK(add_to_costs(path, newer).code() == Code::kInvalidArgument);
  std::filesystem::remove(path);
  std::filesystem::remove(path.string() + ".lock");
}

TEST_CASE("a node whose name is not UTF-8 is left out of the file") {
  CostModel costs = measured();
  costs.measure("\xff", "CPU", 1, 1);
  costs.measure("\xfe", "CPU", 1, 1);
  const auto again = parse_costs(format_costs(costs));
  REQUIRE_MESSAGE(again.ok(), again.status().to_string());
  CHECK(again->node_costs() == measured().node_costs());
}

TEST_CASE("a file of costs that is malformed is refused, with what is wrong") {
  CHECK(parse_costs("{").status().message() ==
        "[costs] it is not JSON: see byte 2");
  CHECK(parse_costs("").status().message() == "[costs] it is empty");
  CHECK(parse_costs(std::string("{}\0{", 4)).status().message() ==
        "[costs] it is not JSON: it has a byte 0");
  CHECK(parse_costs(R"({"version": 1, "version": 1})").status().message() ==
        "[costs] an object has two members \"version\"");
  CHECK(parse_costs("[]").status().message() ==
        "[costs] it has no \"format\" of \"tagflow costs\"");
  CHECK(parse_costs(R"({"format": "tagflow costs"})").status().message() ==
        "[costs] it has no \"version\"");
  CHECK(parse_costs(R"({"format": "tagflow costs", "version": 3, "x": 0})")
            .status()
            .message() == "[costs] it is of version 3, not 1 or 2");
  CHECK(refusal(R"("nodse": [])") ==
        "[costs] the file has an unknown field \"nodse\"");
  CHECK(refusal(R"("nodes": {})") == "[costs] \"nodes\" is not a list");
  CHECK(refusal(R"("nodes": [{}])") ==
        "[costs] an item of \"nodes\" has no \"name\"");
  CHECK(refusal(R"("nodes": [{"name": "y"}, {"name": "y"}])") ==
        "[costs] node \"y\" is there twice");
  CHECK(refusal(R"("loops": [{"frame": "w"}, {"frame": "w"}])") ==
        "[costs] loop \"w\" is there twice");
  CHECK(refusal_of_time("5") ==
        "[costs] the nanoseconds of node \"y\" on CPU is not an object");
  CHECK(refusal_of_time(R"({"mean": "5", "count": 1})") ==
        "[costs] the \"mean\" of the nanoseconds of node \"y\" on CPU is not "
        "a number");
  for (const char* count : {"0", "17", "-1", "1.5", "18446744073709551615"})
    CHECK(refusal_of_time(R"({"mean": 5, "count": )" + std::string(count) +
                          "}") ==
          "[costs] the \"count\" of the nanoseconds of node \"y\" on CPU is "
          "not a number from 1 to 16");
  CHECK(refusal_of_time(R"({"mean": -5, "count": 1})")
            .starts_with("[costs] the time of node \"y\" is -5, not a number "
                         "from 0 to "));
  CHECK(refusal_of_time(R"({"mean": 1e19, "count": 1})")
            .starts_with("[costs] the time of node \"y\" is 1e+19, "));
  CHECK(refusal_of_time(R"({"mean": 1e999, "count": 1})") ==
        "[costs] it is not JSON: a number is too large");
  CHECK(refusal(R"("nodes": [])") == "accepted");
}
