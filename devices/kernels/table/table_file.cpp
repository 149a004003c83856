#include "devices/kernels/table/table_file.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <vector>

#include "devices/files/host_access.h"
#include "devices/kernels/regular_file.h"
#include "devices/string_writer.h"
#include "graph/counted.h"
#include "graph/dtype_visit.h"

namespace tagflow::devices {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\v\f\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

template <class T>
bool parse(std::string_view text, T& value) {
  text = trimmed(text);
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  return failure == std::errc() && stop == end && !text.empty();
}

// Keys or values: one from each line.
class Column {
 public:
  Column(int64_t index, DataType type) : index_(index), type_(type) {}

  Status check(const KernelContext& context, std::string_view what) const {
    if (index_ == TableFile::kLineNumber && type_ != DataType::kInt64)
      return context.fail("line numbers as {} are of int64, not of {}", what,
                          dtype_name(type_));
    if (index_ == TableFile::kWholeLine && type_ != DataType::kString)
      return context.fail("whole lines as {} are of string, not of {}", what,
                          dtype_name(type_));
    return {};
  }

  // Counts what it takes; ResourceExhausted if that would exceed the limit.
  Status count(const KernelContext& context) {
    constexpr size_t kStep = 1 << 16;
    const size_t bytes = texts_.capacity() * sizeof(std::string) + text_bytes_ +
                         numbers_.capacity() * sizeof(int64_t) +
                         floats_.capacity() * sizeof(double);
    if (bytes <= charge_.bytes()) return {};
    return context.count(charge_, bytes + kStep,
                         [] { return "a column of the file"; });
  }

  // False if the line does not have it.
  bool add(const std::string& line, int64_t number, const TableFile& format) {
    if (index_ == TableFile::kLineNumber) {
      numbers_.push_back(number + format.offset);
      return true;
    }
    std::string_view text = line;
    if (index_ >= 0) {
      for (int64_t column = 0; column < index_; ++column) {
        const size_t end = text.find(format.delimiter);
        if (end == text.npos) return false;
        text.remove_prefix(end + 1);
      }
      text = text.substr(0, text.find(format.delimiter));
    }
    switch (type_) {
      case DataType::kString:
        text_bytes_ += outside_bytes(texts_.emplace_back(text));
        return true;
      case DataType::kFloat:
      case DataType::kDouble:
        return parse(text, floats_.emplace_back());
      case DataType::kInt32:
      case DataType::kInt64: {
        int64_t& value = numbers_.emplace_back();
        return parse(text, value) &&
               (type_ == DataType::kInt64 || value == int32_t(value));
      }
      default:
        return false;
    }
  }

  Result<Tensor> tensor(const KernelContext& context) {
    Tensor tensor;
    const auto store = [&](auto& values) -> Status {
      TAGFLOW_ASSIGN(tensor, Tensor::allocate(type_, {int64_t(values.size())},
                                              context.host_memory()));
      return {};
    };
    if (type_ == DataType::kString) {
      TAGFLOW_RETURN_IF_ERROR(store(texts_));
      std::move(texts_.begin(), texts_.end(),
                tensor.mutable_data<std::string>());
      // The tensor has the bytes from now on.
      charge_.clear();
      TAGFLOW_RETURN_IF_ERROR(settle_strings(tensor).with_prefix(
          fmt::format("[{}] ", context.node().op())));
    } else if (type_ == DataType::kFloat || type_ == DataType::kDouble) {
      TAGFLOW_RETURN_IF_ERROR(store(floats_));
      visit_floating(type_, [&]<class T>(TypeTag<T>) {
        T* to = tensor.mutable_data<T>();
        for (const double value : floats_) *to++ = T(float(value));
        if constexpr (std::is_same_v<T, double>)
          std::copy(floats_.begin(), floats_.end(), tensor.mutable_data<T>());
      });
    } else {
      TAGFLOW_RETURN_IF_ERROR(store(numbers_));
      visit_integer(type_, [&]<class T>(TypeTag<T>) {
        T* to = tensor.mutable_data<T>();
        for (const int64_t value : numbers_) *to++ = T(value);
      });
    }
    return tensor;
  }

 private:
  const int64_t index_;
  const DataType type_;
  std::vector<std::string> texts_;
  std::vector<int64_t> numbers_;
  std::vector<double> floats_;
  size_t text_bytes_ = 0;
  MemoryCharge charge_;
};

// Lines of a file, of bounded length, without "\n" or "\r\n".
class Lines {
 public:
  explicit Lines(const std::string& path)
      : file_(path, std::ios::binary), buffer_(size_t(1) << 16) {}
  bool is_open() const { return file_.is_open(); }
  bool is_too_long() const { return is_too_long_; }

  bool next(std::string& line) {
    line.clear();
    bool any = false;
    for (;;) {
      if (at_ == end_) {
        file_.read(buffer_.data(), std::streamsize(buffer_.size()));
        at_ = 0;
        end_ = size_t(file_.gcount());
        if (end_ == 0) break;
      }
      any = true;
      const char* const begin = buffer_.data() + at_;
      const void* const found = std::memchr(begin, '\n', end_ - at_);
      const size_t count =
          found == nullptr ? end_ - at_
                           : size_t(static_cast<const char*>(found) - begin);
      if (line.size() + count > TableFile::kMaxLineBytes) {
        is_too_long_ = true;
        return false;
      }
      line.append(begin, count);
      at_ += count;
      if (found != nullptr) {
        ++at_;
        break;
      }
    }
    if (!line.empty() && line.back() == '\r') line.pop_back();
    return any;
  }

 private:
  std::ifstream file_;
  std::vector<char> buffer_;
  size_t at_ = 0, end_ = 0;
  bool is_too_long_ = false;
};

}  // namespace

Result<TableEntries> read_table_file(const KernelContext& context,
                                     const std::string& name,
                                     const TableFile& format, DataType key,
                                     DataType value) {
  Column keys(format.key_index, key), values(format.value_index, value);
  TAGFLOW_RETURN_IF_ERROR(keys.check(context, "keys"));
  TAGFLOW_RETURN_IF_ERROR(values.check(context, "values"));
  TAGFLOW_ASSIGN(const HostAccess* host, files_of(context));
  TAGFLOW_ASSIGN(const std::string path, host->path_to_read(name));
  if (is_irregular_file(path))
    return context.fail("\"{}\" is not a regular file", path);
  Lines lines(path);
  if (!lines.is_open())
    return error(Code::kNotFound, "[{}] cannot read \"{}\": {}",
                 context.node().op(), path, std::strerror(errno));
  std::string line;
  int64_t number = 0;
  for (; number != format.lines && lines.next(line); ++number) {
    if (line.empty())
      return context.fail("line {} of \"{}\" is empty", number + 1, path);
    if (!keys.add(line, number, format))
      return context.fail("line {} of \"{}\" has no key of {} in column {}",
                          number + 1, path, dtype_name(key), format.key_index);
    if (!values.add(line, number, format))
      return context.fail("line {} of \"{}\" has no value of {} in column {}",
                          number + 1, path, dtype_name(value),
                          format.value_index);
    context.check_cancelled();
    for (Column* column : {&keys, &values})
      TAGFLOW_RETURN_IF_ERROR(column->count(context));
  }
  if (lines.is_too_long())
    return context.fail("line {} of \"{}\" is longer than {} bytes", number + 1,
                        path, TableFile::kMaxLineBytes);
  if (format.lines >= 0 && number < format.lines)
    return context.fail("\"{}\" has {}, but vocab_size says {}", path,
                        counted(size_t(number), "line"), format.lines);
  if (number == 0)
    return error(Code::kOutOfRange, "[{}] \"{}\" is empty", context.node().op(),
                 path);
  TableEntries entries;
  TAGFLOW_ASSIGN(entries.keys, keys.tensor(context));
  TAGFLOW_ASSIGN(entries.values, values.tensor(context));
  return entries;
}

}  // namespace tagflow::devices
