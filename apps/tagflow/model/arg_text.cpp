#include "apps/tagflow/model/arg_text.h"

namespace tagflow::apps {
namespace {

std::string type_text(const graph::ArgDef& arg) {
  std::string type = !arg.type_attr.empty()        ? arg.type_attr
                     : !arg.type_list_attr.empty() ? arg.type_list_attr
                                                   : dtype_name(arg.dtype);
  if (arg.is_ref) type = "Ref(" + type + ")";
  return arg.number_attr.empty() ? type : arg.number_attr + " * " + type;
}

}  // namespace

std::vector<std::string> arg_texts(const std::vector<graph::ArgDef>& args) {
  std::vector<std::string> texts;
  for (const graph::ArgDef& arg : args) {
    texts.push_back(arg.name + ": " + type_text(arg));
  }
  return texts;
}

}  // namespace tagflow::apps
