// Directory: the actor that knows which workers a cluster has.
#pragma once

#include <caf/typed_event_based_actor.hpp>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "net/control/actors.h"
#include "net/control/annotated.h"
#include "net/control/control_system.h"
#include "net/control/ticks.h"
#include "net/protocol/members.h"
#include "net/wire/control.h"

namespace tagflow::net {

// What its own process tells a directory, too.
using DirectoryBase = DirectoryActor::extend<
    // The CatalogueEntry of this process.
    caf::reacts_to<caf::put_atom, std::string>,
    caf::reacts_to<caf::tick_atom, uint64_t>>;

// A worker is a member from its join until its connection ends, or it gives no
// sign of life: see Note [Membership]. Its incarnation is that of its
// connection, so it has another one whenever it joins.
class Directory final : public Annotated<DirectoryBase::base> {
 public:
  struct Options {
    ControlSystem& system;
    std::function<Load()> load;  // of this process
    std::function<void(const std::string&)> on_warning;
    std::function<void()> on_asked_to_leave;  // may be empty
  };
  Directory(caf::actor_config& config, Options options);

  behavior_type make_behavior() override;
  void on_exit() override { known_.clear(); }
  const char* name() const override { return "tagflow.directory"; }

 private:
  struct Known {
    CatalogueEntry entry;
    WorkerActor actor;
    Incarnation incarnation{};
    ControlSystem::ConnectionId connection{};
  };

  Status join(const std::string& bytes);
  // Tells the event of the sender, which must be a member.
  caf::result<caf::ok_atom> take_sign(void (Members::*event)(TaskIndex,
                                                             Incarnation));
  Result<TaskIndex> index_of(const std::string& task);
  // With `entry` instead of that of its task.
  Catalogue catalogue(const CatalogueEntry* entry = nullptr) const;
  Result<std::string> catalogue_bytes() const;
  caf::result<std::string> load_of(const std::string& task);
  void lose(const caf::actor_addr& actor);
  void perform(Members::Actions& actions);
  void plan_tick();

  const Options options_;
  std::optional<CatalogueEntry> own_;
  Members members_;
  Ticks ticks_;
  std::map<std::string, TaskIndex> indices_;  // of all tasks so far, by name
  std::map<TaskIndex, Known> known_;          // the members
  std::unordered_map<caf::actor_addr, TaskIndex> by_actor_;
};

}  // namespace tagflow::net
