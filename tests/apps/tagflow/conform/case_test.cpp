#include "apps/tagflow/conform/case.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "apps/shared/io/file.h"
#include "tests/temp_path.h"

namespace tagflow::apps {
namespace {

TEST_CASE("a case has runs, in order, with feeds, fetches and outcomes") {
  const auto parsed = parse_case(R"({
    "name": "walk", "origin": "here", "ops": ["Add"], "devices": [],
    "runs": [
      {"targets": ["init"], "feeds": {}, "fetches": [], "expect": []},
      {"targets": [], "feeds": {"x:0": "feed.npy"}, "fetches": ["y:0"],
       "expect": ["expect.npy"]},
      {"targets": [], "feeds": {}, "fetches": ["z:1"],
       "error": {"code": "OutOfRangeError", "message": "end"}}]})");
  REQUIRE(parsed.ok());
  CHECK(parsed->name == "walk");
  CHECK(!parsed->gradients);
  REQUIRE(parsed->runs.size() == 3);
  CHECK(parsed->runs[0].targets == std::vector<std::string>{"init"});
  REQUIRE(parsed->runs[1].feeds.size() == 1);
  CHECK(parsed->runs[1].feeds[0].first == "x:0");
  CHECK(parsed->runs[1].feeds[0].second == "feed.npy");
  CHECK(parsed->runs[1].expect == std::vector<std::string>{"expect.npy"});
  CHECK(parsed->runs[2].error_code == "OutOfRangeError");
}

TEST_CASE("a case with gradients says of what, by what, and of which order") {
  const auto parsed = parse_case(R"({"name": "g", "runs": [],
      "gradients": {"ys": ["y:0"], "xs": ["x:0", "w:1"], "order": 2}})");
  REQUIRE(parsed.ok());
  REQUIRE(parsed->gradients);
  CHECK(parsed->gradients->ys == std::vector<std::string>{"y:0"});
  CHECK(parsed->gradients->xs == std::vector<std::string>{"x:0", "w:1"});
  CHECK(parsed->gradients->order == 2);
  const auto first = parse_case(R"({"name": "g", "runs": [],
      "gradients": {"ys": ["y:0"], "xs": ["x:0"]}})");
  REQUIRE(first.ok());
  CHECK(first->gradients->order == 1);
}

TEST_CASE("malformed cases are refused, and the message says why") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "not a JSON object"},
      {"[]", "not a JSON object"},
      {"{}", "no \"name\""},
      {R"({"name": "a"})", "no \"runs\""},
      {R"({"name": 1, "runs": []})", "\"name\" is not a string"},
      {R"({"name": "a", "runs": {}})", "\"runs\" is not a list"},
      {R"({"name": "a", "runs": [1]})", "a run is not an object"},
      {R"({"name": "a", "runs": [{"fetches": "x"}]})",
       "\"fetches\" is not a list"},
      {R"({"name": "a", "runs": [{"targets": [1]}]})", "is not a string"},
      {R"({"name": "a", "runs": [{"feeds": []}]})",
       "\"feeds\" is not an object"},
      {R"({"name": "a", "runs": [{"feeds": {"x": 1}}]})", "is not a string"},
      {R"({"name": "a", "runs": [{"feeds": {"x": "../secret.npy"}}]})",
       "not the name of a file in the case's folder"},
      {R"({"name": "a", "runs": [{"feeds": {"x": ".."}}]})",
       "not the name of a file in the case's folder"},
      {R"({"name": "a", "runs": [{"fetches": ["y"], "expect": ["/e"]}]})",
       "not the name of a file in the case's folder"},
      {R"({"name": "a", "runs": [{"fetches": ["y"], "expect": []}]})",
       "\"fetches\" has length 1, but \"expect\" has length 0"},
      {R"({"name": "a", "runs": [{"fetches": ["y"]}]})",
       "\"fetches\" has length 1, but \"expect\" has length 0"},
      {R"({"name": "a", "runs": [{"error": {}}]})", "no \"code\""},
      {R"({"name": "a", "runs": [{"error": {"code": ""}}]})", "code is empty"},
      {R"({"name": "a", "runs": [], "gradients": []})",
       "\"gradients\" is not an object"},
      {R"({"name": "a", "runs": [], "gradients": {"ys": ["y"]}})", "no \"xs\""},
      {R"({"name": "a", "runs": [], "gradients": {"ys": [], "xs": ["x"]}})",
       "no \"ys\""},
      {R"({"name": "a", "runs": [], "gradients": {"ys": [1], "xs": ["x"]}})",
       "is not a string"},
      {R"({"name": "a", "runs": [],
           "gradients": {"ys": ["y"], "xs": ["x"], "order": 0}})",
       "\"order\" is not a number from 1 to"},
      {R"({"name": "a", "runs": [],
           "gradients": {"ys": ["y"], "xs": ["x"], "order": 1.5}})",
       "\"order\" is not a number from 1 to"},
  };
  for (const auto& [given, message] : cases) {
    const auto& text = given;  // no lambda captures a structured binding
    CAPTURE(text);
    const auto parsed = parse_case(text);
    REQUIRE(!parsed.ok());
    CHECK(parsed.status().code() == Code::kInvalidArgument);
    CHECK(parsed.status().to_string().find(message) != std::string::npos);
  }
}

TEST_CASE("a file of strings that is none is named") {
  const auto path = testing::temp_path("strings.json");
  REQUIRE(io::write_file(path, "{}").ok());
  const auto tensor = load_case_tensor(path);
  std::filesystem::remove(path);
  REQUIRE(!tensor.ok());
  CHECK(tensor.status().message().starts_with("\"" + path.string() + "\": "));
}

}  // namespace
}  // namespace tagflow::apps
