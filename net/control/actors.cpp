#include "net/control/actors.h"

#include <caf/atom.hpp>
#include <caf/message.hpp>
#include <caf/scheduled_actor.hpp>
#include <caf/sec.hpp>
#include <utility>

#include "graph/status_text.h"

namespace tagflow::net {
namespace {

constexpr caf::atom_value kCategory = caf::atom("tagflow");

bool is_error(Code code) {
  return (code > Code::kOk && code <= Code::kUnauthenticated) ||
         code == Code::kDeadlock;
}

}  // namespace

void harden(caf::scheduled_actor& actor) {
  actor.set_default_handler(caf::drop);
  actor.set_error_handler([](const caf::error&) {});
  actor.set_exit_handler([&actor](caf::exit_msg& order) {
    // Whoever orders an actor of this process to end gives its own address.
    if (order.source == actor.address()) actor.quit(std::move(order.reason));
  });
}

caf::result<caf::ok_atom> leave_when_asked(const std::function<void()>& ask) {
  if (!ask)
    return to_caf(error(Code::kFailedPrecondition,
                        "[net|control] this worker ends with its process"));
  ask();
  return caf::ok_atom_v;
}

caf::error to_caf(const Status& status) {
  return {uint8_t(status.code()), kCategory,
          caf::make_message(shorten_message(status.message()))};
}

Status from_caf(const caf::actor_system& system, const caf::error& failure) {
  if (!failure)
    return error(Code::kInternal, "[net|control] an error without a code");
  const Code code{failure.code()};
  if (failure.category() == kCategory && is_error(code) &&
      failure.context().match_elements<std::string>())
    return {code, shorten_message(failure.context().get_as<std::string>(0))};
  if (failure == caf::sec::request_timeout)
    return error(Code::kDeadlineExceeded,
                 "[net|control] the peer does not answer");
  return error(Code::kUnavailable, "[net|control] {}",
               shorten_message(system.render(failure)));
}

}  // namespace tagflow::net
