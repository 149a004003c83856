// EncodePng, EncodeJpeg, EncodeJpegVariableQuality.
#include <memory>
#include <string>
#include <utility>

#include "devices/kernel_registry.h"
#include "devices/kernels/codec/inputs.h"
#include "devices/media/jpeg.h"
#include "devices/media/png.h"
#include "devices/string_writer.h"

namespace tagflow::devices {
namespace {

// A file for each picture of a batch of any rank.
class EncodePngKernel final : public BytesKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    const auto compression = attr_of<int64_t>(info, "compression");
    if (compression < -1 || compression > 9)
      return error(Code::kInvalidArgument,
                   "[EncodePng] compression must be from -1 to 9, not {}",
                   compression);
    return std::unique_ptr<Kernel>(
        std::make_unique<EncodePngKernel>(info, int(compression)));
  }
  EncodePngKernel(const KernelInfo& info, int compression)
      : BytesKernel(info, Work::kInputs, kPictureCost),
        compression_(compression) {}

  Status compute(KernelContext& context) const override {
    const Tensor& pictures = context.input(0);
    const int rank = pictures.rank();
    if (rank < 3)
      return context.fail("a picture has at least 3 dimensions, not {}",
                          pictures.describe());
    const media::PictureShape shape{
        pictures.dim(rank - 3), pictures.dim(rank - 2), pictures.dim(rank - 1)};
    Shape batch;
    for (int i = 0; i + 3 < rank; ++i) batch.add_dim(pictures.dim(i));
    TAGFLOW_ASSIGN(Tensor* const output, context.allocate_output(0, batch));
    const StringWriter writer(*output);
    const auto* pixels = static_cast<const char*>(pictures.raw());
    const int bits = int(8 * dtype_size(pictures.dtype()));
    for (std::string& file : output->mutable_flat<std::string>()) {
      auto encoded = media::encode_png(shape, bits, pixels, compression_,
                                       interruption(context));
      if (!encoded.ok()) return prefixed(context, encoded.status());
      writer.take(file, *std::move(encoded));
      pixels += shape.elements() * (bits / 8);
    }
    return {};
  }

 private:
  const int compression_;
};

class EncodeJpegKernel final : public BytesKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    media::JpegEncoding encoding;
    int channels = 0;
    if (info.num_inputs() == 1) {
      const auto format = attr_of<std::string>(info, "format");
      channels = format == "grayscale" ? 1 : format == "rgb" ? 3 : 0;
      const auto quality = attr_of<int64_t>(info, "quality");
      TAGFLOW_RETURN_IF_ERROR(
          check_quality(quality).with_prefix("[EncodeJpeg] "));
      encoding.quality = int(quality);
      encoding.is_progressive = attr_of<bool>(info, "progressive");
      encoding.is_small = attr_of<bool>(info, "optimize_size");
      encoding.halves_colors = attr_of<bool>(info, "chroma_downsampling");
      encoding.is_per_inch = attr_of<std::string>(info, "density_unit") == "in";
      encoding.x_density = int(attr_of<int64_t>(info, "x_density"));
      encoding.y_density = int(attr_of<int64_t>(info, "y_density"));
      encoding.xmp = attr_of<std::string>(info, "xmp_metadata");
    }
    return std::unique_ptr<Kernel>(std::make_unique<EncodeJpegKernel>(
        info, std::move(encoding), channels));
  }
  // `channels` is 0 if the picture says them.
  EncodeJpegKernel(const KernelInfo& info, media::JpegEncoding encoding,
                   int channels)
      : BytesKernel(info, Work::kInputs, kPictureCost),
        encoding_(std::move(encoding)),
        channels_(channels) {}

  Status compute(KernelContext& context) const override {
    auto encoded = encode(context);
    if (!encoded.ok()) return prefixed(context, encoded.status());
    TAGFLOW_ASSIGN(Tensor* const output, context.allocate_output(0, Shape{}));
    StringWriter(*output).take(*output->mutable_data<std::string>(),
                               *std::move(encoded));
    return {};
  }

 private:
  static Status check_quality(int64_t quality) {
    if (quality >= 0 && quality <= 100) return {};
    return error(Code::kInvalidArgument,
                 "the quality must be from 0 to 100, not {}", quality);
  }

  Result<std::string> encode(const KernelContext& context) const {
    const Tensor& picture = context.input(0);
    if (picture.rank() != 3)
      return error(Code::kInvalidArgument, "a picture has 3 dimensions, not {}",
                   picture.describe());
    if (channels_ != 0 && picture.dim(2) != channels_)
      return error(Code::kInvalidArgument,
                   "the format has {} channels, the picture {}", channels_,
                   picture.dim(2));
    media::JpegEncoding encoding = encoding_;
    if (context.num_inputs() > 1) {
      const Tensor& quality = context.input(1);
      if (!quality.is_scalar())
        return error(Code::kInvalidArgument,
                     "the quality must be a scalar, not {}",
                     quality.describe());
      encoding.quality = quality.scalar_value<int32_t>();
      TAGFLOW_RETURN_IF_ERROR(check_quality(encoding.quality));
    }
    return media::encode_jpeg({picture.dim(0), picture.dim(1), picture.dim(2)},
                              picture.data<uint8_t>(), encoding,
                              interruption(context));
  }

  const media::JpegEncoding encoding_;
  const int channels_;
};

}  // namespace

void register_picture_encoder_kernels(KernelRegistry& registry) {
  registry.add<EncodePngKernel>("EncodePng");
  registry.add<EncodeJpegKernel>("EncodeJpeg");
  registry.add<EncodeJpegKernel>("EncodeJpegVariableQuality");
}

}  // namespace tagflow::devices
