#include "net/wire/messages.h"

#include <bit>
#include <cmath>

#include "net/wire/cases.h"
#include "net/wire/fields.h"
#include "net/wire/lists.h"

namespace tagflow::net {
namespace {

// The alternatives of a value, in the order of each variant; the last one is of
// an announcement.
enum Form : uint8_t {
  kDead = 0,
  kInline = 1,
  kElsewhere = 2,
  kDeadElsewhere = 3,
};

// How a Run is held.
enum Held : uint8_t { kGoesOn = 0, kMayBeHeld = 1, kStops = 2 };

// Of a Reset: more memory than its bytes is taken for their names.
constexpr size_t kMostContainers = 4096;

void write_instance(Writer& writer, const FrameInstance& instance) {
  writer.fixed(instance.high);
  writer.fixed(instance.low);
}

FrameInstance read_instance(Reader& reader) {
  FrameInstance instance;
  instance.high = reader.fixed<uint64_t>();
  instance.low = reader.fixed<uint64_t>();
  return instance;
}

// The form of a value and, if it is not dead, the tensor or where it is.
template <class... Ts, class F>
void write_value(Writer& writer, const std::variant<Ts...>& value,
                 F write_elsewhere) {
  std::visit(
      Cases{[&](const Tensor& tensor) {
              writer.fixed(uint8_t(kInline));
              write_tensor(writer, tensor);
            },
            [&](const auto& other) {
              if constexpr (std::is_empty_v<std::decay_t<decltype(other)>>) {
                writer.fixed(uint8_t(kDead));
              } else {
                writer.fixed(uint8_t(kElsewhere));
                write_elsewhere(other);
              }
            }},
      value);
}

uint8_t read_form(Reader& reader, Form least, Form most) {
  const auto form = reader.fixed<uint8_t>();
  if (form < least || form > most)
    reader.fail(fmt::format("{} is not the form of a value", form));
  return form;
}

Run::Feed read_feed(Reader& reader) {
  Run::Feed feed;
  feed.index = read_index(reader);
  if (read_form(reader, kInline, kElsewhere) == kInline) {
    feed.value = read_tensor(reader);
  } else {
    feed.value = read_id(reader);
  }
  return feed;
}

std::variant<Done::Dead, Tensor, ObjectId> read_result(Reader& reader) {
  switch (read_form(reader, kDead, kElsewhere)) {
    case kInline:
      return read_tensor(reader);
    case kElsewhere:
      return read_id(reader);
    default:
      return Done::Dead();
  }
}

Done::Fetch read_fetch(Reader& reader) {
  Done::Fetch fetch;
  fetch.index = read_index(reader);
  fetch.value = read_result(reader);
  return fetch;
}

Tokens::Entry read_entry(Reader& reader, int64_t base) {
  Tokens::Entry entry;
  entry.iteration = base + int64_t(reader.varint_to(uint64_t(INT64_MAX - base),
                                                    "an iteration's distance"));
  entry.transfer = read_index(reader);
  switch (read_form(reader, kDead, kDeadElsewhere)) {
    case kInline:
      entry.value = read_tensor(reader);
      break;
    case kElsewhere:
      entry.value = Tokens::Announced{.info = read_info(reader)};
      break;
    case kDeadElsewhere:
      entry.value = Tokens::Announced{.is_dead = true};
      break;
    default:
      break;
  }
  return entry;
}

Tokens::Group read_group(Reader& reader) {
  Tokens::Group group;
  group.instance = read_instance(reader);
  group.base_iteration = read_iteration(reader);
  group.entries = read_list<Tokens::Entry>(reader, 3, [&](Reader& from) {
    return read_entry(from, group.base_iteration);
  });
  return group;
}

Devices::Device read_device(Reader& reader) {
  Devices::Device device;
  device.name = read_text(reader);
  device.incarnation = reader.fixed<uint64_t>();
  device.host_memory = reader.flag();
  device.kernels_at_once = read_index(reader);
  device.memory_limit = reader.varint();
  for (double* number :
       {&device.flops_per_ns, &device.bytes_per_ns, &device.launch_ns,
        &device.link_latency_ns, &device.link_bytes_per_ns}) {
    *number = std::bit_cast<double>(reader.fixed<uint64_t>());
    if (!std::isfinite(*number) || *number < 0)
      reader.fail("a property of a device is negative or not finite");
  }
  return device;
}

}  // namespace

std::string Task::to_string() const {
  return fmt::format("/job:{}/task:{}", job, index);
}

void Run::write(Writer& writer) const {
  writer.varint(executable);
  writer.varint(step);
  writer.fixed(seed);
  writer.varint(trace_words);
  writer.fixed(uint8_t(has_stats));
  writer.fixed(uint8_t(stop ? kStops : may_be_held ? kMayBeHeld : kGoesOn));
  if (stop) {
    writer.text(stop->frame);
    writer.varint(uint64_t(stop->iteration));
  }
  write_list(writer, feeds, [&](const Feed& feed) {
    writer.varint(feed.index);
    write_value(writer, feed.value, [&](ObjectId id) { write_id(writer, id); });
  });
}

Run Run::read(Reader& reader) {
  Run run;
  run.executable = reader.varint();
  run.step = reader.varint();
  run.seed = reader.fixed<uint64_t>();
  run.trace_words = reader.varint();
  run.has_stats = reader.flag();
  const auto held = reader.fixed<uint8_t>();
  if (held > kStops)
    reader.fail(fmt::format("{} is not how a step is held", held));
  run.may_be_held = held != kGoesOn;
  if (held == kStops) {
    std::string frame = read_text(reader);
    run.stop = Stop{std::move(frame), read_iteration(reader)};
  }
  run.feeds = read_list<Feed>(reader, 3, read_feed);
  return run;
}

void Done::write(Writer& writer) const {
  writer.varint(step);
  write_outcome(writer, outcome);
  writer.fixed(uint8_t(is_cause));
  writer.fixed(uint8_t(has_committed));
  writer.varint(sent);
  writer.varint(received);
  write_list(writer, stats, [&](uint64_t value) { writer.varint(value); });
  const auto write_object = [&](ObjectId id) { write_id(writer, id); };
  write_value(writer, trace, write_object);
  write_list(writer, fetches, [&](const Fetch& fetch) {
    writer.varint(fetch.index);
    write_value(writer, fetch.value, write_object);
  });
}

Done Done::read(Reader& reader) {
  Done done;
  done.step = reader.varint();
  done.outcome = read_outcome(reader);
  done.is_cause = reader.flag();
  done.has_committed = reader.flag();
  done.sent = reader.varint();
  done.received = reader.varint();
  done.stats = read_list<uint64_t>(reader, 1,
                                   [](Reader& from) { return from.varint(); });
  done.trace = read_result(reader);
  done.fetches = read_list<Fetch>(reader, 2, read_fetch);
  return done;
}

void Abort::write(Writer& writer) const {
  writer.varint(step);
  write_outcome(writer, cause);
}

Abort Abort::read(Reader& reader) {
  Abort abort;
  abort.step = reader.varint();
  abort.cause = read_outcome(reader);
  return abort;
}

void Tokens::write(Writer& writer) const {
  writer.varint(step);
  writer.varint(groups.size());
  for (const Group& group : groups) {
    write_instance(writer, group.instance);
    writer.varint(uint64_t(group.base_iteration));
    writer.varint(group.entries.size());
    for (const Entry& entry : group.entries) {
      writer.varint(uint64_t(entry.iteration - group.base_iteration));
      writer.varint(entry.transfer);
      const auto* announced = std::get_if<Announced>(&entry.value);
      if (announced != nullptr && announced->is_dead) {
        writer.fixed(uint8_t(kDeadElsewhere));
        continue;
      }
      write_value(writer, entry.value, [&](const Announced& coming) {
        write_info(writer, coming.info);
      });
    }
  }
}

Tokens Tokens::read(Reader& reader) {
  constexpr uint64_t kLeastGroup = 18;  // the instance, a base, a count
  Tokens tokens;
  tokens.step = reader.varint();
  tokens.groups = read_list<Group>(reader, kLeastGroup, read_group);
  return tokens;
}

void Pull::write(Writer& writer) const {
  writer.varint(step);
  write_instance(writer, key.instance);
  writer.varint(uint64_t(key.iteration));
  writer.varint(key.transfer);
  write_id(writer, object);
}

Pull Pull::read(Reader& reader) {
  Pull pull;
  pull.step = reader.varint();
  pull.key.instance = read_instance(reader);
  pull.key.iteration = read_iteration(reader);
  pull.key.transfer = read_index(reader);
  pull.object = read_id(reader);
  return pull;
}

void Credit::write(Writer& writer) const { writer.varint(bytes); }

Credit Credit::read(Reader& reader) { return {reader.varint()}; }

void Ping::write(Writer& writer) const {
  writer.fixed(nonce);
  writer.fixed(time_ns);
}

Ping Ping::read(Reader& reader) {
  Ping ping;
  ping.nonce = reader.fixed<uint64_t>();
  ping.time_ns = reader.fixed<uint64_t>();
  return ping;
}

void Pong::write(Writer& writer) const {
  writer.fixed(nonce);
  writer.fixed(ping_time_ns);
  writer.fixed(time_ns);
}

Pong Pong::read(Reader& reader) {
  Pong pong;
  pong.nonce = reader.fixed<uint64_t>();
  pong.ping_time_ns = reader.fixed<uint64_t>();
  pong.time_ns = reader.fixed<uint64_t>();
  return pong;
}

void Report::write(Writer& writer) const {
  writer.varint(step);
  writer.varint(round);
  writer.fixed(uint8_t(is_quiet));
  writer.varint(sent);
  writer.varint(received);
  write_words(writer, waits);
}

Report Report::read(Reader& reader) {
  Report report;
  report.step = reader.varint();
  report.round = reader.varint();
  report.is_quiet = reader.flag();
  report.sent = reader.varint();
  report.received = reader.varint();
  report.waits = read_words(reader);
  return report;
}

void Ask::write(Writer& writer) const {
  writer.varint(step);
  writer.varint(round);
}

Ask Ask::read(Reader& reader) {
  Ask ask;
  ask.step = reader.varint();
  ask.round = reader.varint();
  return ask;
}

void PairLost::write(Writer& writer) const {
  writer.text(peer.job);
  writer.varint(peer.index);
  writer.fixed(incarnation);
  write_outcome(writer, reason);
}

PairLost PairLost::read(Reader& reader) {
  PairLost lost;
  lost.peer.job = read_text(reader);
  lost.peer.index = read_index(reader);
  lost.incarnation = reader.fixed<uint64_t>();
  lost.reason = read_outcome(reader);
  return lost;
}

void Bye::write(Writer& writer) const { write_words(writer, reason); }

Bye Bye::read(Reader& reader) { return {read_words(reader)}; }

void Devices::write(Writer& writer) const {
  writer.varint(devices.size());
  for (const Device& device : devices) {
    writer.text(device.name);
    writer.fixed(device.incarnation);
    writer.fixed(uint8_t(device.host_memory));
    writer.varint(device.kernels_at_once);
    writer.varint(device.memory_limit);
    for (const double number :
         {device.flops_per_ns, device.bytes_per_ns, device.launch_ns,
          device.link_latency_ns, device.link_bytes_per_ns})
      writer.fixed(std::bit_cast<uint64_t>(number));
  }
}

Devices Devices::read(Reader& reader) {
  constexpr uint64_t kLeast = 52;  // a name's length, 8, 1, 1, 1, and 40 bytes
  return {read_list<Device>(reader, kLeast, read_device)};
}

void Reset::write(Writer& writer) const {
  if (containers.size() > kMostContainers)
    return writer.fail(invalid_argument(
        "[net|Reset] {} containers are more than {}, the limit",
        containers.size(), kMostContainers));
  writer.varint(request);
  write_texts(writer, containers);
}

Reset Reset::read(Reader& reader) {
  Reset reset;
  reset.request = reader.varint();
  reset.containers = read_texts(reader);
  if (reset.containers.size() > kMostContainers)
    reader.fail(fmt::format("{} containers are more than {}",
                            reset.containers.size(), kMostContainers));
  return reset;
}

void Release::write(Writer& writer) const { writer.varint(executable); }

Release Release::read(Reader& reader) { return {reader.varint()}; }

void Reply::write(Writer& writer) const {
  writer.varint(request);
  write_outcome(writer, outcome);
  writer.fixed(uint8_t(updates_state));
  write_texts(writer, warnings);
}

Reply Reply::read(Reader& reader) {
  Reply reply;
  reply.request = reader.varint();
  reply.outcome = read_outcome(reader);
  reply.updates_state = reader.flag();
  reply.warnings = read_texts(reader);
  return reply;
}

}  // namespace tagflow::net
