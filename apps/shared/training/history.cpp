#include "apps/shared/training/history.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

#include "apps/shared/io/file.h"
#include "graph/write_error.h"

namespace tagflow::training {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSetNames[] = {"train", "test"};

// Splits off the text before the next comma.
std::string_view next_field(std::string_view& line) {
  const size_t end = line.find(',');
  const std::string_view field = line.substr(0, end);
  line.remove_prefix(end == line.npos ? line.size() : end + 1);
  return field;
}

template <class T>
bool parse_number(std::string_view text, T& value) {
  const char* end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, value);
  return code == std::errc() && rest == end;
}

std::string format_row(const History::Row& row) {
  return fmt::format("{},{},{}\n", row.step, kSetNames[size_t(row.set)],
                     fmt::join(row.values, ","));
}

}  // namespace

History::History(fs::path file, std::vector<std::string> metrics)
    : file_(std::move(file)), metrics_(std::move(metrics)) {}

Result<History> History::open(fs::path file, std::vector<std::string> metrics,
                              int64_t last_step) {
  History history(std::move(file), std::move(metrics));
  std::error_code code;
  if (last_step > 0 && fs::exists(history.file_, code)) {
    TAGFLOW_ASSIGN(const std::string text, io::read_file(history.file_));
    TAGFLOW_RETURN_IF_ERROR(history.parse(text, last_step));
  }
  // Writes another file first, so that a kill does not lose the history.
  std::string text = history.header();
  for (const Row& row : history.rows_) text += format_row(row);
  fs::path temporary = history.file_;
  temporary += ".new";
  TAGFLOW_RETURN_IF_ERROR(io::write_file(temporary, text));
  fs::rename(temporary, history.file_, code);
  if (code)
    return error(code_of_write(code.value(), Code::kPermissionDenied),
                 "[history] cannot write \"{}\": {}", history.file_.string(),
                 code.message());
  history.written_ = history.rows_.size();
  history.length_ = text.size();
  return history;
}

std::string History::header() const {
  return fmt::format("step,set,{}\n", fmt::join(metrics_, ","));
}

Status History::parse(std::string_view text, int64_t last_step) {
  const std::string first = header();
  if (!text.starts_with(first))
    return error(Code::kDataLoss,
                 "[history] \"{}\" does not begin with \"{}\"; to go on "
                 "without it, remove it",
                 file_.string(), first.substr(0, first.size() - 1));
  // The header is line 1.
  size_t line = 2, begin = first.size();
  for (size_t end; (end = text.find('\n', begin)) != text.npos; ++line) {
    auto row = parse_row(text.substr(begin, end - begin));
    if (!row.ok())
      return error(Code::kDataLoss,
                   "[history] line {} of \"{}\" is damaged: {}; to go on "
                   "without it, remove it",
                   line, file_.string(), row.status().message());
    if (row->step <= last_step) rows_.push_back(std::move(row).value());
    begin = end + 1;
  }
  return {};
}

Result<History::Row> History::parse_row(std::string_view line) const {
  Row row;
  std::string_view rest = line;
  const std::string_view step = next_field(rest), set = next_field(rest);
  if (!parse_number(step, row.step))
    return invalid_argument("\"{}\" is not a step", step);
  if (set != kSetNames[0] && set != kSetNames[1])
    return invalid_argument("\"{}\" is neither {} nor {}", set, kSetNames[0],
                            kSetNames[1]);
  row.set = set == kSetNames[0] ? Set::kTrain : Set::kTest;
  while (!rest.empty()) {
    const std::string_view field = next_field(rest);
    if (!parse_number(field, row.values.emplace_back()))
      return invalid_argument("\"{}\" is not a number", field);
  }
  if (row.values.size() != metrics_.size())
    return invalid_argument("it has {} numbers, not {}", row.values.size(),
                            metrics_.size());
  return row;
}

void History::add(int64_t step, Set set, std::vector<float> values) {
  rows_.push_back({step, set, std::move(values)});
}

Status History::write() {
  std::string text;
  for (size_t i = written_; i < rows_.size(); ++i) text += format_row(rows_[i]);
  if (text.empty()) return {};
  errno = 0;
  std::ofstream file(file_, std::ios::binary | std::ios::app);
  file.write(text.data(), std::streamsize(text.size()));
  file.close();
  if (!file) {
    const int why = errno;
    std::error_code code;
    fs::resize_file(file_, length_, code);
    return error(code_of_write(why, Code::kDataLoss),
                 "[history] writing \"{}\" failed: {}", file_.string(),
                 std::strerror(why));
  }
  written_ = rows_.size();
  length_ += text.size();
  return {};
}

}  // namespace tagflow::training
