// AsString, StringFormat, StringToNumber: convert between numbers and text.
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "devices/copy.h"
#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/summarize.h"
#include "devices/kernels/text/number.h"
#include "devices/kernels/text/pieces.h"
#include "devices/string_writer.h"
#include "graph/dtype_visit.h"

namespace tagflow::devices {

namespace {

// Wider fields and longer fractions are rejected: they would only use memory.
constexpr int64_t kMaxWidth = 4096;

// Formats each element as printf does.
class AsStringKernel : public BytesKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    const auto width = attr_of<int64_t>(info, "width");
    const auto precision = attr_of<int64_t>(info, "precision");
    const auto fill = attr_of<std::string>(info, "fill");
    const bool scientific = attr_of<bool>(info, "scientific");
    const bool shortest = attr_of<bool>(info, "shortest");
    const DataType dtype = info.input_dtype(0);
    const bool has_point = is_floating(dtype) || is_complex(dtype);
    auto refuse = [&](std::string_view what) {
      return invalid_argument("[AsString] {}", what);
    };
    if (scientific && shortest)
      return refuse("cannot be both scientific and shortest");
    if (!has_point && (scientific || shortest || precision > -1))
      return refuse(
          "scientific, shortest and precision are for floating types");
    if (fill.size() > 1 || (fill.size() == 1 && std::string_view(" +-0#").find(
                                                    fill[0]) == fill.npos))
      return refuse("fill must be one of ' ', '+', '-', '0', '#'");
    if (width > kMaxWidth || precision > kMaxWidth)
      return refuse("width or precision is too large");
    return std::unique_ptr<Kernel>(new AsStringKernel(info, fill));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    if (input.dtype() == DataType::kString) {
      context.set_output(0, input);
      return {};
    }
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, input.shape()));
    auto* to = output->mutable_data<std::string>();
    const StringWriter writer(*output);
    auto visit = [&]<class T>(TypeTag<T>) {
      for (const T& value : input.flat<T>()) {
        context.check_cancelled();
        writer.take(*to++, text_of(value));
      }
    };
    if (!visit_numeric(input.dtype(), visit) &&
        !tagflow::detail::visit_among<bool>(input.dtype(), visit))
      return error(Code::kUnimplemented, "[AsString] cannot write {}",
                   input.describe());
    return {};
  }

 private:
  AsStringKernel(const KernelInfo& info, const std::string& fill)
      : BytesKernel(info, Work::kInputs, 20), format_("%" + fill) {
    const auto width = attr_of<int64_t>(info, "width");
    const auto precision = attr_of<int64_t>(info, "precision");
    if (width > -1) format_ += std::to_string(width);
    if (precision > -1) format_ += "." + std::to_string(precision);
    const DataType dtype = info.input_dtype(0);
    if (is_integer(dtype)) {
      const bool is_unsigned = dtype_name(dtype).front() == 'u';
      format_ += is_unsigned ? "llu" : "lld";
    } else {
      format_ += attr_of<bool>(info, "scientific") ? "e"
                 : attr_of<bool>(info, "shortest") ? "g"
                                                   : "f";
    }
  }

  template <class T>
  std::string text_of(const T& value) const {
    if constexpr (std::is_same_v<T, bool>) {
      return value ? "true" : "false";
    } else if constexpr (requires { value.real(); }) {
      return "(" + print(double(value.real())) + "," +
             print(double(value.imag())) + ")";
    } else if constexpr (std::is_unsigned_v<T>) {
      return print(static_cast<unsigned long long>(value));
    } else if constexpr (std::is_integral_v<T>) {
      return print(static_cast<long long>(value));
    } else {
      return print(double(value));
    }
  }

  // format_ matches the type of `value`, and has at most one conversion.
  template <class Value>
  std::string print(Value value) const {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
    const int size = std::snprintf(nullptr, 0, format_.c_str(), value);
    std::string text(size_t(std::max(size, 0)), '\0');
    std::snprintf(text.data(), text.size() + 1, format_.c_str(), value);
#pragma GCC diagnostic pop
    return text;
  }

  std::string format_;
};

// The text of an output, which grows.
class GrowingText {
 public:
  // REQUIRES: a scalar of an empty string, which outlives this.
  explicit GrowingText(Tensor& output)
      : writer_(output), text_(*output.mutable_data<std::string>()) {}

  void add(std::string_view more) { writer_.append(text_, more); }

 private:
  const StringWriter writer_;
  std::string& text_;
};

// Appends rows in brackets, one per line; of long ones only `edge` elements at
// each end.
void append_summary(const KernelContext& context, const Tensor& tensor, int dim,
                    int64_t first, int64_t edge, GrowingText& text) {
  context.check_cancelled();
  if (dim == tensor.rank()) {
    const char* quote = tensor.dtype() == DataType::kString ? "\"" : "";
    return text.add(quote + element_text(tensor, first) + quote);
  }
  const Shape shape = tensor.shape();
  const int64_t stride = product(shape.dims(), dim + 1, shape.rank());
  const int64_t count = tensor.dim(dim);
  const bool innermost = dim == tensor.rank() - 1;
  const std::string gap =
      innermost ? " "
                : std::string(size_t(tensor.rank() - dim - 1), '\n') +
                      std::string(size_t(dim) + 1, ' ');
  text.add("[");
  for (int64_t i = 0; i < count; ++i) {
    if (i > 0 || edge == 0) text.add(gap);
    if (i == edge && i < count - edge) {
      text.add("...");
      if (edge == 0) break;
      text.add(gap);
      i = count - edge;
    }
    append_summary(context, tensor, dim + 1, first + i * stride, edge, text);
  }
  text.add("]");
}

class StringFormatKernel : public BytesKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    const auto pattern = attr_of<std::string>(info, "template");
    const auto placeholder = attr_of<std::string>(info, "placeholder");
    std::vector<std::string> pieces;
    size_t at = 0;
    while (!placeholder.empty()) {
      const size_t end = find_text(pattern, placeholder, at);
      if (end == pattern.npos) break;
      pieces.push_back(pattern.substr(at, end - at));
      at = end + placeholder.size();
    }
    pieces.push_back(pattern.substr(at));
    if (pieces.size() != size_t(info.num_inputs()) + 1)
      return invalid_argument("[StringFormat] {} placeholders for {} inputs",
                              pieces.size() - 1, info.num_inputs());
    const int64_t summarize = attr_of<int64_t>(info, "summarize");
    if (summarize != int32_t(summarize))
      return invalid_argument("[StringFormat] summarize {} is not an int32",
                              summarize);
    return std::unique_ptr<Kernel>(
        new StringFormatKernel(info, std::move(pieces), summarize));
  }

  Status compute(KernelContext& context) const override {
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, {}));
    GrowingText text(*output);
    text.add(pieces_[0]);
    for (int i = 0; i < context.num_inputs(); ++i) {
      const Tensor& input = context.input(i);
      const int64_t all = input.num_elements();
      const int64_t edge = summarize_ < 0 ? all : std::min(summarize_, all);
      if (input.is_scalar() && summarize_ == 0) {
        text.add("...");
      } else if (all > 0 || input.dtype() != DataType::kBool) {
        // As in TensorFlow, empty bool tensors have no brackets.
        append_summary(context, input, 0, 0, edge, text);
      }
      text.add(pieces_[size_t(i) + 1]);
    }
    return {};
  }

 private:
  StringFormatKernel(const KernelInfo& info, std::vector<std::string> pieces,
                     int64_t summarize)
      : BytesKernel(info, Work::kInputs, 20),
        pieces_(std::move(pieces)),
        summarize_(summarize) {}

  std::vector<std::string> pieces_;  // the text between the placeholders
  int64_t summarize_;
};

class StringToNumberKernel : public BytesKernel {
 public:
  explicit StringToNumberKernel(const KernelInfo& info)
      : BytesKernel(info, Work::kInputs, 5) {}

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    TAGFLOW_ASSIGN(Tensor * output, context.allocate_output(0, input.shape()));
    Status status;
    tagflow::detail::visit_among<float, double, int32_t, int64_t, uint32_t,
                                 uint64_t>(
        output->dtype(), [&]<class T>(TypeTag<T>) {
          T* to = output->mutable_data<T>();
          for (const std::string& text : input.flat<std::string>()) {
            context.check_cancelled();
            if (parse_number(stripped(context, text), *to++)) continue;
            status = context.fail("\"{}\" is not a number of type {}",
                                  shown(text), dtype_name(output->dtype()));
            return;
          }
        });
    return status;
  }
};

}  // namespace

void register_text_format_kernels(KernelRegistry& registry) {
  registry.add<AsStringKernel>("AsString");
  registry.add<StringFormatKernel>("StringFormat");
  registry.add<StringToNumberKernel>("StringToNumber");
}

}  // namespace tagflow::devices
