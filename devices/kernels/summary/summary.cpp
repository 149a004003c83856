// ScalarSummary, MergeSummary.
#include <set>
#include <string>

#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "graph/dtype_visit.h"
#include "graph/proto/summary.pb.h"

namespace tagflow::devices {

namespace {

class ScalarSummaryKernel final : public BytesKernel {
 public:
  explicit ScalarSummaryKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs) {}

  Status compute(KernelContext& context) const override {
    const Tensor& tags = context.input(0);
    const Tensor& values = context.input(1);
    if (!(tags.shape() == values.shape()))
      return context.fail("tags of shape {} for values of shape {}",
                          tags.shape().to_string(), values.shape().to_string());
    tensorflow::Summary summary;
    visit_real(values.dtype(), [&]<class T>(TypeTag<T>) {
      const auto elements = values.flat<T>();
      for (size_t i = 0; i < elements.size(); ++i) {
        auto* value = summary.add_value();
        value->set_tag(tags.flat<std::string>()[i]);
        value->set_simple_value(float(elements[i]));
      }
    });
    return set_message(context, summary);
  }
};

class MergeSummaryKernel final : public BytesKernel {
 public:
  explicit MergeSummaryKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs) {}

  Status compute(KernelContext& context) const override {
    tensorflow::Summary merged;
    std::set<std::string> tags;
    for (int i = 0; i < context.num_inputs(); ++i)
      for (const std::string& text : context.input(i).flat<std::string>()) {
        tensorflow::Summary summary;
        if (!summary.ParseFromString(text))
          return context.fail("input {} has {} bytes that are not a summary", i,
                              text.size());
        for (const auto& value : summary.value()) {
          // A value without a tag is identified by its summary.
          if (!value.tag().empty() && !tags.insert(value.tag()).second)
            return context.fail("two values have the tag {:?}", value.tag());
        }
        merged.MergeFrom(summary);
      }
    return set_message(context, merged);
  }
};

}  // namespace

void register_scalar_summary_kernels(KernelRegistry& registry) {
  registry.add<ScalarSummaryKernel>("ScalarSummary");
  registry.add<MergeSummaryKernel>("MergeSummary");
}

}  // namespace tagflow::devices
