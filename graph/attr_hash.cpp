#include "graph/attr_hash.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace tagflow {
namespace {

// Adds each alternative of an AttrValue.
class Adder {
 public:
  explicit Adder(AttrHash& to) : hash_(to) {}

  void operator()(std::monostate) const {}
  void operator()(const EmptyList&) const { add_size(0); }
  void operator()(const std::string& text) const { hash_.add_text(text); }
  void operator()(int64_t value) const { hash_.add_number(size_t(value)); }
  void operator()(float value) const {
    hash_.add_number(std::bit_cast<uint32_t>(value));
  }
  void operator()(bool value) const { hash_.add_number(size_t(value)); }
  void operator()(DataType type) const { hash_.add_number(size_t(type)); }
  void operator()(const PartialShape& shape) const {
    if (!shape.has_rank()) return hash_.add_number(~size_t(0));
    add_size(size_t(shape.rank()));
    for (const int64_t dim : shape.dims()) hash_.add_number(size_t(dim));
  }
  void operator()(const Tensor& tensor) const { hash_.add_tensor(tensor); }
  void operator()(const SharedTensor& tensor) const { (*this)(*tensor); }
  void operator()(const FunctionRef& function) const {
    hash_.add_text(function.name);
    hash_.add_attrs(function.attrs);
  }
  void operator()(const AttrPlaceholder& placeholder) const {
    hash_.add_text(placeholder.name);
  }
  template <class T>
  void operator()(const std::vector<T>& list) const {
    add_size(list.size());
    for (size_t i = 0; i < list.size(); ++i)
      (*this)(static_cast<const T&>(list[i]));
  }

 private:
  // One number for lists of all types, since empty lists are equal.
  void add_size(size_t size) const { hash_.add_number(size); }

  AttrHash& hash_;
};

}  // namespace

void AttrHash::add_text(std::string_view text) {
  add_number(std::hash<std::string_view>()(text));
}

void AttrHash::add_tensor(const Tensor& tensor, size_t most) {
  add_number(size_t(tensor.dtype()));
  if (!tensor.valid()) return;
  add_number(size_t(tensor.num_elements()));
  if (tensor.num_elements() == 0) return;
  if (is_plain(tensor.dtype())) {
    add_text({static_cast<const char*>(tensor.raw()),
              std::min(tensor.bytes(), most)});
  } else if (tensor.dtype() == DataType::kString) {
    for (const std::string& text : tensor.flat<std::string>()) {
      if (most == 0) break;
      add_number(text.size());
      add_text(std::string_view(text).substr(0, most));
      most -= std::min(most, text.size() + 1);
    }
  }
}

void AttrHash::add_value(const AttrValue& value) {
  // Lists come last in the variant. All empty ones are equal.
  static const size_t first_list = AttrValue(EmptyList()).value().index();
  const size_t kind = value.value().index();
  if (kind < first_list) add_number(kind);
  std::visit(Adder(*this), value.value());
}

void AttrHash::add_attrs(const AttrMap& attrs) {
  for (const auto& [name, value] : attrs) {
    add_text(name);
    add_value(value);
  }
}

}  // namespace tagflow
