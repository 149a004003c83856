#include "net/metrics/metric_text.h"

#include <fmt/format.h>

#include <cmath>

#include "graph/utf8.h"

namespace tagflow::net {
namespace {

// The text as a value between quotes, or as help: there a quote is one.
std::string escaped(std::string_view text, bool is_quoted) {
  std::string safe;
  while (!text.empty()) {
    const size_t length = character_length(text);
    if (length == 0) {
      safe += "\xef\xbf\xbd";
    } else if (text[0] == '\\') {
      safe += "\\\\";
    } else if (text[0] == '\n') {
      safe += "\\n";
    } else if (text[0] == '"' && is_quoted) {
      safe += "\\\"";
    } else {
      safe += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return safe;
}

}  // namespace

void MetricText::begin(std::string_view name, Type type,
                       std::string_view help) {
  name_ = name;
  text_ +=
      fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, escaped(help, false),
                  name, type == Type::kCounter ? "counter" : "gauge");
}

void MetricText::add(Labels labels, uint64_t value) {
  add(labels, std::string_view(fmt::format("{}", value)));
}

void MetricText::add(Labels labels, double value) {
  if (std::isnan(value)) return add(labels, std::string_view("NaN"));
  if (std::isinf(value))
    return add(labels, std::string_view(value > 0 ? "+Inf" : "-Inf"));
  add(labels, std::string_view(fmt::format("{}", value)));
}

void MetricText::add(Labels labels, std::string_view value) {
  text_ += name_;
  char before = '{';
  for (const Label& label : labels) {
    text_ += fmt::format("{}{}=\"{}\"", before, label.name,
                         escaped(label.value, true));
    before = ',';
  }
  if (labels.size() > 0) text_ += '}';
  text_ += fmt::format(" {}\n", value);
}

}  // namespace tagflow::net
