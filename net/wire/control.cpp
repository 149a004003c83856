#include "net/wire/control.h"

#include <limits>

#include "graph/fault.h"
#include "net/wire/fields.h"
#include "net/wire/greeting.h"
#include "net/wire/lists.h"

namespace tagflow::net {
namespace {

constexpr size_t kLongestName = 255;  // bytes, of a host or a device

std::string read_name(Reader& reader, size_t most = kLongestName) {
  const std::string_view name = reader.text();
  if (name.size() <= most) return std::string(name);
  reader.fail(
      fmt::format("a name has {} bytes, more than {}", name.size(), most));
  return {};
}

Status check_length(std::string_view name, size_t bytes) {
  if (bytes <= kLongestControl) return {};
  return error(Code::kResourceExhausted,
               "[net|{}] it has {} bytes, more than {}", name, bytes,
               kLongestControl);
}

Load::Link read_link(Reader& reader) {
  Load::Link link;
  link.peer = read_name(reader);
  for (uint64_t* number :
       {&link.round_trip_ns, &link.bytes_in, &link.bytes_out})
    *number = reader.varint();
  return link;
}

}  // namespace

void CatalogueEntry::write(Writer& writer) const {
  writer.text(task.job);
  writer.varint(task.index);
  writer.text(host);
  writer.fixed(port);
  writer.fixed(incarnation);
  write_texts(writer, devices);
}

CatalogueEntry CatalogueEntry::read(Reader& reader) {
  CatalogueEntry entry;
  entry.task.job = read_name(reader, Greeting::kLongestJob);
  entry.task.index = uint32_t(reader.varint_to(
      std::numeric_limits<uint32_t>::max(), "the index of a task"));
  entry.host = read_name(reader);
  entry.port = reader.fixed<uint16_t>();
  entry.incarnation = reader.fixed<uint64_t>();
  entry.devices = read_list<std::string>(
      reader, 1, [](Reader& from) { return read_name(from); });
  return entry;
}

void Catalogue::write(Writer& writer) const {
  write_list(writer, members,
             [&](const CatalogueEntry& member) { member.write(writer); });
}

Catalogue Catalogue::read(Reader& reader) {
  constexpr uint64_t kLeast = 14;  // four bytes of lengths, and 2 and 8 bytes
  return {read_list<CatalogueEntry>(reader, kLeast, CatalogueEntry::read)};
}

void Load::write(Writer& writer) const {
  writer.fixed(incarnation);
  writer.varint(uptime_ns);
  for (const bool flag : {has_master, is_leaving}) writer.fixed(uint8_t(flag));
  for (const uint64_t number :
       {steps_running, steps_finished, executables, tensor_bytes, memory_bytes})
    writer.varint(number);
  write_list(writer, links, [&](const Link& link) {
    writer.text(link.peer);
    for (const uint64_t number :
         {link.round_trip_ns, link.bytes_in, link.bytes_out})
      writer.varint(number);
  });
}

Load Load::read(Reader& reader) {
  Load load;
  load.incarnation = reader.fixed<uint64_t>();
  load.uptime_ns = reader.varint();
  load.has_master = reader.flag();
  load.is_leaving = reader.flag();
  for (uint64_t* number :
       {&load.steps_running, &load.steps_finished, &load.executables,
        &load.tensor_bytes, &load.memory_bytes})
    *number = reader.varint();
  load.links = read_list<Load::Link>(reader, 4, read_link);
  return load;
}

template <class Message>
Result<std::string> control_bytes_of(const Message& message) {
  return guarded("net", [&]() -> Result<std::string> {
    Writer writer;
    message.write(writer);
    TAGFLOW_RETURN_IF_ERROR(writer.status());
    TAGFLOW_RETURN_IF_ERROR(
        check_length(Message::kName, writer.bytes().size()));
    return std::move(writer.bytes());
  });
}

template <class Message>
Result<Message> parse_control(std::string_view bytes) {
  return guarded("net", [&]() -> Result<Message> {
    TAGFLOW_RETURN_IF_ERROR(check_length(Message::kName, bytes.size()));
    Reader reader(bytes, Message::kName);
    Message message = Message::read(reader);
    TAGFLOW_RETURN_IF_ERROR(reader.finish());
    return message;
  });
}

template Result<std::string> control_bytes_of(const CatalogueEntry&);
template Result<std::string> control_bytes_of(const Catalogue&);
template Result<std::string> control_bytes_of(const Load&);
template Result<CatalogueEntry> parse_control(std::string_view);
template Result<Catalogue> parse_control(std::string_view);
template Result<Load> parse_control(std::string_view);

}  // namespace tagflow::net
