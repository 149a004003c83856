#include "net/wire/messages.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include "net/wire/view_messages.h"
#include "tests/net/wire/hex.h"
#include "tests/net/wire/random_message.h"

namespace tagflow::net {
namespace {

template <class Message>
std::string body_of(const Message& message) {
  const auto frame = frame_of(message);
  REQUIRE(frame.ok());
  CHECK(FrameKind(uint8_t((*frame)[0])) == Message::kKind);
  return frame->substr(kFrameHeader);
}

std::string body_of(const Register& registration) {
  const auto bytes = bytes_of(registration);
  REQUIRE(bytes.ok());
  return *bytes;
}

template <class Message>
Result<Message> parse(std::string_view bytes) {
  if constexpr (std::is_same_v<Message, Register>) {
    return parse_register(bytes);
  } else {
    return parse_body<Message>(bytes);
  }
}

// The message has those bytes, and they have that message.
template <class Message>
void check_golden(const Message& message, std::string_view bytes) {
  const std::string body = body_of(message);
  CHECK(hex(body) == hex(unhex(bytes)));
  const auto found = parse<Message>(body);
  REQUIRE(found.ok());
  CHECK(hex(body_of(*found)) == hex(body));
}

template <class Message>
std::string error_of(std::string_view bytes) {
  const auto message = parse<Message>(unhex(bytes));
  CHECK_FALSE(message.ok());
  return std::string(message.status().message());
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

constexpr FrameInstance kInstance{1, 2};
constexpr std::string_view kInstanceBytes =
    "01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00";
const TensorInfo kInfo{DataType::kFloat, {64, 64}, 16384};
constexpr std::string_view kInfoBytes = "01 02 40 40 80 80 01";

TEST_CASE("Run has its bytes") {
  check_golden(Run{.executable = 1,
                   .step = 2,
                   .seed = 3,
                   .trace_words = 300,
                   .feeds = {{0, Tensor::scalar(1.5f)}, {1, ObjectId(9)}}},
               "01 02 03 00 00 00 00 00 00 00 ac 02 00 00 02"
               "00 01 01 00 04 00 00 c0 3f"
               "01 02 09");
}

TEST_CASE("a Run that may be held has its bytes") {
  check_golden(Run{.executable = 1, .step = 2, .may_be_held = true},
               "01 02 00 00 00 00 00 00 00 00 00 00 01 00");
  check_golden(Run{.executable = 1,
                   .step = 2,
                   .may_be_held = true,
                   .stop = Run::Stop{"ab", 300}},
               "01 02 00 00 00 00 00 00 00 00 00 00 02 02 61 62 ac 02 00");
}

TEST_CASE("Look, Steer and Seen have their bytes") {
  check_golden(Look{2, 300, 20'000}, "02 ac 02 a0 9c 01");
  check_golden(Steer{2, Steer::What::kStop, "ab", 300}, "02 01 02 61 62 ac 02");
  check_golden(Seen{.step = 2, .request = 300}, "02 ac 02 00");
  actors::StepView view;
  view.is_stopped = true;
  view.devices = {{"d", 1, 2, 3, 4}};
  view.loops = {{0, "w", 5, 6}};
  view.frames = {{-1, 0, "", "root", 1, 1, {}, 0},
                 {0, 0, "w", "w", 10, 2, {}, 7}};
  view.frames[1].iterations = {{.number = 3,
                                .is_stopped = true,
                                .fired = 1,
                                .waiting = 2,
                                .running = 3,
                                .untouched = 4,
                                .nodes = {{"n", "Op", true, 1}},
                                .tokens = {{"t", -1, "v"}},
                                .more_nodes = 5,
                                .more_tokens = 6}};
  view.waits = {"a"};
  check_golden(
      Seen{2, 300, true, view},
      "02 ac 02 01 01"
      "01 01 64 01 02 03 04"
      "01 00 01 77 05 06"
      "02 00 00 00 04 72 6f 6f 74 01 01 00 00"
      "01 00 01 77 01 77 0a 02 07 01"
      "03 01 01 02 03 04 05 06 01 01 6e 02 4f 70 01 01 01 01 74 00 01 76"
      "00 01 01 61 00");
}

TEST_CASE("Done has its bytes") {
  check_golden(Done{2,
                    {},
                    false,
                    true,
                    7,
                    300,
                    {5, 300},
                    ObjectId(11),
                    {{0, Done::Dead()},
                     {1, Tensor::scalar(int32_t{7})},
                     {2, ObjectId(10)}}},
               "02 00 00 00 00 00 00 00 01 07 ac 02 02 05 ac 02 02 0b 03"
               "00 00"
               "01 01 03 00 04 07 00 00 00"
               "02 02 0a");
}

TEST_CASE("Abort has its bytes") {
  check_golden(Abort{2,
                     {Code::kInvalidArgument, "bad", Task{"w", 1}.to_string(),
                      "CPU:0", "n", "[0]"}},
               "02 03 03 62 61 64 0d 2f 6a 6f 62 3a 77 2f 74 61 73 6b 3a 31"
               "05 43 50 55 3a 30 01 6e 03 5b 30 5d");
}

TEST_CASE("Tokens has its bytes") {
  check_golden(Tokens{2,
                      {{kInstance,
                        5,
                        {{5, 0, Tokens::Dead()},
                         {6, 300, Tensor::scalar(true)},
                         {7, 1, Tokens::Announced{kInfo}},
                         {7, 2, Tokens::Announced{.is_dead = true}}}}}},
               "02 01" + std::string(kInstanceBytes) +
                   "05 04"
                   "00 00 00"
                   "01 ac 02 01 0a 00 01 01"
                   "02 01 02" +
                   std::string(kInfoBytes) + "02 02 03");
}

TEST_CASE("Pull, Credit, Ping and Pong have their bytes") {
  check_golden(Pull{2, {kInstance, 5, 1}, ObjectId(9)},
               "02" + std::string(kInstanceBytes) + "05 01 09");
  check_golden(Credit{4096}, "80 20");
  check_golden(Ping{1, 256}, "01 00 00 00 00 00 00 00 00 01 00 00 00 00 00 00");
  check_golden(Pong{1, 256, 3},
               "01 00 00 00 00 00 00 00 00 01 00 00 00 00 00 00"
               "03 00 00 00 00 00 00 00");
}

TEST_CASE("Report, Ask, PairLost and Bye have their bytes") {
  check_golden(Report{2, 1, true, 3, 300, "a"}, "02 01 01 03 ac 02 01 61");
  check_golden(Ask{2, 1}, "02 01");
  check_golden(PairLost{{"w", 1}, 5, {Code::kUnavailable, "x"}},
               "01 77 01 05 00 00 00 00 00 00 00 0e 01 78 00 00 00 00");
  check_golden(Bye{"x"}, "01 78");
}

TEST_CASE("Begin, Chunk and Cancel have their bytes") {
  check_golden(Begin{ObjectId(9), ObjectKind::kTensor, 16384, kInfo},
               "09 01" + std::string(kInfoBytes));
  check_golden(Begin{ObjectId(10), ObjectKind::kRegister, 300, {}},
               "0a 02 ac 02");
  check_golden(Begin{ObjectId(11), ObjectKind::kDead, 0, {}}, "0b 03");
  check_golden(Chunk{ObjectId(9), 65536},
               "09 00 00 00 00 00 00 00 00 00 01 00 00 00 00 00");
  CHECK(body_of(Chunk()).size() == Chunk::kFields);
  check_golden(Cancel{ObjectId(9), {Code::kCancelled}}, "09 01 00 00 00 00 00");
}

TEST_CASE("Register has its bytes") {
  check_golden(Register{1,
                        {2, 3, 300, true, 1, true, 9},
                        {{"CPU", "p"}},
                        {{{"w", 1}, 5, "h", 8080}},
                        {{"a", 0, true}, {"b", 0, false}},
                        {"f"}},
               "01 02 03 ac 02 01 01 01 09 00 00 00 00 00 00 00"
               "01 03 43 50 55 01 70"
               "01 01 77 01 05 00 00 00 00 00 00 00 01 68 90 1f"
               "02 01 61 00 01 01 62 00 00"
               "01 01 66");
}

TEST_CASE("Devices, Reset, Release, Drain and Reply have their bytes") {
  Devices devices;
  devices.devices = {{"d", 5, true, 2, 3, 1.0, 0, 0, 0, 0}};
  check_golden(devices,
               "01 01 64 05 00 00 00 00 00 00 00 01 02 03"
               "00 00 00 00 00 00 f0 3f"
               "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"
               "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
  check_golden(Reset{7, {"c"}}, "07 01 01 63");
  check_golden(Release{300}, "ac 02");
  check_golden(Drain(), "");
  check_golden(Reply{7, {Code::kCancelled}, true, {"w"}},
               "07 01 00 00 00 00 00 01 01 01 77");
}

// Any message is read as it was written; and of its bytes, none may be missing,
// none added, and a changed one gives an error or a message of just those
// bytes.
template <class Message>
void check_round_trips() {
  const bool holds = rc::check([](uint32_t seed) {
    std::mt19937_64 random(seed);
    Message message;
    fill(random, message);
    const std::string body = body_of(message);
    const auto found = parse<Message>(body);
    RC_ASSERT(found.ok());
    RC_ASSERT(body_of(*found) == body);
    const size_t cut = body.empty() ? 0 : random() % body.size();
    RC_ASSERT(!parse<Message>(body.substr(0, cut)).ok());
    RC_ASSERT(!parse<Message>(body + '\0').ok());
    std::string changed = body;
    changed[cut] = char(random());
    const auto other = parse<Message>(changed);
    RC_ASSERT((!other.ok() || body_of(*other) == changed));
  });
  CHECK(holds);
}

TEST_CASE("messages of steps are read as they were written") {
  check_round_trips<Run>();
  check_round_trips<Done>();
  check_round_trips<Abort>();
  check_round_trips<Report>();
  check_round_trips<Ask>();
  check_round_trips<PairLost>();
  check_round_trips<Release>();
  check_round_trips<Look>();
  check_round_trips<Steer>();
  check_round_trips<Seen>();
}

TEST_CASE("messages of peers are read as they were written") {
  check_round_trips<Tokens>();
  check_round_trips<Pull>();
  check_round_trips<Credit>();
  check_round_trips<Ping>();
  check_round_trips<Pong>();
  check_round_trips<Bye>();
}

TEST_CASE("messages of objects are read as they were written") {
  check_round_trips<Begin>();
  check_round_trips<Chunk>();
  check_round_trips<Cancel>();
  check_round_trips<Register>();
}

TEST_CASE("messages of membership are read as they were written") {
  check_round_trips<Devices>();
  check_round_trips<Reset>();
  check_round_trips<Reply>();
}

TEST_CASE("the values of tokens are those that were sent") {
  const Tensor tensor = Tensor::vector<std::string>({"x", ""});
  const auto found = parse<Tokens>(body_of(
      Tokens{7, {{kInstance, 5, {{9, 3, tensor}, {5, 4, Tokens::Dead()}}}}}));
  REQUIRE(found.ok());
  CHECK(found->step == 7);
  REQUIRE(found->groups.size() == 1);
  CHECK(found->groups[0].instance == kInstance);
  const auto& entries = found->groups[0].entries;
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].iteration == 9);
  CHECK(entries[0].transfer == 3);
  CHECK(identical(std::get<Tensor>(entries[0].value), tensor));
  CHECK(std::holds_alternative<Tokens::Dead>(entries[1].value));
}

TEST_CASE("fields that a peer made up are refused by what is wrong") {
  CHECK(has(error_of<Done>("02 11 00 00 00 00 00 00 00"),
            "[net|Done] byte 2 of 9: 17 is not the number of an error"));
  CHECK(has(error_of<Run>("01 02 03 00 00 00 00 00 00 00"
                          "00 02 00"),
            "a flag is 2"));
  CHECK(has(error_of<Run>("01 02 03 00 00 00 00 00 00 00"
                          "00 00 00 01 00 00 00"),
            "0 is not the form of a value"));
  CHECK(has(error_of<Run>("01 02 03 00 00 00 00 00 00 00"
                          "00 00 03 00"),
            "3 is not how a step is held"));
  CHECK(
      has(error_of<Steer>("02 03 00 00"), "3 is not what a step may be told"));
  CHECK(has(error_of<Seen>("02 01 01 00 00 01 00 01 77 05 06 00 00 00 00"),
            "a loop is on a device that is not named"));
  CHECK(has(error_of<Seen>("02 01 01 00 01 01 64 00 00 00 00 00"
                           "01 01 00 00 00 01 01 00 00 00 00 00"),
            "a frame is on a device, or in a frame, that is not named"));
  CHECK(has(error_of<Begin>("09 04 00"), "4 is not a kind of object"));
  CHECK(has(error_of<Pull>("02" + std::string(kInstanceBytes) +
                           "ff ff ff ff ff ff ff ff ff 01 01 09"),
            "an iteration is 18446744073709551615"));
  CHECK(has(error_of<Pull>("02" + std::string(kInstanceBytes) +
                           "05 80 80 80 80 10 09"),
            "an index is 4294967296, more than 4294967295"));
  // The base is the last iteration there is.
  CHECK(has(error_of<Tokens>("02 01" + std::string(kInstanceBytes) +
                             "ff ff ff ff ff ff ff ff 7f 01 01 00 00"),
            "an iteration's distance is 1, more than 0"));
  CHECK(has(error_of<Tokens>("02 ff ff ff ff 0f"),
            "4294967295 elements are more than 0 bytes can hold"));
  // An executable, and settings that are zeros.
  const std::string begin = "01 00 00 00 00 00 00 00 00 00 00 00 00 00 00";
  CHECK(has(error_of<Register>(begin + "01 01 61 01 62 00 01 01 61 00 01"),
            "there is no peer 0"));
  CHECK(has(error_of<Register>(begin + "01 01 61 01 62 01 01 77 01 "
                                       "05 00 00 00 00 00 00 00 01 68"
                                       "90 1f 02 01 62 00 01 01 61 00 00"),
            "the names of transfers do not ascend"));
  CHECK(has(error_of<Register>(begin + "00 00 00 00"), "it has no parts"));
}

TEST_CASE("counts take no more memory than the budget") {
  const std::string body = body_of(Reset{0, std::vector<std::string>(1000)});
  CHECK(parse_body<Reset>(body, 1000 * sizeof(std::string)).ok());
  const auto refused = parse_body<Reset>(body, 999 * sizeof(std::string));
  CHECK(has(std::string(refused.status().message()), "exceed the budget"));
}

TEST_CASE("texts for users are sent shortened if they are endless") {
  const std::string text(100'000, 'x');
  const auto found = parse<Abort>(body_of(Abort{1, {Code::kUnknown, text}}));
  REQUIRE(found.ok());
  CHECK(found->cause.message.size() < 1000);
  CHECK(has(found->cause.message, "xxx"));
  const std::string name(8000, 'y');
  const auto kept = parse<Abort>(body_of(Abort{1, {Code::kUnknown, name}}));
  REQUIRE(kept.ok());
  CHECK(kept->cause.message == name);
}

TEST_CASE("a message with a tensor that cannot be sent is not sent") {
  const Tensor tensor = Tensor::make(DataType::kResource, {1});
  CHECK(frame_of(Run{.feeds = {{0, tensor}}}).status().code() ==
        Code::kUnimplemented);
  const Tensor large = Tensor::make(DataType::kUInt8, {int64_t{2} << 20});
  CHECK(frame_of(Run{.feeds = {{0, large}}}).status().code() ==
        Code::kResourceExhausted);
}

}  // namespace
}  // namespace tagflow::net
