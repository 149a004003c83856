// Configuration files in the text format of protocol buffers. Internal.
#pragma once

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <string>
#include <string_view>

#include "graph/status.h"

namespace tagflow::net::serving {

// Fields that the message does not have are ignored. InvalidArgument with the
// line for another text.
template <class Message>
Status parse_text_proto(std::string_view text, Message* message) {
  class FirstError final : public google::protobuf::io::ErrorCollector {
   public:
    void AddError(int line, int column, const std::string& what) override {
      if (text.empty())
        text = fmt::format("line {}:{}: {}", line + 1, column + 1, what);
    }
    void AddWarning(int, int, const std::string&) override {}
    std::string text;
  };
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.AllowUnknownField(true);
  parser.SetRecursionLimit(100);
  if (parser.ParseFromString(std::string(text), message)) return {};
  return invalid_argument("{}", error.text);
}

}  // namespace tagflow::net::serving
