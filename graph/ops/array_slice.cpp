// Slice, StridedSlice, StridedSliceGrad.
#include "graph/ops/array_slice.h"

#include <algorithm>
#include <bit>

#include "graph/ops/array_gather.h"
#include "graph/ops/array_ops.h"

namespace tagflow::graph {

namespace {

// The number of steps of `stride` from begin up to end, exclusive.
int64_t count_steps(int64_t begin, int64_t end, int64_t stride) {
  const int64_t length = end - begin;
  if (length == 0 || (length < 0) != (stride < 0)) return 0;
  return length / stride + (length % stride != 0 ? 1 : 0);
}

// Resolves the dimensions one by one.
class SliceResolver {
 public:
  SliceResolver(const SliceSpec& spec, const PartialShape& input)
      : spec_(spec), input_(input) {}

  Result<SliceGeometry> run() {
    const int entries = int(spec_.strides.size());
    if (std::popcount(uint64_t(spec_.masks.ellipsis)) > 1)
      return invalid_argument("multiple ellipses in the slice");
    for (int i = 0; i < entries; ++i) {
      if (bit(spec_.masks.ellipsis, i)) {
        int after = 0;  // dimensions for later entries
        for (int j = i + 1; j < entries; ++j)
          after += bit(spec_.masks.new_axis, j) ? 0 : 1;
        while (used() < input_.rank() - after) add_whole();
      } else if (bit(spec_.masks.new_axis, i)) {
        result_.output.push_back(1);
      } else {
        TAGFLOW_RETURN_IF_ERROR(add_entry(i));
      }
    }
    while (used() < input_.rank()) add_whole();
    return std::move(result_);
  }

 private:
  static bool bit(int64_t mask, int i) {
    return i < 64 && ((uint64_t(mask) >> i) & 1) != 0;
  }
  // How many dimensions of the input are resolved.
  int used() const { return int(result_.begin.size()); }

  void add(int64_t begin, int64_t stride, int64_t count) {
    result_.begin.push_back(begin);
    result_.stride.push_back(stride);
    result_.count.push_back(count);
  }
  void add_whole() {
    result_.output.push_back(input_.dim(used()));
    add(0, 1, input_.dim(used()));
  }

  Status add_entry(int i) {
    const auto at = size_t(i);
    if (used() >= input_.rank())
      return invalid_argument("the slice has an index too many for {}",
                              input_.to_string());
    const int64_t dim = input_.dim(used());
    const int64_t stride = spec_.strides[at];
    if (stride == 0) return invalid_argument("strides[{}] is zero", i);
    if (bit(spec_.masks.shrink_axis, i)) return add_index(at, dim, stride);
    const bool whole_begin = bit(spec_.masks.begin, i);
    const bool whole_end = bit(spec_.masks.end, i);
    const bool known = dim != PartialShape::kUnknown &&
                       (whole_begin || spec_.begin_known) &&
                       (whole_end || spec_.end_known);
    if (!known) {
      result_.output.push_back(PartialShape::kUnknown);
      add(0, stride, PartialShape::kUnknown);
      return {};
    }
    // The valid positions, including one before or after the dimension.
    const int64_t low = stride > 0 ? 0 : -1;
    const int64_t high = stride > 0 ? dim : dim - 1;
    auto position = [&](int64_t index) {
      return std::clamp(index < 0 ? index + dim : index, low, high);
    };
    const int64_t begin =
        whole_begin ? (stride > 0 ? low : high) : position(spec_.begin[at]);
    const int64_t end =
        whole_end ? (stride > 0 ? high : low) : position(spec_.end[at]);
    const int64_t count = count_steps(begin, end, stride);
    result_.output.push_back(count);
    add(begin, stride, count);
    return {};
  }

  // An entry with one index; begin and end masks are ignored here.
  Status add_index(size_t at, int64_t dim, int64_t stride) {
    if (stride < 0)
      return invalid_argument("strides[{}] of a single index is negative", at);
    if (!spec_.begin_known || dim == PartialShape::kUnknown) {
      add(0, 1, 1);
      return {};
    }
    const int64_t index = spec_.begin[at];
    const int64_t begin = index < 0 ? index + dim : index;
    if (begin < 0 || begin >= dim)
      return invalid_argument("slice index {} of dimension {} is outside {}",
                              index, used(), input_.to_string());
    add(begin, 1, 1);
    return {};
  }

  const SliceSpec& spec_;
  const PartialShape& input_;
  SliceGeometry result_;
};

// A size of -1 means the rest of its dimension.
Status slice_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape begin_shape, c.with_rank(1, 1));
  TAGFLOW_ASSIGN(PartialShape size_shape, c.with_rank(2, 1));
  PartialShape input = c.input(0);
  for (const PartialShape* vector : {&begin_shape, &size_shape}) {
    if (!vector->dim_known(0)) continue;
    if (!input.has_rank() && vector->dim(0) <= kMaxRank)
      input = PartialShape::of_rank(int(vector->dim(0)));
    if (input.has_rank() && vector->dim(0) != input.rank())
      return c.fail(fmt::format("{} indices for the shape {}", vector->dim(0),
                                input.to_string()));
  }
  if (!input.has_rank()) return unknown_shape(c);
  TAGFLOW_ASSIGN(const PartialShape sizes, c.constant_as_shape(2));
  const auto begin = constant_indices(c, 1);
  PartialShape output = PartialShape::of_rank(input.rank());
  for (int i = 0; i < output.rank(); ++i) {
    const int64_t dim = input.dim(i);
    if (sizes.has_rank() && i < sizes.rank() && sizes.dim_known(i)) {
      output.set_dim(i, sizes.dim(i));
    } else if (c.constant(2) != nullptr && begin &&
               dim != PartialShape::kUnknown) {
      const int64_t first = (*begin)[size_t(i)];
      if (first < 0 || first > dim)
        return c.fail(fmt::format("begin[{}] = {} is outside {}", i, first,
                                  input.to_string()));
      output.set_dim(i, dim - first);
    }
  }
  c.set_output(0, std::move(output));
  return {};
}

Result<SliceMasks> slice_masks(const ShapeContext& c) {
  SliceMasks masks;
  TAGFLOW_ASSIGN(masks.begin, c.attr<int64_t>("begin_mask"));
  TAGFLOW_ASSIGN(masks.end, c.attr<int64_t>("end_mask"));
  TAGFLOW_ASSIGN(masks.ellipsis, c.attr<int64_t>("ellipsis_mask"));
  TAGFLOW_ASSIGN(masks.new_axis, c.attr<int64_t>("new_axis_mask"));
  TAGFLOW_ASSIGN(masks.shrink_axis, c.attr<int64_t>("shrink_axis_mask"));
  return masks;
}

Status strided_slice_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape slice, sliced_shape(c, c.input(0)));
  c.set_output(0, std::move(slice));
  return {};
}

Status strided_slice_grad_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape shape, c.constant_as_shape(0));
  c.set_output(0, std::move(shape));
  return {};
}

}  // namespace

Result<PartialShape> sliced_shape(const ShapeContext& c,
                                  const PartialShape& input) {
  for (int i = 1; i <= 3; ++i)
    TAGFLOW_RETURN_IF_ERROR(c.with_rank(i, 1).status());
  SliceSpec spec;
  const auto strides = constant_indices(c, 3);
  if (!input.has_rank() || !strides) return PartialShape();
  spec.strides = *strides;
  TAGFLOW_ASSIGN(spec.masks, slice_masks(c));
  const auto begin = constant_indices(c, 1), end = constant_indices(c, 2);
  for (const auto* values : {&begin, &end})
    if (*values && (*values)->size() != spec.strides.size())
      return c.fail("begin, end and strides differ in length");
  spec.begin_known = begin.has_value();
  spec.end_known = end.has_value();
  if (begin) spec.begin = *begin;
  if (end) spec.end = *end;
  Result<SliceGeometry> geometry = resolve_slice(spec, input);
  if (!geometry.ok()) return c.fail(geometry.status().message());
  const Shape::Dims& output = geometry->output;
  return PartialShape({output.data(), output.size()});
}

Result<SliceGeometry> resolve_slice(const SliceSpec& spec,
                                    const PartialShape& input) {
  // TensorFlow's masks are int32.
  const SliceMasks& masks = spec.masks;
  for (const int64_t mask : {masks.begin, masks.end, masks.ellipsis,
                             masks.new_axis, masks.shrink_axis})
    if (mask != int32_t(mask))
      return invalid_argument("mask {} is not an int32", mask);
  return SliceResolver(spec, input).run();
}

void register_array_slice_ops(OpRegistry& registry) {
  registry.add(OpDefBuilder("Slice")
                   .inputs({"input: T", "begin: Index", "size: Index"})
                   .output("output: T")
                   .attrs({"T: type", "Index: {int32, int64}"})
                   .shape(slice_shape)
                   .work(Work::kPick));
  registry.add(
      OpDefBuilder("StridedSlice")
          .inputs({"input: T", "begin: Index", "end: Index", "strides: Index"})
          .output("output: T")
          .attrs({"T: type", "Index: {int16, int32, int64}",
                  "begin_mask: int = 0", "end_mask: int = 0",
                  "ellipsis_mask: int = 0", "new_axis_mask: int = 0",
                  "shrink_axis_mask: int = 0"})
          .shape(strided_slice_shape)
          .work(Work::kPick));
  registry.add(
      OpDefBuilder("StridedSliceGrad")
          .inputs({"shape: Index", "begin: Index", "end: Index",
                   "strides: Index", "dy: T"})
          .output("output: T")
          .attrs({"T: type", "Index: {int32, int64}", "begin_mask: int = 0",
                  "end_mask: int = 0", "ellipsis_mask: int = 0",
                  "new_axis_mask: int = 0", "shrink_axis_mask: int = 0"})
          .shape(strided_slice_grad_shape)
          .work(Work::kMove));
}

}  // namespace tagflow::graph
