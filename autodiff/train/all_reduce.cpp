#include "autodiff/train/all_reduce.h"

#include <map>
#include <utility>

#include "autodiff/sum.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/scope_access.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;
using graph::Outputs;
using graph::Scope;

namespace {

// `count` elements of a vector.
Output elements(const Scope& s, const Output& flat, int64_t begin,
                int64_t count) {
  return ops::slice(s, flat, Tensor::vector<int64_t>({begin}),
                    Tensor::vector<int64_t>({count}));
}

Output shaped(const Scope& s, const Output& flat, const Shape& shape) {
  const Tensor dims = Tensor::of<int64_t>({shape.rank()}, shape.dims());
  return ops::reshape(s, flat, dims);
}

class AllReduce {
 public:
  AllReduce(Scope in, const std::vector<std::string>& devices,
            GradientLists lists)
      : in_(std::move(in)), devices_(devices), lists_(std::move(lists)) {}

  Status check() const {
    if (lists_.size() != devices_.size())
      return invalid_argument("[all_reduce] there are {} devices and {} lists",
                              devices_.size(), lists_.size());
    for (const auto& list : lists_) {
      if (list.size() != lists_[0].size())
        return invalid_argument(
            "[all_reduce] device 0 has {} gradients, and another one {}",
            lists_[0].size(), list.size());
      for (size_t i = 0; i < list.size(); ++i)
        TAGFLOW_RETURN_IF_ERROR(check(list[i], lists_[0][i]));
    }
    return {};
  }

  GradientLists run(const AllReduceOptions& options) {
    if (count() < 2) return std::move(lists_);
    std::map<DataType, std::vector<size_t>> small;
    for (size_t i = 0; i < lists_[0].size(); ++i) {
      const Gradient& gradient = lists_[0][i].gradient;
      if (!gradient.valid()) continue;
      const DataType dtype = gradient.values.dtype();
      const int64_t bytes =
          shape(i).num_elements() * int64_t(dtype_size(dtype));
      if (gradient.is_sparse()) {
        gather_rows(i);
      } else if (bytes >= options.ring_bytes) {
        go_around(i);
      } else {
        small[dtype].push_back(i);
      }
    }
    for (const auto& [unused, packed] : small) sum_at_first(packed);
    return std::move(lists_);
  }

 private:
  size_t count() const { return devices_.size(); }
  Scope at(size_t device) const { return in_.with_device(devices_[device]); }
  Gradient& gradient(size_t device, size_t i) {
    return lists_[device][i].gradient;
  }
  static const Shape& shape(const VariableGradient& one) {
    return one.variable.parts()[one.part].shape;
  }
  const Shape& shape(size_t i) const { return shape(lists_[0][i]); }
  Output flat(size_t device, size_t i) {
    return ops::reshape(at(device), gradient(device, i).values, {-1});
  }

  static Status check(const VariableGradient& one,
                      const VariableGradient& first) {
    const bool is_alike =
        one.part < one.variable.parts().size() &&
        first.part < first.variable.parts().size() &&
        shape(one) == shape(first) &&
        one.gradient.valid() == first.gradient.valid() &&
        one.gradient.is_sparse() == first.gradient.is_sparse() &&
        one.gradient.values.dtype() == first.gradient.values.dtype();
    if (is_alike) return {};
    return invalid_argument(
        "[all_reduce] the gradients by \"{}\" and \"{}\" are not of one kind "
        "and shape",
        first.variable.name(), one.variable.name());
  }

  void go_around(size_t i) {
    const size_t n = count();
    const int64_t size = shape(i).num_elements();
    const auto begin = [&](size_t part) {
      return size * int64_t(part) / int64_t(n);
    };
    Outputs flats;
    for (size_t k = 0; k < n; ++k) flats.push_back(flat(k, i));
    std::vector<std::vector<Output>> means(n, std::vector<Output>(n));
    for (size_t part = 0; part < n; ++part) {
      const auto own = [&](size_t k) {
        return elements(at(k), flats[k], begin(part),
                        begin(part + 1) - begin(part));
      };
      Output sum = own(part);
      size_t k = part;
      for (size_t hop = 1; hop < n; ++hop) {
        k = (k + 1) % n;
        sum = ops::add(at(k), sum, own(k));
      }
      Output mean = ops::real_div(at(k), sum, int64_t(n));
      means[k][part] = mean;
      for (size_t hop = 1; hop < n; ++hop) {
        k = (k + 1) % n;
        means[k][part] = mean = ops::identity(at(k), mean);
      }
    }
    for (size_t k = 0; k < n; ++k)
      gradient(k, i) = {shaped(at(k), joined(at(k), means[k]), shape(i))};
  }

  void sum_at_first(const std::vector<size_t>& list) {
    std::vector<Output> packed;
    for (size_t k = 0; k < count(); ++k) {
      std::vector<Output> flats;
      for (const size_t i : list) flats.push_back(flat(k, i));
      packed.push_back(joined(at(k), std::move(flats)));
    }
    const Output mean = ops::real_div(at(0), sum_of(at(0), std::move(packed)),
                                      int64_t(count()));
    for (size_t k = 0; k < count(); ++k) {
      const Output here = ops::identity(at(k), mean);
      int64_t begin = 0;
      for (const size_t i : list) {
        const int64_t size = shape(i).num_elements();
        gradient(k, i) = {
            shaped(at(k), elements(at(k), here, begin, size), shape(i))};
        begin += size;
      }
    }
  }

  void gather_rows(size_t i) {
    std::vector<Output> values, indices;
    for (size_t k = 0; k < count(); ++k) {
      values.push_back(
          ops::real_div(at(k), gradient(k, i).values, int64_t(count())));
      indices.push_back(gradient(k, i).indices);
    }
    for (size_t k = 0; k < count(); ++k)
      gradient(k, i) = {joined(at(k), values), joined(at(k), indices)};
  }

  const Scope in_;
  const std::vector<std::string>& devices_;
  GradientLists lists_;
};

}  // namespace

GradientLists all_reduce_mean(const Scope& s,
                              const std::vector<std::string>& devices,
                              GradientLists lists,
                              const AllReduceOptions& options) {
  const Scope in = graph::ScopeAccess::construct_scope(s, "all_reduce");
  AllReduce reduce(in, devices, std::move(lists));
  if (Status status = reduce.check(); in.ok() && !status.ok())
    in.fail(std::move(status));
  if (!in.ok()) return GradientLists(devices.size());
  return reduce.run(options);
}

}  // namespace tagflow::autodiff
