// HistogramSummary, ImageSummary, AudioSummary, AudioSummaryV2, TensorSummary,
// TensorSummaryV2.
#include <string>

#include "devices/kernel_registry.h"
#include "devices/kernels/codec/inputs.h"
#include "devices/kernels/summary/message.h"
#include "devices/media/summary_values.h"
#include "graph/proto/summary.pb.h"

namespace tagflow::devices {
namespace {

// A kernel that makes a message of one input or several.
class SummaryKernel : public BytesKernel {
 public:
  SummaryKernel(const KernelInfo& info, double nanoseconds_per_byte)
      : BytesKernel(info, Work::kInputs, nanoseconds_per_byte) {}

  Status compute(KernelContext& context) const final {
    tensorflow::Summary summary;
    TAGFLOW_RETURN_IF_ERROR(prefixed(context, fill(context, summary)));
    return set_message(context, summary);
  }

 private:
  // Errors are without the name of the op.
  virtual Status fill(const KernelContext& context,
                      tensorflow::Summary& summary) const = 0;
};

class HistogramSummaryKernel final : public SummaryKernel {
 public:
  explicit HistogramSummaryKernel(const KernelInfo& info)
      : SummaryKernel(info, kHistogramCost) {}

 private:
  Status fill(const KernelContext& context,
              tensorflow::Summary& summary) const override {
    TAGFLOW_ASSIGN(const std::string tag, text_input(context, 0, "tag"));
    return media::add_histogram_value(tag, context.input(1),
                                      interruption(context), summary);
  }
};

class ImageSummaryKernel final : public SummaryKernel {
 public:
  explicit ImageSummaryKernel(const KernelInfo& info)
      : SummaryKernel(info, kPictureCost),
        options_{attr_of<int64_t>(info, "max_images"),
                 attr_of<Tensor>(info, "bad_color")} {}

 private:
  Status fill(const KernelContext& context,
              tensorflow::Summary& summary) const override {
    TAGFLOW_ASSIGN(const std::string tag, text_input(context, 0, "tag"));
    return media::add_picture_values(tag, context.input(1), options_,
                                     interruption(context), summary);
  }

  const media::PictureValues options_;
};

class AudioSummaryKernel final : public SummaryKernel {
 public:
  explicit AudioSummaryKernel(const KernelInfo& info)
      : SummaryKernel(info, kSoundCost),
        has_rate_input_(info.num_inputs() > 2),
        rate_(has_rate_input_ ? 0 : attr_of<float>(info, "sample_rate")),
        most_(attr_of<int64_t>(info, "max_outputs")) {}

 private:
  Status fill(const KernelContext& context,
              tensorflow::Summary& summary) const override {
    TAGFLOW_ASSIGN(const std::string tag, text_input(context, 0, "tag"));
    float rate = rate_;
    if (has_rate_input_) {
      TAGFLOW_ASSIGN(rate, number_input<float>(context, 2, "sample_rate"));
    }
    return media::add_sound_values(tag, context.input(1), rate, most_,
                                   interruption(context), summary);
  }

  const bool has_rate_input_;
  const float rate_;
  const int64_t most_;
};

// Without a tag: the node names the value.
class TensorSummaryKernel final : public SummaryKernel {
 public:
  explicit TensorSummaryKernel(const KernelInfo& info)
      : SummaryKernel(info, kTensorCost) {}

 private:
  Status fill(const KernelContext& context,
              tensorflow::Summary& summary) const override {
    TAGFLOW_RETURN_IF_ERROR(media::add_tensor_value(context.input(0), summary));
    summary.mutable_value(0)->set_node_name(context.node().name());
    return {};
  }
};

class TensorSummaryV2Kernel final : public SummaryKernel {
 public:
  explicit TensorSummaryV2Kernel(const KernelInfo& info)
      : SummaryKernel(info, kTensorCost) {}

 private:
  Status fill(const KernelContext& context,
              tensorflow::Summary& summary) const override {
    TAGFLOW_ASSIGN(const std::string tag, text_input(context, 0, "tag"));
    TAGFLOW_ASSIGN(const std::string metadata,
                   text_input(context, 2, "serialized_summary_metadata"));
    TAGFLOW_RETURN_IF_ERROR(media::add_tensor_value(context.input(1), summary));
    auto* const value = summary.mutable_value(0);
    value->set_tag(tag);
    // As TensorFlow does, what is not a message counts as far as it can be
    // read.
    (void)value->mutable_metadata()->ParseFromString(metadata);
    return {};
  }
};

}  // namespace

void register_media_summary_kernels(KernelRegistry& registry) {
  registry.add<HistogramSummaryKernel>("HistogramSummary");
  registry.add<ImageSummaryKernel>("ImageSummary");
  registry.add<AudioSummaryKernel>("AudioSummary");
  registry.add<AudioSummaryKernel>("AudioSummaryV2");
  registry.add<TensorSummaryKernel>("TensorSummary");
  registry.add<TensorSummaryV2Kernel>("TensorSummaryV2");
}

}  // namespace tagflow::devices
