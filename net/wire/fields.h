// Fields that several messages have.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/wire/bytes.h"
#include "net/wire/messages.h"

namespace tagflow::net {

void write_id(Writer& writer, ObjectId id);
ObjectId read_id(Reader& reader);

uint32_t read_index(Reader& reader);
int64_t read_iteration(Reader& reader);

std::string read_text(Reader& reader);

// A sentence or a name of a user, which may be of any length: a long one is
// shortened.
void write_words(Writer& writer, std::string_view text);
std::string read_words(Reader& reader);

void write_outcome(Writer& writer, const Outcome& outcome);
Outcome read_outcome(Reader& reader);

void write_texts(Writer& writer, const std::vector<std::string>& texts);
std::vector<std::string> read_texts(Reader& reader);

}  // namespace tagflow::net
