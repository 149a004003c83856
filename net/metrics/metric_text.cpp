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

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

}  // namespace

void MetricText::begin(std::string_view name, Type type,
                       std::string_view help) {
  name_ = name;
  constexpr const char* kTypes[] = {"counter", "gauge", "histogram"};
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name,
                       escaped(help, false), name, kTypes[size_t(type)]);
}

void MetricText::add(Labels labels, uint64_t value) {
  add(labels, std::string_view(fmt::format("{}", value)));
}

void MetricText::add(Labels labels, double value) {
  add(labels, std::string_view(number_text(value)));
}

void MetricText::add(Labels labels, std::string_view value) {
  add_line("", labels, {}, value);
}

void MetricText::add_histogram(Labels labels, std::span<const double> bounds,
                               std::span<const uint64_t> counts, double sum) {
  uint64_t count = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    count += counts[i];
    add_line("_bucket", labels,
             i < bounds.size() ? number_text(bounds[i]) : "+Inf",
             fmt::format("{}", count));
  }
  add_line("_sum", labels, {}, number_text(sum));
  add_line("_count", labels, {}, fmt::format("{}", count));
}

void MetricText::add_line(std::string_view suffix, Labels labels,
                          std::string_view bound, std::string_view value) {
  text_ += name_;
  text_ += suffix;
  char before = '{';
  const auto add_label = [&](std::string_view name, std::string_view label) {
    text_ += fmt::format("{}{}=\"{}\"", before, name, escaped(label, true));
    before = ',';
  };
  for (const Label& label : labels) add_label(label.name, label.value);
  if (!bound.empty()) add_label("le", bound);
  if (before == ',') text_ += '}';
  text_ += fmt::format(" {}\n", value);
}

}  // namespace tagflow::net
