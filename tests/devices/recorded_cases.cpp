#include "tests/devices/recorded_cases.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <iomanip>
#include <sstream>

#include "graph/dtype_visit.h"
#include "tests/devices/kernel_fixture.h"
#include "tests/source_path.h"

namespace tagflow::devices {

namespace {

template <class T>
T parse_element(const std::string& text) {
  if constexpr (std::is_same_v<T, std::string>) {
    return text;  // without its quotes, see parse_tensor()
  } else if constexpr (std::is_same_v<T, Complex64> ||
                       std::is_same_v<T, Complex128>) {
    const size_t comma = text.find(',');
    using Part = typename T::value_type;
    return T(Part(std::strtod(text.c_str(), nullptr)),
             Part(std::strtod(text.c_str() + comma + 1, nullptr)));
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    return std::strtoull(text.c_str(), nullptr, 10);
  } else if constexpr (std::is_integral_v<T>) {
    return T(std::strtoll(text.c_str(), nullptr, 10));
  } else {
    return T(std::strtod(text.c_str(), nullptr));
  }
}

// "[2,3]"
Shape parse_dims(const std::string& text) {
  Shape shape;
  std::istringstream list(text.substr(1));
  int64_t dim = 0;
  while (list >> dim) {
    shape.add_dim(dim);
    list.ignore(1);
  }
  return shape;
}

// "[2,?]", of which one dimension is unknown.
PartialShape parse_partial_dims(const std::string& text) {
  std::vector<int64_t> dims;
  std::istringstream list(text.substr(1, text.size() - 2));
  for (std::string dim; std::getline(list, dim, ',');)
    dims.push_back(dim == "?" ? PartialShape::kUnknown : std::stoll(dim));
  return PartialShape(dims);
}

// "x0a1b": the bytes of a string, in hexadecimal.
bool parse_bytes(const std::string& text, std::string& bytes) {
  if (!text.starts_with('x') || text.size() % 2 == 0) return false;
  for (size_t i = 1; i < text.size(); i += 2)
    bytes += char(std::stoi(text.substr(i, 2), nullptr, 16));
  return true;
}

// "float [2,3] 1 2 3 4 5 6"; strings stand in double quotes, or as "bytes [2]
// x0a1b x" if they are no text.
Result<Tensor> parse_tensor(std::istringstream& words) {
  std::string type, dims;
  words >> type >> dims;
  const bool is_bytes = type == "bytes";
  TAGFLOW_ASSIGN(const DataType dtype,
                 dtype_from_name(is_bytes ? "string" : type));
  const Shape shape = parse_dims(dims);
  Tensor tensor = Tensor::make(dtype, shape);
  bool complete = true;
  visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    for (T& element : tensor.mutable_flat<T>()) {
      std::string text;
      complete = complete && bool(std::is_same_v<T, std::string> && !is_bytes
                                      ? words >> std::quoted(text)
                                      : words >> text);
      if constexpr (std::is_same_v<T, std::string>)
        if (is_bytes) {
          complete = complete && parse_bytes(text, element);
          continue;
        }
      if (complete) element = parse_element<T>(text);
    }
  });
  if (!complete) return invalid_argument("too few elements");
  return tensor;
}

// "NAME TYPE VALUE"
Status parse_attr(std::istringstream& words, AttrMap& attrs) {
  std::string name, type, value;
  words >> name >> type >> std::quoted(value);
  if (type == "type") {
    TAGFLOW_ASSIGN(attrs[name], dtype_from_name(value));
  } else if (type == "bool") {
    attrs[name] = value == "true";
  } else if (type == "int") {
    attrs[name] = int64_t(std::strtoll(value.c_str(), nullptr, 10));
  } else if (type == "float") {
    attrs[name] = std::strtof(value.c_str(), nullptr);
  } else if (type == "string") {
    attrs[name] = value;
  } else if (type == "ints") {
    std::vector<int64_t> list;
    const Shape parsed = parse_dims(value);
    for (int64_t dim : parsed.dims()) list.push_back(dim);
    attrs[name] = std::move(list);
  } else if (type == "floats") {
    std::vector<float> list;
    std::istringstream numbers(value);
    for (float number = 0; numbers >> number;) list.push_back(number);
    attrs[name] = std::move(list);
  } else if (type == "strings") {
    std::vector<std::string> list;
    std::istringstream texts(value);
    for (std::string text; texts >> text;) list.push_back(text);
    attrs[name] = std::move(list);
  } else if (type == "types") {
    std::vector<DataType> list;
    std::istringstream texts(value);
    for (std::string text; texts >> text;) {
      TAGFLOW_ASSIGN(list.emplace_back(), dtype_from_name(text));
    }
    attrs[name] = std::move(list);
  } else if (type == "shapes") {
    std::vector<PartialShape> list;
    std::istringstream texts(value);
    for (std::string text; texts >> text;)
      list.push_back(parse_partial_dims(text));
    attrs[name] = std::move(list);
  } else if (type == "bytes") {
    std::string bytes;
    if (!parse_bytes(value, bytes)) return invalid_argument("no bytes");
    attrs[name] = std::move(bytes);
  } else if (type == "contents") {  // of a file beside that of the cases
    std::ifstream file(source_path("tests/devices/data/" + value),
                       std::ios::binary);
    if (!file) return invalid_argument("no file \"{}\"", value);
    attrs[name] = std::string(std::istreambuf_iterator<char>(file), {});
  } else if (type == "empty") {
    if (value == "types") attrs[name] = std::vector<DataType>();
    if (value == "ints") attrs[name] = std::vector<int64_t>();
    if (value == "strings") attrs[name] = std::vector<std::string>();
    if (value == "shapes") attrs[name] = std::vector<PartialShape>();
  } else {
    return invalid_argument("attribute type \"{}\"", type);
  }
  return {};
}

Status parse_line(const std::string& line, int number,
                  std::vector<RecordedCase>& cases) {
  std::istringstream words(line);
  std::string kind;
  words >> kind;
  if (kind == "op") {
    cases.emplace_back().line = number;
    words >> cases.back().op;
    return {};
  }
  if (cases.empty()) return invalid_argument("no op before");
  RecordedCase& current = cases.back();
  if (kind == "attr") return parse_attr(words, current.attrs);
  if (kind == "error") {
    words >> current.error;
    return {};
  }
  if (kind != "in" && kind != "out")
    return invalid_argument("unknown word \"{}\"", kind);
  TAGFLOW_ASSIGN(Tensor tensor, parse_tensor(words));
  (kind == "in" ? current.inputs : current.outputs)
      .push_back(std::move(tensor));
  return {};
}

}  // namespace

Result<std::vector<RecordedCase>> read_recorded_cases(
    const std::string& file_name) {
  const std::string path = source_path("tests/devices/data/" + file_name);
  std::ifstream file(path);
  if (!file) return error(Code::kNotFound, "cannot open {}", path);
  std::vector<RecordedCase> cases;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const Status status = parse_line(line, number, cases);
    if (!status.ok())
      return error(Code::kDataLoss, "{}:{}: {}", file_name, number,
                   status.message());
  }
  return cases;
}

RecordedCounts check_recorded_cases(const std::string& file_name,
                                    double tolerance) {
  const auto cases = read_recorded_cases(file_name);
  REQUIRE_MESSAGE(cases.ok(), cases.status().to_string());
  RecordedCounts counts;
  for (const RecordedCase& recorded : *cases) {
    INFO(file_name, ":", recorded.line, ": ", recorded.op);
    counts.ops.insert(recorded.op);
    const auto outputs = run_op(recorded.op, recorded.inputs, recorded.attrs);
    if (!recorded.error.empty()) {
      CHECK_MESSAGE(code_name(outputs.status().code()) == recorded.error,
                    outputs.status().to_string());
      ++counts.refused;
      continue;
    }
    CHECK_MESSAGE(outputs.ok(), outputs.status().to_string());
    if (!outputs.ok()) continue;
    REQUIRE(outputs->size() == recorded.outputs.size());
    for (size_t i = 0; i < outputs->size(); ++i)
      expect_close((*outputs)[i], recorded.outputs[i], tolerance);
  }
  return counts;
}

}  // namespace tagflow::devices
