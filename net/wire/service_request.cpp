#include "net/wire/service_request.h"

#include "graph/fault.h"
#include "net/wire/cases.h"
#include "net/wire/fields.h"
#include "net/wire/lists.h"

namespace tagflow::net {
namespace {

// The numbers of the wire: which alternative follows.
enum What : uint8_t { kOpen = 1, kExtend = 2, kPrepare = 3, kWatch = 4 };

// A flag and, if it is set, the number.
void write_optional(Writer& writer, const std::optional<uint64_t>& number) {
  writer.fixed(uint8_t(number.has_value()));
  if (number) writer.fixed(*number);
}

std::optional<uint64_t> read_optional(Reader& reader) {
  if (!reader.flag()) return std::nullopt;
  return reader.fixed<uint64_t>();
}

void write_open(Writer& writer, const ServiceRequest::Open& open) {
  writer.text(open.passes);
  writer.varint(open.window);
  writer.varint(open.max_call_depth);
  writer.varint(open.max_open_calls);
  writer.varint(open.max_nodes);
  writer.fixed(uint8_t(open.soft_placement));
  writer.fixed(uint8_t(open.schedule_receives));
  write_optional(writer, open.scatter);
  write_optional(writer, open.seed);
  write_texts(writer, open.lossy);
}

ServiceRequest::Open read_open(Reader& reader) {
  // Limits are ints in the options.
  const auto limit = [&] {
    return uint32_t(reader.varint_to(INT32_MAX, "a limit"));
  };
  ServiceRequest::Open open;
  open.passes = read_text(reader);
  open.window = limit();
  open.max_call_depth = limit();
  open.max_open_calls = limit();
  open.max_nodes = reader.varint();
  open.soft_placement = reader.flag();
  open.schedule_receives = reader.flag();
  open.scatter = read_optional(reader);
  open.seed = read_optional(reader);
  open.lossy = read_texts(reader);
  return open;
}

ServiceRequest::Prepare read_prepare(Reader& reader) {
  ServiceRequest::Prepare prepare;
  prepare.executable = reader.varint();
  prepare.feeds = read_texts(reader);
  prepare.fetches = read_texts(reader);
  prepare.targets = read_texts(reader);
  return prepare;
}

}  // namespace

void ServiceRequest::write(Writer& writer) const {
  writer.varint(session);
  std::visit(Cases{[&](const Open& open) {
                     writer.fixed(uint8_t(kOpen));
                     write_open(writer, open);
                   },
                   [&](const Extend& extend) {
                     writer.fixed(uint8_t(kExtend));
                     writer.text(extend.graph);
                   },
                   [&](const Prepare& prepare) {
                     writer.fixed(uint8_t(kPrepare));
                     writer.varint(prepare.executable);
                     write_texts(writer, prepare.feeds);
                     write_texts(writer, prepare.fetches);
                     write_texts(writer, prepare.targets);
                   },
                   [&](const Watch& watch) {
                     writer.fixed(uint8_t(kWatch));
                     writer.varint(watch.executable);
                   }},
             what);
}

ServiceRequest ServiceRequest::read(Reader& reader) {
  ServiceRequest request;
  request.session = reader.varint();
  const auto what = reader.fixed<uint8_t>();
  switch (what) {
    case kOpen:
      request.what = read_open(reader);
      break;
    case kExtend:
      request.what = Extend{read_text(reader)};
      break;
    case kPrepare:
      request.what = read_prepare(reader);
      break;
    case kWatch:
      request.what = Watch{reader.varint()};
      break;
    default:
      reader.fail(fmt::format("{} is not what a client asks for", what));
  }
  return request;
}

Result<std::string> bytes_of(const ServiceRequest& request) {
  return guarded("net", [&]() -> Result<std::string> {
    Writer writer;
    request.write(writer);
    TAGFLOW_RETURN_IF_ERROR(writer.status());
    return std::move(writer.bytes());
  });
}

Result<ServiceRequest> parse_service_request(std::string_view bytes) {
  return guarded("net", [&]() -> Result<ServiceRequest> {
    Reader reader(bytes, ServiceRequest::kName);
    ServiceRequest request = ServiceRequest::read(reader);
    TAGFLOW_RETURN_IF_ERROR(reader.finish());
    return request;
  });
}

}  // namespace tagflow::net
