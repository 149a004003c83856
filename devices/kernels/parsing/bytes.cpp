// DecodePaddedRaw, DecodeCompressed.
#include <algorithm>
#include <cstring>
#include <string>

#include "devices/files/inflater.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/string_writer.h"

namespace tagflow::devices {

namespace {

// The first bytes of each string, with zeros where it is too short, as the
// elements of a row.
class DecodePaddedRawKernel final : public BytesKernel {
 public:
  explicit DecodePaddedRawKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 0.2),
        little_endian_(attr_of<bool>(info, "little_endian")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    const auto size = int64_t(dtype_size(context.node().output_dtypes()[0]));
    if (!context.input(1).is_scalar())
      return context.fail("fixed_length must be a scalar, not {}",
                          context.input(1).describe());
    const int64_t length = context.input(1).scalar_value<int32_t>();
    if (length <= 0)
      return context.fail("fixed_length must be positive, not {}", length);
    if (length % size != 0)
      return context.fail(
          "fixed_length must be a multiple of the {} bytes of an element, "
          "not {}",
          size, length);
    Shape shape = input.shape();
    shape.add_dim(length / size);
    TAGFLOW_ASSIGN(shape, Shape::make(shape.dims()));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    auto* const to = static_cast<char*>(output->mutable_raw());
    const auto strings = input.flat<std::string>();
    context.for_blocks(int64_t(strings.size()), double(length) * 0.2,
                       [&](int64_t begin, int64_t end) {
                         for (int64_t i = begin; i < end; ++i) {
                           char* const row = to + i * length;
                           const std::string& text = strings[size_t(i)];
                           const size_t taken =
                               std::min(text.size(), size_t(length));
                           if (taken > 0) std::memcpy(row, text.data(), taken);
                           std::memset(row + taken, 0, size_t(length) - taken);
                           if (!little_endian_ && size > 1)
                             for (int64_t at = 0; at < length; at += size)
                               std::reverse(row + at, row + at + size);
                         }
                       });
    return {};
  }

 private:
  const bool little_endian_;
};

class DecodeCompressedKernel final : public BytesKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    const auto name = attr_of<std::string>(info, "compression_type");
    TAGFLOW_ASSIGN(const auto compression, checkpoint::compression_of(name));
    // Only readers know it.
    if (name == "NONE")
      return invalid_argument("compression \"NONE\" is written as \"\"");
    return std::unique_ptr<Kernel>(
        new DecodeCompressedKernel(info, compression));
  }

  Status compute(KernelContext& context) const override {
    if (compression_ == checkpoint::Compression::kNone) {
      context.set_output(0, context.input(0));
      return {};
    }
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, input.shape()));
    const StringWriter writer(*output);
    auto* to = output->mutable_data<std::string>();
    for (const std::string& text : input.flat<std::string>())
      TAGFLOW_RETURN_IF_ERROR(expand(context, text, writer, *to++));
    return {};
  }

 private:
  DecodeCompressedKernel(const KernelInfo& info,
                         checkpoint::Compression compression)
      : BytesKernel(info, Work::kInputs, 20), compression_(compression) {}

  // As TensorFlow does, it gives what there is of bytes that end too early.
  Status expand(const KernelContext& context, std::string_view text,
                const StringWriter& writer, std::string& to) const {
    constexpr size_t kAtOnce = size_t(1) << 16;
    if (text.empty()) return {};
    checkpoint::Inflater inflater(compression_);
    for (;;) {
      context.check_cancelled();
      const size_t before = to.size();
      writer.extend(to, kAtOnce);
      to.resize(before + kAtOnce);
      TAGFLOW_ASSIGN(const size_t count,
                     inflater.inflate(text, std::span(to).subspan(before)));
      to.resize(before + count);
      if (count < kAtOnce) return {};
    }
  }

  const checkpoint::Compression compression_;
};

}  // namespace

void register_parsing_bytes_kernels(KernelRegistry& registry) {
  registry.add<DecodePaddedRawKernel>("DecodePaddedRaw");
  registry.add<DecodeCompressedKernel>("DecodeCompressed");
}

}  // namespace tagflow::devices
