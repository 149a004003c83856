#include "graph/function.h"

#include <doctest/doctest.h>

#include <new>

#include "tests/failing_new.h"
#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

FunctionDef square(const std::string& name, const std::string& op = "Mul") {
  FunctionDef f;
  f.signature =
      OpDefBuilder(name).input("x: T").output("y: T").attr("T: type").build();
  f.nodes = {def("product", op, {"x", "x"}, {{"T", AttrPlaceholder{"T"}}})};
  f.ret = {{"y", "product:z:0"}};
  return f;
}

}  // namespace

TEST_CASE("a function is found by its name") {
  FunctionLibrary library;
  CHECK(library.empty());
  must(library.add(square("g")));
  must(library.add(square("f")));
  CHECK(library.find("f")->nodes[0].name == "product");
  CHECK(library.find("h") == nullptr);
  REQUIRE(library.functions().size() == 2);
  CHECK(library.functions()[0]->name() == "f");
}

TEST_CASE("the same function may be added twice, another may not") {
  FunctionLibrary library;
  must(library.add(square("f")));
  const FunctionDef* first = library.find("f");
  must(library.add(square("f")));
  CHECK(library.find("f") == first);
  CHECK(library.add(square("f", "AddV2")).to_string() ==
        "AlreadyExists: [function] another function is named \"f\"");
  CHECK(library.add(FunctionDef()).message() ==
        "[function] a function has no name");
  FunctionDef malformed;
  malformed.signature = OpDefBuilder("g").input("x float").build();
  CHECK(library.add(malformed).message() ==
        "[function] function g: malformed \"x float\": \":\" is missing");
}

TEST_CASE("a function has one gradient") {
  FunctionLibrary library;
  must(library.add_gradient("f", "f_grad"));
  must(library.add_gradient("f", "f_grad"));
  CHECK(library.gradient_of("f") == "f_grad");
  CHECK(library.gradient_of("g").empty());
  CHECK(library.add_gradient("f", "other").to_string() ==
        "AlreadyExists: [function] \"f\" has the gradient \"f_grad\", "
        "\"other\" cannot be another");
}

TEST_CASE("merging libraries adds all or nothing") {
  FunctionLibrary library;
  must(library.add(square("f")));
  FunctionLibrary more;
  must(more.add(square("a")));
  must(more.add(square("f")));
  must(more.add_gradient("a", "f"));
  must(library.merge(more));
  CHECK(library.size() == 2);
  CHECK(library.gradient_of("a") == "f");

  FunctionLibrary wrong;
  must(wrong.add(square("b")));
  must(wrong.add(square("f", "AddV2")));
  CHECK(library.merge(wrong).code() == Code::kAlreadyExists);
  CHECK(library.find("b") == nullptr);

  FunctionLibrary gradient;
  must(gradient.add(square("b")));
  must(gradient.add_gradient("a", "b"));
  CHECK(library.merge(gradient).code() == Code::kAlreadyExists);
  CHECK(library.find("b") == nullptr);
}

TEST_CASE("a function library can take back what was added since a mark") {
  FunctionLibrary library;
  must(library.add(square("m")));
  must(library.add_gradient("m", "m_grad"));
  const FunctionLibrary::Mark mark = library.mark();
  FunctionLibrary more;
  must(more.add(square("z")));
  must(more.add(square("m")));
  must(more.add(square("a")));
  must(more.add_gradient("m", "m_grad"));
  must(more.add_gradient("a", "z"));
  must(library.merge(more));
  REQUIRE(library.in_order_added().size() == 3);
  CHECK(library.in_order_added()[0]->name() == "m");
  const FunctionLibrary copy = library;
  library.take_back(mark);
  REQUIRE(library.functions().size() == 1);
  CHECK(library.functions()[0]->name() == "m");
  CHECK(library.in_order_added().size() == 1);
  CHECK(library.gradients().size() == 1);
  CHECK(library.gradient_of("m") == "m_grad");
  // A copy keeps what it had; what is gone may come again.
  CHECK(copy.size() == 3);
  must(library.add(square("a", "AddV2")));
  CHECK(library.in_order_added()[1]->name() == "a");
}

TEST_CASE("an extension without memory leaves no function and no node") {
  Graph more;
  must(more.library().add(square("g")));
  must(more.library().add_gradient("g", "g_grad"));
  must(more.extend(
      std::vector<NodeDef>{def("a", "NoOp", {}), def("b", "NoOp", {"^a"})}));
  for (int64_t k = 1;; ++k) {
    Graph graph;
    must(graph.library().add(square("f")));
    must(graph.extend(std::vector<NodeDef>{def("x", "NoOp", {})}));
    FailAllocation fail(k);
    bool is_extended = false;
    try {
      is_extended = graph.extend(more).ok();
    } catch (const std::bad_alloc&) {
    }
    fail.stop();
    CAPTURE(k);
    REQUIRE(graph.library().size() == (is_extended ? 2 : 1));
    REQUIRE(graph.library().in_order_added().size() == graph.library().size());
    REQUIRE(graph.library().gradients().size() == (is_extended ? 1 : 0));
    REQUIRE(graph.size() == (is_extended ? 3 : 1));
    if (!is_extended) must(graph.extend(more));
    if (!fail.failed()) break;
  }
}

TEST_CASE("copies of a library share its functions") {
  FunctionLibrary library;
  must(library.add(square("f")));
  const FunctionLibrary copy = library;
  CHECK(copy.find("f") == library.find("f"));
  must(library.add(square("g")));
  CHECK(copy.find("g") == nullptr);
}

TEST_CASE("definitions differ in any of their parts") {
  const FunctionDef f = square("f");
  CHECK(same_definition(f, square("f")));
  FunctionDef other = f;
  other.ret["y"] = "product:z:1";
  CHECK_FALSE(same_definition(f, other));
  other = f;
  other.attrs["_x"] = 1;
  CHECK_FALSE(same_definition(f, other));
  other = f;
  other.signature.is_stateful = true;
  CHECK_FALSE(same_definition(f, other));
  other = f;
  other.arg_attrs[0]["_y"] = 2;
  CHECK_FALSE(same_definition(f, other));
  other = f;
  other.control_ret["c"] = "product";
  CHECK_FALSE(same_definition(f, other));
}
