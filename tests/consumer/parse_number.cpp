// ParseNumber: a minimal op.
#include <charconv>
#include <string>

#include "devices/kernel_registry.h"
#include "graph/op_registry.h"
#include "graph/shape_context.h"
#include "own_ops.h"

using namespace tagflow;

namespace {

// Rejects a node when it is added to a graph, if its text cannot be a scalar.
Status shape_of_number(graph::ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 0).status());
  return graph::scalar_shape(c);
}

class ParseNumberKernel final : public devices::CheapKernel {
 public:
  explicit ParseNumberKernel(const devices::KernelInfo&) {}

  Status compute(devices::KernelContext& context) const override {
    // The shape may not have been known when the graph was built.
    const Tensor& text = context.input(0);
    if (!text.is_scalar())
      return context.fail("the text must be a scalar, not of shape {}",
                          text.shape().to_string());
    const std::string& digits = text.data<std::string>()[0];
    const char* const end = digits.data() + digits.size();
    double number = 0;
    const auto parsed = std::from_chars(digits.data(), end, number);
    if (parsed.ec != std::errc() || parsed.ptr != end)
      return context.fail("\"{}\" is not a number", digits);
    context.set_output(0, Tensor::scalar(number));
    return {};
  }
};

}  // namespace

Status add_parse_number() {
  TAGFLOW_RETURN_IF_ERROR(
      graph::OpRegistry::global().add(graph::OpDefBuilder("ParseNumber")
                                          .input("text: string")
                                          .output("number: double")
                                          .shape(shape_of_number)
                                          .build()));
  devices::KernelRegistry::global().add<ParseNumberKernel>("ParseNumber");
  return {};
}
