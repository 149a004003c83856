#include "devices/kernels/parsing/csv_fields.h"

namespace tagflow::devices {

namespace {

constexpr char kQuote = '"';

// Reads the fields of one record.
class RecordSplitter {
 public:
  RecordSplitter(std::string_view record, const CsvFormat& format,
                 std::deque<std::string>& unescaped)
      : record_(record), format_(format), unescaped_(unescaped) {}

  // Skips line ends before a field. False if there is no further field.
  bool begin_field() {
    while (at_ < record_.size() && is_line_end(record_[at_])) ++at_;
    return at_ < record_.size();
  }
  // Reads a field, and moves behind its delimiter. Returns what is wrong.
  const char* read_field(std::string_view& field) {
    if (format_.has_quotes && record_[at_] == kQuote) return read_quoted(field);
    const size_t begin = at_;
    for (; at_ < record_.size() && record_[at_] != format_.delimiter; ++at_) {
      const char c = record_[at_];
      if (is_line_end(c) || (c == kQuote && format_.has_quotes))
        return "a field without quotes has a quote or a line end in it";
    }
    field = record_.substr(begin, at_ - begin);
    ++at_;
    return nullptr;
  }

 private:
  static bool is_line_end(char c) { return c == '\n' || c == '\r'; }
  bool is_last() const { return at_ + 1 == record_.size(); }

  const char* read_quoted(std::string_view& field) {
    const size_t begin = ++at_;
    std::string* text = nullptr;  // once a quote was in it
    for (; at_ < record_.size(); ++at_) {
      const char c = record_[at_];
      if (c == kQuote) {
        if (is_last() || record_[at_ + 1] == format_.delimiter) break;
        if (record_[at_ + 1] != kQuote)
          return "a quote in a field with quotes must be doubled";
        if (text == nullptr)
          text = &unescaped_.emplace_back(record_.substr(begin, at_ - begin));
        ++at_;
      }
      if (text != nullptr) *text += c;
    }
    if (at_ >= record_.size()) return "a field with quotes has no end";
    field = text != nullptr ? *text : record_.substr(begin, at_ - begin);
    at_ += 2;
    return nullptr;
  }

  const std::string_view record_;
  const CsvFormat& format_;
  std::deque<std::string>& unescaped_;
  size_t at_ = 0;
};

}  // namespace

const char* split_record(std::string_view record, const CsvFormat& format,
                         std::vector<std::string_view>& fields,
                         std::deque<std::string>& unescaped) {
  const std::vector<int64_t>& columns = format.columns;
  RecordSplitter splitter(record, format, unescaped);
  int64_t column = 0;
  const auto is_wanted = [&] {
    return columns.empty() || columns[fields.size()] == column;
  };
  for (; splitter.begin_field(); ++column) {
    std::string_view field;
    if (const char* wrong = splitter.read_field(field)) return wrong;
    if (!is_wanted()) continue;
    fields.push_back(field);
    if (fields.size() == columns.size()) return nullptr;
  }
  // What follows the last delimiter is a field, too.
  if (!record.empty() && record.back() == format.delimiter && is_wanted())
    fields.emplace_back();
  return nullptr;
}

}  // namespace tagflow::devices
