#include "net/control/client.h"

#include <caf/actor_cast.hpp>
#include <caf/io/middleman.hpp>
#include <caf/scoped_actor.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "graph/fault.h"
#include "net/control/actors.h"
#include "net/control/control_system.h"
#include "net/link/retries.h"
#include "net/transfer/identity.h"

namespace tagflow::net {
namespace {

// What is at an address of the cluster.
struct Found {
  caf::strong_actor_ptr actor;
  std::set<std::string> types;  // of its messages
  Task task;
  uint64_t node = 0;
};

// Connects to members. Thread-compatible.
class Client {
 public:
  static Result<std::unique_ptr<Client>> make(const ClusterAccess& access);

  Result<Found> find(const Address& at);
  bool is_connected(const Found& found) const {
    return control_->find(found.node).has_value();
  }
  caf::scoped_actor& self() { return self_; }
  const caf::actor_system& system() const { return control_->system(); }

 private:
  Client(std::unique_ptr<IoThread> thread,
         std::unique_ptr<ControlSystem> control, Identity identity)
      : thread_(std::move(thread)),
        control_(std::move(control)),
        identity_(std::move(identity)),
        self_(control_->system()) {}

  std::unique_ptr<IoThread> thread_;
  std::unique_ptr<ControlSystem> control_;
  const Identity identity_;
  caf::scoped_actor self_;
};

Result<std::unique_ptr<Client>> Client::make(const ClusterAccess& access) {
  TAGFLOW_ASSIGN(auto thread, IoThread::start("tagflow control"));
  TAGFLOW_ASSIGN(auto control, ControlSystem::start());
  TAGFLOW_ASSIGN(Identity identity,
                 make_identity(Role::kMaster, {"master", 0}, access.name,
                               access.secret, access.tls));
  identity.node = control->node();
  return std::unique_ptr<Client>(
      new Client(std::move(thread), std::move(control), std::move(identity)));
}

Result<Found> Client::find(const Address& at) {
  TAGFLOW_ASSIGN(Connection connection,
                 net::connect(*thread_, at, identity_, Purpose::kControl));
  Found found{.task = connection.peer.task, .node = connection.peer.node};
  TAGFLOW_ASSIGN(ControlSystem::Adopted adopted,
                 control_->adopt(*thread_, std::move(connection),
                                 ControlSystem::Side::kConnector, self_->id()));
  // A silent peer is cut off.
  control_->watch(*thread_, adopted.first);
  Status status;
  self_
      ->request(control_->broker(), kAnswerTime, caf::connect_atom_v,
                std::move(adopted.second), uint16_t{0})
      .receive(
          [&](const caf::node_id&, caf::strong_actor_ptr& peer,
              std::set<std::string>& types) {
            found.actor = std::move(peer);
            found.types = std::move(types);
          },
          [&](const caf::error& failure) {
            status = from_caf(control_->system(), failure);
          });
  TAGFLOW_RETURN_IF_ERROR(status);
  if (!is_a<MemberActor>(control_->system(), found.types))
    return error(Code::kUnavailable, "[net|control] {}:{} is not a worker",
                 at.host, at.port);
  return found;
}

// A connection to the directory of a cluster. Thread-compatible.
class DirectoryClient {
 public:
  static Result<std::unique_ptr<DirectoryClient>> connect(
      const ClusterAccess& access);

  Result<std::vector<CatalogueEntry>> members();
  Result<std::vector<MemberStatus>> status();

 private:
  DirectoryClient(std::unique_ptr<Client> client, Address at)
      : client_(std::move(client)),
        self_(client_->self()),
        at_(std::move(at)) {}

  // Sets `directory_`, or `at_` to where it is.
  Status ask();
  // The answer to a request that was sent.
  template <class Message, class Request>
  Result<Message> answer(Request request);

  const std::unique_ptr<Client> client_;
  caf::scoped_actor& self_;
  Address at_;
  DirectoryActor directory_;
};

Result<std::unique_ptr<DirectoryClient>> DirectoryClient::connect(
    const ClusterAccess& access) {
  TAGFLOW_ASSIGN(auto made, Client::make(access));
  std::unique_ptr<DirectoryClient> client(
      new DirectoryClient(std::move(made), access.any));
  // The first one may be a member that names it.
  for (int i = 0; i < 2 && !client->directory_; ++i)
    TAGFLOW_RETURN_IF_ERROR(client->ask());
  if (!client->directory_)
    return error(Code::kUnavailable,
                 "[net|control] the directory is not at {}:{} any more",
                 client->at_.host, client->at_.port);
  return client;
}

Status DirectoryClient::ask() {
  TAGFLOW_ASSIGN(const Found found, client_->find(at_));
  if (is_a<DirectoryActor>(client_->system(), found.types)) {
    directory_ = caf::actor_cast<DirectoryActor>(found.actor);
    return {};
  }
  Status status;
  self_
      ->request(caf::actor_cast<WorkerActor>(found.actor), kAnswerTime,
                caf::redirect_atom_v)
      .receive(
          [&](const std::string& host, uint16_t port) {
            at_ = {host, port};
          },
          [&](const caf::error& failure) {
            status = from_caf(client_->system(), failure);
          });
  return status;
}

template <class Message, class Request>
Result<Message> DirectoryClient::answer(Request request) {
  std::optional<Result<Message>> result;
  request.receive(
      [&](const std::string& bytes) {
        result.emplace(parse_control<Message>(bytes));
      },
      [&](const caf::error& failure) {
        result.emplace(from_caf(client_->system(), failure));
      });
  return std::move(*result);
}

Result<std::vector<CatalogueEntry>> DirectoryClient::members() {
  TAGFLOW_ASSIGN(Catalogue catalogue,
                 answer<Catalogue>(
                     self_->request(directory_, kAnswerTime, caf::get_atom_v)));
  for (CatalogueEntry& member : catalogue.members)
    if (member.host.empty()) member.host = at_.host;
  return std::move(catalogue.members);
}

Result<std::vector<MemberStatus>> DirectoryClient::status() {
  TAGFLOW_ASSIGN(auto members, this->members());
  // The directory gives up a member before it is given up itself.
  const auto ask = [this](const CatalogueEntry& member) {
    return self_->request(directory_, 2 * kAnswerTime, caf::get_atom_v,
                          member.task.to_string());
  };
  // All are asked at once.
  std::vector<decltype(ask(members[0]))> requests;
  for (const CatalogueEntry& member : members) requests.push_back(ask(member));
  std::vector<MemberStatus> all;
  for (size_t i = 0; i < members.size(); ++i) {
    MemberStatus& each = all.emplace_back();
    each.member = std::move(members[i]);
    if (auto load = answer<Load>(std::move(requests[i])); load.ok()) {
      each.load = std::move(*load);
    } else {
      each.status = load.status();
    }
  }
  return all;
}

}  // namespace

Result<std::vector<CatalogueEntry>> members_of(
    const ClusterAccess& access, std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPause{100};
  const auto end = Clock::now() + patience;
  for (Retries retries;;) {
    auto members =
        guarded("net|control", [&]() -> Result<std::vector<CatalogueEntry>> {
          TAGFLOW_ASSIGN(const auto client, DirectoryClient::connect(access));
          return client->members();
        });
    if (members.ok() || Clock::now() >= end ||
        !retries.may_help(members.status()))
      return members;
    std::this_thread::sleep_for(kPause);
  }
}

Result<std::vector<MemberStatus>> status_of(const ClusterAccess& access) {
  return guarded("net|control", [&]() -> Result<std::vector<MemberStatus>> {
    TAGFLOW_ASSIGN(const auto client, DirectoryClient::connect(access));
    return client->status();
  });
}

Status drain_worker(const ClusterAccess& access, const Task& task) {
  return guarded("net|control", [&]() -> Status {
    constexpr std::chrono::milliseconds kPause{50};
    TAGFLOW_ASSIGN(const auto client, Client::make(access));
    TAGFLOW_ASSIGN(const Found found, client->find(access.any));
    if (found.task != task)
      return error(Code::kFailedPrecondition, "[net] {} is at {}:{}, not {}",
                   found.task.to_string(), access.any.host, access.any.port,
                   task.to_string());
    const auto worker = caf::actor_cast<MemberActor>(found.actor);
    // It is asked until it does not exist any more, which nobody else can tell:
    // its connection has ended, and so has the process.
    Status asked;
    while (client->is_connected(found)) {
      client->self()
          ->request(worker, kAnswerTime, caf::close_atom_v)
          .receive([&](caf::ok_atom) { asked = {}; },
                   [&](const caf::error& failure) {
                     asked = from_caf(client->system(), failure);
                   });
      if (asked.code() == Code::kFailedPrecondition) return asked;
      std::this_thread::sleep_for(kPause);
    }
    if (asked.code() != Code::kDeadlineExceeded) return {};
    // It was cut off.
    return error(Code::kUnavailable, "{}", asked.message());
  });
}

}  // namespace tagflow::net
