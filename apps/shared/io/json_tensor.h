// Tensors as JSON: literals for feeds and fetches, and files of strings.
//
// A literal is a number, a bool, a string, or nested lists of these, all of one
// depth and length: [[1, 2], [3, 4]] is of shape [2,2]. Values that JSON does
// not have are written as follows:
//
//   "nan", "inf", "-inf"       floating-point values that JSON cannot express
//   {"re": 1, "im": 2}         complex numbers (a plain number is real)
//   {"base64": "/w=="}         strings that are not UTF-8
#pragma once

#include <string>
#include <string_view>

#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::io {

// The literal as a tensor of `dtype`. Returns InvalidArgument if the text is
// not JSON, the lists are ragged or too deep, or a value is not one of `dtype`:
// 1.5 is not an int32, 300 not a uint8, 1 not a bool. Thread-safe.
Result<Tensor> parse_json_literal(std::string_view text, DataType dtype);

// A hint about a text that is not JSON, for the end of a message: "; a string
// is written in quotes, ..."; or nothing.
std::string_view hint_for_no_json(std::string_view text);

// The inverse; floating-point numbers have a point or an exponent. Handles
// become strings that describe them. REQUIRES: tensor.valid(). Thread-safe.
std::string format_json_literal(const Tensor& tensor);

// A text as a JSON string, with quotes; invalid UTF-8 in it is replaced.
// Thread-safe.
std::string json_string(const std::string& text);

// {"dtype": "string", "shape": [2], "base64": ["YQ==", "Yg=="]}, the file
// format of string tensors. Returns InvalidArgument for anything else.
Result<Tensor> parse_string_tensor(std::string_view text);
// Parses a .json file: such an object, or a literal of `dtype`.
Result<Tensor> parse_json_file(std::string_view text, DataType dtype);
// REQUIRES: tensor.dtype() is string.
std::string format_string_tensor(const Tensor& tensor);

}  // namespace tagflow::io
