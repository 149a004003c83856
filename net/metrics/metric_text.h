// MetricText: figures in the text format of Prometheus, version 0.0.4.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace tagflow::net {

// A family of figures has a name, a type and a sentence of help, and each
// figure in it other labels: begin() a family, then add() its figures.
// Thread-compatible.
class MetricText {
 public:
  // What a server says that it sends.
  static constexpr char kType[] = "text/plain; version=0.0.4; charset=utf-8";

  enum class Type : uint8_t { kCounter, kGauge, kHistogram };
  // Any text is a value. Bytes that are not UTF-8 become U+FFFD.
  struct Label {
    std::string_view name;
    std::string_view value;
  };
  using Labels = std::initializer_list<Label>;

  // REQUIRES: the name and those of labels are [a-zA-Z_][a-zA-Z0-9_]*, and no
  // family had this one. The name of a counter ends with "_total", and a unit
  // is before that.
  void begin(std::string_view name, Type type, std::string_view help);
  // A figure of the family. REQUIRES: none had these labels
  void add(Labels labels, uint64_t value);
  void add(Labels labels, double value);
  // A figure of a family of histograms: of each value that was at most a bound,
  // and, last, of those that were above all, how many there were; and the sum
  // of the values. REQUIRES: there is one count more than bounds, which
  // increase
  void add_histogram(Labels labels, std::span<const double> bounds,
                     std::span<const uint64_t> counts, double sum);
  // A family of one figure without labels.
  template <class Number>
  void one(std::string_view name, Type type, std::string_view help,
           Number value) {
    begin(name, type, help);
    add({}, value);
  }

  const std::string& text() const { return text_; }

 private:
  void add(Labels labels, std::string_view value);
  void add_line(std::string_view suffix, Labels labels, std::string_view bound,
                std::string_view value);

  std::string name_;  // of the family
  std::string text_;
};

}  // namespace tagflow::net
