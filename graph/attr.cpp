#include "graph/attr.h"

#include <bit>

namespace tagflow {
namespace {

// The longest list, and the longest string, that a message shows in full.
constexpr size_t kShownElements = 16;
constexpr size_t kShownBytes = 80;

template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;

std::string element_text(const std::string& s) {
  if (s.size() <= kShownBytes) return fmt::format("{:?}", s);
  return fmt::format("{:?}... ({} bytes)", s.substr(0, kShownBytes), s.size());
}
std::string element_text(int64_t i) { return std::to_string(i); }
std::string element_text(float f) { return fmt::format("{}", f); }
std::string element_text(bool b) { return b ? "true" : "false"; }
std::string element_text(DataType t) { return dtype_name(t); }
std::string element_text(const PartialShape& s) { return s.to_string(); }
std::string element_text(const Tensor& t) { return t.to_string(); }
std::string element_text(const FunctionRef& f) { return f.name; }

template <class T>
std::string list_text(const std::vector<T>& list) {
  std::string text = "[";
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) text += ",";
    if (i == kShownElements) {
      text += fmt::format("... {} in all", list.size());
      break;
    }
    text += element_text(static_cast<const T&>(list[i]));
  }
  return text + "]";
}

// Bits count: -0 is not 0, and a NaN equals itself. What is equal here may be
// used in place of the other.
bool same(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}
bool same(const Tensor& a, const Tensor& b) { return identical(a, b); }
bool same(const FunctionRef& a, const FunctionRef& b) {
  return a.name == b.name && a.attrs == b.attrs;
}
bool same(const AttrPlaceholder& a, const AttrPlaceholder& b) {
  return a.name == b.name;
}
bool same(const EmptyList&, const EmptyList&) { return true; }
template <class T>
bool same(const T& a, const T& b) {
  return a == b;
}
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!same(static_cast<const T&>(a[i]), static_cast<const T&>(b[i])))
      return false;
  return true;
}

bool is_empty_list(const AttrValue& attr) {
  return std::visit(
      []<class T>(const T& v) {
        if constexpr (kIsVector<T>) return v.empty();
        return std::is_same_v<T, EmptyList>;
      },
      attr.value());
}

struct TypeName {
  std::string operator()(std::monostate) const { return "nothing"; }
  std::string operator()(const std::string&) const { return "string"; }
  std::string operator()(int64_t) const { return "int"; }
  std::string operator()(float) const { return "float"; }
  std::string operator()(bool) const { return "bool"; }
  std::string operator()(DataType) const { return "type"; }
  std::string operator()(const PartialShape&) const { return "shape"; }
  std::string operator()(const Tensor&) const { return "tensor"; }
  std::string operator()(const FunctionRef&) const { return "func"; }
  std::string operator()(const AttrPlaceholder&) const { return "placeholder"; }
  std::string operator()(const EmptyList&) const { return "list(nothing)"; }
  template <class T>
  std::string operator()(const std::vector<T>&) const {
    return "list(" + (*this)(T()) + ")";
  }
};

struct Text {
  std::string operator()(std::monostate) const { return "<none>"; }
  std::string operator()(const AttrPlaceholder& p) const {
    return "$" + p.name;
  }
  std::string operator()(const EmptyList&) const { return "[]"; }
  template <class T>
  std::string operator()(const std::vector<T>& list) const {
    return list_text(list);
  }
  template <class T>
  std::string operator()(const T& value) const {
    return element_text(value);
  }
};

}  // namespace

AttrValue::AttrValue() = default;
AttrValue::AttrValue(const AttrValue&) = default;
AttrValue::AttrValue(AttrValue&&) noexcept = default;
AttrValue& AttrValue::operator=(const AttrValue&) = default;
AttrValue& AttrValue::operator=(AttrValue&&) noexcept = default;
AttrValue::~AttrValue() = default;

std::string AttrValue::type_name() const {
  return std::visit(TypeName(), value_);
}

std::string AttrValue::to_string() const { return std::visit(Text(), value_); }

bool operator==(const AttrValue& a, const AttrValue& b) {
  if (a.value().index() == b.value().index()) {
    return std::visit(
        [&]<class T>(const T& left) {
          return same(left, std::get<T>(b.value()));
        },
        a.value());
  }
  const bool untyped = a.get_if<EmptyList>() || b.get_if<EmptyList>();
  return untyped && is_empty_list(a) && is_empty_list(b);
}

}  // namespace tagflow
