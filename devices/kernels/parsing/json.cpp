// DecodeJSONExample.
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver.h>
#include <google/protobuf/util/type_resolver_util.h>

#include <memory>
#include <string>
#include <string_view>

#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/parsing/rows.h"
#include "devices/kernels/text/pieces.h"
#include "devices/string_writer.h"
#include "graph/proto/example.pb.h"

namespace tagflow::devices {

namespace {

// Whether a list in a text of JSON has null as an element. Texts in it may be
// in single quotes, too, as the library takes them.
bool has_null_in_list(std::string_view json) {
  std::string open;  // brackets
  for (size_t at = 0; at < json.size(); ++at) {
    const char c = json[at];
    if (c == '[' || c == '{') {
      open.push_back(c);
    } else if ((c == ']' || c == '}') && !open.empty()) {
      open.pop_back();
    } else if (c == '"' || c == '\'') {
      for (++at; at < json.size() && json[at] != c; ++at)
        if (json[at] == '\\') ++at;
    } else if (open.ends_with('[') && json.substr(at).starts_with("null")) {
      return true;
    }
  }
  return false;
}

// Examples as JSON, in protobuf's mapping. This allows null as the value of a
// field, which then is not set, but not as an element of a list. The library
// leaves it out there, and TensorFlow reads it as 0 or an empty text: here it
// is refused.
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
          std::string problem;
          if (!stripped(context, text).starts_with('{'))
            problem = "it is not an object";
          else if (!status.ok())
            problem = status.ToString();
          else if (has_null_in_list(text))
            problem = "a list has null as an element";
          if (!problem.empty())
            return context.fail("JSON text {}, {:?}, is not an Example: {}",
                                row, shown(text), problem);
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
