#include "graph/ops/parsing_outputs.h"

#include "graph/ops/shape_arithmetic.h"

namespace tagflow::graph {

Status ParsedOutputs::check_batch() const {
  if (!batch_.has_rank() || batch_.rank() <= 1) return {};
  return c_.fail(fmt::format("serialized must be a scalar or a vector, not {}",
                             batch_.to_string()));
}

Result<size_t> ParsedOutputs::length(std::string_view types,
                                     std::string_view count) const {
  TAGFLOW_ASSIGN(const auto list, c_.attr<std::vector<DataType>>(types));
  if (count.empty()) return list.size();
  TAGFLOW_ASSIGN(const int64_t wanted, c_.attr<int64_t>(count));
  if (wanted != int64_t(list.size()))
    return c_.fail(fmt::format("{} has {} types, but {} is {}", types,
                               list.size(), count, wanted));
  return list.size();
}

Result<std::vector<PartialShape>> ParsedOutputs::shapes_of(
    std::string_view shapes, size_t count) const {
  TAGFLOW_ASSIGN(auto list, c_.attr<std::vector<PartialShape>>(shapes));
  if (list.size() != count)
    return c_.fail(fmt::format("{} has {} shapes for {} features", shapes,
                               list.size(), count));
  return list;
}

PartialShape ParsedOutputs::batch_of(const PartialShape& row) const {
  return concatenate(batch_, row);
}

Status ParsedOutputs::sparse(std::string_view types, std::string_view count,
                             bool is_list) {
  TAGFLOW_ASSIGN(const size_t features, length(types, count));
  int64_t rank = kUnknown;
  if (batch_.has_rank()) rank = batch_.rank() + 1 + int(is_list);
  add(features, {kUnknown, rank});
  add(features, {kUnknown});
  add(features, {rank});
  return {};
}

Status ParsedOutputs::dense(std::string_view types, std::string_view shapes,
                            std::string_view count) {
  TAGFLOW_ASSIGN(const size_t features, length(types, count));
  TAGFLOW_ASSIGN(const auto rows, shapes_of(shapes, features));
  for (const PartialShape& row : rows) {
    if (!row.has_rank())
      return c_.fail(fmt::format("{} must be of known rank", shapes));
    for (int i = 1; i < row.rank(); ++i)
      if (!row.dim_known(i))
        return c_.fail(fmt::format(
            "only the first dimension of a shape may be unknown, not {}",
            row.to_string()));
    add(batch_of(row));
  }
  return {};
}

Status ParsedOutputs::dense_lists(std::string_view types,
                                  std::string_view shapes,
                                  std::string_view count, bool has_lengths) {
  TAGFLOW_ASSIGN(const size_t features, length(types, count));
  TAGFLOW_ASSIGN(const auto rows, shapes_of(shapes, features));
  for (const PartialShape& row : rows) {
    if (!row.fully_known())
      return c_.fail(fmt::format("a shape of {} must be known, not {}", shapes,
                                 row.to_string()));
    add(batch_of(concatenate({kUnknown}, row)));
  }
  if (has_lengths) add(features, batch_);
  return {};
}

Status ParsedOutputs::ragged(Ragged kind, std::string_view value_types,
                             std::string_view split_types) {
  TAGFLOW_ASSIGN(const size_t features, length(value_types, {}));
  TAGFLOW_ASSIGN(const size_t splits, length(split_types, {}));
  if (splits != features)
    return c_.fail(fmt::format("{} has {} types, but {} has {}", value_types,
                               features, split_types, splits));
  PartialShape rows;
  if (batch_.has_rank() && batch_.rank() > 0) {
    rows = {add_dims(batch_.dim(0), 1)};
  } else if (batch_.has_rank()) {
    rows = kind == Ragged::kExample ? PartialShape{0} : PartialShape::scalar();
  }
  add(features, {kUnknown});
  add(features, rows);
  if (kind == Ragged::kList) add(features, {kUnknown});
  return {};
}

Status check_key_vectors(ShapeContext& c, int begin, int end) {
  for (int i = begin; i < end; ++i)
    TAGFLOW_RETURN_IF_ERROR(c.with_rank(i, 1).status());
  return {};
}

}  // namespace tagflow::graph
