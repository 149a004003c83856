// Kernels that pass on, check or print values. Switch, Merge, Enter, Exit,
// NextIteration, LoopCond and the nodes at the borders of a partition are
// implemented by the engine and have no kernel here.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "devices/files/host_access.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/regular_file.h"
#include "devices/kernels/summarize.h"
#include "graph/dtype_visit.h"
#include "graph/write_error.h"

namespace tagflow::devices {

namespace {

class ConstKernel : public CheapKernel {
 public:
  explicit ConstKernel(Tensor value) : value_(std::move(value)) {}

  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(Tensor value, info.attr<Tensor>("value"));
    if (value.dtype() != info.output_dtype(0))
      return invalid_argument("[Const] node \"{}\": the value is {}, not of {}",
                              info.name(), value.describe(),
                              dtype_name(info.output_dtype(0)));
    return std::unique_ptr<Kernel>(
        std::make_unique<ConstKernel>(std::move(value)));
  }

  Status compute(KernelContext& context) const override {
    context.set_output(0, value_);
    return {};
  }

 private:
  Tensor value_;
};

class IdentityKernel : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit IdentityKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    context.set_output(0, context.input(0));
    return {};
  }
};

// The target of a resource is never constant.
class GuaranteeConstKernel : public IdentityKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    if (info.input_dtype(0) == DataType::kResource)
      return invalid_argument("a resource cannot be guaranteed to be constant");
    return std::unique_ptr<Kernel>(
        std::make_unique<GuaranteeConstKernel>(info));
  }
  using IdentityKernel::IdentityKernel;
};

// Passes on the reference that the index selects.
class RefSelectKernel : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit RefSelectKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    const Tensor& index = context.input(0);
    if (!index.is_scalar())
      return context.fail("the index must be a scalar, not {}",
                          index.describe());
    const int32_t chosen = index.scalar_value<int32_t>();
    if (chosen < 0 || chosen >= context.num_inputs() - 1)
      return context.fail("the index {} is not within 0 and {}", chosen,
                          context.num_inputs() - 2);
    context.set_output(0, context.input(chosen + 1));
    return {};
  }
};

class IdentityNKernel : public CheapKernel {
 public:
  static constexpr bool kTakesHandles = true;

  explicit IdentityNKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    for (int i = 0; i < context.num_inputs(); ++i)
      context.set_output(i, context.input(i));
    return {};
  }
};

class NoOpKernel : public CheapKernel {
 public:
  explicit NoOpKernel(const KernelInfo&) {}

  Status compute(KernelContext&) const override { return {}; }
};

// Runs only if the step did not feed it.
class PlaceholderKernel : public CheapKernel {
 public:
  explicit PlaceholderKernel(PartialShape shape) : shape_(std::move(shape)) {}

  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(PartialShape shape, info.attr<PartialShape>("shape"));
    return std::unique_ptr<Kernel>(
        std::make_unique<PlaceholderKernel>(std::move(shape)));
  }

  Status compute(KernelContext& context) const override {
    return context.fail(
        "placeholder \"{}\" was not fed: this run needs a value of type {} "
        "and shape {} for it",
        context.node().name(), dtype_name(context.node().output_dtypes()[0]),
        shape_.to_string());
  }

 private:
  PartialShape shape_;
};

class EnsureShapeKernel : public CheapKernel {
 public:
  explicit EnsureShapeKernel(PartialShape shape) : shape_(std::move(shape)) {}

  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(PartialShape shape, info.attr<PartialShape>("shape"));
    return std::unique_ptr<Kernel>(
        std::make_unique<EnsureShapeKernel>(std::move(shape)));
  }

  Status compute(KernelContext& context) const override {
    const Shape shape = context.input(0).shape();
    if (!shape_.accepts(shape))
      return context.fail("the input has shape {}, which is not {}",
                          shape.to_string(), shape_.to_string());
    context.set_output(0, context.input(0));
    return {};
  }

 private:
  PartialShape shape_;
};

class AssertKernel : public Kernel {
 public:
  explicit AssertKernel(int64_t limit) : limit_(limit) {}

  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(const int64_t limit, info.attr<int64_t>("summarize"));
    return std::unique_ptr<Kernel>(std::make_unique<AssertKernel>(limit));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& condition = context.input(0);
    if (!condition.is_scalar())
      return context.fail("the condition must be a scalar, not {}",
                          condition.describe());
    if (condition.scalar_value<bool>()) return {};
    std::string text;
    for (const Tensor& data : context.inputs().subspan(1))
      text += " " + summarize(data, limit_, &context);
    return context.fail("assertion failed:{}", text);
  }

  // If it fails, it may write many elements.
  double cost(const KernelContext& context) const override {
    constexpr double kElementNanoseconds = 100;
    const Tensor& condition = context.input(0);
    if (!condition.is_scalar() || condition.scalar_value<bool>()) return 0;
    double elements = 0;
    for (const Tensor& data : context.inputs().subspan(1))
      elements += double(data.num_elements());
    return kElementNanoseconds *
           (limit_ < 0 ? elements : std::min(elements, double(limit_)));
  }
  bool may_be_expensive_on_small_inputs() const override { return false; }

 private:
  int64_t limit_;
};

// The reader of the output may be slow.
constexpr double kPrintCost = 100e3;

class PrintKernel : public Kernel {
 public:
  PrintKernel(std::string message, int64_t first_n, int64_t limit)
      : message_(std::move(message)), first_n_(first_n), limit_(limit) {}

  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(std::string message, info.attr<std::string>("message"));
    TAGFLOW_ASSIGN(const int64_t first_n, info.attr<int64_t>("first_n"));
    TAGFLOW_ASSIGN(const int64_t limit, info.attr<int64_t>("summarize"));
    return std::unique_ptr<Kernel>(
        std::make_unique<PrintKernel>(std::move(message), first_n, limit));
  }

  Status compute(KernelContext& context) const override {
    if (first_n_ < 0 ||
        printed_.fetch_add(1, std::memory_order_relaxed) < first_n_) {
      std::string text = message_;
      for (const Tensor& data : context.inputs().subspan(1))
        text += summarize(data, limit_, &context);
      host_access_of(context).print(PrintStream::kError, text + "\n");
    }
    context.set_output(0, context.input(0));
    return {};
  }
  double cost(const KernelContext&) const override { return kPrintCost; }

 private:
  std::string message_;
  int64_t first_n_;
  int64_t limit_;
  // Only counts what was printed; no result depends on it.
  mutable std::atomic<int64_t> printed_{0};
};

class PrintV2Kernel : public Kernel {
 public:
  PrintV2Kernel(std::string stream, std::string end)
      : stream_(std::move(stream)), end_(std::move(end)) {}

  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(std::string stream, info.attr<std::string>("output_stream"));
    TAGFLOW_ASSIGN(std::string end, info.attr<std::string>("end"));
    const bool known = stream == "stdout" || stream == "stderr" ||
                       stream == "log(info)" || stream == "log(warning)" ||
                       stream == "log(error)" || stream.starts_with(kFile);
    if (!known)
      return invalid_argument(
          "[PrintV2] node \"{}\": output_stream is \"{}\", not one of stdout, "
          "stderr, log(info), log(warning), log(error), file://PATH",
          info.name(), stream);
    return std::unique_ptr<Kernel>(
        std::make_unique<PrintV2Kernel>(std::move(stream), std::move(end)));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    if (!input.is_scalar())
      return context.fail("the input must be a scalar, not {}",
                          input.describe());
    const std::string text = input.scalar_value<std::string>() + end_;
    if (stream_.starts_with(kFile)) return append_to_file(context, text);
    host_access_of(context).print(
        stream_ == "stdout" ? PrintStream::kOutput : PrintStream::kError, text);
    return {};
  }
  double cost(const KernelContext&) const override { return kPrintCost; }

 private:
  static constexpr std::string_view kFile = "file://";

  Status append_to_file(KernelContext& context, const std::string& text) const {
    TAGFLOW_ASSIGN(const HostAccess* host, files_of(context));
    TAGFLOW_ASSIGN(const std::string path,
                   host->path_to_write(stream_.substr(kFile.size())));
    if (is_irregular_file(path))
      return context.fail("\"{}\" is not a regular file", path);
    std::FILE* file = std::fopen(path.c_str(), "ab");
    const bool written =
        file != nullptr &&
        std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if (file != nullptr && std::fclose(file) == 0 && written) return {};
    return error(code_of_write(errno, Code::kInvalidArgument),
                 "[{}] cannot append to file \"{}\"", context.node().op(),
                 path);
  }

  std::string stream_;
  std::string end_;
};

// Stops the step, not the process: a graph must not be able to end the process.
class AbortKernel : public CheapKernel {
 public:
  explicit AbortKernel(std::string message) : message_(std::move(message)) {}

  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    TAGFLOW_ASSIGN(std::string message, info.attr<std::string>("error_msg"));
    return std::unique_ptr<Kernel>(
        std::make_unique<AbortKernel>(std::move(message)));
  }

  Status compute(KernelContext& context) const override {
    return error(Code::kAborted, "[Abort] node \"{}\" stops the step: {}",
                 context.node().name(),
                 message_.empty() ? "no message" : message_);
  }

 private:
  std::string message_;
};

template <class T>
class CheckNumericsKernel : public Kernel {
 public:
  explicit CheckNumericsKernel(std::string message)
      : message_(std::move(message)) {}

  Status compute(KernelContext& context) const override {
    const auto values = context.input(0).flat<T>();
    // One fast pass; a second one locates the error.
    bool finite = true;
    for (const T& value : values) finite &= is_finite(value);
    if (!finite) return describe_failure(context, values);
    context.set_output(0, context.input(0));
    return {};
  }

  double cost(const KernelContext& context) const override {
    return 0.5 * double(context.input(0).num_elements());
  }

 private:
  static bool is_finite(const T& value) {
    return std::isfinite(static_cast<double>(value));
  }

  Status describe_failure(KernelContext& context,
                          std::span<const T> values) const {
    int64_t nans = 0, positive = 0, negative = 0, first = -1;
    for (size_t i = 0; i < values.size(); ++i) {
      const double value = static_cast<double>(values[i]);
      nans += std::isnan(value) ? 1 : 0;
      positive += value == HUGE_VAL ? 1 : 0;
      negative += value == -HUGE_VAL ? 1 : 0;
      if (first < 0 && !std::isfinite(value)) first = int64_t(i);
    }
    return context.fail(
        "{}: {} has {} NaN, {} +Inf and {} -Inf, the first "
        "at element {}",
        message_, context.input(0).describe(), nans, positive, negative, first);
  }

  std::string message_;
};

// The number of times that a For from start to limit by delta runs its body.
class ForTripCountKernel final : public CheapKernel {
 public:
  explicit ForTripCountKernel(const KernelInfo&) {}

  Status compute(KernelContext& context) const override {
    for (const Tensor& input : context.inputs())
      if (input.num_elements() != 1)
        return error(Code::kInvalidArgument,
                     "[For] start, limit and delta must be scalars, not {}",
                     input.describe());
    const int64_t start = context.input(0).scalar_value<int32_t>();
    const int64_t limit = context.input(1).scalar_value<int32_t>();
    const int64_t delta = context.input(2).scalar_value<int32_t>();
    const int64_t way = limit - start;
    if (way != 0 && (delta == 0 || (way > 0) != (delta > 0)))
      return error(Code::kInvalidArgument,
                   "[For] from {} to {} by {} never ends", start, limit, delta);
    const int64_t step = std::abs(delta);
    const int64_t trips = way == 0 ? 0 : (std::abs(way) + step - 1) / step;
    if (trips > std::numeric_limits<int32_t>::max())
      return error(Code::kInvalidArgument,
                   "[For] from {} to {} by {} takes {} trips, more than an "
                   "int32 counts",
                   start, limit, delta, trips);
    context.set_output(0, Tensor::scalar(int32_t(trips)));
    return {};
  }
};

Result<std::unique_ptr<Kernel>> make_check_numerics(const KernelInfo& info) {
  TAGFLOW_ASSIGN(std::string message, info.attr<std::string>("message"));
  std::unique_ptr<Kernel> kernel;
  visit_floating(info.input_dtype(0), [&]<class T>(TypeTag<T>) {
    kernel = std::make_unique<CheckNumericsKernel<T>>(std::move(message));
  });
  if (kernel == nullptr)
    return invalid_argument("[CheckNumerics] node \"{}\": {} is not floating",
                            info.name(), dtype_name(info.input_dtype(0)));
  return kernel;
}

}  // namespace

void register_plain_control_flow_kernels(KernelRegistry& registry) {
  registry.add<ConstKernel>("Const");
  registry.add<PlaceholderKernel>("Placeholder");
  registry.add<PlaceholderKernel>("PlaceholderV2");
  for (const char* op : {"Identity", "PlaceholderWithDefault", "StopGradient",
                         "PreventGradient", "Snapshot", "RefIdentity"})
    registry.add<IdentityKernel>(op);
  registry.add<GuaranteeConstKernel>("GuaranteeConst");
  registry.add<RefSelectKernel>("RefSelect");
  registry.add<IdentityNKernel>("IdentityN");
  registry.add<NoOpKernel>("NoOp");
  registry.add<EnsureShapeKernel>("EnsureShape");
  registry.add<AssertKernel>("Assert");
  registry.add<PrintKernel>("Print");
  registry.add<PrintV2Kernel>("PrintV2");
  registry.add<AbortKernel>("Abort");
  registry.add<ForTripCountKernel>("_ForTripCount");
  for (const char* op : {"CheckNumerics", "CheckNumericsV2"}) {
    KernelDef def;
    def.op = op;
    def.factory = make_check_numerics;
    registry.add(std::move(def));
  }
}

}  // namespace tagflow::devices
