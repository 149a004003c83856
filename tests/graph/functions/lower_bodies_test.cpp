// What one call of a function has that another has not.
#include "tests/graph/functions/lowered.h"

namespace tagflow::graph {

using namespace testing;

TEST_CASE("recursions that are given other functions have other bodies") {
  // What they are given differs in the attributes of a function, or behind
  // what a message shows of a list.
  const auto define = [](Lowered& l) {
    l.define(function(
        "use", {"n: int32"}, {"r: int32"},
        {body_node("call", "PartitionedCall", {"n"},
                   int_ports(1, 1, {{"f", AttrPlaceholder{"f"}}})),
         body_node(
             "again", "use", {"call:output:0"},
             {{"f", AttrPlaceholder{"f"}}, {"list", AttrPlaceholder{"list"}}})},
        {{"r", "again:r:0"}}, {"f: func", "list: list(int)"}));
    l.define(
        function("plus", {"n: int32"}, {"r: int32"},
                 {body_node("value", "Const", {},
                            {{"value", AttrPlaceholder{"v"}}, {"dtype", kInt}}),
                  body_int("sum", "Add", "n", "value:output:0")},
                 {{"r", "sum:z:0"}}, {"v: tensor"}));
  };
  std::vector<int64_t> list(20, 7);
  std::vector<int64_t> other_list = list;
  other_list.back() = 8;
  const auto used = [](const std::string& name, int32_t v,
                       const std::vector<int64_t>& values) {
    return body_node(
        name, "use", {"x"},
        {{"f", call_of("plus", {{"v", Tensor::scalar(v)}})}, {"list", values}});
  };
  const auto bodies = [&](const NodeDef& a, const NodeDef& b) {
    Lowered l;
    define(l);
    l.expect_lowered({placeholder("x"), a, b, body_int("z", "Add", "a", "b")},
                     "z");
    return l.program.bodies.size();
  };
  CHECK(bodies(used("a", 1, list), used("b", 1, list)) == 1);
  CHECK(bodies(used("a", 1, list), used("b", 2, list)) == 2);
  CHECK(bodies(used("a", 1, list), used("b", 1, other_list)) == 2);
}

TEST_CASE("what only the calling node's attributes say makes no new body") {
  Lowered l;
  l.define(function("again", {"n: int32"}, {"r: int32"},
                    {body_node("call", "again", {"n"}, {{"_note", "inside"}})},
                    {{"r", "call:r:0"}}));
  l.expect_lowered({placeholder("x"),
                    body_node("y", "again", {"x"}, {{"_note", "outside"}})},
                   "y");
  CHECK(l.program.bodies.size() == 1);
}

TEST_CASE("a recursion that is given ever new functions is refused") {
  const auto refuse = [](const FunctionRef& next, const Limits& limits,
                         const std::string& message) {
    Lowered l;
    l.define(function("f", {"n: int32"}, {"r: int32"},
                      {body_node("again", "f", {"n"}, {{"g", next}})},
                      {{"r", "again:r:0"}}, {"g: func"}));
    const Status status = l.lower(
        {placeholder("x"), body_node("y", "f", {"x"}, {{"g", call_of("h")}})},
        "y", limits);
    CHECK(status.code() == Code::kResourceExhausted);
    CHECK(status.message() == message);
  };
  refuse(call_of("h", {{"h", AttrPlaceholder{"g"}}}), {},
         "[f] node \"f/again\": function \"f\": functions nest deeper than 16 "
         "in its attributes");
  AttrMap many;
  for (int i = 0; i < 10; ++i)
    many["h" + std::to_string(i)] = AttrPlaceholder{"g"};
  refuse(call_of("h", many), {},
         "[f] node \"f/again\": function \"f\": its attributes, with those of "
         "functions in them, have more than 4096 values");
}

}  // namespace tagflow::graph
