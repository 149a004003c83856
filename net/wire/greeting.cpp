#include "net/wire/greeting.h"

#include <algorithm>

namespace tagflow::net {
namespace {

constexpr std::string_view kMagic("TAGFLOW\0", 8);

template <size_t kSize>
void write_array(Writer& writer, const std::array<uint8_t, kSize>& bytes) {
  writer.raw({reinterpret_cast<const char*>(bytes.data()), kSize});
}

template <size_t kSize>
std::array<uint8_t, kSize> read_array(Reader& reader) {
  std::array<uint8_t, kSize> bytes{};
  std::ranges::copy(reader.raw(kSize), bytes.begin());
  return bytes;
}

// The name, without the zeros that fill its field.
std::string read_job(Reader& reader) {
  const std::string_view field = reader.raw(Greeting::kLongestJob);
  const std::string_view name = field.substr(0, field.find('\0'));
  const std::string_view rest = field.substr(name.size());
  if (name.empty() || rest.find_first_not_of('\0') != rest.npos)
    reader.fail("the name of the job is not one");
  return std::string(name);
}

}  // namespace

Result<std::string> Greeting::write() const {
  if (task.job.empty() || task.job.size() > kLongestJob ||
      task.job.find('\0') != task.job.npos)
    return invalid_argument(
        "[net|hello] the name of a job has 1 to {} bytes, none of them zero: "
        "\"{}\" does not",
        kLongestJob, task.job);
  Writer writer;
  writer.raw(kMagic);
  writer.fixed(least_version);
  writer.fixed(greatest_version);
  writer.fixed(uint8_t(role));
  writer.fixed(uint8_t(purpose));
  writer.fixed(port);
  writer.fixed(task.index);
  writer.fixed(uint32_t{0});
  writer.fixed(incarnation);
  writer.fixed(wanted_incarnation);
  writer.fixed(node);
  write_array(writer, cluster);
  writer.raw(task.job);
  writer.raw(std::string(kLongestJob - task.job.size(), '\0'));
  write_array(writer, digest);
  write_array(writer, nonce);
  return std::move(writer.bytes());
}

Result<Greeting> Greeting::read(std::string_view bytes) {
  Reader reader(bytes, "hello");
  Greeting greeting;
  if (reader.raw(kMagic.size()) != kMagic)
    reader.fail("this is not a greeting of tagflow");
  greeting.least_version = reader.fixed<uint16_t>();
  greeting.greatest_version = reader.fixed<uint16_t>();
  // What follows may be different in another version.
  if (reader.ok() && (greeting.least_version > kWireVersion ||
                      greeting.greatest_version < kWireVersion))
    return error(Code::kFailedPrecondition,
                 "[net|hello] the peer speaks versions {} to {} of the wire "
                 "format, and this process version {}",
                 greeting.least_version, greeting.greatest_version,
                 kWireVersion);
  greeting.role = Role(reader.fixed<uint8_t>());
  greeting.purpose = Purpose(reader.fixed<uint8_t>());
  if (greeting.role < Role::kMaster || greeting.role > Role::kClient)
    reader.fail("the role is unknown");
  if (greeting.purpose < Purpose::kControl || greeting.purpose > Purpose::kBulk)
    reader.fail("the purpose is unknown");
  greeting.port = reader.fixed<uint16_t>();
  greeting.task.index = reader.fixed<uint32_t>();
  if (reader.fixed<uint32_t>() != 0)
    reader.fail("bytes are set that have no meaning");
  greeting.incarnation = reader.fixed<uint64_t>();
  if (greeting.incarnation == 0) reader.fail("the incarnation is 0");
  greeting.wanted_incarnation = reader.fixed<uint64_t>();
  greeting.node = reader.fixed<uint64_t>();
  greeting.cluster = read_array<sizeof(ClusterId)>(reader);
  greeting.task.job = read_job(reader);
  greeting.digest = read_array<sizeof(Digest)>(reader);
  greeting.nonce = read_array<sizeof(Digest)>(reader);
  TAGFLOW_RETURN_IF_ERROR(reader.finish());
  return greeting;
}

}  // namespace tagflow::net
