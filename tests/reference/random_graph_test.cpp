#include "tests/reference/random_graph.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "graph/analysis/validate.h"
#include "tests/reference/interpreter.h"

namespace tagflow::reference {

TEST_CASE("random graphs are valid, end, and have one result") {
  std::map<std::string, int> ops;
  int dead = 0;
  int live = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    const Result<Case> made = random_graph(seed);
    REQUIRE_MESSAGE(made.ok(), made.status().to_string());
    const Status valid = graph::validate(made->graph);
    REQUIRE_MESSAGE(valid.ok(), valid.to_string());
    REQUIRE(!made->fetches.empty());
    const auto result = interpret(made->graph, made->feeds, made->fetches);
    REQUIRE_MESSAGE(result.ok(), result.status().to_string());
    CHECK(!result->is_ambiguous);
    for (const Outcome& outcome : result->fetches) {
      REQUIRE(outcome.state != State::kAbsent);
      ++(outcome.state == State::kDead ? dead : live);
    }
    for (const graph::Node* node : made->graph.nodes()) ++ops[node->op()];
  }
  CHECK(live > 10 * dead);
  CHECK(dead > 20);
  for (const char* op : {"Switch", "Merge", "Enter", "Exit", "NextIteration",
                         "LoopCond", "ControlTrigger", "ConcatV2", "Sum"})
    CHECK_MESSAGE(ops[op] > 20, op);
}

TEST_CASE("random graphs nest loops and conditionals in every order") {
  std::set<std::string> seen;
  int zero_trips = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const Result<Case> made = random_graph(seed);
    REQUIRE(made.ok());
    for (const graph::Node* node : made->graph.nodes()) {
      // "while/cond_1/while/Merge" is nested as "while/cond/while".
      std::string path;
      const std::string& name = node->name();
      for (size_t start = 0, slash;
           (slash = name.find('/', start)) != std::string::npos;
           start = slash + 1) {
        const std::string part = name.substr(start, slash - start);
        if (part.starts_with("while")) path += "while/";
        if (part.starts_with("cond")) path += "cond/";
      }
      seen.insert(path);
    }
    const auto result = interpret(made->graph, made->feeds, made->fetches);
    REQUIRE(result.ok());
    zero_trips += result->counts.frames > 0 &&
                  result->counts.iterations == result->counts.frames;
  }
  for (const char* path : {"while/while/while/", "while/cond/while/",
                           "cond/while/cond/", "cond/cond/while/"})
    CHECK_MESSAGE(seen.contains(path), path);
  CHECK(zero_trips > 10);
}

TEST_CASE("the same seed gives the same graph") {
  const Result<Case> a = random_graph(42);
  const Result<Case> b = random_graph(42);
  const Result<Case> c = random_graph(43);
  REQUIRE(a.ok());
  REQUIRE(b.ok());
  REQUIRE(c.ok());
  CHECK(a->fetches == b->fetches);
  REQUIRE(a->graph.size() == b->graph.size());
  for (size_t i = 0; i < a->graph.size(); ++i)
    CHECK(a->graph.nodes()[i]->name() == b->graph.nodes()[i]->name());
  CHECK(a->graph.size() != c->graph.size());
}

TEST_CASE("bytes that are used up choose zero") {
  const uint8_t bytes[] = {7, 1, 2};
  ByteChoices choices(bytes, sizeof bytes);
  CHECK(choices.below(1) == 0);
  CHECK(choices.below(5) == 2);
  CHECK(choices.below(1000) == 258);
  CHECK(choices.empty());
  CHECK(choices.below(9) == 0);
}

TEST_CASE("any bytes give a valid graph") {
  SeededChoices noise(1);
  for (int i = 0; i < 200; ++i) {
    std::vector<uint8_t> bytes(noise.below(200));
    for (uint8_t& byte : bytes) byte = uint8_t(noise.below(256));
    ByteChoices choices(bytes.data(), bytes.size());
    const Result<Case> made = random_graph(choices);
    REQUIRE_MESSAGE(made.ok(), made.status().to_string());
    const auto result = interpret(made->graph, made->feeds, made->fetches);
    REQUIRE_MESSAGE(result.ok(), result.status().to_string());
  }
}

}  // namespace tagflow::reference
