// StringNGrams: neighbouring words of each row, joined.
#include <algorithm>
#include <span>

#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/string_writer.h"

namespace tagflow::devices {

namespace {

class NGramsKernel final : public BytesKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    std::unique_ptr<NGramsKernel> kernel(new NGramsKernel(info));
    for (const int64_t width : kernel->widths_)
      if (width < 1 || width > kMostWidth)
        return invalid_argument("[StringNGrams] width {} is outside [1, {}]",
                                width, kMostWidth);
    if (kernel->pad_width_ > kMostWidth)
      return invalid_argument("[StringNGrams] pad_width {} is over {}",
                              kernel->pad_width_, kMostWidth);
    // With widths, padding of any length makes a row long enough.
    if (kernel->widths_.empty() && kernel->keeps_short_ &&
        kernel->pad_width_ < 0)
      return invalid_argument(
          "[StringNGrams] without ngram_widths, preserve_short_sequences needs "
          "a pad_width of at least 0, not {}",
          kernel->pad_width_);
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& data = context.input(0);
    const Tensor& splits = context.input(1);
    if (data.rank() != 1 || splits.rank() != 1)
      return context.fail("data and data_splits must be vectors, got {} and {}",
                          data.describe(), splits.describe());
    TAGFLOW_RETURN_IF_ERROR(check_splits(context, data, splits));
    TAGFLOW_ASSIGN(Tensor * ends, context.allocate_output(1, splits.shape()));
    const int64_t rows = std::max<int64_t>(0, splits.dim(0) - 1);
    int64_t count = 0;
    for (int64_t row = 0; row < splits.dim(0); ++row) {
      context.check_cancelled();
      if (row > 0) {
        const int64_t words = index_at(splits, row) - index_at(splits, row - 1);
        int64_t more = 0;
        for (const int64_t width : widths_) more += grams_of(words, width);
        if (more == 0 && keeps_short_ && words > 0) more = 1;
        if (more > kMostGrams - count)
          return error(Code::kResourceExhausted,
                       "[StringNGrams] there would be more than {} n-grams",
                       kMostGrams);
        count += more;
      }
      TAGFLOW_RETURN_IF_ERROR(store_index(context, *ends, row, count));
    }
    TAGFLOW_ASSIGN(Tensor * grams, context.allocate_output(0, {count}));
    auto* to = grams->mutable_data<std::string>();
    const StringWriter writer(*grams);
    int64_t bytes = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const std::string* words =
          data.data<std::string>() + index_at(splits, row);
      const int64_t length = index_at(splits, row + 1) - index_at(splits, row);
      const std::string* const first = to;
      const auto add = [&](int64_t width, int64_t number) -> Status {
        for (int64_t i = 0; i < number; ++i) {
          context.check_cancelled();
          const Parts parts = parts_of(words, i, width, number);
          if (bytes_of(parts) > kMost - bytes)
            return error(Code::kResourceExhausted,
                         "[StringNGrams] the n-grams have more than {} bytes",
                         kMost);
          bytes += bytes_of(parts);
          writer.reserve(*to, size_t(bytes_of(parts)));
          add_gram(parts, *to++);
        }
        return {};
      };
      for (const int64_t width : widths_)
        TAGFLOW_RETURN_IF_ERROR(add(width, grams_of(length, width)));
      if (to == first && keeps_short_ && length > 0)
        TAGFLOW_RETURN_IF_ERROR(add(length + 2 * pad_width_, 1));
    }
    return {};
  }

 private:
  // Limits for the bytes of all n-grams, and for their number: an output of
  // empty strings is allocated first.
  static constexpr int64_t kMost = (int64_t{1} << 31) - 1;
  static constexpr int64_t kMostGrams = kMost / int64_t(sizeof(std::string));
  static constexpr int64_t kMostWidth = int64_t{1} << 12;

  // A row may be short, and its n-grams many, because of the padding.
  double work_bytes(const KernelContext& context) const override {
    const double words = double(context.input(0).num_elements());
    const double rows = double(context.input(1).num_elements());
    double parts = words + rows;
    for (const int64_t width : widths_)
      parts += double(width) * (words + rows * double(pads_of(width)));
    return parts * double(sizeof(std::string));
  }

  explicit NGramsKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 20),
        separator_(attr_of<std::string>(info, "separator")),
        left_(attr_of<std::string>(info, "left_pad")),
        right_(attr_of<std::string>(info, "right_pad")),
        widths_(attr_of<std::vector<int64_t>>(info, "ngram_widths")),
        pad_width_(attr_of<int64_t>(info, "pad_width")),
        keeps_short_(attr_of<bool>(info, "preserve_short_sequences")) {}

  static Status check_splits(const KernelContext& context, const Tensor& data,
                             const Tensor& splits) {
    const int64_t count = splits.dim(0);
    if (count == 0 && data.dim(0) > 0)
      return context.fail("there are no data_splits for {}", data.describe());
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = index_at(splits, i);
      const int64_t least = i == 0 ? 0 : index_at(splits, i - 1);
      if (at < least || at > data.dim(0) || (i == 0 && at != 0) ||
          (i + 1 == count && at != data.dim(0)))
        return context.fail(
            "data_splits must ascend from 0 to {}, the number of words, got {}",
            data.dim(0), splits.to_string());
    }
    return {};
  }

  // The number of padding words before and after those of a row.
  int64_t pads_of(int64_t width) const {
    return pad_width_ < 0 ? width - 1 : std::min(pad_width_, width - 1);
  }
  int64_t grams_of(int64_t words, int64_t width) const {
    const int64_t count = words + 2 * pads_of(width) - width + 1;
    return std::clamp<int64_t>(count, 0, kMost);
  }

  // The parts of an n-gram.
  struct Parts {
    int64_t left, right;  // words of padding
    std::span<const std::string> words;
  };
  // The parts of n-gram i of a row.
  Parts parts_of(const std::string* words, int64_t i, int64_t width,
                 int64_t number) const {
    const int64_t pads = pads_of(width);
    const int64_t left = std::max<int64_t>(0, pads - i);
    const int64_t right = std::max<int64_t>(0, pads - (number - i - 1));
    return {
        left,
        right,
        {words + std::max<int64_t>(0, i - pads), size_t(width - left - right)}};
  }
  int64_t bytes_of(const Parts& parts) const {
    int64_t bytes = parts.left * int64_t(left_.size() + separator_.size()) +
                    parts.right * int64_t(right_.size() + separator_.size());
    for (const std::string& word : parts.words)
      bytes += int64_t(word.size() + separator_.size());
    return bytes;
  }
  void add_gram(const Parts& parts, std::string& text) const {
    const auto add = [&](const std::string& what) {
      text += what;
      text += separator_;
    };
    for (int64_t k = 0; k < parts.left; ++k) add(left_);
    for (const std::string& word : parts.words) add(word);
    for (int64_t k = 0; k < parts.right; ++k) add(right_);
    text.resize(text.size() - std::min(text.size(), separator_.size()));
  }

  const std::string separator_, left_, right_;
  const std::vector<int64_t> widths_;
  const int64_t pad_width_;
  const bool keeps_short_;
};

}  // namespace

void register_text_ngram_kernels(KernelRegistry& registry) {
  registry.add<NGramsKernel>("StringNGrams");
}

}  // namespace tagflow::devices
