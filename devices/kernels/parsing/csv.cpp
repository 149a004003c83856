// DecodeCSV.
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "devices/kernel_inputs.h"
#include "devices/kernel_registry.h"
#include "devices/kernels/parsing/csv_fields.h"
#include "devices/kernels/parsing/rows.h"
#include "devices/kernels/text/number.h"
#include "devices/kernels/text/pieces.h"
#include "devices/string_writer.h"

namespace tagflow::devices {

namespace {

class DecodeCsvKernel final : public BytesKernel {
 public:
  static Result<std::unique_ptr<Kernel>> make(const KernelInfo& info) {
    CsvFormat format;
    const auto delimiter = attr_of<std::string>(info, "field_delim");
    if (delimiter.size() != 1)
      return invalid_argument("field_delim must be one character, not {:?}",
                              delimiter);
    format.delimiter = delimiter[0];
    format.has_quotes = attr_of<bool>(info, "use_quote_delim");
    format.columns = attr_of<std::vector<int64_t>>(info, "select_cols");
    if (!format.columns.empty() &&
        int(format.columns.size()) != info.num_outputs())
      return invalid_argument("select_cols has {} columns for {} outputs",
                              format.columns.size(), info.num_outputs());
    int64_t before = -1;
    for (const int64_t column : format.columns) {
      if (column <= before)
        return invalid_argument(
            "select_cols must be increasing and not negative, but has {} after "
            "{}",
            column, before);
      before = column;
    }
    return std::unique_ptr<Kernel>(
        new DecodeCsvKernel(info, std::move(format)));
  }

  Status compute(KernelContext& context) const override {
    const Tensor& input = context.input(0);
    for (int i = 0; i < context.num_outputs(); ++i) {
      const Tensor& value = context.input(1 + i);
      if (value.rank() > 1 || value.num_elements() > 1)
        return context.fail("the default of field {} must be one value, not {}",
                            i, value.describe());
      TAGFLOW_RETURN_IF_ERROR(
          context.allocate_output(i, input.shape()).status());
    }
    const auto records = input.flat<std::string>();
    return for_each_row(
        context, int64_t(records.size()), kRecordNanoseconds,
        [&](int64_t row) -> Status {
          std::deque<std::string> unescaped;
          std::vector<std::string_view> fields;
          const char* const wrong =
              split_record(records[size_t(row)], format_, fields, unescaped);
          if (wrong != nullptr)
            return context.fail("record {}: {}", row, wrong);
          if (int(fields.size()) != context.num_outputs())
            return context.fail("record {} has {} fields, not {}", row,
                                fields.size(), context.num_outputs());
          for (int i = 0; i < context.num_outputs(); ++i)
            TAGFLOW_RETURN_IF_ERROR(store(context, row, i, fields[size_t(i)]));
          return {};
        });
  }

 private:
  static constexpr double kRecordNanoseconds = 500;

  DecodeCsvKernel(const KernelInfo& info, CsvFormat format)
      : BytesKernel(info, Work::kInputs, 4),
        format_(std::move(format)),
        missing_(attr_of<std::string>(info, "na_value")) {}

  Status store(KernelContext& context, int64_t row, int field,
               std::string_view text) const {
    switch (context.output(field).dtype()) {
      case DataType::kFloat:
        return store_number<float>(context, row, field, text);
      case DataType::kDouble:
        return store_number<double>(context, row, field, text);
      case DataType::kInt32:
        return store_number<int32_t>(context, row, field, text);
      case DataType::kInt64:
        return store_number<int64_t>(context, row, field, text);
      default:
        break;
    }
    if (is_missing(text)) {
      TAGFLOW_RETURN_IF_ERROR(check_default(context, row, field));
      text = context.input(1 + field).scalar_value<std::string>();
    }
    Tensor& output = context.output(field);
    StringWriter(output).assign(output.mutable_data<std::string>()[row], text);
    return {};
  }

  template <class T>
  Status store_number(KernelContext& context, int64_t row, int field,
                      std::string_view text) const {
    T& to = context.output(field).mutable_data<T>()[row];
    if (is_missing(text)) {
      TAGFLOW_RETURN_IF_ERROR(check_default(context, row, field));
      to = context.input(1 + field).scalar_value<T>();
      return {};
    }
    if (parse_number(stripped(context, text), to)) return {};
    return context.fail("record {}: field {}, \"{}\", is not a number of {}",
                        row, field, shown(text),
                        dtype_name(context.output(field).dtype()));
  }

  bool is_missing(std::string_view text) const {
    return text.empty() || text == missing_;
  }
  static Status check_default(const KernelContext& context, int64_t row,
                              int field) {
    if (context.input(1 + field).num_elements() > 0) return {};
    return context.fail("record {}: field {} is missing, and has no default",
                        row, field);
  }

  const CsvFormat format_;
  const std::string missing_;
};

}  // namespace

void register_parsing_csv_kernels(KernelRegistry& registry) {
  registry.add<DecodeCsvKernel>("DecodeCSV");
}

}  // namespace tagflow::devices
