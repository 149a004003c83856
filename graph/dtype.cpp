#include "graph/dtype.h"

#include <array>
#include <type_traits>

#include "graph/float16.h"
#include "graph/handle.h"

namespace tagflow {
namespace {

struct TypeRow {
  DataType type;
  const char* name;
  size_t size;
};

// Quantized types keep their bits; nothing computes on them.
constexpr std::array<TypeRow, 23> kTypes = {{
    {DataType::kFloat, "float", 4},
    {DataType::kDouble, "double", 8},
    {DataType::kInt32, "int32", 4},
    {DataType::kUInt8, "uint8", 1},
    {DataType::kInt16, "int16", 2},
    {DataType::kInt8, "int8", 1},
    {DataType::kString, "string", sizeof(std::string)},
    {DataType::kComplex64, "complex64", 8},
    {DataType::kInt64, "int64", 8},
    {DataType::kBool, "bool", 1},
    {DataType::kQInt8, "qint8", 1},
    {DataType::kQUInt8, "quint8", 1},
    {DataType::kQInt32, "qint32", 4},
    {DataType::kBFloat16, "bfloat16", 2},
    {DataType::kQInt16, "qint16", 2},
    {DataType::kQUInt16, "quint16", 2},
    {DataType::kUInt16, "uint16", 2},
    {DataType::kComplex128, "complex128", 16},
    {DataType::kHalf, "half", 2},
    {DataType::kResource, "resource", sizeof(ResourceHandle)},
    {DataType::kVariant, "variant", sizeof(Variant)},
    {DataType::kUInt32, "uint32", 4},
    {DataType::kUInt64, "uint64", 8},
}};

// The bits of an element are those of the number, so that elements of these
// types can be copied and sent as bytes.
static_assert(sizeof(Half) == 2 && std::is_trivially_copyable_v<Half>);
static_assert(sizeof(BFloat16) == 2 && std::is_trivially_copyable_v<BFloat16>);

const TypeRow* find_row(DataType t) {
  const auto index = size_t(remove_ref(t));
  return index >= 1 && index <= kTypes.size() ? &kTypes[index - 1] : nullptr;
}

}  // namespace

bool is_known(DataType t) { return find_row(t) != nullptr; }

std::string dtype_name(DataType t) {
  const TypeRow* row = find_row(t);
  if (row == nullptr) return fmt::format("invalid({})", int(t));
  return is_ref(t) ? std::string(row->name) + "_ref" : row->name;
}

Result<DataType> dtype_from_name(std::string_view name) {
  std::string_view wanted = name;
  std::string lower;
  if (wanted.starts_with("DT_")) {
    for (char c : wanted.substr(3)) lower += char(std::tolower(c));
    wanted = lower;
  }
  bool ref = wanted.ends_with("_ref");
  if (ref) wanted.remove_suffix(4);
  if (wanted == "float32") wanted = "float";
  if (wanted == "float64") wanted = "double";
  if (wanted == "float16") wanted = "half";
  if (wanted == "complex") wanted = "complex64";
  for (const TypeRow& row : kTypes)
    if (wanted == row.name) return ref ? make_ref(row.type) : row.type;
  return invalid_argument("[dtype] unknown data type \"{}\"", name);
}

size_t dtype_size(DataType t) {
  const TypeRow* row = find_row(t);
  return row == nullptr ? 0 : row->size;
}

bool is_floating(DataType t) {
  return t == DataType::kFloat || t == DataType::kDouble ||
         t == DataType::kHalf || t == DataType::kBFloat16;
}

bool is_integer(DataType t) {
  switch (t) {
    case DataType::kInt8:
    case DataType::kInt16:
    case DataType::kInt32:
    case DataType::kInt64:
    case DataType::kUInt8:
    case DataType::kUInt16:
    case DataType::kUInt32:
    case DataType::kUInt64:
      return true;
    default:
      return false;
  }
}

bool is_complex(DataType t) {
  return t == DataType::kComplex64 || t == DataType::kComplex128;
}

bool is_numeric(DataType t) {
  return is_floating(t) || is_integer(t) || is_complex(t);
}

}  // namespace tagflow
