#include "devices/files/tensor_slice.h"

#include <algorithm>
#include <charconv>

namespace tagflow::checkpoint {
namespace {

template <class... Args>
Status slice_error(fmt::format_string<Args...> format, Args&&... args) {
  return error(Code::kInvalidArgument, format, std::forward<Args>(args)...);
}

// Returns the text before the next `separator`, and removes both.
std::string_view take_until(std::string_view& text, char separator) {
  const size_t at = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

std::optional<int64_t> number_in(std::string_view text) {
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || stop != end) return std::nullopt;
  return value;
}

int64_t end_of(const Extent& extent) { return extent.start + extent.length; }

// The number of pairs of slices that overlap in that dimension.
size_t pairs_alike(std::span<const TensorSlice> slices, size_t dim) {
  std::vector<int64_t> starts, ends;
  for (const TensorSlice& slice : slices) {
    const Extent& extent = slice.extents()[dim];
    if (extent.length == 0) continue;
    starts.push_back(extent.start);
    ends.push_back(end_of(extent));
  }
  std::ranges::sort(starts);
  std::ranges::sort(ends);
  // For each slice that begins, count those that have begun before and not
  // ended.
  size_t pairs = 0, ended = 0;
  for (size_t begun = 0; begun < starts.size(); ++begun) {
    while (ends[ended] <= starts[begun]) ++ended;
    pairs += begun - ended;
  }
  return pairs;
}

// The dimension that distinguishes most slices.
size_t telling_dimension(std::span<const TensorSlice> slices) {
  size_t best = 0, fewest = SIZE_MAX;
  for (size_t d = 0; d < size_t(slices[0].rank()); ++d) {
    const size_t pairs = pairs_alike(slices, d);
    if (pairs >= fewest) continue;
    fewest = pairs;
    best = d;
  }
  return best;
}

// Whether two slices have an element in common; adds the number of dimensions
// compared to `looks`.
bool have_common(const TensorSlice& a, const TensorSlice& b, size_t& looks) {
  for (size_t d = 0; d < a.extents().size(); ++d) {
    ++looks;
    const Extent& x = a.extents()[d];
    const Extent& y = b.extents()[d];
    if (std::max(x.start, y.start) >= std::min(end_of(x), end_of(y)))
      return false;
  }
  return true;
}

}  // namespace

Result<TensorSlice> TensorSlice::parse(std::string_view text) {
  std::vector<Extent> extents;
  std::string_view rest = text;
  for (size_t parts = size_t(std::count(text.begin(), text.end(), ':')) +
                      (text.empty() ? 0 : 1);
       parts > 0; --parts) {
    std::string_view part = take_until(rest, ':');
    if (part == "-") {
      extents.emplace_back();
      continue;
    }
    const auto start = number_in(take_until(part, ','));
    const auto length = number_in(part);
    if (!start || !length || *start < 0 || *length <= 0)
      return slice_error(
          "\"{}\" is not a slice: each dimension is \"-\" or \"start,length\", "
          "with start >= 0 and length > 0",
          text);
    extents.push_back({*start, *length});
  }
  return TensorSlice(std::move(extents));
}

std::string TensorSlice::to_string() const {
  std::string text;
  for (const Extent& extent : extents_) {
    if (!text.empty()) text += ':';
    text += extent.is_all() ? "-"
                            : fmt::format("{},{}", extent.start, extent.length);
  }
  return text;
}

Result<Shape> TensorSlice::shape_in(const Shape& whole) const {
  if (rank() != whole.rank())
    return slice_error("slice {} has {} dimensions, but the tensor is {}",
                       to_string(), rank(), whole.to_string());
  Shape shape = whole;
  for (int d = 0; d < rank(); ++d) {
    const Extent& extent = extents_[size_t(d)];
    if (extent.is_all()) continue;
    if (extent.start < 0 || extent.length < 0 || extent.start > whole.dim(d) ||
        extent.length > whole.dim(d) - extent.start)
      return slice_error("slice {} is not within a tensor of shape {}",
                         to_string(), whole.to_string());
    shape.set_dim(d, extent.length);
  }
  return shape;
}

TensorSlice TensorSlice::resolved(const Shape& whole) const {
  std::vector<Extent> extents = extents_;
  for (int d = 0; d < rank(); ++d)
    if (extents[size_t(d)].is_all()) extents[size_t(d)] = {0, whole.dim(d)};
  return TensorSlice(std::move(extents));
}

std::optional<TensorSlice> TensorSlice::intersection(
    const TensorSlice& other) const {
  std::vector<Extent> extents;
  for (size_t d = 0; d < extents_.size(); ++d) {
    const Extent& a = extents_[d];
    const Extent& b = other.extents_[d];
    const int64_t begin = std::max(a.start, b.start);
    const int64_t end = std::min(a.start + a.length, b.start + b.length);
    if (begin >= end) return std::nullopt;
    extents.push_back({begin, end - begin});
  }
  return TensorSlice(std::move(extents));
}

Status check_disjoint(std::span<const TensorSlice> slices) {
  if (slices.size() < 2) return {};
  constexpr size_t kMostLooks = size_t{1} << 28;
  const bool is_scalar = slices[0].rank() == 0;
  const size_t dim = is_scalar ? 0 : telling_dimension(slices);
  std::vector<const TensorSlice*> sorted;
  for (const TensorSlice& slice : slices) sorted.push_back(&slice);
  if (!is_scalar)
    std::ranges::stable_sort(sorted, {}, [&](const TensorSlice* slice) {
      return slice->extents()[dim].start;
    });
  size_t looks = 0;
  for (size_t i = 0; i < sorted.size(); ++i)
    for (size_t k = i + 1; k < sorted.size(); ++k) {
      if (!is_scalar &&
          sorted[k]->extents()[dim].start >= end_of(sorted[i]->extents()[dim]))
        break;
      if (have_common(*sorted[i], *sorted[k], looks))
        return slice_error("slices {} and {} overlap", sorted[i]->to_string(),
                           sorted[k]->to_string());
      if (looks > kMostLooks)
        return error(Code::kResourceExhausted,
                     "{} slices are alike in too many dimensions",
                     slices.size());
    }
  return {};
}

TensorSlice whole_slice(const Shape& shape) {
  return TensorSlice(std::vector<Extent>(size_t(shape.rank()))).resolved(shape);
}

Result<ShapeAndSlice> parse_shape_and_slice(std::string_view text) {
  ShapeAndSlice result;
  std::vector<int64_t> dims;
  std::string_view rest = text;
  const auto spaces = std::count(text.begin(), text.end(), ' ');
  for (auto i = spaces; i > 0; --i) {
    const auto dim = number_in(take_until(rest, ' '));
    if (!dim || *dim < 0)
      return slice_error(
          "\"{}\" is not a shape and slice, such as \"4 6 0,2:-\": a dimension "
          "is not a number >= 0",
          text);
    dims.push_back(*dim);
  }
  TAGFLOW_ASSIGN(result.shape, Shape::make(dims));
  TAGFLOW_ASSIGN(result.slice, TensorSlice::parse(rest));
  TAGFLOW_ASSIGN(result.slice_shape, result.slice.shape_in(result.shape));
  return result;
}

SliceCopy::SliceCopy(const TensorSlice& part, const TensorSlice& from,
                     const TensorSlice& to) {
  if (std::ranges::any_of(part.extents(),
                          [](const Extent& p) { return p.length == 0; }))
    return;  // regardless of the other dimensions
  // From the innermost dimension outwards: a dimension joins the run while the
  // dimensions inside it are complete on both sides.
  int64_t from_stride = 1, to_stride = 1;
  bool is_inner = true;
  first_.count = 1;
  for (int d = part.rank(); d-- > 0;) {
    const Extent& p = part.extents()[size_t(d)];
    const Extent& f = from.extents()[size_t(d)];
    const Extent& t = to.extents()[size_t(d)];
    first_.from += (p.start - f.start) * from_stride;
    first_.to += (p.start - t.start) * to_stride;
    if (is_inner) {
      first_.count *= p.length;
      is_inner = p.length == f.length && p.length == t.length;
    } else if (p.length != 1) {
      outer_.push_back({p.length, from_stride, to_stride});
    }
    from_stride *= f.length;
    to_stride *= t.length;
  }
  std::reverse(outer_.begin(), outer_.end());
}

std::optional<SliceRun> SliceCopy::single_run() const {
  return outer_.empty() ? std::optional(first_) : std::nullopt;
}

void SliceCopy::for_each_run(
    const std::function<void(const SliceRun&)>& visit) const {
  if (first_.count == 0) return;
  SliceRun run = first_;
  std::vector<int64_t> index(outer_.size(), 0);
  while (true) {
    visit(run);
    // Counts up like an odometer, the last dimension first.
    size_t d = outer_.size();
    for (; d > 0; --d) {
      const Dim& dim = outer_[d - 1];
      run.from += dim.from_stride;
      run.to += dim.to_stride;
      if (++index[d - 1] < dim.count) break;
      run.from -= dim.from_stride * dim.count;
      run.to -= dim.to_stride * dim.count;
      index[d - 1] = 0;
    }
    if (d == 0) return;
  }
}

}  // namespace tagflow::checkpoint
