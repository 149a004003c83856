#include "net/transfer/pairing.h"

#include <future>
#include <memory>

#include "graph/fault.h"
#include "net/link/listener.h"

namespace tagflow::net {

Result<Connection> connect(IoThread& thread, const Address& address,
                           const Identity& identity, Purpose purpose,
                           uint64_t wanted_incarnation) {
  return guarded("net", [&] {
    std::promise<Result<Connection>> promise;
    std::future<Result<Connection>> answer = promise.get_future();
    const Connector connector(thread,
                              {.host = address.host,
                               .port = address.port,
                               .purpose = purpose,
                               .wanted_incarnation = wanted_incarnation},
                              identity, [&](Result<Connection> connection) {
                                promise.set_value(std::move(connection));
                              });
    return answer.get();
  });
}

Result<Pairing::Pair> connect_pair(IoThread& thread, const Address& address,
                                   const Identity& identity,
                                   uint64_t wanted_incarnation) {
  Pairing pairing;
  std::optional<Pairing::Pair> pair;
  for (const Purpose purpose : {Purpose::kSmall, Purpose::kBulk}) {
    TAGFLOW_ASSIGN(Connection connection, connect(thread, address, identity,
                                                  purpose, wanted_incarnation));
    // Both are those of one process, which may have started anew meanwhile.
    connection.peer.purpose = purpose;
    wanted_incarnation = connection.peer.incarnation;
    pair = pairing.add(std::move(connection));
  }
  return std::move(*pair);
}

}  // namespace tagflow::net
