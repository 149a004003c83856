// DecodeWav, EncodeWav.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "devices/kernel_registry.h"
#include "devices/kernels/codec/inputs.h"
#include "devices/media/wav.h"
#include "devices/string_writer.h"

namespace tagflow::devices {
namespace {

class DecodeWavKernel final : public BytesKernel {
 public:
  explicit DecodeWavKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, kSoundCost),
        channels_(attr_of<int64_t>(info, "desired_channels")),
        frames_(attr_of<int64_t>(info, "desired_samples")) {}

  Status compute(KernelContext& context) const override {
    return prefixed(context, decode(context));
  }

 private:
  Status decode(KernelContext& context) const {
    TAGFLOW_ASSIGN(const std::string bytes, text_input(context, 0, "contents"));
    Tensor samples;
    media::SoundShape sound;
    TAGFLOW_RETURN_IF_ERROR(media::decode_wav(
        bytes,
        [&](const media::SoundShape& shape) -> Result<float*> {
          sound = shape;
          TAGFLOW_ASSIGN(samples,
                         context.allocate_temp(DataType::kFloat,
                                               {shape.frames, shape.channels}));
          return samples.mutable_data<float>();
        },
        interruption(context)));
    context.set_output(1, Tensor::scalar(int32_t(sound.rate)));
    const int64_t frames = frames_ < 0 ? sound.frames : frames_;
    const int64_t channels = channels_ < 0 ? sound.channels : channels_;
    if (frames == sound.frames && channels == sound.channels) {
      context.set_output(0, std::move(samples));
      return {};
    }
    TAGFLOW_ASSIGN(Tensor* const output,
                   context.allocate_output(0, {frames, channels}));
    fit(samples, *output);
    return {};
  }

  // Leaves out what is too much. Missing frames are silent, missing channels
  // are as the last one.
  static void fit(const Tensor& samples, Tensor& output) {
    const int64_t has = samples.dim(1), wants = output.dim(1);
    const auto* const from = samples.data<float>();
    auto* to = output.mutable_data<float>();
    for (int64_t frame = 0; frame < output.dim(0); ++frame)
      for (int64_t c = 0; c < wants; ++c)
        *to++ = frame < samples.dim(0)
                    ? from[frame * has + std::min(c, has - 1)]
                    : 0;
  }

  const int64_t channels_;  // -1: as many as the file has
  const int64_t frames_;    // -1: so, too
};

class EncodeWavKernel final : public BytesKernel {
 public:
  explicit EncodeWavKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, kSoundCost) {}

  Status compute(KernelContext& context) const override {
    auto encoded = encode(context);
    if (!encoded.ok()) return prefixed(context, encoded.status());
    TAGFLOW_ASSIGN(Tensor* const output, context.allocate_output(0, Shape{}));
    StringWriter(*output).take(*output->mutable_data<std::string>(),
                               *std::move(encoded));
    return {};
  }

 private:
  static Result<std::string> encode(const KernelContext& context) {
    const Tensor& samples = context.input(0);
    if (samples.rank() != 2)
      return error(Code::kInvalidArgument,
                   "a sound is [frames, channels], not {}", samples.describe());
    TAGFLOW_ASSIGN(const int32_t rate,
                   number_input<int32_t>(context, 1, "sample_rate"));
    if (rate <= 0)
      return error(Code::kInvalidArgument,
                   "sample_rate must be positive, not {}", rate);
    return media::encode_wav({samples.dim(0), samples.dim(1), uint32_t(rate)},
                             samples.data<float>(), interruption(context));
  }
};

}  // namespace

void register_sound_codec_kernels(KernelRegistry& registry) {
  registry.add<DecodeWavKernel>("DecodeWav");
  registry.add<EncodeWavKernel>("EncodeWav");
}

}  // namespace tagflow::devices
