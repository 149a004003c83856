// Reads the text format of Prometheus, version 0.0.4, as strictly as a scraper.
#pragma once

#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "graph/status.h"
#include "graph/utf8.h"

namespace tagflow::net {

struct ParsedMetrics {
  struct Family {
    std::string type, help;
  };
  std::map<std::string, Family> families;
  // By name and labels, whose names are in order: "up{peer=\"a\",x=\"b\"}",
  // with the values as they were before they were escaped.
  std::map<std::string, double> figures;

  // NaN, which equals nothing, if it is not there.
  double operator[](const std::string& figure) const {
    const auto found = figures.find(figure);
    return found == figures.end() ? std::strtod("nan", nullptr) : found->second;
  }
};

// Reads one text. An error names the line.
class MetricParser {
 public:
  static Result<ParsedMetrics> parse(std::string_view text) {
    MetricParser parser;
    if (!text.empty() && !text.ends_with('\n'))
      return invalid_argument("the last line does not end");
    while (!text.empty()) {
      const size_t end = text.find('\n');
      const std::string line(text.substr(0, end));
      text.remove_prefix(end + 1);
      parser.rest_ = line;
      const std::string wrong = parser.take_line();
      if (!wrong.empty()) return invalid_argument("{}: {}", line, wrong);
    }
    return std::move(parser.parsed_);
  }

 private:
  static bool is_name(std::string_view name) {
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
    for (const char c : name)
      if (!(c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
            (c >= '0' && c <= '9')))
        return false;
    return true;
  }
  bool skip(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  // Up to one of these characters, or to the end.
  std::string take_until(const char* ends) {
    const std::string taken(rest_.substr(0, rest_.find_first_of(ends)));
    rest_.remove_prefix(taken.size());
    return taken;
  }

  std::string take_line() {
    for (std::string_view left = rest_; !left.empty();) {
      const size_t length = character_length(left);
      if (length == 0) return "it is not UTF-8";
      left.remove_prefix(length);
    }
    if (skip("# HELP ")) return take_help();
    if (skip("# TYPE ")) return take_type();
    if (rest_.starts_with('#') || rest_.empty()) return "it says nothing";
    return take_figure();
  }

  std::string take_help() {
    const std::string name = take_until(" ");
    if (!is_name(name)) return "the name is none";
    if (parsed_.families.contains(name)) return "the family is there twice";
    if (!skip(" ") || rest_.empty()) return "there is no help";
    std::string help;
    while (!rest_.empty()) {
      if (skip("\\\\")) {
        help += '\\';
      } else if (skip("\\n")) {
        help += '\n';
      } else if (rest_[0] == '\\') {
        return "an escape of help is none";
      } else {
        help += rest_[0];
        rest_.remove_prefix(1);
      }
    }
    parsed_.families[name].help = help;
    family_ = name;
    return "";
  }

  std::string take_type() {
    const std::string name = take_until(" ");
    if (name != family_) return "the help of another family is before it";
    if (!parsed_.families[name].type.empty()) return "it has two types";
    if (!skip(" ")) return "there is no type";
    const std::string type(rest_);
    if (type != "counter" && type != "gauge") return "the type is none";
    if ((type == "counter") != name.ends_with("_total"))
      return "the name of a counter, and no other, ends with _total";
    parsed_.families[name].type = type;
    return "";
  }

  std::string take_figure() {
    const std::string name = take_until("{ ");
    if (name != family_) return "it is not in its family";
    if (parsed_.families[name].type.empty()) return "its type is not known";
    std::map<std::string, std::string> labels;
    if (skip("{")) {
      do {
        const std::string wrong = take_label(labels);
        if (!wrong.empty()) return wrong;
      } while (skip(","));
      if (!skip("}")) return "the labels do not end";
    }
    if (!skip(" ")) return "no space is before the value";
    const std::string value(rest_);
    char* end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    if (value.empty() || value[0] == ' ' || end != value.c_str() + value.size())
      return "the value is no number";
    if (parsed_.families[name].type == "counter" && !(number >= 0))
      return "a counter is negative";
    std::string figure = name;
    for (const auto& [label, text] : labels)
      figure += (figure == name ? "{" : ",") + label + "=\"" + text + "\"";
    if (!labels.empty()) figure += "}";
    if (!parsed_.figures.emplace(figure, number).second)
      return "the figure is there twice";
    return "";
  }

  std::string take_label(std::map<std::string, std::string>& labels) {
    const std::string name = take_until("=");
    if (!is_name(name)) return "the name of a label is none";
    if (!skip("=\"")) return "a label has no value";
    std::string value;
    while (!rest_.starts_with('"')) {
      if (rest_.empty()) return "the value of a label does not end";
      if (skip("\\\\")) {
        value += '\\';
      } else if (skip("\\n")) {
        value += '\n';
      } else if (skip("\\\"")) {
        value += '"';
      } else if (rest_[0] == '\\') {
        return "an escape of a label is none";
      } else {
        value += rest_[0];
        rest_.remove_prefix(1);
      }
    }
    skip("\"");
    if (!labels.emplace(name, value).second) return "a label is there twice";
    return "";
  }

  ParsedMetrics parsed_;
  std::string family_;
  std::string_view rest_;  // of the line
};

}  // namespace tagflow::net
