// JsonReader: reads JSON value by value, without a tree of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/status.h"

namespace tagflow::net::serving {

// JSON (RFC 8259), and NaN, Infinity and -Infinity as numbers, as TensorFlow
// Serving's clients send them. Errors are InvalidArgument with the place, among
// them that for more than kMostDepth values in each other. After an error the
// reader is of no use. A copy goes on at the same place. The text must outlive
// it. Thread-compatible.
class JsonReader {
 public:
  static constexpr int kMostDepth = 100;

  enum class Kind : uint8_t {
    kObject,
    kArray,
    kString,
    kNumber,
    kBool,
    kNull,
    kOther,  // no value begins here
  };

  explicit JsonReader(std::string_view text) : text_(text) {}

  // What comes next.
  Kind kind();
  // An object: begin_object(), then next_key() and a value, until next_key()
  // is false, which is at the end of the object.
  Status begin_object();
  Result<bool> next_key(std::string& key);
  // An array: begin_array(), then a value as often as next_element() is true.
  Status begin_array();
  Result<bool> next_element();

  Result<std::string> string();
  // Its text.
  Result<std::string_view> number();
  Result<bool> boolean();
  // Any value, which is dropped.
  Status skip();
  // That nothing comes any more.
  Status end();

  // "[json] WHAT at byte N".
  Status error_here(std::string_view what) const;
  // "[json] NUMBER WHAT at byte N". REQUIRES: number() has returned it
  Status error_at(std::string_view number, std::string_view what) const;

 private:
  void skip_space();
  bool take(std::string_view word);
  Status enter(char bracket, std::string_view what);
  // Whether there is another member; takes the comma or the bracket.
  Result<bool> next(char bracket);

  std::string_view text_;
  size_t at_ = 0;
  std::vector<bool> first_;  // of each open value: whether it has no member yet
};

}  // namespace tagflow::net::serving
