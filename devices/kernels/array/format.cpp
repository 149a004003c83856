// DataFormatDimMap, DataFormatVecPermute: convert between layouts of images,
// which are named like "NHWC" and "NCHW".
#include <string>
#include <vector>

#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"

namespace tagflow::devices {

namespace {

// The position in `from` of each letter of `to`. InvalidArgument unless both
// have the same letters, each once.
Result<std::vector<int>> letter_positions(const KernelInfo& info,
                                          const std::string& from,
                                          const std::string& to) {
  std::vector<int> positions;
  bool valid = from.size() == to.size() && (to.size() == 4 || to.size() == 5);
  for (size_t i = 0; valid && i < to.size(); ++i) {
    const size_t at = from.find(to[i]);
    valid = at != from.npos && to.find(to[i], i + 1) == to.npos;
    positions.push_back(int(at));
  }
  if (!valid)
    return invalid_argument(
        "[{}] formats \"{}\" and \"{}\" must be 4 or 5 different letters, the "
        "same ones",
        info.node().op(), from, to);
  return positions;
}

// Calls f<T>() with the T of input 0, int32_t or int64_t.
template <class F>
Status with_index_type(const KernelContext& context, F&& f) {
  if (context.input(0).dtype() == DataType::kInt32) return f(int32_t());
  return f(int64_t());
}

// Maps dimension numbers of the source format to those of the destination.
class DimMapKernel : public BytesKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(auto map, letter_positions(
                                 info, attr_of<std::string>(info, "dst_format"),
                                 attr_of<std::string>(info, "src_format")));
    return std::unique_ptr<Kernel>(new DimMapKernel(info, std::move(map)));
  }

  Status compute(KernelContext& context) const override {
    return with_index_type(context,
                           [&]<class T>(T) { return run<T>(context); });
  }

 private:
  DimMapKernel(const KernelInfo& info, std::vector<int> map)
      : BytesKernel(info, Work::kInputs, 0.5), map_(std::move(map)) {}

  template <class T>
  Status run(KernelContext& context) const {
    const Tensor& input = context.input(0);
    const auto size = int64_t(map_.size());
    TAGFLOW_ASSIGN(Tensor * output,
                   context.forward_or_allocate(0, 0, input.shape()));
    const T* from = input.data<T>();
    T* to = output->mutable_data<T>();
    for (int64_t i = 0; i < input.num_elements(); ++i) {
      context.check_cancelled();
      const int64_t dim = from[i] < 0 ? from[i] + size : int64_t(from[i]);
      if (dim < 0 || dim >= size)
        return context.fail("dimension {} is outside [{}, {})", from[i], -size,
                            size);
      to[i] = T(map_[size_t(dim)]);
    }
    return {};
  }

  std::vector<int> map_;
};

// Permutes a vector with a number per dimension, or a matrix with two.
class VecPermuteKernel : public CheapKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    const auto source = attr_of<std::string>(info, "src_format");
    const auto target = attr_of<std::string>(info, "dst_format");
    TAGFLOW_ASSIGN(auto all, letter_positions(info, source, target));
    return std::unique_ptr<Kernel>(
        new VecPermuteKernel(source, target, std::move(all)));
  }

  Status compute(KernelContext& context) const override {
    return with_index_type(context,
                           [&]<class T>(T) { return run<T>(context); });
  }

 private:
  VecPermuteKernel(const std::string& source, const std::string& target,
                   std::vector<int> all)
      : all_(std::move(all)) {
    auto spatial = [](const std::string& format) {
      std::string letters;
      for (char letter : format)
        if (letter != 'N' && letter != 'C') letters += letter;
      return letters;
    };
    const std::string from = spatial(source);
    for (char letter : spatial(target))
      spatial_.push_back(int(from.find(letter)));
  }

  template <class T>
  Status run(KernelContext& context) const {
    const Tensor& input = context.input(0);
    const int64_t rows = input.rank() > 0 ? input.dim(0) : -1;
    // Vectors without batch and channels have the spatial dimensions only.
    const auto* order = rows == int64_t(all_.size())       ? &all_
                        : rows == int64_t(spatial_.size()) ? &spatial_
                                                           : nullptr;
    if (order == nullptr || input.rank() > 2 ||
        (input.rank() == 2 && input.dim(1) != 2))
      return context.fail("x must be [{0}], [{0},2], [{1}] or [{1},2], is {2}",
                          all_.size(), spatial_.size(), input.describe());
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, input.shape()));
    const int64_t columns = input.rank() == 2 ? 2 : 1;
    const T* from = input.data<T>();
    T* to = output->mutable_data<T>();
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        to[i * columns + j] = from[(*order)[size_t(i)] * columns + j];
    return {};
  }

  std::vector<int> all_;      // source position of each target letter
  std::vector<int> spatial_;  // the same without N and C
};

}  // namespace

void register_array_format_kernels(KernelRegistry& registry) {
  registry.add<DimMapKernel>("DataFormatDimMap");
  registry.add<VecPermuteKernel>("DataFormatVecPermute");
}

}  // namespace tagflow::devices
