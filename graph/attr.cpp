#include "graph/attr.h"

#include <algorithm>
#include <bit>

namespace tagflow {
namespace {

// The maximum length of lists and strings that a message shows in full.
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
std::string element_text(const SharedTensor& t) { return (*t).to_string(); }
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

// Compares bits: -0 differs from 0, and a NaN equals itself. Equal values are
// interchangeable.
bool same(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}
bool same(const Tensor& a, const Tensor& b) { return identical(a, b); }
bool same(const SharedTensor& a, const SharedTensor& b) {
  return identical(*a, *b);
}
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
  static constexpr std::string_view of(const std::string*) { return "string"; }
  static constexpr std::string_view of(const int64_t*) { return "int"; }
  static constexpr std::string_view of(const float*) { return "float"; }
  static constexpr std::string_view of(const bool*) { return "bool"; }
  static constexpr std::string_view of(const DataType*) { return "type"; }
  static constexpr std::string_view of(const PartialShape*) { return "shape"; }
  static constexpr std::string_view of(const SharedTensor*) { return "tensor"; }
  static constexpr std::string_view of(const Tensor*) { return "tensor"; }
  static constexpr std::string_view of(const FunctionRef*) { return "func"; }

  std::string_view operator()(const std::monostate&) const { return "nothing"; }
  std::string_view operator()(const AttrPlaceholder&) const {
    return "placeholder";
  }
  std::string_view operator()(const EmptyList&) const {
    return "list(nothing)";
  }
  template <class T>
  std::string_view operator()(const std::vector<T>&) const {
    static const std::string name =
        fmt::format("list({})", of(static_cast<const T*>(nullptr)));
    return name;
  }
  template <class T>
  std::string_view operator()(const T& value) const {
    return of(&value);
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

std::string_view AttrValue::type_name() const {
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

// --- AttrMap ----------------------------------------------------------------

namespace {

template <class Entries>
auto place_of(Entries& list, std::string_view name) {
  return std::ranges::lower_bound(
      list, name, {},
      [](const auto& entry) -> std::string_view { return entry.first; });
}

}  // namespace

AttrMap::AttrMap(std::initializer_list<value_type> entries)
    : AttrMap(std::vector<value_type>(entries)) {}

AttrMap::AttrMap(std::vector<value_type> entries) {
  if (entries.empty()) return;
  const auto name = [](const value_type& entry) -> const std::string& {
    return entry.first;
  };
  std::ranges::stable_sort(entries, {}, name);
  const auto same = [](const value_type& a, const value_type& b) {
    return a.first == b.first;
  };
  entries.erase(std::unique(entries.begin(), entries.end(), same),
                entries.end());
  entries_ = make_ref_counted<Entries>();
  entries_->list = std::move(entries);
}

std::vector<AttrMap::value_type>& AttrMap::own() {
  if (!entries_ || !entries_->unique()) {
    auto copy = make_ref_counted<Entries>();
    copy->list.reserve(size() + 1);
    copy->list.assign(begin(), end());
    entries_ = std::move(copy);
  }
  return entries_->list;
}

AttrMap::const_iterator AttrMap::find(std::string_view name) const {
  // Most maps are so small that linear search is fastest.
  constexpr size_t kFew = 8;
  if (size() > kFew) {
    const auto at = place_of(entries_->list, name);
    const bool found = at != entries_->list.end() && at->first == name;
    return found ? &*at : end();
  }
  return std::find_if(begin(), end(), [&](const value_type& entry) {
    return entry.first == name;
  });
}

const AttrValue& AttrMap::at(std::string_view name) const {
  const const_iterator it = find(name);
  assert(it != end());
  return it->second;
}

bool AttrMap::emplace(std::string_view name, AttrValue value) {
  if (contains(name)) return false;
  std::vector<value_type>& list = own();
  list.emplace(place_of(list, name), std::string(name), std::move(value));
  return true;
}

void AttrMap::insert_or_assign(std::string_view name, AttrValue value) {
  (*this)[name] = std::move(value);
}

AttrValue& AttrMap::operator[](std::string_view name) {
  emplace(name, AttrValue());
  return place_of(own(), name)->second;
}

bool operator==(const AttrMap& a, const AttrMap& b) {
  return a.begin() == b.begin() ||
         std::equal(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace tagflow
