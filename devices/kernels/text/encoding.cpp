// DecodeRaw, DecodeBase64, EncodeBase64: bytes in strings.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/text/pieces.h"

namespace tagflow::devices {

namespace {

// The bytes of each string as the elements of a row.
class DecodeRawKernel : public BytesKernel {
 public:
  explicit DecodeRawKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 0.2),
        little_endian_(attr_of<bool>(info, "little_endian")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    const DataType dtype = context.node().output_dtypes()[0];
    const size_t size = dtype_size(dtype);
    const auto strings = input.flat<std::string>();
    const size_t bytes = strings.empty() ? 0 : strings[0].size();
    for (const std::string& text : strings)
      if (text.size() != bytes)
        return context.fail("strings of {} and of {} bytes make no tensor",
                            bytes, text.size());
    if (bytes % size != 0)
      return context.fail("{} bytes are not a multiple of the {} of {}", bytes,
                          size, dtype_name(dtype));
    Shape shape = input.shape();
    shape.add_dim(int64_t(bytes / size));
    TAGFLOW_ASSIGN(shape, Shape::make(shape.dims()));
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, shape));
    auto* to = static_cast<char*>(output->mutable_raw());
    // Parts of a complex number are swapped one by one.
    const size_t swapped = is_complex(dtype) ? size / 2 : size;
    for (const std::string& text : strings) {
      for_pieces(context, text, [&](std::string_view piece) {
        const size_t count = piece.size();
        if (count > 0) std::memcpy(to, piece.data(), count);
        if (dtype == DataType::kBool)
          for (size_t i = 0; i < count; ++i) to[i] = to[i] != 0;
        if (!little_endian_ && swapped > 1)
          for (size_t i = 0; i < count; i += swapped)
            std::reverse(to + i, to + i + swapped);
        to += count;
      });
    }
    return {};
  }

 private:
  bool little_endian_;
};

// The alphabet that is safe in addresses and file names.
constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string encode(const KernelContext& context, std::string_view bytes,
                   bool pad) {
  std::string text;
  for_pieces(context, bytes, [&](std::string_view piece) {
    for (size_t i = 0; i < piece.size(); i += 3) {
      const size_t count = std::min<size_t>(3, piece.size() - i);
      uint32_t bits = 0;
      for (size_t j = 0; j < 3; ++j)
        bits = bits << 8 | (j < count ? uint8_t(piece[i + j]) : 0u);
      for (size_t j = 0; j < 4; ++j) {
        if (j <= count) {
          text += kAlphabet[(bits >> (18 - 6 * j)) & 63];
        } else if (pad) {
          text += '=';
        }
      }
    }
  });
  return text;
}

// False for text that is not an encoding.
bool decode(const KernelContext& context, std::string_view text,
            std::string& bytes) {
  const size_t full = text.size();
  while (text.ends_with('=') && full - text.size() < 2) text.remove_suffix(1);
  const bool padded = text.size() != full;
  if (text.size() % 4 == 1 || (padded && full % 4 != 0)) return false;
  uint32_t bits = 0;
  int count = 0;
  const auto is_invalid = [&](char c) {
    const size_t value = kAlphabet.find(c);
    if (value == kAlphabet.npos) return true;
    bits = bits << 6 | uint32_t(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += char(bits >> count);
      bits &= (1u << count) - 1;
    }
    return false;
  };
  return find_byte(context, text, 0, is_invalid) == text.size();
}

// DecodeBase64 and EncodeBase64.
class Base64Kernel : public BytesKernel {
 public:
  explicit Base64Kernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 2),
        encodes_(info.node().op() == "EncodeBase64"),
        pad_(attr_of<bool>(info, "pad")) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, input.shape()));
    auto* to = output->mutable_data<std::string>();
    for (const std::string& text : input.flat<std::string>()) {
      context.check_cancelled();
      if (encodes_) {
        *to = encode(context, text, pad_);
      } else if (!decode(context, text, *to)) {
        return context.fail("\"{}\" is not valid web-safe base64", shown(text));
      }
      ++to;
    }
    return {};
  }

 private:
  bool encodes_, pad_;
};

}  // namespace

void register_text_encoding_kernels(KernelRegistry& registry) {
  registry.add<DecodeRawKernel>("DecodeRaw");
  registry.add<Base64Kernel>("DecodeBase64");
  registry.add<Base64Kernel>("EncodeBase64");
}

}  // namespace tagflow::devices
