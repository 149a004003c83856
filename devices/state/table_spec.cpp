// The settings of tables, from the nodes that make them.
#include "devices/state/table.h"

namespace tagflow::devices {
namespace {

constexpr std::string_view name_of(TableSpec::Kind kind) {
  switch (kind) {
    case TableSpec::Kind::kFixed:
      return "HashTable";
    case TableSpec::Kind::kScalar:
      return "MutableHashTable";
    case TableSpec::Kind::kTensor:
      return "MutableHashTableOfTensors";
    case TableSpec::Kind::kDense:
      return "MutableDenseHashTable";
  }
  return {};
}

}  // namespace

std::string TableSpec::describe() const {
  return fmt::format("{} of {}{} -> {}{}", name_of(kind), dtype_name(key),
                     key_shape.rank() > 0 ? key_shape.to_string() : "",
                     dtype_name(value),
                     value_shape.rank() > 0 ? value_shape.to_string() : "");
}

Status TableSpec::check_same(std::string_view table,
                             const TableSpec& other) const {
  if (kind == other.kind && key == other.key && value == other.value &&
      key_shape == other.key_shape && value_shape == other.value_shape)
    return {};
  return invalid_argument("{} is a {}, but the node asks for a {}", table,
                          describe(), other.describe());
}

}  // namespace tagflow::devices
