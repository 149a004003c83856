#include "net/control/basp_filter.h"

#include <algorithm>
#include <caf/atom.hpp>
#include <caf/io/basp/header.hpp>
#include <caf/io/basp/version.hpp>
#include <initializer_list>

#include "graph/fault.h"
#include "net/control/control_system.h"
#include "net/wire/control.h"

namespace tagflow::net {
namespace {

namespace basp = caf::io::basp;
using basp::message_type;

// Beyond the text of a message: the names of its types, and its atoms.
constexpr size_t kMostAround = 1024;  // bytes
constexpr uint64_t kMostNames = 64;   // of applications, or messages
// What an error says of itself.
constexpr int kMostTexts = 4;

static_assert(BaspFilter::kHeader == basp::header_size);

// CAF's numbers begin with the highest byte.
template <class T>
T read_big(Reader& reader) {
  uint64_t value = 0;
  for (const char byte : reader.raw(sizeof(T)))
    value = value << 8 | uint8_t(byte);
  return T(value);
}

caf::node_id read_node(Reader& reader) {
  using Id = caf::node_id::default_data;
  if (read_big<uint64_t>(reader) != caf::atom_uint(Id::class_id))
    reader.fail("the id of a node has another form");
  const auto process = read_big<uint32_t>(reader);
  Id::host_id_type host{};
  std::ranges::copy(reader.raw(host.size()), host.begin());
  return caf::make_node_id(process, host);
}

void read_names(Reader& reader) {
  const uint64_t count = reader.varint_to(kMostNames, "the number of names");
  for (uint64_t i = 0; i < count && reader.ok(); ++i) reader.text();
}

// The names of the types of a tuple, of which a message is made: "@atom+@str".
std::string_view read_types(Reader& reader) {
  constexpr std::string_view kNone = "@<>";
  if (read_big<uint16_t>(reader) != 0) reader.fail("a message has a number");
  std::string_view types = reader.text();
  if (!types.starts_with(kNone)) reader.fail("a message has no types");
  types.remove_prefix(std::min(types.size(), kNone.size()));
  if (types.starts_with('+')) types.remove_prefix(1);
  return types;
}

void read_error(Reader& reader) {
  read_big<uint8_t>(reader);   // its code
  read_big<uint64_t>(reader);  // its category
  std::string_view types = read_types(reader);
  for (int i = 0; i < kMostTexts && types.starts_with("@str"); ++i) {
    reader.text();
    types.remove_prefix(types.starts_with("@str+") ? 5 : 4);
  }
  if (!types.empty()) reader.fail("an error is more than texts");
}

// The content of a message of net/control/actors.h, or of an answer.
void read_content(Reader& reader) {
  const std::string_view types = read_types(reader);
  const auto expect = [&reader](std::initializer_list<uint64_t> atoms) {
    const auto atom = read_big<uint64_t>(reader);
    if (std::ranges::find(atoms, atom) == atoms.end())
      reader.fail("nobody says this atom to a peer");
  };
  using caf::close_atom, caf::get_atom, caf::join_atom, caf::leave_atom,
      caf::ok_atom, caf::ping_atom, caf::redirect_atom;
  if (types == "@atom") {
    expect({close_atom::uint_value(), get_atom::uint_value(),
            leave_atom::uint_value(), ok_atom::uint_value(),
            ping_atom::uint_value(), redirect_atom::uint_value()});
  } else if (types == "@atom+@str") {
    expect({get_atom::uint_value(), join_atom::uint_value()});
    reader.text();
  } else if (types == "@str") {
    reader.text();
  } else if (types == "@str+@u16") {
    reader.text();
    read_big<uint16_t>(reader);
  } else if (types == "@error") {
    read_error(reader);
  } else {
    reader.fail("nobody says a message of these types");
  }
}

}  // namespace

struct BaspFilter::Header {
  static Header read(Reader& reader) {
    Header read;
    read.operation = message_type(read_big<uint8_t>(reader));
    if (read_big<uint16_t>(reader) != 0)
      reader.fail("bytes are set that have no meaning");
    read.flags = read_big<uint8_t>(reader);
    read.payload = read_big<uint32_t>(reader);
    for (uint64_t* number : {&read.data, &read.source, &read.dest})
      *number = read_big<uint64_t>(reader);
    // CAF knows no message without one but a sign of life, which is off.
    if (read.payload == 0 || read.payload > kLongestControl + kMostAround)
      reader.fail(fmt::format("{} bytes follow", read.payload));
    return read;
  }
  bool is_named() const {
    return operation == message_type::direct_message &&
           flags == basp::header::named_receiver_flag;
  }

  message_type operation{};
  uint8_t flags = 0;
  uint32_t payload = 0;  // bytes
  uint64_t data = 0;
  uint64_t source = 0, dest = 0;  // ids of actors
};

Result<size_t> BaspFilter::payload_size(std::string_view header) {
  Reader reader(header, "basp");
  const Header read = Header::read(reader);
  TAGFLOW_RETURN_IF_ERROR(reader.finish());
  return read.payload;
}

Result<bool> BaspFilter::take(std::string_view header,
                              std::string_view payload) {
  return guarded("net|control", [&]() -> Result<bool> {
    Reader head(header, "basp");
    const Header read = Header::read(head);
    TAGFLOW_RETURN_IF_ERROR(head.finish());
    Reader reader(payload, "basp");
    switch (read.operation) {
      case message_type::server_handshake:
      case message_type::client_handshake:
        read_handshake(read, reader);
        break;
      case message_type::direct_message:
        if (handshakes_ > 0 && read.is_named()) return false;
        read_direct(read, reader);
        break;
      case message_type::monitor_message:
        read_nodes(reader);
        if (read.data != 0 || read.source != 0 || read.dest != options_.actor)
          reader.fail("it is about another actor");
        break;
      case message_type::down_message:
        read_nodes(reader);
        if (read.data != 0 || read.source == 0 || read.source != peer_actor_ ||
            read.dest != 0)
          reader.fail("it is about another actor");
        read_error(reader);
        break;
      default:
        reader.fail(
            fmt::format("nobody sends operation {}", int(read.operation)));
    }
    const bool is_handshake = read.operation <= message_type::client_handshake;
    if (!is_handshake && (handshakes_ == 0 || read.flags != 0))
      reader.fail("no handshake has come, or flags are set");
    TAGFLOW_RETURN_IF_ERROR(reader.finish());
    return true;
  });
}

void BaspFilter::read_handshake(const Header& header, Reader& reader) {
  const bool is_server = header.operation == message_type::server_handshake;
  const int number = handshakes_++;
  if (is_server != options_.is_connector || number > (is_server ? 0 : 1))
    reader.fail("this handshake is not due");
  if (header.source != 0 || header.dest != 0)
    reader.fail("a handshake has no actors");
  read_peer_node(reader);
  if (!is_server) {
    if (header.data != 0 ||
        (header.flags != 0 &&
         header.flags != basp::header::select_connection_flag) ||
        (number > 0 && header.flags == 0))
      reader.fail("the handshake has other flags");
    return;
  }
  if (header.data != basp::version || header.flags != 0)
    reader.fail("the handshake is of another version");
  read_names(reader);  // of applications
  peer_actor_ = read_big<uint64_t>(reader);
  if (peer_actor_ == 0) reader.fail("nobody is there");
  read_names(reader);  // of the messages of the actor
}

void BaspFilter::read_direct(const Header& header, Reader& reader) {
  if (header.dest != options_.actor)
    reader.fail("a message is for another actor");
  if (header.source != 0 && peer_actor_ == 0) peer_actor_ = header.source;
  if (header.source != 0 && header.source != peer_actor_)
    reader.fail("a message is from another actor");
  if (reader.varint() != 0) reader.fail("a message was sent on");
  read_content(reader);
}

void BaspFilter::read_peer_node(Reader& reader) const {
  const caf::node_id node = read_node(reader);
  if (reader.ok() && (ControlSystem::hash_of(node) != options_.peer_node ||
                      node == options_.node))
    reader.fail("the node is not the one of the greeting");
}

void BaspFilter::read_nodes(Reader& reader) const {
  read_peer_node(reader);
  if (read_node(reader) != options_.node) reader.fail("it is for another node");
}

}  // namespace tagflow::net
