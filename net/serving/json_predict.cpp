#include "net/serving/json_predict.h"

#include <memory>
#include <optional>
#include <utility>

#include "graph/fault.h"
#include "net/serving/json_reader.h"
#include "net/serving/json_tensor.h"

namespace tagflow::net::serving {
namespace {

using Kind = JsonReader::Kind;

// Reads the values of a body for one signature.
class InputReader {
 public:
  InputReader(JsonReader& json, const ServedSignature& signature)
      : json_(json), signature_(signature) {}

  // The value of "inputs".
  Result<Tensors> read_whole() {
    if (!is_named()) {
      TAGFLOW_ASSIGN(JsonTensorReader * only, only_input());
      TAGFLOW_RETURN_IF_ERROR(named(only_name(), only->read(json_)));
      return take();
    }
    TAGFLOW_RETURN_IF_ERROR(json_.begin_object());
    std::string key;
    while (true) {
      TAGFLOW_ASSIGN(const bool is_one, json_.next_key(key));
      if (!is_one) return take();
      const bool is_new = !readers_.contains(key);
      TAGFLOW_ASSIGN(JsonTensorReader * input, input_of(key));
      if (!is_new)
        return json_.error_here(
            fmt::format("input \"{}\" has two values", key));
      TAGFLOW_RETURN_IF_ERROR(named(key, input->read(json_)));
    }
  }

  // The value of "instances".
  Result<Tensors> read_rows() {
    TAGFLOW_RETURN_IF_ERROR(json_.begin_array());
    int64_t count = 0;
    while (true) {
      TAGFLOW_ASSIGN(const bool is_one, json_.next_element());
      if (!is_one) break;
      ++count;
      if (is_named()) {
        TAGFLOW_RETURN_IF_ERROR(read_instance());
        continue;
      }
      TAGFLOW_ASSIGN(JsonTensorReader * only, only_input());
      TAGFLOW_RETURN_IF_ERROR(named(only_name(), only->read_row(json_)));
    }
    if (count == 0) return json_.error_here("there are no \"instances\"");
    for (const auto& [name, reader] : readers_)
      if (reader->num_rows() != count)
        return json_.error_here(fmt::format(
            "{} of {} \"instances\" have one value for input \"{}\", but each "
            "needs one,",
            reader->num_rows(), count, name));
    return take();
  }

 private:
  // Whether what comes next has the names of inputs.
  bool is_named() {
    return json_.kind() == Kind::kObject &&
           (signature_.inputs.contains("b64") || !is_binary_string(json_));
  }

  Status read_instance() {
    TAGFLOW_RETURN_IF_ERROR(json_.begin_object());
    std::string key;
    while (true) {
      TAGFLOW_ASSIGN(const bool is_one, json_.next_key(key));
      if (!is_one) return {};
      TAGFLOW_ASSIGN(JsonTensorReader * input, input_of(key));
      TAGFLOW_RETURN_IF_ERROR(named(key, input->read_row(json_)));
    }
  }

  // An error says whose value it is about.
  static Status named(const std::string& name, Status status) {
    if (status.ok()) return status;
    return std::move(status).with_prefix(fmt::format("input \"{}\": ", name));
  }

  // REQUIRES: there is only one input
  const std::string& only_name() const {
    return signature_.inputs.begin()->first;
  }

  Result<JsonTensorReader*> only_input() {
    if (signature_.inputs.size() == 1) return input_of(only_name());
    return json_.error_here(fmt::format(
        "signature \"{}\" has {} inputs, so values need their names,",
        signature_.name, signature_.inputs.size()));
  }

  Result<JsonTensorReader*> input_of(const std::string& name) {
    if (const auto found = readers_.find(name); found != readers_.end())
      return found->second.get();
    const auto spec = signature_.inputs.find(name);
    if (spec == signature_.inputs.end())
      return json_.error_here(fmt::format(
          "signature \"{}\" has no input \"{}\"", signature_.name, name));
    TAGFLOW_ASSIGN(auto reader, JsonTensorReader::make(spec->second.dtype));
    return (readers_[name] = std::move(reader)).get();
  }

  Result<Tensors> take() {
    Tensors inputs;
    for (auto& [name, reader] : readers_) {
      TAGFLOW_ASSIGN(Tensor value, reader->take());
      inputs.emplace(name, std::move(value));
    }
    return inputs;
  }

  JsonReader& json_;
  const ServedSignature& signature_;
  std::map<std::string, std::unique_ptr<JsonTensorReader>> readers_;
};

// Reads the values there.
Status read_values(JsonReader json, const ServedSignature& signature,
                   JsonPredict& predict) {
  InputReader reader(json, signature);
  TAGFLOW_ASSIGN(predict.inputs,
                 predict.is_in_rows ? reader.read_rows() : reader.read_whole());
  return {};
}

Result<JsonPredict> read_body(std::string_view body,
                              const FindSignature& find) {
  JsonPredict predict;
  JsonReader json(body);
  std::optional<JsonReader> values;
  TAGFLOW_RETURN_IF_ERROR(json.begin_object());
  std::string key;
  while (true) {
    TAGFLOW_ASSIGN(const bool is_one, json.next_key(key));
    if (!is_one) break;
    if (key == "signature_name") {
      TAGFLOW_ASSIGN(predict.signature, json.string());
    } else if (key == "instances" || key == "inputs") {
      if (values)
        return json.error_here(
            "there are \"instances\" and \"inputs\", or one of them twice,");
      // What they are, the signature says, whose name may come behind them.
      values = json;
      predict.is_in_rows = key == "instances";
      TAGFLOW_RETURN_IF_ERROR(json.skip());
    } else {
      TAGFLOW_RETURN_IF_ERROR(json.skip());
    }
  }
  TAGFLOW_RETURN_IF_ERROR(json.end());
  if (!values)
    return json.error_here("there are neither \"instances\" nor \"inputs\"");
  TAGFLOW_ASSIGN(const ServedSignature* signature, find(predict.signature));
  TAGFLOW_RETURN_IF_ERROR(read_values(*values, *signature, predict));
  return predict;
}

bool ends_in_bytes(std::string_view name) { return name.ends_with("_bytes"); }

Status write_rows(const Tensors& outputs, std::string& text) {
  int64_t rows = -1;
  for (const auto& [name, value] : outputs) {
    if (value.rank() == 0 || (rows >= 0 && value.dim(0) != rows))
      return invalid_argument(
          "[json] output \"{}\" is {}, and the outputs have no rows in "
          "common: ask with \"inputs\" instead of \"instances\"",
          name, value.describe());
    rows = value.dim(0);
  }
  text += '[';
  for (int64_t row = 0; row < rows; ++row) {
    if (row > 0) text += ", ";
    if (outputs.size() == 1) {
      const auto& [name, value] = *outputs.begin();
      TAGFLOW_RETURN_IF_ERROR(
          write_json_row(value, row, ends_in_bytes(name), text));
      continue;
    }
    text += '{';
    for (const auto& [name, value] : outputs) {
      if (text.back() != '{') text += ", ";
      write_json_string(name, text);
      text += ": ";
      TAGFLOW_RETURN_IF_ERROR(
          write_json_row(value, row, ends_in_bytes(name), text));
    }
    text += '}';
  }
  text += ']';
  return {};
}

Status write_whole(const Tensors& outputs, std::string& text) {
  if (outputs.size() == 1) {
    const auto& [name, value] = *outputs.begin();
    return write_json_tensor(value, ends_in_bytes(name), text);
  }
  text += '{';
  for (const auto& [name, value] : outputs) {
    if (text.back() != '{') text += ", ";
    write_json_string(name, text);
    text += ": ";
    TAGFLOW_RETURN_IF_ERROR(
        write_json_tensor(value, ends_in_bytes(name), text));
  }
  text += '}';
  return {};
}

}  // namespace

Result<JsonPredict> read_json_predict(std::string_view body,
                                      const FindSignature& find) {
  return guarded("json", [&] { return read_body(body, find); });
}

Result<std::string> write_json_predict(const Tensors& outputs,
                                       bool is_in_rows) {
  return guarded("json", [&]() -> Result<std::string> {
    std::string text = is_in_rows ? "{\"predictions\": " : "{\"outputs\": ";
    TAGFLOW_RETURN_IF_ERROR(is_in_rows ? write_rows(outputs, text)
                                       : write_whole(outputs, text));
    text += "}\n";
    return text;
  });
}

}  // namespace tagflow::net::serving
