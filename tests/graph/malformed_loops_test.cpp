// Malformed edges, cycles, loops and functions, each with its error message.
#include "tests/graph/pbtxt.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::pbtxt;

namespace {

// The frames are "f" and, around or beside it, "g".
std::string enter(const std::string& name, const std::string& input,
                  const std::string& frame = kFrame) {
  return node(name, "Enter", in(input) + frame);
}

std::string function(const std::string& name, const std::string& signature,
                     const std::string& rest = "") {
  return "library { function { signature { name: '" + name + "' " + signature +
         " } " + rest + " } } ";
}

std::string body(const std::string& name, const std::string& op,
                 const std::string& rest = "") {
  return "node_def { name: '" + name + "' op: '" + op + "' " + rest + " } ";
}

const std::string kArg = "input_arg { name: 'a' type: DT_FLOAT } ";
const std::string kResult = "output_arg { name: 'r' type: DT_FLOAT } ";

std::string ret(const std::string& result, const std::string& output) {
  return "ret { key: '" + result + "' value: '" + output + "' } ";
}

}  // namespace

TEST_CASE("malformed edges are refused") {
  check({
      {node("y", "Identity", in("y") + type("T", "DT_FLOAT")), kInvalid,
       "the cycle y -> y does not go through a NextIteration into a Merge"},
      {kX + node("y", "Identity", in("x ^y")), kInvalid,
       "the cycle y -> y does not go through"},
      {kX + node("y", "Identity", in("x:0:0")), kInvalid,
       "[Identity] node \"y\": input 0: \"x:0\" is not a legal name of a node"},
      {kX + node("y", "Identity", in("x:")), kInvalid,
       "input 0: \"x:\" has no valid port number"},
      {kX + node("y", "Identity", in("x:0x0")), kInvalid,
       "input 0: \"x:0x0\" has no valid port number"},
      {kX + node("y", "Identity", in("x:+0")), kInvalid,
       "input 0: \"x:+0\" has no valid port number"},
      {kX + node("y", "NoOp", in("^x:0")), kInvalid,
       "input 0: \"x:0\" is not a legal name of a node"},
      {kX + node("y", "NoOp", in("^")), kInvalid,
       "input 0: the name of a node is empty"},
      {kX + node("y", "NoOp", in("^^x")), kInvalid,
       "input 0: \"^x\" is not a legal name of a node"},
      {kX + node("y", "Identity", "input: ' x'"), kInvalid,
       "input 0: \" x\" is not a legal name of a node"},
      {node("n", "NoOp") + node("y", "Identity", in("n")), kInvalid,
       "[Identity] node \"y\": input 0 (\"n:0\"): node \"n\" (NoOp) has 0 "
       "output(s)"},
      {kX + kP + node("w", "Switch", in("x p")) +
           node("y", "Identity", in("w:2")),
       kInvalid, "input 0 (\"w:2\"): node \"w\" (Switch) has 2 output(s)"},
      {kX + node("y", "Switch", in("x")), kInvalid,
       "[Switch] node \"y\": 1 inputs are given, at least 2 wanted (data, "
       "pred)"},
      {kX + kP + node("y", "Switch", in("x p p")), kInvalid,
       "[Switch] node \"y\": 3 inputs are given, 2 wanted (data, pred)"},
      {node("y", "Merge", type("T", "DT_FLOAT")), kInvalid,
       "[Merge] node \"y\": attribute \"N\" is 0, at least 1 is wanted"},
      {kX + kI + node("y", "Merge", in("x i")), kInvalid,
       "[Merge] node \"y\": input 1 (\"i:0\") is int32, float is wanted"},
      {kX + node("y", "Pack", in("x x") + attr("N", "i: 3")), kInvalid,
       "[Pack] node \"y\": 2 inputs are given, at least 3 wanted"},
      {kX + node("y", "ConcatV2", in("x")), kInvalid,
       "[ConcatV2] node \"y\": attribute \"N\" is 0, at least 2 is "
       "wanted"},
      {kX + node("a", "Identity", in("c")) + node("b", "Identity", in("a")) +
           node("c", "Identity", in("b")),
       kInvalid, "[graph] the cycle a -> b -> c -> a does not go through"},
      {node("a", "NoOp", in("^b")) + node("b", "NoOp", in("^a")), kInvalid,
       "[graph] the cycle a -> b -> a does not go through"},
  });
}

TEST_CASE("loops that cannot run are refused") {
  const std::string e = enter("e", "x");
  const std::string merge = node("m", "Merge", in("e n"));
  std::string deep = kX;
  for (int i = 0; i < 4; ++i)
    deep += node(fmt::format("e{}", i), "Enter",
                 in(i == 0 ? "x" : fmt::format("e{}", i - 1)) +
                     attr("frame_name", fmt::format("s: 'f{}'", i)));
  check({
      {kX + e + enter("d", "e"), kInvalid, "frame \"f\""},
      {kX + e + node("o", "Exit", in("e")) + node("q", "Exit", in("o")),
       kInvalid, "[Exit] node \"q\": it is in no loop"},
      {kX + e + node("o", "Exit", in("e")) + node("y", "AddV2", in("o e")),
       kInvalid,
       "[AddV2] node \"y\": input 0 (\"o:0\") is in the root frame, "
       "but input 1 (\"e:0\") is in frame \"f\"; bring \"o\" into frame "
       "\"f\" by an Enter with is_constant = true, or take \"e\" out "
       "by an Exit"},
      {kX + e + enter("d", "x", kFrameG) + node("y", "AddV2", in("e d")),
       kInvalid,
       "[AddV2] node \"y\": input 0 (\"e:0\") is in frame \"f\", but "
       "input 1 (\"d:0\") is in frame \"g\"; neither is inside the "
       "other: take \"d\" out of frame \"g\" by an Exit"},
      {kX + e + node("y", "NoOp", in("^e ^x")), kInvalid,
       "[NoOp] node \"y\": control input \"^e\" is in frame \"f\", but "
       "control input \"^x\" is in the root frame; bring \"x\" into "
       "frame \"f\" by an Enter with is_constant = true, or take "
       "\"e\" out by an Exit"},
      {kX + kP + e + node("w", "Switch", in("e p")), kInvalid,
       "[Switch] node \"w\": input 0 (\"e:0\") is in frame \"f\", but "
       "input 1 (\"p:0\") is in the root frame; bring \"p\" into "
       "frame \"f\" by an Enter with is_constant = true, or take "
       "\"e\" out by an Exit"},
      {kX + e + node("m", "Merge", in("e x")), kInvalid,
       "[Merge] node \"m\": input 0 (\"e:0\") is in frame \"f\", but "
       "input 1 (\"x:0\") is in the root frame; bring \"x\" into "
       "frame \"f\" by an Enter with is_constant = true, or take "
       "\"e\" out by an Exit"},
      // The back edge leads into another loop, or out of one.
      {kX + e + enter("d", "x", kFrameG) + merge +
           node("n", "NextIteration", in("d")),
       kInvalid,
       "[Merge] node \"m\": the back edge from \"n:0\" comes from "
       "frame \"g\", the Merge is in frame \"f\"; a NextIteration "
       "leads to a Merge of its own loop"},
      {kX + e + merge + node("o", "Exit", in("m")) +
           node("n", "NextIteration", in("o")),
       kInvalid, "[NextIteration] node \"n\": it is in no loop"},
      {node("m", "Merge", in("n k") + type("T", "DT_FLOAT")) +
           node("n", "NextIteration", in("m")) +
           node("k", "NextIteration", in("m")),
       kInvalid, "all inputs are back edges"},
      // Only a Merge ends a cycle.
      {kX + e + node("a", "AddV2", in("e n")) +
           node("n", "NextIteration", in("a")),
       kInvalid, "the cycle a -> n -> a does not go through"},
      {kX + e + node("m", "Merge", in("e a")) + node("a", "Identity", in("n")) +
           node("n", "NextIteration", in("m")),
       kInvalid, "the cycle m -> n -> a -> m does not go through"},
      {kX + enter("e", "o", kFrame) + node("o", "Exit", in("e")), kInvalid,
       "the cycle e -> o -> e does not go through"},
      {kX + node("e", "Enter", in("x") + attr("frame_name", "s: ''")), kInvalid,
       "[Enter] node \"e\": the attribute \"frame_name\" is empty"},
      {kX + node("e", "Enter",
                 in("x") + kFrame + attr("parallel_iterations", "i: 0")),
       kInvalid,
       "[Enter] node \"e\": the attribute \"parallel_iterations\" is "
       "0, at least 1 is wanted"},
      {kX + node("e", "Enter",
                 in("x") + kFrame + attr("parallel_iterations", "i: -1")),
       kInvalid,
       "[Enter] node \"e\": the attribute \"parallel_iterations\" is "
       "-1, at least 1 is wanted"},
      {kX + node("e", "Enter",
                 in("x") +
                     attr("frame_name", "s: '" + std::string(5000, 'f') + "'")),
       kTooMuch,
       "[Enter] node \"e\": the name of its frame has 5000 bytes, the limit is "
       "4096"},
      {deep,
       kTooMuch,
       "[Enter] node \"e3\": frame \"f3\" is 4 loops deep, the limit "
       "is 3",
       {.max_frame_depth = 3}},
      {kX + node("e", "RefEnter", in("x") + kFrame), kInvalid,
       "[RefEnter] node \"e\": input 0 (\"x:0\") is float, float_ref is "
       "wanted"},
      {kX + kI + e + merge + node("c", "LoopCond", in("m")) +
           node("n", "NextIteration", in("m")),
       kInvalid,
       "[LoopCond] node \"c\": input 0 (\"m:0\") is float, bool is wanted"},
      {kP + enter("e", "p") + node("c", "LoopCond", in("e")) +
           node("d", "LoopCond", in("c")),
       kInvalid, "frame \"f\" has \"c\" and \"d\"; a loop has one predicate"},
      // Another loop's predicate.
      {kX + kP + e + enter("d", "p", kFrameG) + node("c", "LoopCond", in("d")) +
           node("w", "Switch", in("e c")),
       kInvalid,
       "[Switch] node \"w\": input 0 (\"e:0\") is in frame \"f\", but "
       "input 1 (\"c:0\") is in frame \"g\"; neither is inside the "
       "other: take \"c\" out of frame \"g\" by an Exit"},
  });
}

TEST_CASE("functions that cannot be called are refused") {
  const std::string identity = body("y", "Identity", in("a"));
  check({
      {function("f", kArg + kResult, identity), kInvalid,
       "[function] \"f\": nothing is returned as \"r\""},
      {function("f", kArg + kResult, identity + ret("r", "z:output:0")),
       kInvalid,
       "[function] \"f\": \"z:output:0\", returned as \"r\", is of no argument "
       "or "
       "node"},
      {function("f", kArg, identity + ret("q", "y:output:0")), kInvalid,
       "[function] \"f\": \"y:output:0\" is returned as \"q\", which is not a "
       "result"},
      {function("f", kArg + kResult + kResult, ret("r", "a")),
       Code::kAlreadyExists, "[function] \"f\": two results are named \"r\""},
      {function("f", kArg, body("y", "Identity", in("b"))), kInvalid,
       "[function] \"f\": node \"y\": input \"b\" is of no argument or node"},
      {function("f", kArg, body("y", "Identity", in("a ^z"))), kInvalid,
       "[function] \"f\": node \"y\": input \"^z\" is of no argument or node"},
      {function("f", kArg, body("y", "NoOp") + body("y", "NoOp")),
       Code::kAlreadyExists, "[function] \"f\": two nodes are named \"y\""},
      {function("f", kArg, body("a", "NoOp")), Code::kAlreadyExists,
       "[function] \"f\": \"a\" is an argument and a node"},
      {function("f", kArg + kArg), Code::kAlreadyExists,
       "[function] \"f\": two arguments are named \"a\""},
      {function("f", kArg, body("y z", "NoOp")), kInvalid,
       "\"y z\" is not a legal name of a node"},
      {function("f", "control_output: 'c'"), kInvalid,
       "[function] \"f\": no node gives control output \"c\""},
      {function("f", "control_output: 'c'",
                "control_ret { key: 'c' value: 'z' }"),
       kInvalid, "[function] \"f\": control output \"c\" is not a node: \"z\""},
      {function(std::string(5000, 'f'), ""), kInvalid,
       "has 5000 bytes, the limit is 4096"},
      {function("Identity", kArg) + kX + node("y", "Identity", in("x")),
       Code::kAlreadyExists, "[function] \"Identity\": "},
      {function("f", kArg + kResult, identity + ret("r", "y:output:0")) + kI +
           node("y", "f", in("i")),
       kInvalid,
       "[f] node \"y\": input 0 (\"i:0\") is int32, float is wanted as a"},
      {function("f", kArg + kResult, identity + ret("r", "y:output:0")) + kX +
           node("y", "f", in("x")) + node("z", "Identity", in("y:1")),
       kInvalid, "input 0 (\"y:1\"): node \"y\" (f) has 1 output(s)"},
      {function("f", kArg, body("y", "NoOp")) + node("y", "NoOp"),
       kTooMuch,
       "[graphdef] function \"f\": node \"y\" is one more than the limit of 1 "
       "nodes",
       {.max_nodes = 1}},
  });
}

TEST_CASE("files for other versions are refused") {
  check({
      {"versions { producer: 21 min_consumer: 100000 }", Code::kUnimplemented,
       "[graphdef] the graph requires a reader of version 100000, this one has "
       "version 2500"},
      {"versions { producer: -3 }", kInvalid,
       "[graphdef] its producer has the version -3"},
      {kX,
       kTooMuch,
       "[graphdef] the GraphDef has 167 bytes, the limit is 10",
       {.max_bytes = 10}},
      {node("a", "NoOp") + node("b", "NoOp"),
       kTooMuch,
       "[graphdef] node \"b\" is one more than the limit of 1 nodes",
       {.max_nodes = 1}},
      {node("abcdef", "NoOp"),
       kTooMuch,
       "[graphdef] the node name \"abcdef\" has 6 bytes, the limit is 5",
       {.max_name_length = 5}},
  });
}
