#include "net/control/control.h"

#include <caf/actor_cast.hpp>
#include <caf/send.hpp>
#include <set>
#include <utility>

#include "actors/runtime/annotated_actor.h"
#include "graph/fault.h"
#include "net/control/control_system.h"
#include "net/control/directory.h"
#include "net/control/joiner.h"

namespace tagflow::net {

class Control::Impl {
 public:
  Impl(IoThread& io_thread, ControlOptions options,
       std::unique_ptr<ControlSystem> control_system)
      : thread(io_thread),
        on_warning(options.on_warning),
        most_connections(options.most_connections),
        joins(!options.join.host.empty()),
        control(std::move(control_system)) {
    caf::actor_system& system = control->system();
    options.identity.node = control->node();
    if (!joins) {
      actor = caf::actor_cast<caf::actor>(system.spawn<Directory>(
          Directory::Options{*control, std::move(options.load), on_warning,
                             std::move(options.on_asked_to_leave)}));
      types = system.message_types(caf::detail::type_list<DirectoryActor>());
    } else {
      actor = caf::actor_cast<caf::actor>(system.spawn<Joiner>(Joiner::Options{
          *control, thread, std::move(options.identity),
          std::move(options.join), std::move(options.load), on_warning,
          std::move(options.on_joined), std::move(options.on_refused),
          std::move(options.on_asked_to_leave)}));
      types = system.message_types(caf::detail::type_list<WorkerActor>());
    }
    // Another thread may be the one that destroys it.
    actors::leave_system();
  }
  ~Impl() {
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
    actor = {};
  }

  // CAF names actors within a process by ports, of which it has one.
  static constexpr uint16_t kPublished = 1;

  IoThread& thread;
  const std::function<void(const std::string&)> on_warning;
  const size_t most_connections;
  const bool joins;  // a directory does not
  const std::unique_ptr<ControlSystem> control;
  caf::actor actor;             // a DirectoryActor or a WorkerActor
  std::set<std::string> types;  // of its messages
};

Control::Control(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Control::~Control() = default;

Result<std::unique_ptr<Control>> Control::start(IoThread& thread,
                                                ControlOptions options) {
  return guarded("net|control", [&]() -> Result<std::unique_ptr<Control>> {
    TAGFLOW_ASSIGN(auto system, ControlSystem::start(options.on_warning));
    return std::unique_ptr<Control>(new Control(
        std::make_unique<Impl>(thread, std::move(options), std::move(system))));
  });
}

uint64_t Control::node() const { return impl_->control->node(); }

Status Control::admit(const Greeting& peer) const {
  if (peer.node == 0)
    return error(Code::kFailedPrecondition, "the connector has no CAF node");
  if (peer.node == node())
    return error(Code::kFailedPrecondition, "a process speaks with itself");
  if (impl_->control->num_connections() >= impl_->most_connections)
    return error(Code::kResourceExhausted, "{} processes are connected",
                 impl_->most_connections);
  return {};
}

void Control::take(Connection connection) {
  // Not in admit(): the older connection may just be ending, and then the peer
  // tries again.
  if (const auto other = impl_->control->find(connection.peer.node)) {
    impl_->on_warning(fmt::format(
        "[net|control] {} and {} have the same CAF node: the machines and the "
        "numbers of the processes are equal",
        other->greeting.task.to_string(), connection.peer.task.to_string()));
    return;
  }
  auto adopted =
      impl_->control->adopt(impl_->thread, std::move(connection),
                            ControlSystem::Side::kAcceptor, impl_->actor.id());
  if (!adopted.ok())
    return impl_->on_warning(std::string(adopted.status().message()));
  auto [id, scribe] = std::move(*adopted);
  impl_->control->watch(impl_->thread, id);
  caf::anon_send(impl_->control->broker(), caf::publish_atom_v,
                 std::move(scribe), Impl::kPublished,
                 caf::actor_cast<caf::strong_actor_ptr>(impl_->actor),
                 impl_->types);
}

void Control::announce(const CatalogueEntry& entry) {
  auto bytes = control_bytes_of(entry);
  if (!bytes.ok())
    return impl_->on_warning(std::string(bytes.status().message()));
  caf::anon_send(impl_->actor, caf::put_atom_v, std::move(*bytes));
}

void Control::leave() {
  // A directory has nobody to tell.
  if (impl_->joins) caf::anon_send(impl_->actor, caf::leave_atom_v);
}

}  // namespace tagflow::net
