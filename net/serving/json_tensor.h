// Tensors as nested lists of JSON.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "graph/tensor.h"
#include "net/serving/json_reader.h"

namespace tagflow::net::serving {

// Reads a tensor, value by value. A value is a number, true or false, a string,
// or, for binary strings, {"b64": "..."}; or a list of values, all of the same
// shape. An integer must fit its type, and has no fraction. A number must not
// be too large for its type, if it is no infinity; otherwise it is rounded, as
// TensorFlow Serving does it since its version 2.5. Thread-compatible.
class JsonTensorReader {
 public:
  virtual ~JsonTensorReader() = default;
  // Unimplemented for a type that JSON has no values for.
  static Result<std::unique_ptr<JsonTensorReader>> make(DataType dtype);

  // The whole tensor.
  Status read(JsonReader& json) { return read_at(json, 0); }
  // Another row of it. REQUIRES: read() was not called
  Status read_row(JsonReader& json);
  int64_t num_rows() const { return num_rows_; }
  // What was read. InvalidArgument if rows differ in shape.
  virtual Result<Tensor> take() = 0;

 protected:
  JsonTensorReader() = default;
  // The value, or list, in so many lists.
  virtual Status read_at(JsonReader& json, int depth) = 0;

  int64_t num_rows_ = 0;
};

// The value of a number() that the reader has just read. What is too small is
// 0. InvalidArgument for a number that only infinity could stand for.
Status floating_of(const JsonReader& json, std::string_view text, float& value);

// Whether the object that comes next is a binary string. The reader is not
// moved.
bool is_binary_string(JsonReader json);

// Reads {"b64": "..."}.
Result<std::string> read_binary_string(JsonReader& json);

// Appends the tensor, or one row of it, as a value or nested lists. Strings are
// in base64, as {"b64": "..."}, if `is_binary`, or if one is no UTF-8.
// Unimplemented as make().
Status write_json_tensor(const Tensor& tensor, bool is_binary,
                         std::string& text);
Status write_json_row(const Tensor& tensor, int64_t row, bool is_binary,
                      std::string& text);
// A string of JSON. What is no UTF-8 becomes U+FFFD.
void write_json_string(std::string_view value, std::string& text);
void write_json_number(double value, std::string& text);
void write_json_number(float value, std::string& text);

}  // namespace tagflow::net::serving
