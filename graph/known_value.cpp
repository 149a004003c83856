#include "graph/known_value.h"

#include <algorithm>

namespace tagflow::graph {
namespace {

// Bounds the work on graphs with repeated use of values.
constexpr int kMaxVisits = 256;

// A malicious graph may have very long chains of Identities, which are followed
// for each node.
constexpr int kMaxForwards = 64;

// Follows nodes that return their input unchanged; end(endpoint) is the actual
// source for readers of an endpoint.
template <class End>
Endpoint origin(Endpoint source, const End& end) {
  source = end(source);
  for (int n = 0; n < kMaxForwards && source.node != nullptr; ++n) {
    const Node& node = *source.node;
    if (!node.is_identity() && !node.is_constant_enter()) break;
    if (node.inputs().empty()) break;
    source = end(node.inputs()[0]);
  }
  return source;
}

Endpoint origin(Endpoint source) {
  return origin(source, [](const Endpoint& from) { return from; });
}

const Tensor* constant_of(const Endpoint& source) {
  if (source.node == nullptr || !source.node->is_const()) return nullptr;
  const auto it = source.node->attrs().find("value");
  return it == source.node->attrs().end() ? nullptr
                                          : it->second.get_if<Tensor>();
}

// The integers of a tensor, or nothing if they have another type or are too
// many for a shape.
std::optional<Shape::Dims> integers(const Tensor& tensor) {
  if (tensor.rank() > 1 || tensor.num_elements() > kMaxRank) return {};
  Shape::Dims values;
  if (tensor.dtype() == DataType::kInt32) {
    for (int32_t v : tensor.flat<int32_t>()) values.push_back(v);
  } else if (tensor.dtype() == DataType::kInt64) {
    for (int64_t v : tensor.flat<int64_t>()) values.push_back(v);
  } else {
    return {};
  }
  return values;
}

std::optional<int64_t> known_integer(Endpoint source) {
  const Tensor* tensor = known_constant(source);
  if (tensor == nullptr || tensor->num_elements() != 1) return {};
  const auto values = integers(*tensor);
  if (!values) return {};
  return (*values)[0];
}

// Computes the elements of one integer tensor of rank 0 or 1; kUnknown stands
// for unknown elements.
class ValueFinder {
 public:
  using Values = std::optional<Shape::Dims>;

  Values elements(Endpoint source) {
    source = origin(source);
    if (source.node == nullptr || --visits_ < 0) return {};
    const Node& node = *source.node;
    if (const Tensor* tensor = known_constant(source)) return integers(*tensor);
    const PartialShape& shape = node.output_shape(source.port);
    if (shape.has_rank() && shape.rank() > 1) return {};
    Values values = computed(node, source.port);
    return values ? values : of_unknown(shape);
  }

 private:
  static Values of_unknown(const PartialShape& shape) {
    const int64_t count = shape.num_elements();
    if (!shape.has_rank() || shape.rank() > 1 || count < 0 || count > kMaxRank)
      return {};
    return Shape::Dims(size_t(count), PartialShape::kUnknown);
  }

  Values computed(const Node& node, int port) {
    const std::string& op = node.op();
    const auto& inputs = node.inputs();
    if (inputs.empty()) return {};
    if ((op == "Shape" || op == "ShapeN") && size_t(port) < inputs.size()) {
      const Endpoint& of = inputs[size_t(port)];
      if (of.node == nullptr) return {};
      const PartialShape& shape = of.node->output_shape(of.port);
      if (!shape.has_rank()) return {};
      return Shape::Dims(shape.dims().begin(), shape.dims().end());
    }
    if (op == "Cast") {
      const DataType from = node.input_dtypes()[0];
      const DataType to = node.output_dtypes()[0];
      if (from == DataType::kInt32 && to == DataType::kInt64)
        return elements(inputs[0]);
      return from == to ? elements(inputs[0]) : narrowed(inputs[0]);
    }
    if (op == "Pack") return joined(inputs, 0);
    if (op == "ConcatV2")
      return joined(std::span(inputs).first(inputs.size() - 1), 1);
    if (op == "Concat") return joined(std::span(inputs).subspan(1), 1);
    if (op == "StridedSlice" && inputs.size() == 4) return sliced(node);
    return {};
  }

  // int64 to int32: values out of range become unknown.
  Values narrowed(Endpoint source) {
    if (source.node == nullptr) return {};
    const DataType type = source.node->output_dtypes()[size_t(source.port)];
    if (type != DataType::kInt64 && type != DataType::kInt32) return {};
    Values values = elements(source);
    if (!values) return {};
    for (int64_t& v : *values)
      if (v != int64_t(int32_t(v))) v = PartialShape::kUnknown;
    return values;
  }

  // Concatenates parts of that rank; the axis can only be 0.
  Values joined(std::span<const Endpoint> parts, int rank) {
    Shape::Dims all;
    for (const Endpoint& part : parts) {
      if (part.node == nullptr) return {};
      const PartialShape& shape = part.node->output_shape(part.port);
      if (!shape.has_rank() || shape.rank() != rank) return {};
      const Values values = elements(part);
      if (!values || all.size() + values->size() > size_t(kMaxRank)) return {};
      all.insert(all.end(), values->begin(), values->end());
    }
    return all;
  }

  static int64_t int_attr(const Node& node, std::string_view name) {
    const Result<int64_t> value = get_attr<int64_t>(node.attrs(), name);
    return value.ok() ? *value : 0;
  }

  // vector[begin:end:stride] or vector[begin], all constant.
  Values sliced(const Node& node) {
    const Endpoint& vector = node.inputs()[0];
    if (vector.node == nullptr) return {};
    const PartialShape& shape = vector.node->output_shape(vector.port);
    if (!shape.has_rank() || shape.rank() != 1) return {};
    if (int_attr(node, "ellipsis_mask") != 0 ||
        int_attr(node, "new_axis_mask") != 0)
      return {};
    const auto begin = known_integer(node.inputs()[1]);
    const auto end = known_integer(node.inputs()[2]);
    const auto stride = known_integer(node.inputs()[3]);
    if (!begin || !end || !stride || *stride == 0) return {};
    const Values values = elements(vector);
    if (!values) return {};
    const auto n = int64_t(values->size());
    if (int_attr(node, "shrink_axis_mask") & 1) {
      const int64_t at = *begin < 0 ? *begin + n : *begin;
      if (at < 0 || at >= n) return {};
      return Shape::Dims(1, (*values)[size_t(at)]);
    }
    // Counted from the end if negative; clamped to the possible positions.
    const bool forward = *stride > 0;
    auto place = [&](int64_t at) {
      if (at < 0) at += n;
      return forward ? std::clamp<int64_t>(at, 0, n)
                     : std::clamp<int64_t>(at, -1, n - 1);
    };
    const int64_t first = int_attr(node, "begin_mask") & 1
                              ? (forward ? 0 : n - 1)
                              : place(*begin);
    const int64_t last =
        int_attr(node, "end_mask") & 1 ? (forward ? n : -1) : place(*end);
    const int64_t step = std::clamp<int64_t>(*stride, -kMaxRank, kMaxRank);
    Shape::Dims picked;
    for (int64_t at = first; forward ? at < last : at > last; at += step)
      picked.push_back((*values)[size_t(at)]);
    return picked;
  }

  int visits_ = kMaxVisits;
};

}  // namespace

const Tensor* known_constant(Endpoint source) {
  return constant_of(origin(source));
}

const Tensor* known_constant(
    Endpoint source, const std::function<Endpoint(const Endpoint&)>& end) {
  return constant_of(origin(source, end));
}

const Node* known_maker(Endpoint source) { return origin(source).node; }

Result<PartialShape> known_shape(Endpoint source) {
  if (const Tensor* tensor = known_constant(source)) {
    if (tensor->rank() > 1)
      return invalid_argument("{} is not a shape; a vector is wanted",
                              tensor->describe());
    if (tensor->num_elements() > kMaxRank)
      return invalid_argument("{} is not a shape; its rank is over {}",
                              tensor->describe(), kMaxRank);
  }
  const ValueFinder::Values values = ValueFinder().elements(source);
  if (!values) return PartialShape();
  const PartialShape& shape = source.node->output_shape(source.port);
  const bool scalar = shape.has_rank() && shape.rank() == 0;
  if (scalar && (*values)[0] == PartialShape::kUnknown) return PartialShape();
  return PartialShape::make(std::span(values->data(), values->size()));
}

}  // namespace tagflow::graph
