// Attributes of nodes: typed constants fixed when the graph is built.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "graph/dtype.h"
#include "graph/shape.h"
#include "graph/tensor.h"

namespace tagflow {

class AttrValue;
using AttrMap = std::map<std::string, AttrValue, std::less<>>;

// A function of the graph's library, with the values of its attributes.
struct FunctionRef {
  std::string name;
  AttrMap attrs;
};

// A name that a function body uses for an attribute of its caller ("$T").
struct AttrPlaceholder {
  std::string name;
};

// An empty list whose element type the file did not say. It is equal to an
// empty list of every type.
struct EmptyList {};

// One attribute's value. The alternatives are GraphDef's; `std::string` holds
// arbitrary bytes.
class AttrValue {
 public:
  using Value =
      std::variant<std::monostate, std::string, int64_t, float, bool, DataType,
                   PartialShape, Tensor, FunctionRef, AttrPlaceholder,
                   EmptyList, std::vector<std::string>, std::vector<int64_t>,
                   std::vector<float>, std::vector<bool>, std::vector<DataType>,
                   std::vector<PartialShape>, std::vector<Tensor>,
                   std::vector<FunctionRef>>;

  // Out of line: what a variant of so many types makes of them is long.
  AttrValue();
  AttrValue(const AttrValue&);
  AttrValue(AttrValue&&) noexcept;
  AttrValue& operator=(const AttrValue&);
  AttrValue& operator=(AttrValue&&) noexcept;
  ~AttrValue();
  template <class T>
  requires std::is_constructible_v<Value, T> &&
      (!std::is_same_v<std::remove_cvref_t<T>, AttrValue>)AttrValue(T&& value)
      : value_(std::forward<T>(value)) {}
  AttrValue(const char* text) : value_(std::string(text)) {}
  AttrValue(int value) : value_(int64_t(value)) {}
  AttrValue(double value) : value_(float(value)) {}

  const Value& value() const { return value_; }
  // The value as a T, or null where it is of another type.
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(&value_);
  }
  // OpDef's word for the type: "int", "list(shape)", "func", ...
  std::string type_name() const;
  // For messages, e.g. `[2,3]`, `"SAME"`, `float`.
  std::string to_string() const;

 private:
  Value value_;
};

// Same type and value; tensors by content.
bool operator==(const AttrValue& a, const AttrValue& b);

// The attribute `name` as a T. NotFound where it is missing, InvalidArgument
// where it has another type; messages name the attribute only, callers prefix
// the node. An EmptyList converts to an empty vector.
template <class T>
Result<T> get_attr(const AttrMap& attrs, std::string_view name) {
  auto it = attrs.find(name);
  if (it == attrs.end())
    return error(Code::kNotFound, "no attribute \"{}\"", name);
  if (const T* value = it->second.template get_if<T>()) return *value;
  if constexpr (requires(T t) { t.begin(); } &&
                !std::is_same_v<T, std::string>) {
    if (it->second.template get_if<EmptyList>()) return T();
  }
  return invalid_argument("attribute \"{}\" is of type {}", name,
                          it->second.type_name());
}

}  // namespace tagflow
