// DecodeJSONExample.
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/parsing/json_examples.h"
#include "devices/kernels/parsing/rows.h"
#include "devices/kernels/text/pieces.h"
#include "devices/string_writer.h"

namespace tagflow::devices {

namespace {

class DecodeJsonExampleKernel final : public BytesKernel {
 public:
  explicit DecodeJsonExampleKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 20) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, input.shape()));
    const auto texts = input.flat<std::string>();
    auto* const to = output->mutable_data<std::string>();
    const StringWriter writer(*output);
    constexpr double kTextNanoseconds = 5e3;
    return for_each_row(context, int64_t(texts.size()), kTextNanoseconds,
                        [&](int64_t row) -> Status {
                          const std::string& text = texts[size_t(row)];
                          Result<std::string> bytes = examples_.read(text);
                          if (!bytes.ok())
                            return context.fail(
                                "JSON text {}, {:?}, is not an Example: {}",
                                row, shown(text), bytes.status().message());
                          writer.take(to[row], *std::move(bytes));
                          return {};
                        });
  }

 private:
  const JsonExamples examples_;
};

}  // namespace

void register_parsing_json_kernels(KernelRegistry& registry) {
  registry.add<DecodeJsonExampleKernel>("DecodeJSONExample");
}

}  // namespace tagflow::devices
