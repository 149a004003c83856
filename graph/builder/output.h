// Arguments and results of op functions: handles to tensors of a graph.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

#include "graph/node.h"

namespace tagflow::graph {

// One output of a node of a Scope's graph, or the node itself if it has no
// outputs (a NoOp): see is_operation(). Invalid if an error prevented it; then
// all functions return harmless values. Valid as long as the node is in the
// graph. A value.
class Output {
 public:
  Output() = default;
  explicit Output(Node* node, int port = 0) : node_(node), port_(port) {}
  explicit Output(Endpoint endpoint) : Output(endpoint.node, endpoint.port) {}

  bool valid() const { return node_ != nullptr; }
  // A node without outputs: it can be run and waited for, not fetched.
  bool is_operation() const { return valid() && node_->num_outputs() == 0; }
  bool has_tensor() const {
    return valid() && port_ >= 0 && port_ < node_->num_outputs();
  }
  Node* node() const { return node_; }
  int port() const { return port_; }
  Endpoint endpoint() const { return {node_, port_}; }
  // kInvalid if there is no tensor. May be a reference type.
  DataType dtype() const;
  // The inferred shape; of unknown rank if there is no tensor.
  PartialShape shape() const;
  // "name:port" for feeds and fetches, "name" of an operation, or "".
  std::string name() const;
  bool operator==(const Output&) const = default;

 private:
  Node* node_ = nullptr;
  int port_ = 0;
};

// The outputs of one node just made. Converts to the first of them.
class OpResult {
 public:
  OpResult() = default;
  explicit OpResult(Node* node) : node_(node) {}

  Node* node() const { return node_; }
  int size() const { return node_ == nullptr ? 0 : node_->num_outputs(); }
  // Invalid if there is no such output.
  Output operator[](int port) const;
  operator Output() const { return Output(node_); }

 private:
  Node* node_ = nullptr;
};

// A list of outputs that can be indexed beyond its end: a function that failed
// returns an empty list, which its caller need not check.
class Outputs {
 public:
  Outputs() = default;
  Outputs(Output output) : list_{output} {}
  Outputs(const OpResult& result) : list_{Output(result)} {}
  Outputs(std::initializer_list<Output> list) : list_(list) {}
  Outputs(std::vector<Output> list) : list_(std::move(list)) {}

  size_t size() const { return list_.size(); }
  bool empty() const { return list_.empty(); }
  // Invalid if there is no such output.
  Output operator[](size_t i) const {
    return i < list_.size() ? list_[i] : Output();
  }
  void push_back(Output output) { list_.push_back(output); }
  std::vector<Output>::const_iterator begin() const { return list_.begin(); }
  std::vector<Output>::const_iterator end() const { return list_.end(); }

 private:
  std::vector<Output> list_;
};

// An input of an op function: an Output, or a literal, for which a Const is
// made. A C++ number, or list of numbers, is *weak*: it takes the type that the
// op's other inputs or attributes require, so that add(s, x, 1) works for any
// type of x. Otherwise integers are int32 (int64 if too large) and fractions
// float. Tensors, bools and strings have their own type.
class Input {
 public:
  Input() = default;  // invalid
  Input(Output output) : output_(output) {}
  Input(const OpResult& result) : output_(result) {}
  Input(Tensor literal) : literal_(std::move(literal)) {}
  Input(bool literal) : literal_(Tensor::scalar(literal)) {}
  Input(const char* literal) : literal_(Tensor::scalar(literal)) {}
  Input(std::string literal) : literal_(Tensor::scalar(std::move(literal))) {}
  template <std::integral T>
  Input(T literal) : literal_(Tensor::scalar(int64_t(literal))), weak_(true) {}
  template <std::floating_point T>
  Input(T literal) : literal_(Tensor::scalar(double(literal))), weak_(true) {}
  Input(std::initializer_list<bool> literal)
      : literal_(Tensor::of<bool>({int64_t(literal.size())}, literal)) {}
  template <class T>
  requires std::is_arithmetic_v<T> Input(std::initializer_list<T> literal)
      : Input(weak_vector(literal)) {}

  bool is_literal() const { return literal_.valid(); }
  bool is_weak() const { return weak_; }
  // REQUIRES: !is_literal()
  const Output& output() const { return output_; }
  // REQUIRES: is_literal(). int64 or double for a weak literal.
  const Tensor& literal() const { return literal_; }
  // The type of the tensor; kInvalid for a weak literal.
  DataType dtype() const;

 private:
  template <class T>
  static Input weak_vector(std::initializer_list<T> values) {
    using Wide =
        std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;
    const std::vector<Wide> wide(values.begin(), values.end());
    Input input(Tensor::of<Wide>({int64_t(wide.size())}, wide));
    input.weak_ = true;
    return input;
  }

  Output output_;
  Tensor literal_;
  bool weak_ = false;
};

// The inputs of an op: {a, b, 1}, or concatenated lists.
class Inputs {
 public:
  Inputs() = default;
  Inputs(std::initializer_list<Input> list) : list_(list) {}
  Inputs(const Outputs& outputs) : list_(outputs.begin(), outputs.end()) {}
  Inputs(const std::vector<Output>& outputs)
      : list_(outputs.begin(), outputs.end()) {}

  size_t size() const { return list_.size(); }
  const Input& operator[](size_t i) const { return list_[i]; }
  Inputs& add(Input input) {
    list_.push_back(std::move(input));
    return *this;
  }
  Inputs& add(const Inputs& more) {
    list_.insert(list_.end(), more.begin(), more.end());
    return *this;
  }
  std::vector<Input>::const_iterator begin() const { return list_.begin(); }
  std::vector<Input>::const_iterator end() const { return list_.end(); }

 private:
  std::vector<Input> list_;
};

// Converts a weak literal to a tensor of `dtype`; kInvalid means its default
// type. InvalidArgument if a value is outside the type's range, or the type is
// not numeric.
Result<Tensor> weak_to_dtype(const Tensor& literal, DataType dtype);

}  // namespace tagflow::graph
