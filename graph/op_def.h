// OpDef: the arguments, attributes and shape function of an op.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/attr.h"

namespace tagflow::graph {

class ShapeContext;  // graph/shape_context.h

// One input or output: one or more tensors. Exactly one of `dtype`,
// `type_attr`, `type_list_attr` is set; for a list of one type, `number_attr`
// gives its length.
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

// Infers output shapes from input shapes and known constant inputs. An error
// rejects the node when the graph is built.
using ShapeFn = std::function<Status(ShapeContext&)>;

// The cost of running a node, estimated from the shapes of its inputs and
// outputs until it has been measured: Note [Costs] in
// graph/placement/cost_model.h.
enum class Work : uint8_t {
  kElementwise,     // an operation for each element of the largest output
  kTranscendental,  // many per element: exp, tanh, ...
  kFree,            // nothing is launched: the results exist already
  kNoData,          // looks at shapes or handles only
  kMove,            // copies its inputs, without arithmetic
  kPick,            // copies as many elements as its outputs have
  kReduce,          // an operation for each element of its first input
  kSort,            // log n for each of the n elements of its first input
  kProduct,         // a product of its first two inputs, two matrices
  kConvolution,     // first input with the second, or its gradient
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
  // It is in the table of ops, not a function of a graph's library.
  bool is_registered = false;
  // The input that the kernel changes in place if nobody else holds it, and
  // otherwise copies. The copy may be large, so other readers run first (Note
  // [Readers first] in graph/partition/readers_first.h). -1: none.
  int changed_input = -1;
  // An input for which the kernel also accepts a reference. The reference is
  // then passed on unread, and the kernel reads what it needs (Note
  // [References] in graph/analysis/dereference.h). -1: none.
  int reference_input = -1;
  // Returns its only input unchanged.
  bool forwards = false;
  // Can be part of a _FusedElementwise: OpDefBuilder::fusible().
  bool is_fusible = false;
  // An output may be dead even if no input is.
  bool may_die = false;
  Work work = Work::kElementwise;
  ShapeFn shape_fn;  // null: outputs of unknown shape
  // The text that OpDefBuilder could not read, and why. Such a definition lacks
  // a part, and OpRegistry rejects it. Empty: none.
  std::string malformed;

  const AttrDef* find_attr(std::string_view name) const;
};

// Builds an OpDef from short texts:
//
//   OpDefBuilder("Pack")
//       .input("values: N * T")
//       .output("output: T")
//       .attrs({"N: int >= 1", "T: type", "axis: int = 0"})
//       .shape(pack_shape)
//
// Argument: "name: TYPE", "name: Ref(TYPE)", "name: N * TYPE", where TYPE is a
// dtype's name, a type attribute or a list(type) attribute.
// Attribute: "name: TYPE [>= MIN] [= DEFAULT]"; TYPE is one of "type", "int",
// "float", "bool", "string", "shape", "tensor", "func", "list(...)" of these,
// or a set "{float, int32}" of types or "{'SAME', 'VALID'}" of strings.
// "numbertype" and "realnumbertype" are names of such sets. A malformed text is
// an error of OpRegistry::add(), which names the op and the text.
class OpDefBuilder {
 public:
  using Texts = std::initializer_list<std::string_view>;

  explicit OpDefBuilder(std::string name);
  // Each adds to the arguments or attributes that are there already. The texts
  // are copied.
  OpDefBuilder& input(std::string_view text);
  OpDefBuilder& output(std::string_view text);
  OpDefBuilder& attr(std::string_view text);
  // Each adds several texts, in their order.
  OpDefBuilder& inputs(Texts texts);
  OpDefBuilder& outputs(Texts texts);
  OpDefBuilder& attrs(Texts texts);
  OpDefBuilder& stateful();
  OpDefBuilder& commutative();
  OpDefBuilder& allows_uninitialized_input();
  // REQUIRES: the input exists, and no input before it is a list.
  OpDefBuilder& changes_input(int input);
  // REQUIRES: as above.
  OpDefBuilder& takes_reference(int input);
  // The op returns its only input unchanged, so it is Work::kFree: a run passes
  // the token on without a kernel. A kernel is still needed for each device
  // type on which it can be placed. REQUIRES: one input and one output, not
  // lists, of the same type.
  OpDefBuilder& forwards();
  // An element-wise op of one or two tensors: passes merge such neighbours into
  // one node (Note [What is fused] in graph/passes/fuse.cpp). REQUIRES: all
  // ports have the type given by the only attribute; only a shape mismatch can
  // make it fail; for floats its CPU kernel is a UnaryKernel or BinaryKernel of
  // devices/kernels/elementwise. These classes are internal, so OpRegistry
  // rejects fusible ops of other programs.
  OpDefBuilder& fusible();
  // An output may be dead even if no input is. This is only for control flow,
  // which the engine performs; no kernel can do it.
  OpDefBuilder& may_die();
  OpDefBuilder& work(Work work);
  OpDefBuilder& shape(ShapeFn fn);
  OpDef build();

 private:
  void parse();

  // Texts are parsed in build(), when all attributes are known.
  OpDef def_;
  std::vector<std::string> inputs_, outputs_, attrs_;
};

}  // namespace tagflow::graph
