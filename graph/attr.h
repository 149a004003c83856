// Attributes of nodes: typed constants fixed when the graph is built.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "graph/dtype.h"
#include "graph/ref.h"
#include "graph/shape.h"
#include "graph/tensor.h"

namespace tagflow {

class AttrValue;

// Attributes by name, sorted by name. Copies share their entries until one of
// them is changed, so a copy costs a reference count. Distinct copies may be
// used by distinct threads.
class AttrMap {
 public:
  using value_type = std::pair<std::string, AttrValue>;
  using const_iterator = const value_type*;

  AttrMap();
  // If a name occurs more than once, its first entry is used.
  AttrMap(std::initializer_list<value_type> entries);
  explicit AttrMap(std::vector<value_type> entries);
  AttrMap(const AttrMap&);
  AttrMap(AttrMap&&) noexcept;
  AttrMap& operator=(const AttrMap&);
  AttrMap& operator=(AttrMap&&) noexcept;
  ~AttrMap();

  const_iterator begin() const;
  const_iterator end() const;
  size_t size() const;
  bool empty() const { return size() == 0; }
  const_iterator find(std::string_view name) const;
  bool contains(std::string_view name) const { return find(name) != end(); }
  // REQUIRES: an attribute of that name exists.
  const AttrValue& at(std::string_view name) const;

  // Both may move the entries. emplace() has no effect if the name exists, and
  // returns whether it has inserted the value.
  bool emplace(std::string_view name, AttrValue value);
  void insert_or_assign(std::string_view name, AttrValue value);
  // Inserts an attribute without a value if the name is missing.
  AttrValue& operator[](std::string_view name);

 private:
  struct Entries;
  // The entries for writing; copied first if they are shared.
  std::vector<value_type>& own();

  Ref<Entries> entries_;  // null: empty
};

// Same names and values.
bool operator==(const AttrMap& a, const AttrMap& b);

// A function of the graph's library, with the values of its attributes.
struct FunctionRef {
  std::string name;
  AttrMap attrs;
};

// A name that a function body uses for an attribute of its caller ("$T").
struct AttrPlaceholder {
  std::string name;
};

// An empty list whose element type is not given in the file. It is equal to an
// empty list of any type.
struct EmptyList {};

// Holds a tensor by pointer: an over-aligned member would over-align every map
// entry, and over-aligned memory is slow to allocate.
class SharedTensor {
 public:
  SharedTensor(Tensor tensor)
      : tensor_(std::make_shared<const Tensor>(std::move(tensor))) {}
  const Tensor& operator*() const { return *tensor_; }

 private:
  std::shared_ptr<const Tensor> tensor_;  // null only after a move
};

// One attribute's value. The alternatives are GraphDef's; `std::string` holds
// arbitrary bytes.
class AttrValue {
 public:
  using Value =
      std::variant<std::monostate, std::string, int64_t, float, bool, DataType,
                   PartialShape, SharedTensor, FunctionRef, AttrPlaceholder,
                   EmptyList, std::vector<std::string>, std::vector<int64_t>,
                   std::vector<float>, std::vector<bool>, std::vector<DataType>,
                   std::vector<PartialShape>, std::vector<Tensor>,
                   std::vector<FunctionRef>>;

  // Out of line, since the code for a variant of so many types is long.
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
  // The value as a T; null if it has another type.
  template <class T>
  const T* get_if() const {
    if constexpr (std::is_same_v<T, Tensor>) {
      const auto* shared = std::get_if<SharedTensor>(&value_);
      return shared == nullptr ? nullptr : &**shared;
    } else {
      return std::get_if<T>(&value_);
    }
  }
  // The type's name in OpDefs: "int", "list(shape)", "func", ...
  std::string_view type_name() const;
  // For messages, e.g. `[2,3]`, `"SAME"`, `float`.
  std::string to_string() const;

 private:
  Value value_;
};

// Same type and value, so that one can replace the other. Floats and tensors
// are compared by bits: -0 differs from 0, and a NaN equals itself. An
// EmptyList equals any empty list.
bool operator==(const AttrValue& a, const AttrValue& b);

// --- AttrMap ----------------------------------------------------------------

struct AttrMap::Entries final : RefCounted {
  std::vector<value_type> list;
};

inline AttrMap::AttrMap() = default;
inline AttrMap::AttrMap(const AttrMap&) = default;
inline AttrMap::AttrMap(AttrMap&&) noexcept = default;
inline AttrMap& AttrMap::operator=(const AttrMap&) = default;
inline AttrMap& AttrMap::operator=(AttrMap&&) noexcept = default;
inline AttrMap::~AttrMap() = default;

inline AttrMap::const_iterator AttrMap::begin() const {
  return entries_ ? entries_->list.data() : nullptr;
}
inline AttrMap::const_iterator AttrMap::end() const { return begin() + size(); }
inline size_t AttrMap::size() const {
  return entries_ ? entries_->list.size() : 0;
}

// --- Access by type ---------------------------------------------------------

// The attribute `name` as a T. NotFound if it is missing, InvalidArgument if it
// has another type. Messages name only the attribute; callers add the node as
// prefix. An EmptyList converts to an empty vector.
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
