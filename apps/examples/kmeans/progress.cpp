#include "apps/examples/kmeans/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "devices/kernel_registry.h"
#include "graph/op_registry.h"
#include "graph/shape_context.h"

namespace tagflow::kmeans {
namespace {

constexpr const char* kOp = "KMeansProgress";

// The progress is the logarithm of the number of changed assignments, since
// each digit takes about the same number of trips.
std::string draw_bar(int64_t changed) {
  constexpr int kWidth = 30;
  constexpr double kDigits = 5;  // 100,000 changes are an empty bar
  const double left = std::log10(double(changed) + 1) / kDigits;
  const int full = std::clamp(int(std::lround((1 - left) * kWidth)), 0, kWidth);
  return std::string(size_t(full), '#') +
         std::string(size_t(kWidth - full), '.');
}

class ProgressKernel : public devices::Kernel {
 public:
  explicit ProgressKernel(ProgressStyle style) : style_(style) {}

  Status compute(devices::KernelContext& context) const override {
    for (int i = 0; i < context.num_inputs(); ++i) {
      if (!context.input(i).is_scalar()) {
        return context.fail("input {} is {}, not a scalar", i,
                            context.input(i).describe());
      }
    }
    const auto trips = context.input(0).scalar_value<int64_t>();
    const auto changed = context.input(1).scalar_value<int64_t>();
    const auto inertia = context.input(2).scalar_value<float>();
    const std::string text =
        fmt::format("iteration {}: {} points changed cluster, inertia {:.5g}",
                    trips, changed, inertia);
    if (style_ == ProgressStyle::kLines) {
      fmt::print(stderr, "{}\n", text);
    } else if (style_ == ProgressStyle::kBar) {
      // Returns to the start of the line, and clears the rest of it.
      fmt::print(stderr, "\r[{}] {}\x1b[K", draw_bar(changed), text);
      std::fflush(stderr);
    }
    context.set_output(0, context.input(0));
    return {};
  }
  // A slow reader of stderr may block it.
  double cost(const devices::KernelContext&) const override { return 100e3; }

 private:
  ProgressStyle style_;
};

}  // namespace

Status register_progress_op(ProgressStyle style) {
  TAGFLOW_RETURN_IF_ERROR(
      graph::OpRegistry::global().add(graph::OpDefBuilder(kOp)
                                          .input("trips: int64")
                                          .input("changed: int64")
                                          .input("inertia: float")
                                          .output("output: int64")
                                          .stateful()
                                          .shape(graph::scalar_shape)
                                          .build()));
  devices::KernelDef kernel;
  kernel.op = kOp;
  kernel.factory = [style](const devices::KernelInfo&)
      -> Result<std::unique_ptr<devices::Kernel>> {
    return std::unique_ptr<devices::Kernel>(
        std::make_unique<ProgressKernel>(style));
  };
  devices::KernelRegistry::global().add(std::move(kernel));
  return {};
}

graph::Output progress(const graph::Scope& scope, const graph::Output& trips,
                       const graph::Output& changed,
                       const graph::Output& inertia) {
  return scope.op(kOp, {trips, changed, inertia});
}

void finish_progress(ProgressStyle style) {
  if (style == ProgressStyle::kBar) fmt::print(stderr, "\n");
}

}  // namespace tagflow::kmeans
