#include "graph/builder/ops_control_flow.h"

namespace tagflow::graph::ops {

Outputs all_outputs(const OpResult& result) {
  Outputs outputs;
  for (int i = 0; i < result.size(); ++i) outputs.push_back(result[i]);
  return outputs;
}

Outputs identity_n(const Scope& s, const Inputs& inputs) {
  return all_outputs(s.op("IdentityN", inputs));
}

Outputs tuple(const Scope& s, const Outputs& outputs,
              const Outputs& control_inputs) {
  const Output gate = group(s.with_control_dependencies(control_inputs)
                                .with_control_dependencies(outputs),
                            {});
  if (!s.ok()) return {};
  const Scope gated =
      s.without_control_dependencies().with_control_dependencies(gate);
  Outputs result;
  for (const Output& output : outputs) {
    if (output.has_tensor()) result.push_back(identity(gated, output));
  }
  return result;
}

namespace {

bool is_text(const Input& value) {
  return value.is_literal() && value.dtype() == DataType::kString &&
         value.literal().is_scalar();
}

bool is_scalar_text(const Input& value) {
  if (value.is_literal()) return false;
  const PartialShape shape = value.output().shape();
  return value.dtype() == DataType::kString && shape.has_rank() &&
         shape.rank() == 0;
}

std::string print_template(const Inputs& values, const std::string& separator,
                           const std::string& placeholder) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) text += separator;
    text += is_text(values[i]) ? values[i].literal().scalar_value<std::string>()
                               : placeholder;
  }
  return text;
}

size_t count(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos;
       at = text.find(part, at + part.size()))
    ++found;
  return found;
}

}  // namespace

// Literal strings become part of the template. A single string is printed
// unquoted; among other values, or in a vector, TensorFlow quotes it.
Output print_line(const Scope& s, const Inputs& values,
                  const PrintLineAttrs& a) {
  Inputs tensors;
  for (const Input& value : values)
    if (!is_text(value)) tensors.add(value);
  // A placeholder that does not occur in the concatenated strings.
  std::string placeholder = "{}";
  std::string text = print_template(values, a.separator, placeholder);
  while (count(text, placeholder) != tensors.size()) {
    placeholder.insert(1, "_");
    text = print_template(values, a.separator, placeholder);
  }
  Output line;
  if (values.size() == 1 && tensors.size() == 1 && is_scalar_text(values[0])) {
    line = values[0].output();
  } else {
    line = s.op("StringFormat", tensors,
                {{"template", text},
                 {"placeholder", placeholder},
                 {"summarize", a.summarize}});
  }
  return s.op("PrintV2", {line},
              {{"output_stream", a.output_stream}, {"end", a.end}});
}

}  // namespace tagflow::graph::ops
