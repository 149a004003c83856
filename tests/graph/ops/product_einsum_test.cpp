// The equations of Einsum.
#include "graph/ops/product_einsum.h"

#include <doctest/doctest.h>

namespace tagflow::graph {
namespace {

TEST_CASE("an equation names the dimensions of operands and result") {
  const auto equation = parse_equation("ab,bc->ca", {2, 2});
  REQUIRE(equation.ok());
  CHECK(equation->inputs == std::vector<Labels>{{'a', 'b'}, {'b', 'c'}});
  CHECK(equation->output == Labels{'c', 'a'});
}

TEST_CASE("an ellipsis aligns the innermost dimensions") {
  const auto equation = parse_equation("...a,...a->...", {3, 2});
  REQUIRE(equation.ok());
  CHECK(equation->inputs[0] == Labels{kEllipsis + 1, kEllipsis, 'a'});
  CHECK(equation->inputs[1] == Labels{kEllipsis, 'a'});
  CHECK(equation->output == Labels{kEllipsis + 1, kEllipsis});
  // It may stand for nothing.
  const auto none = parse_equation("...a->a", {1});
  REQUIRE(none.ok());
  CHECK(none->output == Labels{'a'});
}

TEST_CASE("an equation that does not fit says so") {
  const auto message = [](const char* text, const std::vector<int>& ranks) {
    return std::string(parse_equation(text, ranks).status().message());
  };
  CHECK(message("ab", {2}).find("->") != std::string::npos);
  CHECK(message("ab->ab", {3}).find("rank 3") != std::string::npos);
  CHECK(message("ab->ab", {1}).find("rank 1") != std::string::npos);
  CHECK(message("a,b->ab", {1}) ==
        "\"a,b->ab\" has 2 operands before \"->\", but the node has 1 input");
  CHECK(message("a,b,c->", {1, 1, 1}) ==
        "\"a,b,c->\" has 3 operands, but an Einsum has one or two");
  CHECK(message("a->b", {1}).find("no operand") != std::string::npos);
  CHECK(message("...a->a", {2}).find("ellipsis") != std::string::npos);
  CHECK(message("a.b->ab", {3}).find("letter") != std::string::npos);
}

}  // namespace
}  // namespace tagflow::graph
