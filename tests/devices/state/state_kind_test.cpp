// Kinds of state, by the ops that make them.
#include "devices/state/state_kind.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "devices/state/queue.h"
#include "devices/state/staging_area.h"
#include "devices/state/table.h"
#include "devices/state/variable.h"
#include "graph/op_registry.h"

using namespace tagflow;
using namespace tagflow::devices;

TEST_CASE("ops of all generations make state of one kind") {
  CHECK(kind_of("Variable") == Variable::kReferenceKind);
  CHECK(kind_of("VariableV2") == Variable::kReferenceKind);
  CHECK(kind_of("VarHandleOp") == Variable::kKind);
  CHECK(kind_of("FIFOQueue") == Queue::kKind);
  CHECK(kind_of("PriorityQueueV2") == Queue::kKind);
  CHECK(kind_of("HashTable") == Table::kKind);
  CHECK(kind_of("MutableDenseHashTableV2") == Table::kKind);
  CHECK(kind_of("AnonymousHashTable") == Table::kKind);
  CHECK(kind_of("OrderedMapPeek") == kind_of("MapStage"));
  CHECK(kind_of("Stage") == StagingList::kKind);
  for (const char* op : {"VarHandleOp", "Variable", "VariableV2"})
    CHECK(makes_variable(op));
  for (const char* op : {"FIFOQueue", "TemporaryVariable", "Const"})
    CHECK_FALSE(makes_variable(op));
}

TEST_CASE("the kind of state of an unknown op is the op's own name") {
  CHECK(kind_of("ReaderV2") == "ReaderV2");
  CHECK(kind_of("V2") == "V2");
  CHECK(kind_of("").empty());
}

TEST_CASE("the kind of each op is known that names a resource") {
  int known = 0;
  const graph::OpRegistry& ops = graph::OpRegistry::global();
  for (const std::string& name : ops.names()) {
    const auto& attrs = ops.find(name).value()->attrs;
    if (std::ranges::find(attrs, "shared_name", &graph::AttrDef::name) ==
            attrs.end() ||
        name.starts_with("Test"))
      continue;
    CAPTURE(name);
    CHECK(kind_of(name) != name);
    ++known;
  }
  CHECK(known > 30);
}
