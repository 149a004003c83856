// Malformed names, inputs, types, loops, functions and texts, each with its
// error message. More are in malformed_values_test.cpp and
// malformed_loops_test.cpp.
#include "tests/graph/pbtxt.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::pbtxt;

TEST_CASE("malformed names are refused") {
  check({
      {node("", "NoOp"), kInvalid,
       "[NoOp] node \"\": the name of a node is empty"},
      {node("a b", "NoOp"), kInvalid, "\"a b\" is not a legal name of a node"},
      {node("^a", "NoOp"), kInvalid, "\"^a\" is not a legal name of a node"},
      {node("a:0", "NoOp"), kInvalid, "\"a:0\" is not a legal name of a node"},
      {node(std::string(4097, 'a'), "NoOp"), Code::kResourceExhausted,
       "has 4097 bytes, the limit is 4096"},
      {node("a", "NoOp") + node("a", "NoOp"), Code::kAlreadyExists,
       "[NoOp] node \"a\": a node of this name is there already"},
      {node("a", ""), Code::kUnimplemented, "unknown op \"\""},
      {node("a", "Nop"), Code::kUnimplemented,
       "[Nop] node \"a\": [ops] unknown op \"Nop\", did you mean \"NoOp\"?"},
  });
}

TEST_CASE("malformed inputs are refused") {
  check({
      {kX + node("y", "Identity", in("z")), kInvalid,
       "[Identity] node \"y\": input 0: no node \"z\""},
      {scalar("weights", "DT_FLOAT", "") + node("y", "Identity", in("wieghts")),
       kInvalid, "no node \"wieghts\", did you mean \"weights\"?"},
      {kX + node("y", "Identity", in("")), kInvalid,
       "input 0: the name of a node is empty"},
      {kX + node("y", "Identity", in("x:1")), kInvalid,
       "input 0 (\"x:1\"): node \"x\" (Const) has 1 output(s)"},
      {kX + node("y", "Identity", in("x:-1")), kInvalid,
       "input 0: \"x:-1\" has no valid port number"},
      {kX + node("y", "Identity", in("x:99999999999")), kInvalid,
       "has no valid port number"},
      {kX + node("y", "Identity", in("^x") + in("x")), kInvalid,
       "[Identity] node \"y\": input 1 (\"x\") comes after a control input"},
      {kX + node("y", "Identity", in("^z") + in("x")), kInvalid,
       "input 0: no node \"z\""},
      {kX + node("y", "Identity"), kInvalid,
       "[Identity] node \"y\": 0 inputs are given, at least 1 wanted (input)"},
      {kX + node("y", "AddV2", in("x")), kInvalid,
       "[AddV2] node \"y\": 1 inputs are given, at least 2 wanted (x, y)"},
      {kX + node("y", "NoOp", in("x")), kInvalid,
       "[NoOp] node \"y\": 1 inputs are given, 0 wanted ()"},
      {kX + node("y", "AddN", in("x") + attr("N", "i: 2")), kInvalid,
       "[AddN] node \"y\": 1 inputs are given, at least 2 wanted (inputs)"},
      {kX + node("y", "AddN", in("x") + attr("N", "i: 4611686018427387904")),
       kInvalid, "1 inputs are given, at least 2 wanted"},
      {kX + node("y", "AddN", in("x") + attr("N", "i: -1")), kInvalid,
       "attribute \"N\" is -1, at least 0 is wanted"},
      {node("y", "AddN", type("T", "DT_FLOAT")), kInvalid,
       "[AddN] node \"y\": attribute \"N\" is 0, at least 1 is wanted"},
  });
}

TEST_CASE("types that do not agree are refused") {
  check({
      {kX + kI + node("y", "AddV2", in("x") + in("i")), kInvalid,
       "[AddV2] node \"y\": input 1 (\"i:0\") is int32, float is wanted as y"},
      {kX + node("y", "Identity", in("x") + type("T", "DT_INT32")), kInvalid,
       "[Identity] node \"y\": input 0 (\"x:0\") is float, int32 is wanted as "
       "input"},
      {kX + node("y", "LoopCond", in("x")), kInvalid,
       "input 0 (\"x:0\") is float, bool is wanted"},
      {kX + node("y", "RefIdentity", in("x")), kInvalid,
       "input 0 (\"x:0\") is float, float_ref is wanted"},
      {kX + kI +
           node("y", "IdentityN",
                in("x") + in("i") + attr("T", "list { type: DT_FLOAT }")),
       kInvalid, "2 inputs are given, 1 wanted"},
      {kX + kI +
           node("y", "IdentityN",
                in("x") + in("i") +
                    attr("T",
                         "list { type: DT_FLOAT type: "
                         "DT_FLOAT }")),
       kInvalid, "input 1 (\"i:0\") is int32, float is wanted"},
      {kX + node("y", "Switch", in("x") + in("x")), kInvalid,
       "input 1 (\"x:0\") is float, bool is wanted as pred"},
      {kP + node("y", "AddV2", in("p") + in("p")), kInvalid,
       "[AddV2] node \"y\": attribute \"T\" is bool, allowed are"},
  });
}

TEST_CASE("malformed attributes are refused") {
  check({
      {node("y", "Placeholder"), kInvalid,
       "[Placeholder] node \"y\": attribute \"dtype\" (type) is missing"},
      {node("y", "Placeholder", type("dtype", "DT_INVALID")), kInvalid,
       "attribute \"dtype\" is the type invalid(0), which no value can have"},
      {node("y", "Placeholder", type("dtype", "DT_FLOAT_REF")), kInvalid,
       "attribute \"dtype\" is the type float_ref, which no value can have"},
      {node("y", "Placeholder", type("dtype", "DT_INT4")), kInvalid,
       "attribute \"dtype\" is the type invalid(29), which no value can have"},
      {node("y", "Placeholder", attr("dtype", "i: 1")), kInvalid,
       "attribute \"dtype\" is of type int"},
      {node("y", "Placeholder", attr("dtype", "")), kInvalid,
       "attribute \"dtype\" is of type nothing"},
      {node("y", "Placeholder",
            type("dtype", "DT_FLOAT") +
                attr("shape", "shape { dim { size: -5 } }")),
       kInvalid,
       "[graphdef] node \"y\": attribute \"shape\": [shape] negative "
       "dimension -5 in [-5]"},
      {node("y", "Placeholder",
            type("dtype", "DT_FLOAT") + attr("shape", "s: '[]'")),
       kInvalid, "attribute \"shape\" is of type string, shape is wanted"},
      {kX + node("y", "Enter", in("x")), kInvalid,
       "[Enter] node \"y\": attribute \"frame_name\" (string) is missing"},
      {kX + node("y", "Enter", in("x") + kFrame + attr("is_constant", "i: 1")),
       kInvalid, "attribute \"is_constant\" is of type int, bool is wanted"},
      {kX + node("y", "Identity", in("x") + attr("T", "list { i: 1 b: true }")),
       kInvalid,
       "[graphdef] node \"y\": attribute \"T\": a list has elements of 2 "
       "kinds"},
      {kX + node("y", "IdentityN",
                 in("x") + attr("T", "list { type: DT_FLOAT_REF }")),
       kInvalid, "input 0 (\"x:0\") is float, float_ref is wanted"},
      {node("y", "Unpack",
            attr("num", "i: 4611686018427387904") + in("x") + in("^x")) +
           kX,
       kInvalid, "4611686018427387904 outputs are over the limit of 65536"},
      {kX + node("y", "Unpack", attr("num", "i: -2") + in("x")), kInvalid,
       "[Unpack] node \"y\": attribute \"num\" is -2, at least 0 is wanted"},
      {node("y", "Const", type("dtype", "DT_FLOAT")), kInvalid,
       "[Const] node \"y\": attribute \"value\" (tensor) is missing"},
      {node("y", "Const",
            type("dtype", "DT_FLOAT") +
                attr("value", "tensor { dtype: DT_INT32 int_val: 1 }")),
       kInvalid, "[Const] node \"y\": the value is int32[]"},
      {node("y", "Const",
            type("dtype", "DT_FLOAT") +
                attr("value",
                     "tensor { dtype: DT_FLOAT float_val: 1 tensor_shape { "
                     "dim { size: 1099511627776 } } }")),
       Code::kResourceExhausted,
       "[graphdef] node \"y\": attribute \"value\": a tensor of "
       "float[1099511627776] is too large"},
  });
}

TEST_CASE("malformed loops are refused") {
  const std::string enter = node("e", "Enter", in("x") + kFrame);
  check({
      {kX + node("a", "Identity", in("b")) + node("b", "Identity", in("a")),
       kInvalid,
       "[graph] the cycle a -> b -> a does not go through a NextIteration into "
       "a Merge"},
      {kX + node("m", "Merge", in("x") + in("a")) +
           node("a", "Identity", in("m")),
       kInvalid, "the cycle m -> a -> m does not go through"},
      {kX + enter + node("m", "Merge", in("e") + in("^n")) +
           node("n", "NextIteration", in("m")),
       kInvalid, "the cycle m -> n -> m does not go through"},
      {kX + node("o", "Exit", in("x")), kInvalid,
       "[Exit] node \"o\": it is in no loop"},
      {kX + node("n", "NextIteration", in("x")), kInvalid,
       "[NextIteration] node \"n\": it is in no loop"},
      {kX + enter + node("y", "AddV2", in("e") + in("x")), kInvalid,
       "bring \"x\" into frame \"f\" by an Enter with is_constant = true"},
      {kX + enter + node("y", "NoOp", in("^e") + in("^x")), kInvalid,
       "control input \"^e\" is in frame \"f\", but control input \"^x\" is "
       "in the root frame"},
      {kX + enter + node("g", "Enter", in("e") + attr("frame_name", "s: 'g'")) +
           node("h", "Enter", in("x") + attr("frame_name", "s: 'g'")),
       kInvalid, "a loop has one parent"},
      {kX + kI + enter + node("m", "Merge", in("e") + in("n")) +
           node("n", "NextIteration", in("c")) +
           node("c", "Cast",
                in("m") + type("SrcT", "DT_FLOAT") + type("DstT", "DT_INT32")),
       kInvalid,
       "[Merge] node \"m\": input 1 (\"n:0\") is int32, float is wanted"},
      {kX + enter + node("m", "Merge", in("e") + in("n:1")) +
           node("n", "NextIteration", in("m")),
       kInvalid,
       "[Merge] node \"m\": input 1 (\"n:1\"): node \"n\" (NextIteration) has "
       "1 output(s)"},
      {node("m", "Merge", in("n") + type("T", "DT_FLOAT")) +
           node("n", "NextIteration", in("m")),
       kInvalid, "all inputs are back edges"},
      {kP + node("e", "Enter", in("p") + kFrame) +
           node("c", "LoopCond", in("e")) + node("d", "LoopCond", in("e")),
       kInvalid, "frame \"f\" has \"c\" and \"d\"; a loop has one predicate"},
  });
}

TEST_CASE("malformed functions are refused") {
  auto function = [](const std::string& name, const std::string& rest = "") {
    return "library { function { signature { name: '" + name + "' " + rest +
           " } } } ";
  };
  check({
      {function(""), kInvalid,
       "[graphdef] function \"\": the name of a function is empty"},
      {function("f", "input_arg { name: 'x' }"), kInvalid,
       "[graphdef] function \"f\": argument \"x\" must have one of type, "
       "type_attr, type_list_attr; it has 0"},
      {function("f", "input_arg { name: 'x' type: DT_FLOAT type_attr: 'T' }"),
       kInvalid, "it has 2"},
      {"library { function { signature { name: 'f' } } function { signature { "
       "name: 'f' is_stateful: true } } }",
       Code::kAlreadyExists, "[function] another function is named \"f\""},
      {function("f", "input_arg { name: 'x' type: DT_FLOAT }") + node("y", "f"),
       kInvalid, "[f] node \"y\": 0 inputs are given, at least 1 wanted (x)"},
      {"library { gradient { function_name: 'f' gradient_func: 'g' } "
       "gradient { function_name: 'f' gradient_func: 'h' } }",
       Code::kAlreadyExists, "[function] \"f\" has the gradient \"g\""},
      {"library { function { signature { name: 'f' } node_def { name: 'x' "
       "attr { key: 'v' value { tensor { dtype: DT_VARIANT } } } } } }",
       Code::kUnimplemented,
       "[graphdef] function \"f\": node \"x\": attribute \"v\": a tensor of "
       "variant cannot be read"},
      {"library { function { signature { name: 'f' input_arg { name: 'x' "
       "type_attr: 'U' } } } } " +
           kX + node("y", "f", in("x")),
       kInvalid, "argument \"x\" needs an attribute \"U\" of type type"},
  });
}

TEST_CASE("a malformed text of a graph is refused") {
  check({
      {"node {", kInvalid, "[graphdef] the text is not a GraphDef: line 1"},
      {"node { name: }", kInvalid, "[graphdef] the text is not a GraphDef"},
      {"node { color: 'red' }", kInvalid, "has no field named \"color\""},
      {"\n\nnode { name: 3 }", kInvalid, "line 3, column"},
      {"\xff\xfe", kInvalid, "[graphdef] the text is not a GraphDef"},
      {node("y", "Placeholder", type("dtype", "DT_FLAOT")), kInvalid,
       "DT_FLAOT"},
      {node("y", "Placeholder", type("dtype", "7777")), kInvalid,
       "[graphdef] node \"y\": attribute \"dtype\": 7777 is not a number of a "
       "data type"},
  });
}
