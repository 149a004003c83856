#include "net/transfer/pairing.h"

#include <algorithm>
#include <future>
#include <memory>
#include <thread>

#include "graph/fault.h"
#include "net/link/listener.h"
#include "net/link/retries.h"

namespace tagflow::net {

Result<Connection> connect(IoThread& thread, const Address& address,
                           const Identity& identity, Purpose purpose,
                           uint64_t wanted_incarnation, graph::Budget* budget) {
  return guarded("net", [&]() -> Result<Connection> {
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
    while (answer.wait_for(kBudgetLook) != std::future_status::ready)
      if (budget != nullptr) TAGFLOW_RETURN_IF_ERROR(budget->look());
    return answer.get();
  });
}

namespace {

Result<Pairing::Pair> connect_once(IoThread& thread, const Address& address,
                                   const Identity& identity,
                                   uint64_t wanted_incarnation,
                                   graph::Budget* budget) {
  Pairing pairing;
  std::optional<Pairing::Pair> pair;
  for (const Purpose purpose : {Purpose::kSmall, Purpose::kBulk}) {
    TAGFLOW_ASSIGN(Connection connection,
                   connect(thread, address, identity, purpose,
                           wanted_incarnation, budget));
    // Both are those of one process, which may have started anew meanwhile.
    connection.peer.purpose = purpose;
    wanted_incarnation = connection.peer.incarnation;
    pair = pairing.add(std::move(connection));
  }
  return std::move(*pair);
}

}  // namespace

Result<Pairing::Pair> connect_pair(IoThread& thread, const Address& address,
                                   const Identity& identity,
                                   uint64_t wanted_incarnation,
                                   std::chrono::milliseconds patience,
                                   graph::Budget* budget) {
  constexpr std::chrono::milliseconds kFirstPause{5}, kLongestPause{200};
  const auto end = std::chrono::steady_clock::now() + patience;
  Retries retries;
  for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    auto pair =
        connect_once(thread, address, identity, wanted_incarnation, budget);
    // A process has ended, and another one is there. That one is wanted, too,
    // unless the caller has named its incarnation.
    if (pair.status().code() == Code::kNotFound) {
      pair = error(Code::kUnavailable, "{}", pair.status().message());
      if (wanted_incarnation != 0) return pair;
    }
    if (pair.ok() || std::chrono::steady_clock::now() >= end ||
        !retries.may_help(pair.status()))
      return pair;
    if (budget != nullptr) TAGFLOW_RETURN_IF_ERROR(budget->look());
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace tagflow::net
