// Examples for tests of their parsers.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "graph/proto/example.pb.h"

namespace tagflow::devices {

// The values of a feature; std::monostate: no list.
using Values = std::variant<std::monostate, std::vector<std::string>,
                            std::vector<float>, std::vector<int64_t>>;
using Strings = std::vector<std::string>;
using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

inline tensorflow::Feature feature(const Values& values) {
  tensorflow::Feature made;
  if (const auto* strings = std::get_if<Strings>(&values)) {
    auto* list = made.mutable_bytes_list();
    for (const std::string& value : *strings) list->add_value(value);
  } else if (const auto* floats = std::get_if<Floats>(&values)) {
    auto* list = made.mutable_float_list();
    for (const float value : *floats) list->add_value(value);
  } else if (const auto* ints = std::get_if<Ints>(&values)) {
    auto* list = made.mutable_int64_list();
    for (const int64_t value : *ints) list->add_value(value);
  }
  return made;
}

inline std::string example(const std::map<std::string, Values>& features) {
  tensorflow::Example made;
  made.mutable_features();
  for (const auto& [key, values] : features)
    (*made.mutable_features()->mutable_feature())[key] = feature(values);
  return made.SerializeAsString();
}

inline std::string sequence(
    const std::map<std::string, Values>& context,
    const std::map<std::string, std::vector<Values>>& lists) {
  tensorflow::SequenceExample made;
  for (const auto& [key, values] : context)
    (*made.mutable_context()->mutable_feature())[key] = feature(values);
  for (const auto& [key, steps] : lists) {
    auto& list = (*made.mutable_feature_lists()->mutable_feature_list())[key];
    for (const Values& values : steps) *list.add_feature() = feature(values);
  }
  return made.SerializeAsString();
}

}  // namespace tagflow::devices
