// Conversion of attributes to and from their file messages.
#pragma once

#include "graph/attr.h"
#include "graph/limits.h"

namespace tensorflow {
class AttrValue;
}

namespace tagflow::graph {

// The remaining part of the limits while a file is read.
struct LimitsLeft {
  explicit LimitsLeft(const Limits& l)
      : limits(l),
        tensor_bytes(l.max_tensor_bytes),
        repeated_bytes(l.max_repeated_bytes),
        nodes(l.max_nodes) {}
  const Limits& limits;
  int64_t tensor_bytes;
  int64_t repeated_bytes;
  size_t nodes;
};

// Errors are those of tensor_from_proto(). `depth` is the nesting of functions
// around the value. The caller names the attribute.
Result<AttrValue> attr_from_proto(const tensorflow::AttrValue& proto,
                                  LimitsLeft& left, int depth = 0);
Status attr_to_proto(const AttrValue& value, tensorflow::AttrValue* proto);

// The attributes of a protobuf map; errors name the attribute.
template <class ProtoMap>
Result<AttrMap> attrs_from_proto(const ProtoMap& proto, LimitsLeft& left,
                                 int depth = 0) {
  std::vector<AttrMap::value_type> attrs;
  attrs.reserve(proto.size());
  for (const auto& [name, value] : proto) {
    if (name.size() > left.limits.max_name_length)
      return error(Code::kResourceExhausted,
                   "an attribute's name has {} bytes, the limit is {}",
                   name.size(), left.limits.max_name_length);
    Result<AttrValue> attr = attr_from_proto(value, left, depth);
    if (!attr.ok())
      return std::move(attr).status().with_prefix(
          fmt::format("attribute \"{}\": ", name));
    attrs.emplace_back(name, std::move(attr).value());
  }
  return AttrMap(std::move(attrs));
}

template <class ProtoMap>
Status attrs_to_proto(const AttrMap& attrs, ProtoMap* proto) {
  for (const auto& [name, value] : attrs) {
    Status status = attr_to_proto(value, &(*proto)[name]);
    if (!status.ok())
      return std::move(status).with_prefix(
          fmt::format("attribute \"{}\": ", name));
  }
  return {};
}

}  // namespace tagflow::graph
