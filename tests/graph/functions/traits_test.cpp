#include "graph/functions/traits.h"

#include <doctest/doctest.h>

#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

// A function of no arguments with one node per op, in a library.
void add_function(FunctionLibrary& library, const std::string& name,
                  const std::vector<std::string>& ops, AttrMap attrs = {}) {
  FunctionDef f;
  f.signature = OpDefBuilder(name).build();
  for (const std::string& op : ops)
    f.nodes.push_back(def("n" + std::to_string(f.nodes.size()), op, {}, attrs));
  must(library.add(std::move(f)));
}

}  // namespace

TEST_CASE("traits of a function are those of all that it reaches") {
  FunctionLibrary library;
  add_function(library, "pure", {"Const"});
  add_function(library, "prints", {"Print"});
  add_function(library, "forks", {"Switch", "pure"});
  // They call one another, and each something else.
  add_function(library, "a", {"b", "prints"});
  add_function(library, "b", {"a", "forks"});
  add_function(library, "by_attr", {"StatelessWhile"},
               {{"body", FunctionRef{"a", {}}}});
  const auto traits_of = [&](std::string_view name) {
    return LibraryTraits(library).of(name, {});
  };
  CHECK(traits_of("pure") == Traits{});
  CHECK(traits_of("prints") == Traits{.has_effects = true});
  CHECK(traits_of("forks") == Traits{.may_die = true});
  const Traits both = {.has_effects = true, .may_die = true};
  for (const char* name : {"a", "b", "by_attr"}) {
    CAPTURE(name);
    CHECK(traits_of(name) == both);
  }
  CHECK(traits_of("unknown") == Traits{});
  CHECK(LibraryTraits(library).of("If", {{"f", FunctionRef{"forks", {}}}}) ==
        Traits{.may_die = true});
}

TEST_CASE("traits are found in any order of questions alike") {
  FunctionLibrary library;
  add_function(library, "prints", {"Print"});
  add_function(library, "outer", {"middle"});
  add_function(library, "middle", {"outer", "inner"});
  add_function(library, "inner", {"prints"});
  const std::vector<std::string> names = {"outer", "middle", "inner"};
  for (const std::string& first : names) {
    LibraryTraits traits(library);
    CAPTURE(first);
    CHECK(traits.of(first, {}).has_effects);
    for (const std::string& name : names)
      CHECK(traits.of(name, {}).has_effects);
  }
}

TEST_CASE("traits of a function need only the functions that it reaches") {
  FunctionLibrary library;
  for (int i = 0; i < 100; ++i)
    add_function(library, "f" + std::to_string(i),
                 {"f" + std::to_string(i ^ 1), "Const"});
  LibraryTraits traits(library);
  CHECK(traits.num_known() == 0);
  traits.of("f6", {});
  CHECK(traits.num_known() == 2);
  traits.of("f7", {});
  CHECK(traits.num_known() == 2);
  traits.of("Neg", {});
  CHECK(traits.num_known() == 2);
}
