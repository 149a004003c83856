#include "graph/op_def.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace tagflow;
using namespace tagflow::graph;

namespace {

AttrDef attr(std::string_view text) {
  OpDef def = OpDefBuilder("Test").attr(text).build();
  REQUIRE(def.attrs.size() == 1);
  return def.attrs[0];
}

AttrValue default_of(std::string_view text) {
  const AttrDef def = attr(text);
  REQUIRE(def.default_value);
  return *def.default_value;
}

}  // namespace

TEST_CASE("arguments are read with their attributes, in any order") {
  const OpDef def = OpDefBuilder("Pack")
                        .input("values: N * T")
                        .input("at: int32")
                        .input("rest: Tlist")
                        .output("ref: Ref(T)")
                        .output("many: N * Ref(string)")
                        .attr("N: int >= 1")
                        .attr("T: type")
                        .attr("Tlist: list(type)")
                        .build();
  REQUIRE(def.inputs.size() == 3);
  CHECK(def.inputs[0] ==
        ArgDef{"values", DataType::kInvalid, "T", "N", "", false});
  CHECK(def.inputs[1] == ArgDef{"at", DataType::kInt32, "", "", "", false});
  CHECK(def.inputs[2] ==
        ArgDef{"rest", DataType::kInvalid, "", "", "Tlist", false});
  REQUIRE(def.outputs.size() == 2);
  CHECK(def.outputs[0] == ArgDef{"ref", DataType::kInvalid, "T", "", "", true});
  CHECK(def.outputs[1] == ArgDef{"many", DataType::kString, "", "N", "", true});
}

TEST_CASE("an op definition takes several arguments in one text") {
  const OpDef one_by_one = OpDefBuilder("Test")
                               .input("a: T")
                               .input("b: N * T")
                               .output("c: T")
                               .output("d: int32")
                               .attr("T: type")
                               .attr("N: int >= 2 = 3")
                               .build();
  const OpDef at_once = OpDefBuilder("Test")
                            .input("a: T")
                            .inputs({"b: N * T"})
                            .outputs({"c: T", "d: int32"})
                            .attrs({})
                            .attrs({"T: type", "N: int >= 2 = 3"})
                            .build();
  CHECK(at_once.malformed.empty());
  CHECK(at_once.inputs == one_by_one.inputs);
  CHECK(at_once.outputs == one_by_one.outputs);
  CHECK(at_once.attrs == one_by_one.attrs);
}

TEST_CASE("attributes have types, minima and sets of allowed values") {
  CHECK(attr("x: list(shape) >= 2").type == "list(shape)");
  CHECK(attr("x: list(shape) >= 2").minimum == 2);
  CHECK(attr("x: int").default_value == std::nullopt);
  const AttrDef types = attr("T: {float, int32} = DT_INT32");
  CHECK(types.type == "type");
  CHECK(types.allowed_types ==
        std::vector<DataType>{DataType::kFloat, DataType::kInt32});
  CHECK(*types.default_value == AttrValue(DataType::kInt32));
  const AttrDef strings = attr("p: {'SAME', \"VALID\"} = 'SAME'");
  CHECK(strings.type == "string");
  CHECK(strings.allowed_strings == std::vector<std::string>{"SAME", "VALID"});
  const AttrDef lists = attr("T: list({int8, half}) >= 1");
  CHECK(lists.type == "list(type)");
  CHECK(lists.allowed_types.size() == 2);
}

TEST_CASE("an op definition takes sets of number types by name") {
  const AttrDef numbers = attr("T: numbertype");
  const AttrDef real = attr("T: realnumbertype = DT_FLOAT");
  CHECK(numbers.type == "type");
  auto has = [](const AttrDef& def, DataType type) {
    return std::ranges::find(def.allowed_types, type) !=
           def.allowed_types.end();
  };
  for (int number = 1; number <= 23; ++number) {
    const DataType type = DataType(number);
    if (is_numeric(type)) CHECK(has(numbers, type));
    CHECK(has(real, type) == (is_numeric(type) && !is_complex(type)));
  }
  CHECK_FALSE(has(numbers, DataType::kString));
}

TEST_CASE("defaults are read by the attribute's type") {
  CHECK(default_of("x: int = -3") == AttrValue(-3));
  CHECK(default_of("x: int >= 1 = 5") == AttrValue(5));
  CHECK(default_of("x: float = 1e-3") == AttrValue(1e-3F));
  CHECK(default_of("x: bool = true") == AttrValue(true));
  CHECK(default_of("x: string = 'a b'") == AttrValue("a b"));
  CHECK(default_of("x: string = ''") == AttrValue(""));
  CHECK(default_of("x: type = DT_HALF") == AttrValue(DataType::kHalf));
  CHECK(default_of("x: shape = <unknown>") == AttrValue(PartialShape()));
  CHECK(default_of("x: shape = {}") == AttrValue(PartialShape::scalar()));
  CHECK(default_of("x: shape = {unknown_rank: true}") ==
        AttrValue(PartialShape()));
  CHECK(default_of("x: shape = [2, -1, ?]") ==
        AttrValue(PartialShape({2, -1, -1})));
  CHECK(default_of("x: list(int) = []") == AttrValue(std::vector<int64_t>()));
  CHECK(default_of("x: list(int) = [1, 2]") ==
        AttrValue(std::vector<int64_t>{1, 2}));
  CHECK(default_of("x: list(string) = ['a', 'b']") ==
        AttrValue(std::vector<std::string>{"a", "b"}));
  CHECK(default_of("x: list(type) = [DT_INT8]") ==
        AttrValue(std::vector<DataType>{DataType::kInt8}));
  CHECK(default_of("x: list(bool) = [true]") ==
        AttrValue(std::vector<bool>{true}));
  CHECK(default_of("x: list(float) = [0.5]") ==
        AttrValue(std::vector<float>{0.5F}));
  CHECK(default_of("x: list(shape) = [[1], {}]") ==
        AttrValue(std::vector<PartialShape>{PartialShape({1}),
                                            PartialShape::scalar()}));
  CHECK(default_of("x: func = 'f'") == AttrValue(FunctionRef{"f", {}}));
}

TEST_CASE("an op's properties are off until they are asked for") {
  const OpDef plain = OpDefBuilder("Plain").build();
  CHECK_FALSE(plain.is_stateful);
  CHECK_FALSE(plain.is_commutative);
  CHECK_FALSE(plain.allows_uninitialized_input);
  CHECK_FALSE(plain.forwards);
  CHECK_FALSE(plain.is_fusible);
  CHECK_FALSE(plain.may_die);
  CHECK(plain.work == Work::kElementwise);
  CHECK_FALSE(plain.shape_fn);
  const OpDef all = OpDefBuilder("All")
                        .stateful()
                        .commutative()
                        .allows_uninitialized_input()
                        .fusible()
                        .may_die()
                        .work(Work::kSort)
                        .shape([](ShapeContext&) { return Status(); })
                        .build();
  CHECK(all.is_stateful);
  CHECK(all.is_commutative);
  CHECK(all.allows_uninitialized_input);
  CHECK(all.is_fusible);
  CHECK(all.may_die);
  CHECK(all.work == Work::kSort);
  CHECK(all.shape_fn);
}

TEST_CASE("an op that forwards its input is free") {
  const OpDef op = OpDefBuilder("Test")
                       .input("x: T")
                       .output("y: T")
                       .attr("T: type")
                       .forwards()
                       .build();
  CHECK(op.forwards);
  CHECK(op.work == Work::kFree);
}

TEST_CASE("an attribute is found by its name") {
  const OpDef def = OpDefBuilder("Test").attr("a: int").attr("b: int").build();
  CHECK(def.find_attr("b") == &def.attrs[1]);
  CHECK(def.find_attr("c") == nullptr);
}
