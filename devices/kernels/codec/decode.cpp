// DecodePng, DecodeJpeg, DecodeAndCropJpeg, DecodeBmp, DecodeGif, DecodeWebP,
// DecodeImage, ExtractJpegShape. As in TensorFlow, the file says its format,
// and most of these ops take several.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "devices/kernel_registry.h"
#include "devices/kernels/built_kernel.h"
#include "devices/kernels/codec/inputs.h"
#include "devices/media/bmp.h"
#include "devices/media/gif.h"
#include "devices/media/jpeg.h"
#include "devices/media/png.h"
#include "devices/media/webp.h"

namespace tagflow::devices {
namespace {

using media::PictureShape;

enum class PictureFormat : uint8_t { kPng, kJpeg, kGif, kBmp, kWebp, kNone };

PictureFormat format_of(std::string_view bytes) {
  if (media::is_png(bytes)) return PictureFormat::kPng;
  if (media::is_jpeg(bytes)) return PictureFormat::kJpeg;
  if (media::is_gif(bytes)) return PictureFormat::kGif;
  if (media::is_bmp(bytes)) return PictureFormat::kBmp;
  if (media::is_webp(bytes)) return PictureFormat::kWebp;
  return PictureFormat::kNone;
}

std::string_view format_name(PictureFormat format) {
  static constexpr std::string_view kNames[] = {"PNG", "JPEG", "GIF",
                                                "BMP", "WebP", "unknown"};
  return kNames[size_t(format)];
}

// What the dimensions of an op's output are.
enum class FrameUse : uint8_t {
  kOnly,      // [height, width, channels], of one frame
  kFirst,     // the same, of the first one
  kAlways,    // [frames, height, width, channels]
  kIfMoving,  // the latter for formats that can have several frames
};

// `count` numbers in 8 bits, or 16 of a PNG, become the output's type.
template <class From, class To, class F>
void convert_pixels(const Tensor& from, void* to, const F& convert) {
  To* out = static_cast<To*>(to);
  for (const From pixel : from.flat<From>()) *out++ = convert(pixel);
}

class DecodePictureKernel final : public BytesKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    auto kernel = std::make_unique<DecodePictureKernel>(info);
    TAGFLOW_RETURN_IF_ERROR(kernel->build(info));
    return std::unique_ptr<Kernel>(std::move(kernel));
  }
  explicit DecodePictureKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, kDecodingCost),
        op_(info.node().op()),
        dtype_(info.output_dtype(0)) {}

  Status build(const KernelInfo& info) {
    const auto& attrs = info.node().attrs();
    if (attrs.contains("channels"))
      channels_ = int(attr_of<int64_t>(info, "channels"));
    if (channels_ != 0 && channels_ != 1 && channels_ != 3 && channels_ != 4)
      return error(Code::kInvalidArgument,
                   "[{}] `channels` must be 0, 1, 3 or 4, not {}", op_,
                   channels_);
    frames_ = op_ == "DecodeGif"                         ? FrameUse::kAlways
              : op_ == "DecodeWebP"                      ? FrameUse::kIfMoving
              : op_ != "DecodeImage"                     ? FrameUse::kOnly
              : attr_of<bool>(info, "expand_animations") ? FrameUse::kIfMoving
                                                         : FrameUse::kFirst;
    if (!attrs.contains("ratio")) return {};
    const auto ratio = attr_of<int64_t>(info, "ratio");
    if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8)
      return error(Code::kInvalidArgument,
                   "[{}] ratio must be 1, 2, 4 or 8, not {}", op_, ratio);
    jpeg_.ratio = int(ratio);
    jpeg_.smooths_colors = attr_of<bool>(info, "fancy_upscaling");
    jpeg_.recovers_truncated = attr_of<bool>(info, "try_recover_truncated");
    jpeg_.acceptable_fraction = attr_of<float>(info, "acceptable_fraction");
    const auto method = attr_of<std::string>(info, "dct_method");
    if (!method.empty() && method != "INTEGER_FAST" &&
        method != "INTEGER_ACCURATE")
      return error(Code::kInvalidArgument,
                   "[{}] dct_method must be \"\", \"INTEGER_FAST\" or "
                   "\"INTEGER_ACCURATE\", not {:?}",
                   op_, method);
    jpeg_.is_fast = method != "INTEGER_ACCURATE";
    return {};
  }

  Status compute(KernelContext& context) const override {
    return prefixed(context, decode(context));
  }

 private:
  Status decode(KernelContext& context) const {
    const Tensor& contents = context.input(0);
    if (!contents.is_scalar())
      return error(Code::kInvalidArgument,
                   "`contents` must be a scalar, not {}", contents.describe());
    const std::string& bytes = contents.scalar_value<std::string>();
    if (bytes.empty())
      return error(Code::kInvalidArgument, "`contents` is empty");
    const PictureFormat format = format_of(bytes);
    TAGFLOW_RETURN_IF_ERROR(check_format(format));
    switch (format) {
      case PictureFormat::kPng:
        return decode_png(context, bytes);
      case PictureFormat::kJpeg:
        return decode_jpeg(context, bytes);
      case PictureFormat::kGif:
        return decode_gif(context, bytes);
      case PictureFormat::kBmp:
        return into_output(context, format, [&](const auto& memory) {
          return media::decode_bmp(bytes, channels_, memory,
                                   interruption(context));
        });
      case PictureFormat::kWebp:
        return decode_webp(context, bytes);
      case PictureFormat::kNone:
        break;
    }
    return error(Code::kInvalidArgument,
                 "{} bytes are none of PNG, JPEG, GIF, BMP and WebP",
                 bytes.size());
  }

  Status check_format(PictureFormat format) const {
    const bool is_bmp = format == PictureFormat::kBmp;
    if (format == PictureFormat::kNone || op_ == "DecodeImage") return {};
    if (is_bmp != (op_ == "DecodeBmp") ||
        (op_ == "DecodeAndCropJpeg" && format != PictureFormat::kJpeg))
      return error(Code::kInvalidArgument,
                   "this op does not decode {}: DecodeImage does",
                   format_name(format));
    return {};
  }

  Status decode_png(KernelContext& context, const std::string& bytes) const {
    // Of 16 bits, for floats, too: no bit of the file is lost.
    const bool is_wide = dtype_ != DataType::kUInt8;
    const media::PngOptions options{
        frames_ == FrameUse::kAlways ? 3 : channels_, is_wide ? 16 : 8};
    return into_output(context, PictureFormat::kPng, [&](const auto& memory) {
      return media::decode_png(bytes, options, memory, interruption(context));
    });
  }

  Status decode_jpeg(KernelContext& context, const std::string& bytes) const {
    if (channels_ == 4)
      return error(Code::kInvalidArgument, "a JPEG has no 4 channels");
    media::JpegOptions options = jpeg_;
    options.channels = frames_ == FrameUse::kAlways ? 3 : channels_;
    if (op_ == "DecodeAndCropJpeg") {
      const Tensor& window = context.input(1);
      if (window.rank() != 1 || window.dim(0) != 4)
        return error(Code::kInvalidArgument,
                     "crop_window must have 4 numbers, not be {}",
                     window.describe());
      const auto numbers = window.flat<int32_t>();
      options.crop = {numbers[0], numbers[1], numbers[2], numbers[3]};
    }
    return into_output(context, PictureFormat::kJpeg, [&](const auto& memory) {
      return media::decode_jpeg(bytes, options, memory, interruption(context));
    });
  }

  Status decode_gif(KernelContext& context, const std::string& bytes) const {
    if (channels_ != 0 && channels_ != 3)
      return error(Code::kInvalidArgument,
                   "a GIF is decoded to 3 channels, not {}", channels_);
    return into_output(context, PictureFormat::kGif, [&](const auto& memory) {
      return media::decode_gif(bytes, frames_ == FrameUse::kFirst, memory,
                               interruption(context));
    });
  }

  Status decode_webp(KernelContext& context, const std::string& bytes) const {
    if (dtype_ != DataType::kUInt8)
      return error(Code::kInvalidArgument, "a WebP is decoded to uint8 only");
    return into_output(context, PictureFormat::kWebp, [&](const auto& memory) {
      return media::decode_webp(bytes, channels_, frames_ == FrameUse::kFirst,
                                memory, interruption(context));
    });
  }

  // Whether the output has a dimension of frames.
  bool has_frames(PictureFormat format) const {
    return frames_ == FrameUse::kAlways ||
           (frames_ == FrameUse::kIfMoving &&
            (format == PictureFormat::kGif || format == PictureFormat::kWebp));
  }

  Result<Shape> output_shape(PictureFormat format,
                             const PictureShape& shape) const {
    if (has_frames(format))
      return Shape{shape.frames, shape.height, shape.width, shape.channels};
    if (shape.frames == 1)
      return Shape{shape.height, shape.width, shape.channels};
    return error(Code::kInvalidArgument,
                 "a {} of {} frames is an animation: DecodeGif and DecodeImage "
                 "decode it",
                 format_name(format), shape.frames);
  }

  // Calls decode(memory), of the output or, if it has another type, of a tensor
  // that is then converted.
  template <class F>
  Status into_output(KernelContext& context, PictureFormat format,
                     const F& decode) const {
    const bool is_png = format == PictureFormat::kPng;
    const DataType stored = is_png && dtype_ != DataType::kUInt8
                                ? DataType::kUInt16
                                : DataType::kUInt8;
    Tensor decoded;
    Shape shape;
    const auto memory = [&](const PictureShape& of) -> Result<void*> {
      TAGFLOW_ASSIGN(shape, output_shape(format, of));
      if (stored == dtype_) {
        TAGFLOW_ASSIGN(Tensor* const output, context.allocate_output(0, shape));
        return output->mutable_raw();
      }
      TAGFLOW_ASSIGN(decoded, context.allocate_temp(stored, shape));
      return decoded.mutable_raw();
    };
    TAGFLOW_RETURN_IF_ERROR(decode(media::PixelMemory(memory)));
    if (stored == dtype_) return {};
    TAGFLOW_ASSIGN(Tensor* const output, context.allocate_output(0, shape));
    convert(decoded, *output);
    return {};
  }

  static void convert(const Tensor& decoded, Tensor& output) {
    // As TensorFlow does it: what has 8 bits is multiplied by 256.
    constexpr int kScale16 = 256;
    constexpr float kScale8 = 1.0F / 255, kScaleWide = 1.0F / 65535;
    void* const to = output.mutable_raw();
    if (output.dtype() == DataType::kUInt16) {
      convert_pixels<uint8_t, uint16_t>(
          decoded, to, [](uint8_t p) { return uint16_t(p * kScale16); });
    } else if (decoded.dtype() == DataType::kUInt16) {
      convert_pixels<uint16_t, float>(
          decoded, to, [](uint16_t p) { return float(p) * kScaleWide; });
    } else {
      convert_pixels<uint8_t, float>(
          decoded, to, [](uint8_t p) { return float(p) * kScale8; });
    }
  }

  const std::string op_;
  const DataType dtype_;
  int channels_ = 0;
  FrameUse frames_ = FrameUse::kOnly;
  media::JpegOptions jpeg_;
};

class ExtractJpegShapeKernel final : public BytesKernel {
 public:
  explicit ExtractJpegShapeKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kOutputs) {}

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(Tensor* const output, context.allocate_output(0, Shape{3}));
    return prefixed(context, read(context, *output));
  }

 private:
  static Status read(KernelContext& context, Tensor& output) {
    const Tensor& contents = context.input(0);
    if (!contents.is_scalar())
      return error(Code::kInvalidArgument,
                   "`contents` must be a scalar, not {}", contents.describe());
    TAGFLOW_ASSIGN(const PictureShape shape,
                   media::jpeg_shape(contents.scalar_value<std::string>()));
    TAGFLOW_RETURN_IF_ERROR(store_index(context, output, 0, shape.height));
    TAGFLOW_RETURN_IF_ERROR(store_index(context, output, 1, shape.width));
    return store_index(context, output, 2, shape.channels);
  }
};

}  // namespace

void register_picture_decoder_kernels(KernelRegistry& registry) {
  for (const char* op : {"DecodePng", "DecodeJpeg", "DecodeAndCropJpeg",
                         "DecodeBmp", "DecodeGif", "DecodeWebP", "DecodeImage"})
    registry.add<DecodePictureKernel>(op);
  registry.add<ExtractJpegShapeKernel>("ExtractJpegShape");
}

}  // namespace tagflow::devices
