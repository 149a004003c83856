// The messages of links, as values and as bytes. docs/wire.md has the format.
//
// Each message has the kind of its frame, a `write`, and a `read`. What `read`
// accepts, `write` gives back byte by byte. A number without a unit in its name
// is a plain count.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "graph/fault.h"
#include "graph/status.h"
#include "net/wire/frame.h"
#include "net/wire/tensor.h"

namespace tagflow::net {

// An instance of a frame of a loop or of a call: a pure function of names and
// parents, so that all processes have the same number for it.
struct FrameInstance {
  uint64_t high = 0;
  uint64_t low = 0;
  bool operator==(const FrameInstance&) const = default;
};

// One use of one edge that crosses tasks, within a step.
struct TransferKey {
  FrameInstance instance;
  int64_t iteration = 0;  // >= 0
  uint32_t transfer = 0;  // index into the transfers of the registration
  bool operator==(const TransferKey&) const = default;
};

// An object of the bulk link; the number is its sender's peer's choice if the
// object answers a Pull, and otherwise the sender's.
enum class ObjectId : uint64_t {};

// A task: a process of the cluster, "/job:NAME/task:N".
struct Task {
  std::string job;
  uint32_t index = 0;
  std::string to_string() const;
  bool operator==(const Task&) const = default;
};

// Why a step, or a part of it, failed; or that it did not.
struct Outcome {
  Code code = Code::kOk;
  // Empty where nothing is known. A text of more than 8,000 bytes is sent as
  // users see it: see shorten_message() in graph/status_text.h.
  std::string message;
  std::string task;
  std::string device;
  std::string node;
  std::string tag;
};

// From the master: run a step, of which this worker has a part.
struct Run {
  static constexpr FrameKind kKind = FrameKind::kRun;
  struct Feed {
    uint32_t index = 0;  // of the executable's feeds
    std::variant<Tensor, ObjectId> value;
  };
  uint64_t executable = 0;
  uint64_t step = 0;
  uint64_t seed = 0;
  uint64_t trace_words = 0;  // that the part may record; 0: no trace
  bool has_stats = false;
  // Where iterations stop before they begin: actors/runtime/hold.h.
  struct Stop {
    std::string frame;
    int64_t iteration = 0;
  };
  bool may_be_held = false;  // by Look and Steer
  std::optional<Stop> stop;  // REQUIRES: may_be_held
  std::vector<Feed> feeds;

  void write(Writer& writer) const;
  static Run read(Reader& reader);
};

// To the master: a part is at rest. The only answer to a Run.
struct Done {
  static constexpr FrameKind kKind = FrameKind::kDone;
  struct Dead {};
  struct Fetch {
    uint32_t index = 0;  // of the executable's fetches
    std::variant<Dead, Tensor, ObjectId> value;
  };
  uint64_t step = 0;
  // If it is not the cause, its message says what the part waited for when it
  // was told to end.
  Outcome outcome;
  bool is_cause = false;       // an error of the part itself
  bool has_committed = false;  // the part has updated state
  uint64_t sent = 0;           // messages for peers: see Report
  uint64_t received = 0;
  std::vector<uint64_t> stats;  // in the order of the registration
  // The bytes of what the part has recorded (net/transfer/trace_bytes.h), as a
  // tensor of uint8; dead: none.
  std::variant<Dead, Tensor, ObjectId> trace;
  std::vector<Fetch> fetches;

  void write(Writer& writer) const;
  static Done read(Reader& reader);
};

// From the master: end the part of a step, for a reason. To the master: a part
// has failed by itself, and its Done follows.
struct Abort {
  static constexpr FrameKind kKind = FrameKind::kAbort;
  uint64_t step = 0;
  Outcome cause;

  void write(Writer& writer) const;
  static Abort read(Reader& reader);
};

// Between the parts of a step: what Sends have sent.
struct Tokens {
  static constexpr FrameKind kKind = FrameKind::kTokens;
  struct Dead {};
  // A token that is not pushed, since it is too large, or the window is full: a
  // Recv pulls it.
  struct Announced {
    TensorInfo info;  // if it is not dead
    bool is_dead = false;
  };
  struct Entry {
    int64_t iteration = 0;  // >= base_iteration of the group
    uint32_t transfer = 0;
    std::variant<Dead, Tensor, Announced> value;
  };
  struct Group {
    FrameInstance instance;
    int64_t base_iteration = 0;  // >= 0
    std::vector<Entry> entries;
  };
  uint64_t step = 0;
  std::vector<Group> groups;

  void write(Writer& writer) const;
  static Tokens read(Reader& reader);
};

// To a peer: send what was announced, as that object.
struct Pull {
  static constexpr FrameKind kKind = FrameKind::kPull;
  uint64_t step = 0;
  TransferKey key;
  ObjectId object{};

  void write(Writer& writer) const;
  static Pull read(Reader& reader);
};

// To a peer: so many bytes of its tokens were consumed.
struct Credit {
  static constexpr FrameKind kKind = FrameKind::kCredit;
  uint64_t bytes = 0;

  void write(Writer& writer) const;
  static Credit read(Reader& reader);
};

// Asks for a Pong, by a link on which nothing arrives.
struct Ping {
  static constexpr FrameKind kKind = FrameKind::kPing;
  uint64_t nonce = 0;
  uint64_t time_ns = 0;  // of the sender's clock

  void write(Writer& writer) const;
  static Ping read(Reader& reader);
};

// Answers a Ping, whose fields it repeats.
struct Pong {
  static constexpr FrameKind kKind = FrameKind::kPong;
  uint64_t nonce = 0;
  uint64_t ping_time_ns = 0;
  uint64_t time_ns = 0;  // of the sender's clock

  void write(Writer& writer) const;
  static Pong read(Reader& reader);
};

// To the master: whether a part has nothing to do, and waits for peers only, or
// for peers and other runs.
struct Report {
  static constexpr FrameKind kKind = FrameKind::kReport;
  uint64_t step = 0;
  uint64_t round = 0;  // of the Ask that it answers; 0 if nobody asked
  bool is_quiet = false;
  // How many Tokens, Pulls and answers to Pulls have gone to peers, and have
  // come from them, since the step began.
  uint64_t sent = 0;
  uint64_t received = 0;
  std::string waits;  // for what of other runs, for users; empty: for nothing

  void write(Writer& writer) const;
  static Report read(Reader& reader);
};

// From the master: report again, whatever has changed.
struct Ask {
  static constexpr FrameKind kKind = FrameKind::kAsk;
  uint64_t step = 0;
  uint64_t round = 0;  // >= 1

  void write(Writer& writer) const;
  static Ask read(Reader& reader);
};

// To the master: the session with a peer is lost.
struct PairLost {
  static constexpr FrameKind kKind = FrameKind::kPairLost;
  Task peer;
  uint64_t incarnation = 0;  // of the peer
  Outcome reason;

  void write(Writer& writer) const;
  static PairLost read(Reader& reader);
};

// The sender closes the link next, on purpose.
struct Bye {
  static constexpr FrameKind kKind = FrameKind::kBye;
  std::string reason;

  void write(Writer& writer) const;
  static Bye read(Reader& reader);
};

// To the master, when its links are there: the devices of this worker. They
// keep their order.
struct Devices {
  static constexpr FrameKind kKind = FrameKind::kDevices;
  struct Device {
    std::string name;  // the full one
    uint64_t incarnation = 0;
    bool host_memory = true;
    uint32_t kernels_at_once = 1;
    uint64_t memory_limit = 0;  // bytes; 0: none
    // Of graph::DeviceInfo, in its units.
    double flops_per_ns = 0;
    double bytes_per_ns = 0;
    double launch_ns = 0;
    double link_latency_ns = 0;
    double link_bytes_per_ns = 0;
  };
  std::vector<Device> devices;

  void write(Writer& writer) const;
  static Devices read(Reader& reader);
};

// From the master: remove what steps have left in these containers.
struct Reset {
  static constexpr FrameKind kKind = FrameKind::kReset;
  uint64_t request = 0;
  std::vector<std::string> containers;

  void write(Writer& writer) const;
  static Reset read(Reader& reader);
};

// To the master: this worker wants to leave. From the master, which answers
// when all steps of the worker are over: no Run follows.
struct Drain {
  static constexpr FrameKind kKind = FrameKind::kDrain;

  void write(Writer&) const {}
  static Drain read(Reader&) { return {}; }
};

// From the master: an executable is not needed any more. It follows each
// Register, but may overtake it.
struct Release {
  static constexpr FrameKind kKind = FrameKind::kRelease;
  uint64_t executable = 0;

  void write(Writer& writer) const;
  static Release read(Reader& reader);
};

// To the master: what became of a Reset, or of a Register, whose executable is
// the number of the request.
struct Reply {
  static constexpr FrameKind kKind = FrameKind::kReply;
  uint64_t request = 0;
  Outcome outcome;
  bool updates_state = false;         // of an executable
  std::vector<std::string> warnings;  // about its graph, for users

  void write(Writer& writer) const;
  static Reply read(Reader& reader);
};

// What an object of the bulk link is.
enum class ObjectKind : uint8_t {
  kTensor = 1,    // the elements of a tensor
  kRegister = 2,  // a Register
  kDead = 3,      // nothing, of a dead token
};

// An object of so many bytes follows, in chunks.
struct Begin {
  static constexpr FrameKind kKind = FrameKind::kBegin;
  ObjectId object{};
  ObjectKind kind = ObjectKind::kTensor;
  uint64_t bytes = 0;
  TensorInfo tensor;  // of a tensor, which has these bytes

  void write(Writer& writer) const;
  static Begin read(Reader& reader);
};

// A part of an object: the fields, and behind them its bytes. The parts of an
// object arrive in order, those of different objects in turn.
struct Chunk {
  static constexpr FrameKind kKind = FrameKind::kChunk;
  // Bytes of the fields.
  static constexpr size_t kFields = 16;
  ObjectId object{};
  uint64_t offset = 0;  // of its first byte, within the object

  void write(Writer& writer) const;
  static Chunk read(Reader& reader);
};

// No more of an object follows: its sender gave it up.
struct Cancel {
  static constexpr FrameKind kKind = FrameKind::kCancel;
  ObjectId object{};
  Outcome cause;

  void write(Writer& writer) const;
  static Cancel read(Reader& reader);
};

// From the master, as an object: the parts of an executable that are this
// worker's.
struct Register {
  // Of actors::SessionOptions.
  struct Settings {
    uint32_t window = 0;
    uint32_t max_call_depth = 0;
    uint32_t max_open_calls = 0;
    bool compile_edges = false;   // the pass "edges"
    uint8_t hand_off = 0;         // the number of actors::HandOff
    bool soft_placement = false;  // of functions that kernels call
    uint64_t seed = 0;            // of their random ops

    static constexpr uint8_t kMostHandOff = 2;
  };
  struct Part {
    std::string device;   // its full name
    std::string program;  // a serialized graph::Partition
  };
  struct Peer {
    Task task;
    uint64_t incarnation = 0;
    std::string host;
    uint16_t port = 0;
  };
  struct Transfer {
    std::string name;   // ascending
    uint32_t peer = 0;  // index into `peers`
    bool is_sent = false;
  };
  uint64_t executable = 0;
  Settings settings;
  std::vector<Part> parts;  // not empty
  std::vector<Peer> peers;
  std::vector<Transfer> transfers;
  std::vector<std::string> fetches;  // names of all, for errors

  void write(Writer& writer) const;
  static Register read(Reader& reader);
};

// The message as a frame that a link can number and send. An error if it has a
// tensor that cannot be sent, or is too long. Thread-safe.
template <class Message>
Result<std::string> frame_of(const Message& message) {
  return guarded("net", [&]() -> Result<std::string> {
    Writer writer(kFrameHeader);
    message.write(writer);
    TAGFLOW_RETURN_IF_ERROR(writer.status());
    TAGFLOW_RETURN_IF_ERROR(begin_frame(Message::kKind, writer.bytes()));
    return std::move(writer.bytes());
  });
}

// The message of a frame's body. DataLoss naming the message and the byte at
// fault, or ResourceExhausted. `budget` is the memory that all of its counts
// may ask for, in bytes. Thread-safe.
template <class Message>
Result<Message> parse_body(std::string_view body,
                           uint64_t budget = Reader::kBudget) {
  return guarded("net", [&]() -> Result<Message> {
    Reader reader(body, kind_name(Message::kKind), budget);
    Message message = Message::read(reader);
    TAGFLOW_RETURN_IF_ERROR(reader.finish());
    return message;
  });
}

// As bytes, for an object of the bulk link.
Result<std::string> bytes_of(const Register& registration);
Result<Register> parse_register(std::string_view bytes);

}  // namespace tagflow::net
