#include "graph/counted.h"

#include <doctest/doctest.h>

#include <vector>

using namespace tagflow;

TEST_CASE("smoke: counted() uses the singular for one thing only") {
  CHECK(counted(0, "node") == "0 nodes");
  CHECK(counted(1, "node") == "1 node");
  CHECK(counted(2, "node") == "2 nodes");
}

TEST_CASE("smoke: first_of() names the first things, and counts the others") {
  const std::vector<std::string> names = {"a", "b", "c"};
  CHECK(first_of(std::vector<std::string>(), 2).empty());
  CHECK(first_of(names, 2) == "a, b and 1 more");
  CHECK(first_of(names, 3) == "a, b, c");
  int asked = 0;
  const auto quote = [&asked](const std::string& name) {
    ++asked;
    return "\"" + name + "\"";
  };
  CHECK(first_of(names, 1, quote, "\n", "\n") == "\"a\"\nand 2 more");
  CHECK(asked == 1);
}
