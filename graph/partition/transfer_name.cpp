#include "graph/partition/transfer_name.h"

#include <utility>

namespace tagflow::graph {
namespace {

bool is_send(const Node& node) {
  return node.op() == "_Send" || node.op() == "_HostSend";
}

}  // namespace

bool is_transfer(const Node& node) {
  return is_send(node) || node.op() == "_Recv" || node.op() == "_HostRecv";
}

Result<TransferName> transfer_name_of(const Node& node) {
  TransferName name;
  TAGFLOW_ASSIGN(name.sender, node.attr<std::string>("send_device"));
  TAGFLOW_ASSIGN(name.receiver, node.attr<std::string>("recv_device"));
  TAGFLOW_ASSIGN(name.tensor, node.attr<std::string>("tensor_name"));
  TAGFLOW_ASSIGN(const auto birth,
                 node.attr<int64_t>("send_device_incarnation"));
  name.key = fmt::format("{};{:x};{};{}", name.sender, uint64_t(birth),
                         name.receiver, name.tensor);
  name.is_sent = is_send(node);
  return name;
}

}  // namespace tagflow::graph
