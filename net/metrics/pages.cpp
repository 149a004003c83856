#include "net/metrics/pages.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>

namespace tagflow::net {
namespace {

constexpr auto kCounter = MetricText::Type::kCounter;
constexpr auto kGauge = MetricText::Type::kGauge;
constexpr double kNanoseconds = 1e9;  // of a second

// The fields of /proc/self/stat after the name of the program, which may be
// anything. The first one is the third of the file.
std::vector<std::string> stat_fields() {
  std::ifstream file("/proc/self/stat");
  std::string all((std::istreambuf_iterator<char>(file)), {});
  const size_t end = all.rfind(')');
  if (end == all.npos) return {};
  std::istringstream rest(all.substr(end + 1));
  return {std::istream_iterator<std::string>(rest), {}};
}

// The number of a field, by its place in the manual: from 1 on.
std::optional<double> field_of(const std::vector<std::string>& fields,
                               size_t place) {
  constexpr size_t kFirst = 3;
  if (place < kFirst || place - kFirst >= fields.size()) return {};
  std::istringstream text(fields[place - kFirst]);
  double number = 0;
  if (!(text >> number)) return {};
  return number;
}

// When the machine has started, in seconds since 1970.
std::optional<double> boot_time() {
  std::ifstream file("/proc/stat");
  std::string word;
  while (file >> word)
    if (double seconds = 0; word == "btime" && file >> seconds) return seconds;
  return {};
}

std::optional<uint64_t> open_descriptors() {
  std::error_code error;
  std::filesystem::directory_iterator entries("/proc/self/fd", error);
  if (error) return {};
  uint64_t count = 0;
  for (; entries != std::filesystem::directory_iterator();
       entries.increment(error)) {
    if (error) return {};
    ++count;
  }
  return count - 1;  // one of them reads this folder
}

using State = ClusterFigures::State;

std::string_view name_of(State state) {
  switch (state) {
    case State::kJoining:
      return "joining";
    case State::kReady:
      return "ready";
    case State::kLeaving:
      return "leaving";
    case State::kLost:
      return "lost";
  }
  return "";
}

void write_devices(MetricText& text,
                   const std::vector<WorkerFigures::Device>& devices) {
  struct Family {
    const char* name;
    const char* help;
    int64_t devices::MemoryStats::*bytes;
    bool has_zeros = true;
  };
  const std::array<Family, 3> families{
      {{"tagflow_device_memory_in_use_bytes",
        "Memory of tensors in use on the devices that count it: those with a "
        "limit, and accelerators.",
        &devices::MemoryStats::in_use},
       {"tagflow_device_memory_peak_bytes", "The most of that so far.",
        &devices::MemoryStats::peak},
       {"tagflow_device_memory_limit_bytes",
        "The limit of a device that has one.", &devices::MemoryStats::limit,
        false}}};
  for (const Family& family : families) {
    text.begin(family.name, kGauge, family.help);
    for (const WorkerFigures::Device& device : devices) {
      const int64_t bytes = device.memory.*family.bytes;
      if (bytes > 0 || family.has_zeros)
        text.add({{"device", device.name}},
                 uint64_t(std::max<int64_t>(bytes, 0)));
    }
  }
}

std::optional<double> resident(const std::vector<std::string>& fields) {
  const auto pages = field_of(fields, 24);
  if (!pages) return {};
  return *pages * double(::sysconf(_SC_PAGESIZE));
}

}  // namespace

uint64_t resident_bytes() {
  return uint64_t(resident(stat_fields()).value_or(0));
}

void write_process(MetricText& text) {
  text.begin("tagflow_build_info", kGauge, "1, with the version of tagflow.");
  text.add({{"version", TAGFLOW_VERSION}}, uint64_t{1});
  const std::vector<std::string> fields = stat_fields();
  const auto ticks = double(::sysconf(_SC_CLK_TCK));
  // The places of the fields are those of proc(5).
  const auto user = field_of(fields, 14), system = field_of(fields, 15);
  if (user && system)
    text.one("process_cpu_seconds_total", kCounter,
             "Processor time of the process.", (*user + *system) / ticks);
  const auto started = field_of(fields, 22), boot = boot_time();
  if (started && boot)
    text.one("process_start_time_seconds", kGauge,
             "When the process has begun, since 1970.",
             *boot + *started / ticks);
  if (const auto bytes = field_of(fields, 23))
    text.one("process_virtual_memory_bytes", kGauge,
             "Virtual memory of the process.", *bytes);
  if (const auto bytes = resident(fields))
    text.one("process_resident_memory_bytes", kGauge,
             "Resident memory of the process.", *bytes);
  if (const auto count = open_descriptors())
    text.one("process_open_fds", kGauge, "Open descriptors of the process.",
             *count);
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0)
    text.one("process_max_fds", kGauge,
             "How many descriptors the process may have.",
             uint64_t(limit.rlim_cur));
}

void write_steps(MetricText& text, const StepCounts::Numbers& steps) {
  text.one("tagflow_steps_begun_total", kCounter, "Steps that have begun.",
           steps.begun);
  text.one("tagflow_steps_finished_total", kCounter,
           "Steps that have ended with their results.", steps.finished());
  text.begin("tagflow_steps_failed_total", kCounter,
             "Steps that have failed, by the code of their error.");
  for (size_t i = 1; i < StepCounts::kCodes; ++i) {
    const std::string_view name = code_name(Code(i));
    // Zeros, too: a rate needs a figure from before the first failure.
    if (i == size_t(Code::kUnknown) || name != code_name(Code::kUnknown))
      text.add({{"code", name}}, steps.ended[i]);
  }
  text.one("tagflow_steps_running", kGauge,
           "Steps that have begun, and not ended.", steps.running());
}

void write_links(MetricText& text, const std::vector<LinkFigures>& links) {
  std::map<std::string, Traffic> peers;
  for (const LinkFigures& link : links) {
    Traffic& sum = peers[link.peer];
    const Traffic& traffic = link.traffic;
    if (traffic.round_trip_ns != 0) sum.round_trip_ns = traffic.round_trip_ns;
    sum.bytes_in += traffic.bytes_in;
    sum.bytes_out += traffic.bytes_out;
    sum.frames_in += traffic.frames_in;
    sum.frames_out += traffic.frames_out;
    sum.bytes_waiting += traffic.bytes_waiting;
  }
  text.begin("tagflow_link_round_trip_seconds", kGauge,
             "The last round trip to a peer that was measured.");
  for (const auto& [peer, traffic] : peers)
    if (traffic.round_trip_ns != 0)
      text.add({{"peer", peer}}, double(traffic.round_trip_ns) / kNanoseconds);
  struct Family {
    const char* name;
    const char* help;
    uint64_t Traffic::*number;
    MetricText::Type type = kCounter;
  };
  const std::array<Family, 5> families{
      {{"tagflow_link_received_bytes_total",
        "Bytes that have come from a peer, since its links were made.",
        &Traffic::bytes_in},
       {"tagflow_link_sent_bytes_total",
        "Bytes that went to a peer, since its links were made.",
        &Traffic::bytes_out},
       {"tagflow_link_received_frames_total",
        "Frames that have come from a peer, since its links were made.",
        &Traffic::frames_in},
       {"tagflow_link_sent_frames_total",
        "Frames that went to a peer, since its links were made.",
        &Traffic::frames_out},
       {"tagflow_link_waiting_bytes",
        "Bytes of small frames for a peer that the system has not taken.",
        &Traffic::bytes_waiting, kGauge}}};
  for (const Family& family : families) {
    text.begin(family.name, family.type, family.help);
    for (const auto& [peer, traffic] : peers)
      text.add({{"peer", peer}}, traffic.*family.number);
  }
}

void write_worker(MetricText& text, const WorkerFigures& figures) {
  text.one("tagflow_serving", kGauge, "1 if the worker listens.",
           uint64_t{figures.is_serving});
  text.one("tagflow_has_master", kGauge, "1 if the worker has a master.",
           uint64_t{figures.has_master});
  text.one("tagflow_leaving", kGauge, "1 if the worker leaves its cluster.",
           uint64_t{figures.is_leaving});
  text.one("tagflow_incarnations_total", kCounter,
           "Incarnations of the worker: one more with each master that was "
           "lost.",
           figures.incarnations);
  write_steps(text, figures.steps);
  text.one("tagflow_executables", kGauge,
           "Parts of graphs that are compiled for the master.",
           figures.executables);
  write_devices(text, figures.devices);
  write_links(text, figures.links);
}

void write_cluster(MetricText& text, const ClusterFigures& figures) {
  write_steps(text, figures.steps);
  text.one("tagflow_executables", kGauge,
           "Signatures that are registered at workers.", figures.executables);
  write_members(text, figures);
}

void write_members(MetricText& text, const ClusterFigures& figures) {
  text.begin("tagflow_member_state", kGauge,
             "1 for the state that a worker of the cluster is in.");
  std::vector<LinkFigures> links;
  for (const ClusterFigures::Member& member : figures.members) {
    for (const State state :
         {State::kJoining, State::kReady, State::kLeaving, State::kLost})
      text.add({{"task", member.link.peer}, {"state", name_of(state)}},
               uint64_t{member.state == state});
    if (member.state != State::kLost) links.push_back(member.link);
  }
  write_links(text, links);
}

void write_service(MetricText& text, const ServiceFigures& figures) {
  const auto gauge = [&text](const char* name, const char* help,
                             uint64_t value) {
    text.one(name, kGauge, help, value);
  };
  gauge("tagflow_clients", "Clients of the master.", figures.clients);
  gauge("tagflow_sessions", "Sessions of clients.", figures.sessions);
  gauge("tagflow_signatures", "Signatures that clients have prepared.",
        figures.signatures);
  gauge("tagflow_runs_begun", "Runs of clients that are in flight.",
        figures.runs_begun);
  gauge("tagflow_runs_waiting",
        "Those of them that wait for an event, at the last look.",
        figures.runs_waiting);
  gauge("tagflow_runs_queued", "Runs of clients that wait for their turn.",
        figures.runs_queued);
  gauge("tagflow_feeds_bytes", "Feeds of runs that are not answered.",
        figures.feed_bytes);
}

void write_sessions(MetricText& text, const SessionFigures& figures) {
  text.one("tagflow_sessions", kGauge, "Sessions of clients.",
           figures.sessions);
  text.one("tagflow_runs_open", kGauge, "Runs that are not answered.",
           figures.runs);
  text.one("tagflow_held_bytes", kGauge,
           "Feeds of these runs, and graphs of sessions.", figures.bytes);
}

}  // namespace tagflow::net
