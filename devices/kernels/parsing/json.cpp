// DecodeJSONExample.
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver.h>
#include <google/protobuf/util/type_resolver_util.h>

#include <memory>
#include <string>

#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/parsing/rows.h"
#include "devices/kernels/text/pieces.h"
#include "devices/string_writer.h"
#include "graph/proto/example.pb.h"

namespace tagflow::devices {

namespace {

// Examples as JSON, in protobuf's mapping.
class DecodeJsonExampleKernel final : public BytesKernel {
 public:
  explicit DecodeJsonExampleKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 20),
        resolver_(google::protobuf::util::NewTypeResolverForDescriptorPool(
            "type.googleapis.com",
            tensorflow::Example::descriptor()->file()->pool())) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, input.shape()));
    const auto texts = input.flat<std::string>();
    auto* const to = output->mutable_data<std::string>();
    const StringWriter writer(*output);
    constexpr double kTextNanoseconds = 5e3;
    return for_each_row(
        context, int64_t(texts.size()), kTextNanoseconds,
        [&](int64_t row) -> Status {
          const std::string& text = texts[size_t(row)];
          std::string bytes;
          const auto status = google::protobuf::util::JsonToBinaryString(
              resolver_.get(), kType, text, &bytes);
          // The library takes other values for messages without fields.
          const bool is_object = stripped(context, text).starts_with('{');
          if (!status.ok() || !is_object)
            return context.fail(
                "JSON text {}, {:?}, is not an Example: {}", row, shown(text),
                is_object ? status.ToString() : "it is not an object");
          writer.take(to[row], std::move(bytes));
          return {};
        });
  }

 private:
  static constexpr char kType[] = "type.googleapis.com/tensorflow.Example";

  // Thread-safe.
  const std::unique_ptr<google::protobuf::util::TypeResolver> resolver_;
};

}  // namespace

void register_parsing_json_kernels(KernelRegistry& registry) {
  registry.add<DecodeJsonExampleKernel>("DecodeJSONExample");
}

}  // namespace tagflow::devices
