// Fuzzes how ops treat their attributes and inputs, and the lowering of
// attributes that name functions. The bytes are decisions, not a file: which
// ops of the registry, with which inputs and attribute values. Most values are
// valid, since all others are rejected at once.
#include <algorithm>
#include <cstring>
#include <limits>

#include "graph/analysis/extract.h"
#include "graph/file/attr_proto.h"
#include "graph/functions/lower.h"
#include "graph/op_registry.h"
#include "graph/proto/attr.pb.h"
#include "tests/fuzz/graphdef_checks.h"
#include "tests/graph/hand_made_functions.h"
#include "tests/reference/random_graph.h"

namespace tagflow::graph {
namespace {

using reference::ByteChoices;

template <class T, size_t N>
const T& one_of(ByteChoices& choices, const T (&values)[N]) {
  return values[choices.below(uint32_t(N))];
}

int64_t any_int(ByteChoices& choices) {
  static constexpr int64_t kInts[] = {1,
                                      0,
                                      2,
                                      3,
                                      -1,
                                      -2,
                                      4,
                                      9,
                                      std::numeric_limits<int32_t>::max(),
                                      std::numeric_limits<int32_t>::min(),
                                      std::numeric_limits<int64_t>::max(),
                                      std::numeric_limits<int64_t>::min(),
                                      int64_t(1) << 32,
                                      int64_t(1) << 62};
  return one_of(choices, kInts);
}

DataType any_type(ByteChoices& choices) {
  static constexpr DataType kOften[] = {DataType::kInt32, DataType::kFloat,
                                        DataType::kBool, DataType::kInt64};
  if (choices.below(2) == 0) return one_of(choices, kOften);
  const auto type = DataType(choices.below(uint32_t(DataType::kUInt64) + 1));
  return choices.below(16) == 15 ? make_ref(type) : type;
}

PartialShape any_shape(ByteChoices& choices) {
  const uint32_t rank = choices.below(7);
  if (rank == 6) return {};
  std::vector<int64_t> dims(rank);
  for (int64_t& dim : dims) dim = std::max<int64_t>(any_int(choices), -1);
  return PartialShape(dims);
}

template <class T>
Tensor filled(ByteChoices& choices, const Shape& shape) {
  std::vector<T> values(size_t(shape.num_elements()));
  for (T& value : values) value = T(any_int(choices));
  return Tensor::of<T>(shape, std::span<const T>(values));
}

// Of that type, or of float if a file cannot say such a tensor.
Tensor any_tensor(ByteChoices& choices, DataType type) {
  std::vector<int64_t> dims(choices.below(4) % 3);
  for (int64_t& dim : dims) dim = choices.below(4);
  const Shape shape{std::span<const int64_t>(dims)};
  if (type == DataType::kInt32) return filled<int32_t>(choices, shape);
  if (type == DataType::kInt64) return filled<int64_t>(choices, shape);
  if (type == DataType::kString) return Tensor::make(type, shape);
  if (dtype_size(type) == 0 || is_ref(type) || !is_plain(type))
    type = DataType::kFloat;
  Tensor made = Tensor::make(type, shape);
  std::memset(made.mutable_raw(), 0, made.bytes());
  return made;
}

std::string any_text(ByteChoices& choices) {
  static const char* const kTexts[] = {"f",       "",    "SAME", "VALID",
                                       "NHWC",    "x:0", "NCHW", "\xff\n",
                                       "loc:@n0", "^n0", "n0",   "g"};
  return one_of(choices, kTexts);
}

FunctionRef any_function(ByteChoices& choices) {
  static const char* const kNames[] = {"same", "less", "again", "none",
                                       "any",  "loop", "state", "unknown"};
  FunctionRef function{one_of(choices, kNames), {}};
  if (choices.below(2) == 1) function.attrs["T"] = any_type(choices);
  return function;
}

// As a file may say it.
AttrValue any_message(ByteChoices& choices) {
  std::string bytes(choices.below(40), '\0');
  for (char& byte : bytes) byte = char(choices.below(256));
  tensorflow::AttrValue message;
  if (!message.ParseFromString(bytes)) return {};
  const Limits limits = fuzz_limits();
  LimitsLeft left(limits);
  Result<AttrValue> value = attr_from_proto(message, left);
  return value.ok() ? std::move(value).value() : AttrValue();
}

template <class T, class Make>
AttrValue any_list(ByteChoices& choices, Make make) {
  std::vector<T> list(choices.below(6));
  for (size_t i = 0; i < list.size(); ++i) list[i] = make();
  return AttrValue(std::move(list));
}

AttrValue any_value(ByteChoices& choices, const AttrDef& attr) {
  const std::string& type = attr.type;
  const auto type_value = [&] {
    if (attr.allowed_types.empty() || choices.below(16) == 15)
      return any_type(choices);
    return attr
        .allowed_types[choices.below(uint32_t(attr.allowed_types.size()))];
  };
  const auto text = [&] {
    if (attr.allowed_strings.empty() || choices.below(16) == 15)
      return any_text(choices);
    return attr
        .allowed_strings[choices.below(uint32_t(attr.allowed_strings.size()))];
  };
  if (type == "int") return any_int(choices);
  if (type == "float") return choices.below(8) == 7 ? 1e38 : 0.5;
  if (type == "bool") return choices.below(2) == 1;
  if (type == "type") return type_value();
  if (type == "string") return text();
  if (type == "shape") return any_shape(choices);
  if (type == "tensor") return any_tensor(choices, any_type(choices));
  if (type == "func") return any_function(choices);
  if (type == "list(int)")
    return any_list<int64_t>(choices, [&] { return any_int(choices); });
  if (type == "list(type)") return any_list<DataType>(choices, type_value);
  if (type == "list(string)") return any_list<std::string>(choices, text);
  if (type == "list(shape)")
    return any_list<PartialShape>(choices, [&] { return any_shape(choices); });
  if (type == "list(func)")
    return any_list<FunctionRef>(choices,
                                 [&] { return any_function(choices); });
  if (type == "list(float)")
    return any_list<float>(choices, [&] { return float(any_int(choices)); });
  if (type == "list(bool)")
    return any_list<bool>(choices, [&] { return choices.below(2) == 1; });
  return AttrPlaceholder{"T"};
}

class Fuzzer {
 public:
  explicit Fuzzer(ByteChoices& choices)
      : choices_(choices), names_(OpRegistry::global().names()) {
    define();
  }

  void run() {
    const uint32_t count = 1 + choices_.below(4);
    for (uint32_t i = 0; i < count; ++i) add_any();
    check_graph(graph_);
    if (validate(graph_).ok()) lower();
  }

 private:
  static constexpr DataType kInt = DataType::kInt32;

  void define() {
    const auto add = [&](FunctionDef function) {
      if (!graph_.library().add(std::move(function)).ok()) std::abort();
    };
    add(function("same", {"n: int32"}, {"r: int32"}, {}, {{"r", "n"}}));
    add(function("less", {"n: int32"}, {"r: bool"},
                 {body_int("less", "Less", "n", "n")}, {{"r", "less:z:0"}}));
    add(function("again", {"n: int32"}, {"r: int32"},
                 {body_node("again", "again", {"n"})}, {{"r", "again:r:0"}}));
    add(function("none", {}, {}, {body_node("nothing", "NoOp")}, {}));
    add(function(
        "any", {"x: T"}, {"y: T"},
        {body_node("y", "Identity", {"x"}, {{"T", AttrPlaceholder{"T"}}})},
        {{"y", "y:output:0"}}, {"T: type"}));
    add(function("loop", {"n: int32"}, {"r: int32"},
                 {body_node("while", "While", {"n"},
                            {{"T", std::vector<DataType>{kInt}},
                             {"cond", call_of("less")},
                             {"body", call_of("same")}})},
                 {{"r", "while:output:0"}}));
    add(function("state", {"n: int32"}, {"r: int32"},
                 {body_node("print", "Print", {"n", "n"},
                            {{"T", kInt}, {"U", std::vector<DataType>{kInt}}})},
                 {{"r", "print:output:0"}}));
  }

  std::string next_name() { return "n" + std::to_string(graph_.size()); }

  // An output of that type, a new one if there is none.
  Endpoint any_input(DataType type) {
    if (!endpoints_.empty() && choices_.below(16) == 15)
      return endpoints_[choices_.below(uint32_t(endpoints_.size()))];
    std::vector<Endpoint> fitting;
    for (const Endpoint& endpoint : endpoints_)
      if (endpoint.node->output_dtypes()[size_t(endpoint.port)] == type)
        fitting.push_back(endpoint);
    const uint32_t which = choices_.below(uint32_t(fitting.size()) + 2);
    if (which >= 2) return fitting[which - 2];
    AttrMap attrs;
    std::string op = "Placeholder";
    if (which == 0 && is_plain(type) && !is_ref(type)) {
      op = "Const";
      const Tensor value = any_tensor(choices_, type);
      attrs = {{"dtype", value.dtype()}, {"value", value}};
    } else if (is_ref(type)) {
      op = "VariableV2";
      attrs = {{"dtype", remove_ref(type)}, {"shape", any_shape(choices_)}};
    } else {
      attrs = {{"dtype", type}, {"shape", any_shape(choices_)}};
    }
    return keep(graph_.add(next_name(), op, {}, std::move(attrs)));
  }

  // The first output of what was added; of no node if it was refused.
  Endpoint keep(const Result<Node*>& made) {
    if (!made.ok()) {
      if (made.status().message().empty()) std::abort();
      return {};
    }
    for (int i = 0; i < (*made)->num_outputs(); ++i)
      endpoints_.push_back({*made, i});
    return {*made, 0};
  }

  void add_inputs(const OpDef& op, const ArgDef& arg,
                  std::vector<Endpoint>& inputs) {
    // What several arguments share is decided once.
    const auto decide = [&](const std::string& name) -> const AttrValue& {
      const AttrDef* attr = op.find_attr(name);
      decided_.emplace(name, any_value(choices_, *attr));
      return decided_.at(name);
    };
    std::vector<DataType> types;
    if (!arg.type_list_attr.empty()) {
      types = *decide(arg.type_list_attr).get_if<std::vector<DataType>>();
    } else {
      int64_t count = 1;
      if (!arg.number_attr.empty())
        count = std::clamp<int64_t>(*decide(arg.number_attr).get_if<int64_t>(),
                                    0, 5);
      types.assign(size_t(count),
                   arg.type_attr.empty()
                       ? arg.dtype
                       : *decide(arg.type_attr).get_if<DataType>());
      if (arg.is_ref)
        for (DataType& type : types) type = make_ref(type);
    }
    for (const DataType type : types) {
      const Endpoint input = any_input(type);
      if (input.node != nullptr && input.node->num_outputs() > 0)
        inputs.push_back(input);
    }
  }

  void add_any() {
    const std::string& name = names_[choices_.below(uint32_t(names_.size()))];
    const OpDef& op = *OpRegistry::global().find_or_null(name);
    decided_ = {};
    AttrMap attrs;
    std::vector<Endpoint> inputs;
    for (const ArgDef& arg : op.inputs) add_inputs(op, arg, inputs);
    for (const AttrDef& attr : op.attrs) {
      const auto known = decided_.find(attr.name);
      const uint32_t how = choices_.below(32);
      if (how == 31) {
        attrs[attr.name] = any_message(choices_);
      } else if (known != decided_.end()) {
        // Else it is inferred.
        if (how % 2 == 1) attrs[attr.name] = known->second;
      } else if (!attr.default_value || how % 2 == 1) {
        attrs[attr.name] = any_value(choices_, attr);
      }
    }
    std::vector<Node*> controls;
    if (graph_.size() > 0 && choices_.below(4) == 3)
      controls.push_back(
          graph_.nodes()[choices_.below(uint32_t(graph_.size()))]);
    keep(graph_.add(next_name(), op.name, inputs, std::move(attrs), controls));
  }

  // What a valid graph becomes is valid, or refused.
  void lower() {
    std::vector<Endpoint> fetches;
    std::vector<Node*> targets;
    for (Node* node : graph_.nodes())
      if (node->num_outputs() > 0) {
        fetches.push_back({node, 0});
      } else {
        targets.push_back(node);
      }
    Result<Program> program = extract(graph_, {}, fetches, targets);
    if (!program.ok()) return;
    Limits limits = fuzz_limits();
    limits.max_function_depth = 8;
    if (!lower_functions(*program, limits).ok()) return;
    if (!validate(program->graph).ok()) std::abort();
    for (const auto& body : program->bodies)
      if (!validate(body->graph).ok()) std::abort();
  }

  ByteChoices& choices_;
  const std::vector<std::string> names_;
  Graph graph_;
  std::vector<Endpoint> endpoints_;
  AttrMap decided_;  // of the op that is being added
};

}  // namespace
}  // namespace tagflow::graph

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 4096) return 0;
  tagflow::reference::ByteChoices choices(data, size);
  tagflow::graph::Fuzzer(choices).run();
  return 0;
}
