// The messages of bulk links, and what their objects are.
#include "net/wire/fields.h"
#include "net/wire/lists.h"
#include "net/wire/messages.h"

namespace tagflow::net {
namespace {

Register::Settings read_settings(Reader& reader) {
  const auto number = [&] {
    return uint32_t(reader.varint_to(INT32_MAX, "a setting"));
  };
  Register::Settings settings;
  settings.window = number();
  settings.max_call_depth = number();
  settings.max_open_calls = number();
  settings.compile_edges = reader.flag();
  settings.hand_off = reader.fixed<uint8_t>();
  if (settings.hand_off > Register::Settings::kMostHandOff)
    reader.fail(fmt::format("there is no hand-off {}", settings.hand_off));
  settings.soft_placement = reader.flag();
  settings.seed = reader.fixed<uint64_t>();
  return settings;
}

Register::Part read_part(Reader& reader) {
  Register::Part part;
  part.device = read_text(reader);
  part.program = read_text(reader);
  return part;
}

Register::Peer read_peer(Reader& reader) {
  Register::Peer peer;
  peer.task.job = read_text(reader);
  peer.task.index = read_index(reader);
  peer.incarnation = reader.fixed<uint64_t>();
  peer.host = read_text(reader);
  peer.port = reader.fixed<uint16_t>();
  return peer;
}

}  // namespace

void Begin::write(Writer& writer) const {
  write_id(writer, object);
  writer.fixed(uint8_t(kind));
  if (kind == ObjectKind::kTensor) {
    write_info(writer, tensor);
  } else if (kind == ObjectKind::kRegister) {
    writer.varint(bytes);
  }
}

Begin Begin::read(Reader& reader) {
  Begin begin;
  begin.object = read_id(reader);
  const auto kind = reader.fixed<uint8_t>();
  begin.kind = ObjectKind(kind);
  if (begin.kind == ObjectKind::kTensor) {
    begin.tensor = read_info(reader);
    begin.bytes = begin.tensor.bytes;
  } else if (begin.kind == ObjectKind::kRegister) {
    begin.bytes = reader.varint();
  } else if (begin.kind != ObjectKind::kDead) {
    reader.fail(fmt::format("{} is not a kind of object", kind));
  }
  return begin;
}

void Chunk::write(Writer& writer) const {
  writer.fixed(uint64_t(object));
  writer.fixed(offset);
}

Chunk Chunk::read(Reader& reader) {
  Chunk chunk;
  chunk.object = ObjectId(reader.fixed<uint64_t>());
  chunk.offset = reader.fixed<uint64_t>();
  return chunk;
}

void Cancel::write(Writer& writer) const {
  write_id(writer, object);
  write_outcome(writer, cause);
}

Cancel Cancel::read(Reader& reader) {
  Cancel cancel;
  cancel.object = read_id(reader);
  cancel.cause = read_outcome(reader);
  return cancel;
}

void Register::write(Writer& writer) const {
  writer.varint(executable);
  writer.varint(settings.window);
  writer.varint(settings.max_call_depth);
  writer.varint(settings.max_open_calls);
  writer.fixed(uint8_t(settings.compile_edges));
  writer.fixed(settings.hand_off);
  writer.fixed(uint8_t(settings.soft_placement));
  writer.fixed(settings.seed);
  write_list(writer, parts, [&](const Part& part) {
    writer.text(part.device);
    writer.text(part.program);
  });
  write_list(writer, peers, [&](const Peer& peer) {
    writer.text(peer.task.job);
    writer.varint(peer.task.index);
    writer.fixed(peer.incarnation);
    writer.text(peer.host);
    writer.fixed(peer.port);
  });
  write_list(writer, transfers, [&](const Transfer& transfer) {
    writer.text(transfer.name);
    writer.varint(transfer.peer);
    writer.fixed(uint8_t(transfer.is_sent));
  });
  write_texts(writer, fetches);
}

Register Register::read(Reader& reader) {
  constexpr uint64_t kLeastPeer = 13;  // two lengths, an index, 10 bytes
  Register registration;
  registration.executable = reader.varint();
  registration.settings = read_settings(reader);
  registration.parts = read_list<Part>(reader, 2, read_part);
  if (registration.parts.empty()) reader.fail("it has no parts");
  registration.peers = read_list<Peer>(reader, kLeastPeer, read_peer);
  const uint64_t peers = registration.peers.size();
  std::string_view last;
  registration.transfers =
      read_list<Transfer>(reader, 3, [&](Reader& from) -> Transfer {
        const std::string_view name = from.text();
        const auto peer = read_index(from);
        if (peer >= peers) from.fail(fmt::format("there is no peer {}", peer));
        if (last.data() != nullptr && name <= last)
          from.fail("the names of transfers do not ascend");
        last = name;
        return {std::string(name), peer, from.flag()};
      });
  registration.fetches = read_texts(reader);
  return registration;
}

Result<std::string> bytes_of(const Register& registration) {
  return guarded("net", [&]() -> Result<std::string> {
    Writer writer;
    registration.write(writer);
    TAGFLOW_RETURN_IF_ERROR(writer.status());
    return std::move(writer.bytes());
  });
}

Result<Register> parse_register(std::string_view bytes) {
  return guarded("net", [&]() -> Result<Register> {
    Reader reader(bytes, "Register");
    Register registration = Register::read(reader);
    TAGFLOW_RETURN_IF_ERROR(reader.finish());
    return registration;
  });
}

}  // namespace tagflow::net
