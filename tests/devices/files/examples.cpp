#include "tests/devices/files/examples.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "graph/dtype_visit.h"
#include "tests/source_path.h"
#include "tests/temp_path.h"

namespace tagflow::checkpoint {
namespace {

constexpr DataType kExampleTypes[] = {
    DataType::kFloat,      DataType::kDouble,    DataType::kInt32,
    DataType::kUInt8,      DataType::kInt16,     DataType::kInt8,
    DataType::kString,     DataType::kComplex64, DataType::kInt64,
    DataType::kBool,       DataType::kBFloat16,  DataType::kUInt16,
    DataType::kComplex128, DataType::kHalf,      DataType::kUInt32,
    DataType::kUInt64,
};

}  // namespace

std::span<const DataType> example_types() { return kExampleTypes; }

Tensor example(DataType dtype, const Shape& shape) {
  Tensor tensor = Tensor::make(dtype, shape);
  const auto fill = [&]<class T>(TypeTag<T>) {
    int64_t i = 0;
    for (T& element : tensor.mutable_flat<T>()) {
      const int value = int(3 * i++ % 5);
      if constexpr (requires { element.real(); }) {
        using Part = decltype(element.real());
        element = T(Part(value), Part(value + 1));
      } else {
        element = T(float(value));
      }
    }
  };
  if (visit_numeric(dtype, fill)) return tensor;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const auto value = size_t(3 * i % 5);
    if (dtype == DataType::kBool) {
      tensor.mutable_data<bool>()[i] = value % 2 == 1;
    } else {
      tensor.mutable_data<std::string>()[i] = std::string(value, 's');
    }
  }
  return tensor;
}

std::string numpy_name(DataType dtype) {
  if (dtype == DataType::kFloat) return "float32";
  if (dtype == DataType::kDouble) return "float64";
  if (dtype == DataType::kHalf) return "float16";
  return dtype_name(dtype);
}

std::string recorded_path(std::string_view name) {
  return source_path(fmt::format("tests/devices/data/checkpoint/{}", name));
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  INFO(path);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

TempFolder::TempFolder(std::string_view name)
    : path_(testing::temp_path(std::string(name))) {
  std::filesystem::remove_all(path_);
  std::filesystem::create_directories(path_);
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempFolder::path(std::string_view name) const {
  return (path_ / name).string();
}

std::vector<std::string> TempFolder::names() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace tagflow::checkpoint
