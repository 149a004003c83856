#include "net/wire/fields.h"

#include <limits>

#include "graph/status_text.h"
#include "net/wire/lists.h"

namespace tagflow::net {
namespace {

// Of a text for users, in bytes: more than shorten_message() leaves.
constexpr size_t kLongestWords = size_t{2} * kLongestMessage;
constexpr uint64_t kMaxU32 = std::numeric_limits<uint32_t>::max();

bool is_code(uint8_t number) {
  return number <= uint8_t(Code::kUnauthenticated) ||
         number == uint8_t(Code::kDeadlock);
}

}  // namespace

void write_id(Writer& writer, ObjectId id) { writer.varint(uint64_t(id)); }
ObjectId read_id(Reader& reader) { return ObjectId(reader.varint()); }

uint32_t read_index(Reader& reader) {
  return uint32_t(reader.varint_to(kMaxU32, "an index"));
}

int64_t read_iteration(Reader& reader) {
  return int64_t(reader.varint_to(INT64_MAX, "an iteration"));
}

std::string read_text(Reader& reader) { return std::string(reader.text()); }

void write_words(Writer& writer, std::string_view text) {
  if (text.size() > kLongestWords) return writer.text(shorten_message(text));
  writer.text(text);
}

std::string read_words(Reader& reader) {
  const std::string_view text = reader.text();
  if (text.size() <= kLongestWords) return std::string(text);
  reader.fail(fmt::format("a text has {} bytes, more than {}", text.size(),
                          kLongestWords));
  return {};
}

void write_outcome(Writer& writer, const Outcome& outcome) {
  writer.fixed(uint8_t(outcome.code));
  for (const std::string* text : {&outcome.message, &outcome.task,
                                  &outcome.device, &outcome.node, &outcome.tag})
    write_words(writer, *text);
}

Outcome read_outcome(Reader& reader) {
  Outcome outcome;
  const auto number = reader.fixed<uint8_t>();
  if (!is_code(number))
    reader.fail(fmt::format("{} is not the number of an error", number));
  outcome.code = Code(number);
  for (std::string* text : {&outcome.message, &outcome.task, &outcome.device,
                            &outcome.node, &outcome.tag})
    *text = read_words(reader);
  return outcome;
}

void write_texts(Writer& writer, const std::vector<std::string>& texts) {
  write_list(writer, texts,
             [&](const std::string& text) { writer.text(text); });
}

std::vector<std::string> read_texts(Reader& reader) {
  return read_list<std::string>(reader, 1, read_text);
}

}  // namespace tagflow::net
