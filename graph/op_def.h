// OpDef: what an op's nodes look like: arguments, attributes, shape function.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/attr.h"

namespace tagflow::graph {

class ShapeContext;  // graph/shape_context.h

// One input or output, which stands for one or more tensors. Exactly one of
// `dtype`, `type_attr`, `type_list_attr` says the type; `number_attr` says how
// many where it is a list of one type.
struct ArgDef {
  std::string name;
  DataType dtype = DataType::kInvalid;
  std::string type_attr;       // an attribute of type "type"
  std::string number_attr;     // an attribute of type "int"
  std::string type_list_attr;  // an attribute of type "list(type)"
  bool is_ref = false;

  bool operator==(const ArgDef&) const = default;
};

struct AttrDef {
  std::string name;
  std::string type;  // "type", "int", "list(shape)", "func", ...
  std::optional<AttrValue> default_value;
  std::optional<int64_t> minimum;            // of an int, or of a list's length
  std::vector<DataType> allowed_types;       // empty: all
  std::vector<std::string> allowed_strings;  // empty: all

  bool operator==(const AttrDef&) const = default;
};

// Infers output shapes from input shapes and known constant inputs; an error
// refuses the node when the graph is built.
using ShapeFn = std::function<Status(ShapeContext&)>;

// What it takes to run a node of the op, estimated by the shapes of its inputs
// and outputs as long as nobody has measured it: Note [Costs] in
// graph/placement/cost_model.h.
enum class Work : uint8_t {
  kElementwise,     // an operation for each element of the largest output
  kTranscendental,  // many for each: exp, tanh, ...
  kFree,            // nothing is launched: its results are there already
  kNoData,          // looks at shapes or handles only
  kMove,            // copies what it reads, without arithmetic
  kPick,            // copies as much of its inputs as its outputs have
  kReduce,          // an operation for each element of its first input
  kSort,            // log n for each of the n elements of its first input
  kProduct,         // of its first two inputs, which are matrices
  kConvolution,     // of its first input with its second, or its gradient
  kDepthwise,       // a convolution of each channel alone
  kWindow,          // pooling: `ksize` operations for each element
};

struct OpDef {
  std::string name;
  std::vector<ArgDef> inputs;
  std::vector<ArgDef> outputs;
  std::vector<AttrDef> attrs;
  bool is_stateful = false;     // never merged, folded or run twice
  bool is_commutative = false;  // input order does not matter
  // Reads a reference that may not be initialised (Assign).
  bool allows_uninitialized_input = false;
  // In the table of ops: no function of a graph's library.
  bool is_registered = false;
  // The input whose value the kernel changes in place where nobody else holds
  // it, and else copies, however large it is: its readers go first (Note
  // [Readers first] in graph/partition/readers_first.h). -1: none.
  int changed_input = -1;
  // The input of a value that, where it comes as a reference, is not read
  // before: the kernel gets the reference, and reads what it needs of it (Note
  // [References] in graph/analysis/dereference.h). -1: none.
  int reference_input = -1;
  // Hands its only input on, unchanged.
  bool forwards = false;
  // May be a line of a _FusedElementwise: OpDefBuilder::fusible().
  bool is_fusible = false;
  // An output may be dead though no input is.
  bool may_die = false;
  Work work = Work::kElementwise;
  ShapeFn shape_fn;  // null: outputs of unknown shape

  const AttrDef* find_attr(std::string_view name) const;
};

// Builds an OpDef from short texts:
//
//   OpDefBuilder("Pack").input("values: N * T").output("output: T")
//       .attr("N: int >= 1").attr("T: type").attr("axis: int = 0")
//       .shape(pack_shape)
//
// Argument: "name: TYPE", "name: Ref(TYPE)", "name: N * TYPE", where TYPE is a
// dtype's name, a type attribute or a list(type) attribute.
// Attribute: "name: TYPE [>= MIN] [= DEFAULT]"; TYPE is one of "type", "int",
// "float", "bool", "string", "shape", "tensor", "func", "list(...)" of these,
// or a set "{float, int32}" of types or "{'SAME', 'VALID'}" of strings.
// "numbertype", "realnumbertype" are such sets by name.
// A malformed text ends the process at start-up, naming the op: it is a bug in
// the program.
class OpDefBuilder {
 public:
  explicit OpDefBuilder(std::string name);
  OpDefBuilder& input(std::string_view text);
  OpDefBuilder& output(std::string_view text);
  OpDefBuilder& attr(std::string_view text);
  OpDefBuilder& stateful();
  OpDefBuilder& commutative();
  OpDefBuilder& allows_uninitialized_input();
  // REQUIRES: the op has that input, and none before it is a list.
  OpDefBuilder& changes_input(int input);
  // REQUIRES: as above.
  OpDefBuilder& takes_reference(int input);
  // It hands its only input on unchanged, so it is Work::kFree: a run passes
  // the token on without a kernel. It has a kernel all the same, for each type
  // of device where it may be. REQUIRES: one input and one output, which are no
  // lists, of one type.
  OpDefBuilder& forwards();
  // An op on the elements of one or two tensors, one by one: passes make one
  // node of it and its neighbours (Note [What is fused] in
  // graph/passes/fuse.cpp). REQUIRES: all ports have the type that is its only
  // attribute; it cannot fail but by shapes; for floats its kernel on a CPU is
  // a UnaryKernel or BinaryKernel of devices/cpu/elementwise. Those classes are
  // internal: so OpRegistry refuses an op of another program that says this.
  OpDefBuilder& fusible();
  // An output may be dead though no input is. That is for control flow, which
  // the engine performs: no kernel can do it.
  OpDefBuilder& may_die();
  OpDefBuilder& work(Work work);
  OpDefBuilder& shape(ShapeFn fn);
  OpDef build();

 private:
  // Texts are parsed in build(), when all attributes are known.
  OpDef def_;
  std::vector<std::string> inputs_, outputs_, attrs_;
};

}  // namespace tagflow::graph
