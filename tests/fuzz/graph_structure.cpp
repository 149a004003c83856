// Structure-aware fuzzing of graphs: the bytes are decisions, not a file.
//
// The first byte selects the kind of graph that the rest makes:
//   a program: valid by construction, so it must build, validate and run, and
//   the engine must give the reference interpreter's results, with settings
//   that are drawn as well, and once more with its nodes scattered over several
//   devices;
//   the same with some of its edges and attributes changed;
//   a soup of primitives with edges between any of them.
// Graphs of the latter two kinds may be rejected, but must not crash or hang.
// If the validator accepts a graph, the interpreter must find the same frames.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "graph/analysis/frames.h"
#include "graph/analysis/validate.h"
#include "tests/actors/engine_check.h"
#include "tests/reference/interpreter.h"
#include "tests/reference/random_graph.h"
#include "tests/reference/static_frames.h"

namespace tagflow::reference {

namespace {

using graph::Graph;
using graph::Node;
using graph::NodeDef;

void require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

void require_ok(const Status& status, const std::string& what) {
  require(status.ok(), what + ": " + status.to_string());
}

std::string path(const graph::FrameMap& map, graph::FrameId id) {
  if (id == graph::FrameId::kRoot) return "";
  return path(map, map.frame(id).parent) + "/" + map.frame(id).name;
}

std::string path(const StaticFrame* frame) {
  return frame->parent == nullptr ? ""
                                  : path(frame->parent) + "/" + frame->name;
}

void compare_frames(const Graph& graph) {
  const auto map = graph::FrameMap::build(graph);
  require_ok(map.status(), "validated, but without frames");
  StaticFrames frames;
  const auto nodes = graph.nodes();
  require_ok(frames.place({nodes.begin(), nodes.end()}),
             "the reference finds no frames");
  for (const Node* node : nodes) {
    const std::string theirs = path(*map, map->of(*node));
    require(theirs == path(frames.of(*node)), "frames of " + node->name() +
                                                  ": " + theirs + " and " +
                                                  path(frames.of(*node)));
  }
}

// Runs what the validator accepts.
void try_to_run(const Case& made) {
  if (!graph::validate(made.graph).ok()) return;
  compare_frames(made.graph);
  const InterpreterOptions small = {
      .max_firings = 3000, .max_depth = 400, .max_bytes = 1 << 16};
  const auto result = interpret(made.graph, made.feeds, made.fetches, small);
  (void)result.status();
}

void run_program(Choices& choices) {
  auto settings = actors::configuration(choices.below(actors::kConfigurations));
  const Result<Case> made = random_graph(choices);
  require_ok(made.status(), "a program does not build");
  require_ok(graph::validate(made->graph), "a program is not valid");
  const auto result = interpret(made->graph, made->feeds, made->fetches);
  require_ok(result.status(), "a program does not run");
  require(!result->is_ambiguous, "a program has several results");
  require_ok(actors::check_engine(*made, *result, settings),
             actors::describe(settings));
  // Drawn last, so that inputs mean what they did before there were devices.
  static const char* const kDevices[] = {"cpu:2", "cpu:4", "cpu:1,stream:1",
                                         "cpu:2,stream:2"};
  settings.devices = kDevices[choices.below(uint32_t(std::size(kDevices)))];
  settings.scatter = choices.below(1 << 16);
  require_ok(actors::check_engine(*made, *result, settings),
             actors::describe(settings));
}

// Another output of the same or another node; also one that does not exist.
std::string any_input(Choices& choices, const std::vector<NodeDef>& defs) {
  const std::string& name = defs[choices.below(uint32_t(defs.size()))].name;
  const uint32_t how = choices.below(8);
  if (how == 7) return "^" + name;
  return how < 5 ? name : name + ":" + std::to_string(how - 4);
}

void mutate(Choices& choices, std::vector<NodeDef>& defs) {
  NodeDef& def = defs[choices.below(uint32_t(defs.size()))];
  switch (choices.below(5)) {
    case 0:
      def.inputs.push_back("^" +
                           defs[choices.below(uint32_t(defs.size()))].name);
      return;
    case 1:
      if (!def.inputs.empty()) def.inputs.pop_back();
      return;
    case 2:
      def.attrs.insert_or_assign("is_constant", choices.below(2) == 1);
      return;
    case 3:
      def.attrs.insert_or_assign("frame_name", choices.below(2) == 1
                                                   ? std::string("f")
                                                   : std::string("g"));
      return;
    default:
      if (!def.inputs.empty())
        def.inputs[choices.below(uint32_t(def.inputs.size()))] =
            any_input(choices, defs);
  }
}

void run_mutant(Choices& choices) {
  const uint32_t mutations = 1 + choices.below(4);
  Result<Case> made = random_graph(choices, {.max_ops = 12, .max_depth = 3});
  require_ok(made.status(), "a program does not build");
  std::vector<NodeDef> defs;
  for (const Node* node : made->graph.nodes())
    defs.push_back(Graph::to_def(*node));
  for (uint32_t i = 0; i < mutations; ++i) mutate(choices, defs);
  Case changed;
  if (!changed.graph.extend(defs).ok()) return;
  changed.feeds = made->feeds;
  changed.fetches = made->fetches;
  try_to_run(changed);
}

NodeDef any_primitive(Choices& choices, std::string name) {
  static const char* const kOps[] = {
      "Const",    "Const",         "Switch",        "Merge", "Enter",
      "Exit",     "NextIteration", "LoopCond",      "AddV2", "Less",
      "Identity", "NoOp",          "ControlTrigger"};
  constexpr int kInputs[] = {0, 0, 2, 2, 1, 1, 1, 1, 2, 2, 1, 0, 0};
  const uint32_t which = choices.below(uint32_t(std::size(kOps)));
  NodeDef def;
  def.name = std::move(name);
  def.op = kOps[which];
  def.inputs.resize(size_t(kInputs[which]));
  const DataType type =
      choices.below(3) == 0 ? DataType::kBool : DataType::kInt32;
  if (def.op == "Const") {
    def.attrs["dtype"] = type;
    def.attrs["value"] = type == DataType::kBool
                             ? Tensor::scalar(choices.below(2) == 1)
                             : Tensor::scalar(int32_t(choices.below(4)));
  } else if (def.op != "NoOp" && def.op != "ControlTrigger" &&
             def.op != "LoopCond") {
    def.attrs["T"] = type;
  }
  if (def.op == "Merge") def.attrs["N"] = 2;
  if (def.op == "Enter") {
    def.attrs["frame_name"] =
        choices.below(2) == 0 ? std::string("f") : std::string("g");
    def.attrs["is_constant"] = choices.below(2) == 1;
  }
  return def;
}

// What port 0 of a primitive is; kInvalid if it has none.
DataType output_type(const NodeDef& def) {
  if (def.op == "Less" || def.op == "LoopCond") return DataType::kBool;
  const auto it = def.attrs.find(def.op == "Const" ? "dtype" : "T");
  return it == def.attrs.end() ? DataType::kInvalid
                               : *it->second.get_if<DataType>();
}

// Mostly one of the right type: a graph with wrong types is refused at once.
std::string fitting_input(Choices& choices, const std::vector<NodeDef>& defs,
                          const NodeDef& user, size_t index) {
  if (choices.below(16) == 15) return any_input(choices, defs);
  const bool is_pred =
      user.op == "LoopCond" || (user.op == "Switch" && index == 1);
  const DataType wanted =
      is_pred ? DataType::kBool : *user.attrs.at("T").get_if<DataType>();
  std::vector<const NodeDef*> found;
  for (const NodeDef& def : defs) {
    const bool back = def.op == "NextIteration";
    if (output_type(def) == wanted && (!back || user.op == "Merge"))
      found.push_back(&def);
  }
  if (found.empty()) return any_input(choices, defs);
  const NodeDef& source = *found[choices.below(uint32_t(found.size()))];
  const bool second = source.op == "Switch" && choices.below(2) == 1;
  return second ? source.name + ":1" : source.name;
}

void run_soup(Choices& choices) {
  std::vector<NodeDef> defs(2 + choices.below(20));
  for (size_t i = 0; i < defs.size(); ++i)
    defs[i] = any_primitive(choices, "n" + std::to_string(i));
  for (NodeDef& def : defs) {
    for (size_t i = 0; i < def.inputs.size(); ++i)
      def.inputs[i] = fitting_input(choices, defs, def, i);
    if (choices.below(8) == 7)
      def.inputs.push_back("^" +
                           defs[choices.below(uint32_t(defs.size()))].name);
  }
  Case made;
  if (!made.graph.extend(defs).ok()) return;
  for (const Node* node : made.graph.nodes()) {
    if (node->num_outputs() > 0) made.fetches = {node->name()};
    if (choices.below(2) == 1) break;
  }
  if (!made.fetches.empty()) try_to_run(made);
}

}  // namespace

}  // namespace tagflow::reference

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tagflow::reference;
  if (size > 4096) return 0;
  ByteChoices choices(data, size);
  switch (choices.below(3)) {
    case 0:
      run_program(choices);
      break;
    case 1:
      run_mutant(choices);
      break;
    default:
      run_soup(choices);
  }
  return 0;
}
