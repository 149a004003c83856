// The shapes of what is parsed of Examples: sparse, dense and ragged features.
#pragma once

#include <cstdint>
#include <string_view>

#include "graph/shape_context.h"

namespace tagflow::graph {

// Sets the shapes of the outputs of a node that parses Examples, group after
// group, in the order of its outputs. InvalidArgument if lists that describe
// the same features differ in length, or a shape is not known well enough.
class ParsedOutputs {
 public:
  // `batch` is the shape of the serialized Examples: a vector, or a scalar for
  // one Example.
  ParsedOutputs(ShapeContext& context, PartialShape batch)
      : c_(context), batch_(std::move(batch)) {}

  // InvalidArgument unless the batch can be a scalar or a vector.
  Status check_batch() const;
  // Indices, values and shapes. `count` names the attribute with the number of
  // features. The elements of a list of features have one more dimension.
  Status sparse(std::string_view types, std::string_view count,
                bool is_list = false);
  // `count` may be empty.
  Status dense(std::string_view types, std::string_view shapes,
               std::string_view count = {});
  // Lists of features, and their lengths unless `has_lengths` is false.
  Status dense_lists(std::string_view types, std::string_view shapes,
                     std::string_view count, bool has_lengths = true);
  // Values and row splits; for lists, those of steps and of values. One Example
  // has no splits, while one SequenceExample has a scalar.
  enum class Ragged : uint8_t { kExample, kContext, kList };
  Status ragged(Ragged kind, std::string_view value_types,
                std::string_view split_types);

 private:
  void add(PartialShape shape) { c_.set_output(next_++, std::move(shape)); }
  void add(size_t count, const PartialShape& shape) {
    for (; count > 0; --count) add(shape);
  }
  // The length of a list of types, which must be that of `count`, too.
  Result<size_t> length(std::string_view types, std::string_view count) const;
  Result<std::vector<PartialShape>> shapes_of(std::string_view shapes,
                                              size_t count) const;
  // The shape of such a row for each Example; of unknown rank if it is unknown
  // whether there is a batch.
  PartialShape batch_of(const PartialShape& row) const;

  ShapeContext& c_;
  const PartialShape batch_;
  int next_ = 0;
};

// InvalidArgument unless inputs [begin, end) can be vectors.
Status check_key_vectors(ShapeContext& c, int begin, int end);

}  // namespace tagflow::graph
