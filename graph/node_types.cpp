#include "graph/node_types.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "graph/op_registry.h"

namespace tagflow::graph {
namespace {

// The attribute as a list of types; valid as long as the attributes are.
Result<std::span<const DataType>> type_list(const AttrMap& attrs,
                                            const std::string& name) {
  using List = std::vector<DataType>;
  const auto it = attrs.find(name);
  if (it != attrs.end())
    if (const List* list = it->second.get_if<List>())
      return std::span<const DataType>(*list);
  TAGFLOW_RETURN_IF_ERROR(get_attr<List>(attrs, name).status());
  return std::span<const DataType>();  // an EmptyList
}

// The number of tensors of an argument; nothing if the attribute for it is
// missing. InvalidArgument if the attribute has another type.
Result<std::optional<int64_t>> arg_length(const ArgDef& arg,
                                          const AttrMap& attrs) {
  const std::string& name =
      arg.number_attr.empty() ? arg.type_list_attr : arg.number_attr;
  if (name.empty()) return std::optional<int64_t>(1);
  if (!attrs.contains(name)) return std::optional<int64_t>();
  if (arg.number_attr.empty()) {
    TAGFLOW_ASSIGN(const auto types, type_list(attrs, name));
    return std::optional<int64_t>(int64_t(types.size()));
  }
  TAGFLOW_ASSIGN(const int64_t count, get_attr<int64_t>(attrs, name));
  if (count < 0)
    return invalid_argument("attribute \"{}\" is {}, at least 0 is wanted",
                            name, count);
  return std::optional<int64_t>(count);
}

// Assigns the given tensors to the arguments of one node.
class InputMatcher {
 public:
  InputMatcher(const OpDef& def, std::span<const Endpoint> inputs,
               AttrMap& attrs)
      : def_(def), inputs_(inputs), attrs_(attrs) {}

  // The expected types, one per input.
  Result<DataTypes> run() {
    TAGFLOW_RETURN_IF_ERROR(find_lengths());
    TAGFLOW_RETURN_IF_ERROR(infer_attrs());
    DataTypes wanted;
    wanted.reserve(inputs_.size());
    for (size_t a = 0; a < def_.inputs.size(); ++a)
      TAGFLOW_RETURN_IF_ERROR(match(def_.inputs[a], lengths_[a], wanted));
    return wanted;
  }

 private:
  // The dtype of an input; kInvalid if it is open.
  DataType given(size_t i) const {
    const Endpoint& source = inputs_[i];
    if (source.node == nullptr) return DataType::kInvalid;
    return source.node->output_dtypes()[size_t(source.port)];
  }

  // Fills lengths_. One attribute may be missing: it is the number of inputs
  // that the others leave.
  Status find_lengths() {
    int64_t fixed = 0;
    const std::string* missing = nullptr;
    int64_t uses = 0;
    for (const ArgDef& arg : def_.inputs) {
      TAGFLOW_ASSIGN(std::optional<int64_t> length, arg_length(arg, attrs_));
      if (length) {
        // Lengths beyond the number of inputs fail below, without overflow.
        *length = std::min<int64_t>(*length, int64_t(inputs_.size()) + 1);
        fixed += *length;
      } else {
        const std::string& name =
            arg.number_attr.empty() ? arg.type_list_attr : arg.number_attr;
        if (missing != nullptr && *missing != name)
          return invalid_argument("attributes \"{}\" and \"{}\" are missing",
                                  *missing, name);
        missing = &name;
        ++uses;
      }
      lengths_.push_back(length.value_or(-1));
    }
    const auto count = int64_t(inputs_.size());
    int64_t each = 0;
    if (missing != nullptr) {
      if (count >= fixed) each = (count - fixed) / uses;
      std::ranges::replace(lengths_, int64_t(-1), each);
    }
    if (fixed + each * uses != count)
      return invalid_argument("{} inputs are given, {} wanted ({})", count,
                              wanted_count(fixed, missing, uses), signature());
    return {};
  }

  std::string wanted_count(int64_t fixed, const std::string* missing,
                           int64_t uses) const {
    if (missing != nullptr)
      return fmt::format("{} + {} * {}", fixed, uses, *missing);
    return fmt::format(
        "{}{}", fixed > int64_t(inputs_.size()) ? "at least " : "", fixed);
  }

  std::string signature() const {
    std::vector<std::string_view> names;
    for (const ArgDef& arg : def_.inputs) names.push_back(arg.name);
    return fmt::format("{}", fmt::join(names, ", "));
  }

  // Infers missing attributes from the inputs.
  Status infer_attrs() {
    size_t at = 0;
    for (size_t a = 0; a < def_.inputs.size(); ++a) {
      const ArgDef& arg = def_.inputs[a];
      const auto length = size_t(lengths_[a]);
      if (!arg.number_attr.empty())
        attrs_.emplace(arg.number_attr, int64_t(length));
      if (!arg.type_attr.empty() && !attrs_.contains(arg.type_attr)) {
        for (size_t i = at; i < at + length; ++i) {
          if (given(i) == DataType::kInvalid) continue;
          attrs_.emplace(arg.type_attr, remove_ref(given(i)));
          break;
        }
      }
      if (!arg.type_list_attr.empty() && !attrs_.contains(arg.type_list_attr)) {
        std::vector<DataType> types;
        for (size_t i = at; i < at + length; ++i)
          types.push_back(remove_ref(given(i)));
        attrs_.emplace(arg.type_list_attr, std::move(types));
      }
      at += length;
    }
    return {};
  }

  // Appends the expected types of `arg`, and compares them with the inputs.
  Status match(const ArgDef& arg, int64_t length, DataTypes& wanted) const {
    std::span<const DataType> list;
    DataType type = arg.dtype;
    if (!arg.type_list_attr.empty()) {
      TAGFLOW_ASSIGN(list, type_list(attrs_, arg.type_list_attr));
    } else if (!arg.type_attr.empty()) {
      auto it = attrs_.find(arg.type_attr);
      if (it == attrs_.end()) {
        const AttrDef* attr = def_.find_attr(arg.type_attr);
        if (length == 0) return {};  // the default, or a later check, decides
        if (attr == nullptr || !attr->default_value)
          return invalid_argument(
              "attribute \"{}\" is missing and the inputs do not say it",
              arg.type_attr);
        TAGFLOW_ASSIGN(type, default_type(*attr));
      } else {
        TAGFLOW_ASSIGN(type, get_attr<DataType>(attrs_, arg.type_attr));
      }
    }
    for (int64_t i = 0; i < length; ++i) {
      DataType want = list.empty() ? type : list[size_t(i)];
      if (arg.is_ref) want = make_ref(want);
      const DataType have = given(wanted.size());
      const bool fits =
          have == want || (!is_ref(want) && remove_ref(have) == want);
      if (have != DataType::kInvalid && !fits)
        return invalid_argument(
            "input {} (\"{}\") is {}, {} is wanted as "
            "{}",
            wanted.size(), inputs_[wanted.size()].to_string(), dtype_name(have),
            dtype_name(want), arg.name);
      wanted.push_back(want);
    }
    return {};
  }

  static Result<DataType> default_type(const AttrDef& attr) {
    if (const auto* type = attr.default_value->get_if<DataType>()) return *type;
    return invalid_argument("the default of attribute \"{}\" is not a type",
                            attr.name);
  }

  const OpDef& def_;
  std::span<const Endpoint> inputs_;
  AttrMap& attrs_;
  boost::container::small_vector<int64_t, 8> lengths_;
};

// An EmptyList with the element type of the op's attribute.
AttrValue typed_empty_list(std::string_view type) {
  if (type == "list(string)") return std::vector<std::string>();
  if (type == "list(int)") return std::vector<int64_t>();
  if (type == "list(float)") return std::vector<float>();
  if (type == "list(bool)") return std::vector<bool>();
  if (type == "list(type)") return std::vector<DataType>();
  if (type == "list(shape)") return std::vector<PartialShape>();
  if (type == "list(tensor)") return std::vector<Tensor>();
  if (type == "list(func)") return std::vector<FunctionRef>();
  return EmptyList();
}

Status check_type(const AttrDef& def, DataType type) {
  if (is_ref(type) || !is_known(type))
    return invalid_argument(
        "attribute \"{}\" is the type {}, which no value "
        "can have",
        def.name, dtype_name(type));
  if (def.allowed_types.empty() ||
      std::ranges::find(def.allowed_types, type) != def.allowed_types.end())
    return {};
  std::vector<std::string> names;
  for (DataType allowed : def.allowed_types)
    names.push_back(dtype_name(allowed));
  return invalid_argument("attribute \"{}\" is {}, allowed are {}", def.name,
                          dtype_name(type), fmt::join(names, ", "));
}

Status check_string(const AttrDef& def, const std::string& text) {
  if (def.allowed_strings.empty() ||
      std::ranges::find(def.allowed_strings, text) != def.allowed_strings.end())
    return {};
  return invalid_argument("attribute \"{}\" is {}, allowed are \"{}\"",
                          def.name, AttrValue(text).to_string(),
                          fmt::join(def.allowed_strings, "\", \""));
}

Status check_minimum(const AttrDef& def, int64_t value, const char* what) {
  if (!def.minimum || value >= *def.minimum) return {};
  return invalid_argument("{} \"{}\" is {}, at least {} is wanted", what,
                          def.name, value, *def.minimum);
}

Status check_attr(const AttrDef& def, const AttrValue& value) {
  if (def.default_value && value == *def.default_value) return {};
  if (value.type_name() != def.type)
    return invalid_argument("attribute \"{}\" is of type {}, {} is wanted",
                            def.name, value.type_name(), def.type);
  if (const auto* i = value.get_if<int64_t>())
    return check_minimum(def, *i, "attribute");
  if (const auto* type = value.get_if<DataType>())
    return check_type(def, *type);
  if (const auto* text = value.get_if<std::string>())
    return check_string(def, *text);
  if (const auto* types = value.get_if<std::vector<DataType>>())
    for (DataType type : *types) TAGFLOW_RETURN_IF_ERROR(check_type(def, type));
  if (const auto* texts = value.get_if<std::vector<std::string>>())
    for (const std::string& text : *texts)
      TAGFLOW_RETURN_IF_ERROR(check_string(def, text));
  return std::visit(
      [&]<class T>(const T& list) -> Status {
        if constexpr (requires { list.begin(), list.size(); })
          return check_minimum(def, int64_t(list.size()),
                               "the length of attribute");
        return {};
      },
      value.value());
}

// Names that start with _ are free for all; other names must be declared by the
// op, in TensorFlow too.
Status undeclared_attr(const OpDef& def, const AttrMap& attrs) {
  for (const auto& [name, value] : attrs) {
    if (name.empty()) return invalid_argument("an attribute has no name");
    if (name.starts_with('_') || def.find_attr(name) != nullptr) continue;
    std::vector<std::string> names;
    for (const AttrDef& attr : def.attrs) names.push_back(attr.name);
    const std::string nearest = nearest_name(name, names);
    return invalid_argument(
        "the op has no attribute \"{}\"{}", name,
        nearest.empty() ? "" : fmt::format(", did you mean \"{}\"?", nearest));
  }
  return {};
}

Status complete_attrs(const OpDef& def, AttrMap& attrs) {
  for (const AttrDef& attr : def.attrs) {
    const auto it = attrs.find(attr.name);
    if (it == attrs.end()) {
      if (!attr.default_value)
        return invalid_argument("attribute \"{}\" ({}) is missing", attr.name,
                                attr.type);
      attrs.emplace(attr.name, *attr.default_value);
      continue;
    }
    if (it->second.get_if<EmptyList>() != nullptr)
      attrs.insert_or_assign(attr.name, typed_empty_list(attr.type));
    TAGFLOW_RETURN_IF_ERROR(check_attr(attr, attrs.at(attr.name)));
  }
  // All of the op's attributes are present; are there others?
  return attrs.size() == def.attrs.size() ? Status()
                                          : undeclared_attr(def, attrs);
}

Result<DataTypes> output_types(const OpDef& def, const AttrMap& attrs) {
  DataTypes types;
  for (const ArgDef& arg : def.outputs) {
    TAGFLOW_ASSIGN(const std::optional<int64_t> length, arg_length(arg, attrs));
    if (!length.has_value() ||
        *length > kMaxNodeOutputs - int64_t(types.size()))
      return invalid_argument("{} outputs are over the limit of {}",
                              length.value_or(0), kMaxNodeOutputs);
    std::span<const DataType> list;
    DataType type = arg.dtype;
    if (!arg.type_list_attr.empty()) {
      TAGFLOW_ASSIGN(list, type_list(attrs, arg.type_list_attr));
    } else if (!arg.type_attr.empty()) {
      TAGFLOW_ASSIGN(type, get_attr<DataType>(attrs, arg.type_attr));
    }
    for (size_t i = 0; i < size_t(*length); ++i) {
      const DataType each = list.empty() ? type : list[i];
      types.push_back(arg.is_ref ? make_ref(each) : each);
    }
  }
  return types;
}

}  // namespace

Result<PortTypes> infer_types(const OpDef& def,
                              std::span<const Endpoint> inputs,
                              AttrMap& attrs) {
  PortTypes types;
  TAGFLOW_ASSIGN(types.inputs, InputMatcher(def, inputs, attrs).run());
  TAGFLOW_RETURN_IF_ERROR(complete_attrs(def, attrs));
  TAGFLOW_ASSIGN(types.outputs, output_types(def, attrs));
  return types;
}

}  // namespace tagflow::graph
