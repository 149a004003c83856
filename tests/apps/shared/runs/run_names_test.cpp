#include "apps/shared/runs/run_names.h"

#include <doctest/doctest.h>

#include "graph/builder/builder.h"

using namespace tagflow;
using namespace tagflow::apps;
using namespace tagflow::graph;

namespace {

// n, one = 1, and "total": the sum of n ones by a loop "loop".
// The names of the first fetch's run, and of those of the others.
RunNames names_of(const std::string& fetch,
                  const std::vector<std::string>& others = {}) {
  Graph graph;
  const Scope s(graph);
  const Output n =
      ops::placeholder(s.named("n"), DataType::kInt32, PartialShape::scalar());
  const Output one = ops::identity(s.named("one"), ops::constant(s, 1));
  const Outputs last = while_loop(
      s.named("loop"),
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in.named("sum"), v[0], one)};
      },
      {0});
  static_cast<void>(ops::identity(s.named("total"), last[0]));
  REQUIRE_MESSAGE(s.ok(), s.status().to_string());
  auto session = actors::Session::create({});
  REQUIRE(session.ok());
  REQUIRE((*session)->extend(graph).ok());
  auto names = RunNames::of(**session, {"n:0"}, {fetch}, {});
  REQUIRE_MESSAGE(names.ok(), names.status().to_string());
  for (const std::string& other : others)
    REQUIRE(names->add(**session, {"n:0"}, {other}, {}).ok());
  return *std::move(names);
}

std::string text_of(const Status& status) {
  return std::string(status.message());
}

}  // namespace

TEST_CASE("the frames of a run are its loops, and a wrong name has a nearest") {
  const RunNames names = names_of("total:0");
  const Status wrong = names.check_frame("loop/while_contxt");
  CHECK(wrong.code() == Code::kNotFound);
  CHECK(text_of(wrong) ==
        "no frame \"loop/while_contxt\", did you mean "
        "\"loop/while_context\"?");
  CHECK(names.check_frame("loop/while_context").ok());
  CHECK(text_of(names.check_frame("another")) == "no frame \"another\"");
  CHECK(text_of(names_of("one:0").check_frame("loop/while_context")) ==
        "no frame \"loop/while_context\": what runs has no loop");
}

TEST_CASE("tensors of nodes that run are known, and all others refused") {
  const RunNames names = names_of("total:0");
  CHECK(names.check_tensor("loop/sum", 0).ok());
  CHECK(text_of(names.check_tensor("loop/smu", 0)) ==
        "no node \"loop/smu\", did you mean \"loop/sum\"?");
  CHECK(names.check_tensor("loop/sum", 1).code() == Code::kInvalidArgument);
  CHECK(text_of(names_of("one:0").check_tensor("loop/sum", 0)) ==
        "node \"loop/sum\" does not run: nothing that is fetched needs it, or "
        "a pass has replaced it");
}

TEST_CASE("names are those of all runs that are added") {
  for (const RunNames& names :
       {names_of("one:0", {"total:0"}), names_of("total:0", {"one:0"})}) {
    CHECK(names.check_frame("loop/while_context").ok());
    CHECK(names.check_tensor("loop/sum", 0).ok());
  }
}
