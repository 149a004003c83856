#include "graph/device_name.h"

#include <doctest/doctest.h>

#include <random>

#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

DeviceName name(std::string_view text) { return must(DeviceName::parse(text)); }

std::string canonical(std::string_view text) { return name(text).to_string(); }

std::string error_of(std::string_view text) {
  return message_of(DeviceName::parse(text).status(), Code::kInvalidArgument);
}

// Of few parts, so that pairs often agree in some and differ in others.
DeviceName random_name(std::mt19937& random) {
  DeviceName name;
  if (random() % 2) name.job = random() % 2 ? "worker" : "ps_2";
  if (random() % 2) name.replica = int(random() % 2);
  if (random() % 2) name.task = random() % 2 ? 17 : 2147483647;
  if (random() % 2) name.type = random() % 2 ? "GPU" : "STREAM";
  if (random() % 2) name.id = int(random() % 3);
  return name;
}

}  // namespace

TEST_CASE("a full name has all of its parts") {
  const DeviceName full = name("/job:worker/replica:0/task:17/device:GPU:3");
  CHECK(full.job == "worker");
  CHECK(full.replica == 0);
  CHECK(full.task == 17);
  CHECK(full.type == "GPU");
  CHECK(full.id == 3);
  CHECK(full.is_full());
  CHECK(full.to_string() == "/job:worker/replica:0/task:17/device:GPU:3");
}

TEST_CASE("a device name may leave parts open") {
  CHECK(name("").is_empty());
  CHECK(name("/").is_empty());
  CHECK(name("/job:*/replica:*/task:*/device:*:*").is_empty());
  CHECK(canonical("/job:ps") == "/job:ps");
  CHECK(canonical("/task:3/job:ps") == "/job:ps/task:3");
  CHECK(canonical("/device:GPU:*") == "/device:GPU:*");
  CHECK(canonical("/device:GPU") == "/device:GPU:*");
  CHECK(canonical("/device:*:2") == "/device:*:2");
  CHECK(canonical("/device:*") == "");
  CHECK_FALSE(name("/job:a/replica:0/task:0/device:GPU:*").is_full());
  CHECK_FALSE(name("/job:a/replica:0/device:GPU:0").is_full());
}

TEST_CASE("short and old forms name a device too") {
  CHECK(canonical("/gpu:0") == "/device:GPU:0");
  CHECK(canonical("/cpu:*") == "/device:CPU:*");
  CHECK(canonical("/cpu") == "/device:CPU:*");
  CHECK(canonical("/job:ps/stream:1") == "/job:ps/device:STREAM:1");
  CHECK(canonical("GPU:0") == "/device:GPU:0");
  CHECK(canonical("cpu") == "/device:CPU:*");
  CHECK(canonical("xpu_2:1") == "/device:XPU_2:1");
  CHECK(canonical("job:ps/task:1") == "/job:ps/task:1");
  CHECK(canonical("device:gpu:0") == "/device:GPU:0");
}

TEST_CASE("a type from outside is written like ours once it is added") {
  CHECK(error_of("/job:a/npu:1") ==
        "[device] the name \"/job:a/npu:1\": \"npu:1\" is none of job, "
        "replica, task and device");
  add_short_device_type("Npu");
  CHECK(canonical("/job:a/npu:1") == "/job:a/device:NPU:1");
  CHECK(canonical("/NPU:*") == "/device:NPU:*");
  add_short_device_type("a/b");
  CHECK(
      error_of("/a/b:0").ends_with("is none of job, replica, task and "
                                   "device"));
}

TEST_CASE("a device name is read in any case") {
  CHECK(canonical("/JOB:Worker/Replica:1/TASK:2/Device:gpu:3") ==
        "/job:worker/replica:1/task:2/device:GPU:3");
  CHECK(canonical("/GpU:1") == "/device:GPU:1");
}

TEST_CASE("a device of this process is task 0 of the local job") {
  const DeviceName local = DeviceName::local("cpu", 1);
  CHECK(local.is_full());
  CHECK(local.to_string() == "/job:localhost/replica:0/task:0/device:CPU:1");
  CHECK(name(local.to_string()) == local);
}

TEST_CASE("a bad name is refused, and the part that is wrong is named") {
  CHECK(error_of("/taks:1") ==
        "[device] the name \"/taks:1\": \"taks:1\" is none of job, replica, "
        "task and device");
  CHECK(error_of("//cpu:0") ==
        "[device] the name \"//cpu:0\": \"\" is none of job, replica, task "
        "and device");
  CHECK(error_of("/cpu:0/") ==
        "[device] the name \"/cpu:0/\": it ends with \"/\"");
  CHECK(error_of("/job") == "[device] the name \"/job\": job has no value");
  CHECK(error_of("job") == "[device] the name \"job\": job has no value");
  CHECK(error_of("/job:9a") ==
        "[device] the name \"/job:9a\": \"9a\" is not a name of a job");
  CHECK(error_of("/job:a/job:a") ==
        "[device] the name \"/job:a/job:a\": it has more than one job");
  CHECK(error_of("/task:1/task:*") ==
        "[device] the name \"/task:1/task:*\": it has more than one task");
  CHECK(error_of("/replica:0/replica:0") ==
        "[device] the name \"/replica:0/replica:0\": it has more than one "
        "replica");
  CHECK(error_of("/cpu:0/device:GPU:0") ==
        "[device] the name \"/cpu:0/device:GPU:0\": it has more than one "
        "device");
  CHECK(error_of("/task:2147483648") ==
        "[device] the name \"/task:2147483648\": \"2147483648\", of task, is "
        "not a number from 0 to 2147483647");
  CHECK(error_of("/device:GPU:x") ==
        "[device] the name \"/device:GPU:x\": \"x\", of the device, is not a "
        "number from 0 to 2147483647");
  CHECK(error_of("/device:3") ==
        "[device] the name \"/device:3\": \"3\" is not a type of a device");
}

TEST_CASE("hostile names are refused") {
  using namespace std::string_literals;
  for (const std::string& text : {"/job:"s,        "/job:a b"s,
                                  "/job:a\0b"s,    "/job:\xc3\xa4"s,
                                  "/job:a-b"s,     "/replica:"s,
                                  "/replica:-0"s,  "/replica:+1"s,
                                  "/replica: 1"s,  "/replica:1 "s,
                                  "/replica:1.0"s, "/replica:0x1"s,
                                  "/device:"s,     "/device::0"s,
                                  "/device:GPU:"s, "/device:GPU:0:1"s,
                                  "/device:G*:0"s, "/device:GPU:**"s,
                                  "/gpu:"s,        ":"s,
                                  "//"s,           "/ "s,
                                  "GPU:0 "s,       "\n"s,
                                  "a b"s,          "/job:a//task:1"s,
                                  "%s%n"s,         "{}"s}) {
    CAPTURE(text);
    CHECK(error_of(text).starts_with("[device] the name "));
  }
  CHECK(error_of("/" + std::string(1 << 20, 'x')).size() < 400);
  CHECK(error_of("/task:" + std::string(1 << 20, '9')).size() < 400);
}

TEST_CASE("a name matches the devices of which all that it says is so") {
  const DeviceName device = name("/job:w/replica:0/task:1/device:GPU:0");
  for (const char* text :
       {"", "/job:w", "/gpu:0", "/gpu:*", "/device:*:0", "/task:1/replica:0",
        "/job:w/replica:0/task:1/device:GPU:0"}) {
    CAPTURE(text);
    CHECK(name(text).matches(device));
  }
  for (const char* text : {"/job:v", "/replica:1", "/task:0", "/cpu:0",
                           "/gpu:1", "/cpu:*", "/device:*:1"}) {
    CAPTURE(text);
    CHECK_FALSE(name(text).matches(device));
  }
  CHECK(name("/job:w").matches(name("/job:w")));
  CHECK_FALSE(name("/gpu:0").matches(name("/gpu:*")));
}

TEST_CASE("merged names say all that either says, or contradict") {
  CHECK(must(name("/job:w/gpu:*").merged(name("/task:1/device:*:2"))) ==
        name("/job:w/task:1/device:GPU:2"));
  const auto conflict = [](const char* a, const char* b) {
    return message_of(name(a).merged(name(b)).status(), Code::kInvalidArgument);
  };
  CHECK(conflict("/job:a", "/job:b") ==
        "[device] \"/job:a\" and \"/job:b\" differ in the job");
  CHECK(conflict("/replica:0", "/replica:1").ends_with("in the replica"));
  CHECK(conflict("/task:0", "/task:1").ends_with("in the task"));
  CHECK(conflict("/gpu:0", "/cpu:0").ends_with("in the device type"));
  CHECK(conflict("/gpu:0", "/gpu:1").ends_with("in the device id"));
}

TEST_CASE("a device name of an inner scope overrides parts of the outer one") {
  const auto override_by = [](const char* outer, const char* inner) {
    return name(outer).overridden_by(name(inner)).to_string();
  };
  CHECK(override_by("/job:ps/task:1", "/task:2") == "/job:ps/task:2");
  CHECK(override_by("/job:ps/gpu:1", "/job:w") == "/job:w/device:GPU:1");
  CHECK(override_by("/gpu:1", "/gpu:*") == "/device:GPU:1");
  CHECK(override_by("/gpu:1", "/gpu:0") == "/device:GPU:0");
  CHECK(override_by("/gpu:1", "/cpu:*") == "/device:CPU:*");
  CHECK(override_by("/device:*:1", "/cpu:*") == "/device:CPU:1");
}

TEST_CASE("random names survive printing, and agree with one another") {
  std::mt19937 random(7);
  for (int i = 0; i < 2'000; ++i) {
    const DeviceName a = random_name(random);
    const DeviceName b = random_name(random);
    CAPTURE(a.to_string());
    CAPTURE(b.to_string());
    CHECK(name(a.to_string()) == a);
    CHECK(a.matches(a));
    CHECK(DeviceName().matches(a));
    CHECK(*a.merged(a) == a);
    CHECK(a.overridden_by(DeviceName()) == a);
    CHECK(DeviceName().overridden_by(a) == a);
    CHECK(b.matches(a.overridden_by(b)));
    const Result<DeviceName> both = a.merged(b);
    CHECK(both.ok() == b.merged(a).ok());
    if (!both.ok()) continue;
    CHECK(*both == *b.merged(a));
    CHECK(a.matches(*both));
    CHECK(b.matches(*both));
    CHECK(*both == a.overridden_by(b));
    CHECK((a.matches(b) == (*both == b)));
  }
}

TEST_CASE("a device name of random bytes is refused or made canonical") {
  std::mt19937 random(11);
  constexpr std::string_view kPieces[] = {
      "/", ":",  "job", "task", "device", "gpu",   "*",
      "0", "17", "-",   "\n",   "w",      "/job:", "/device:"};
  for (int i = 0; i < 5'000; ++i) {
    std::string text;
    for (uint32_t n = random() % 8; n > 0; --n)
      text += kPieces[random() % std::size(kPieces)];
    CAPTURE(text);
    const Result<DeviceName> parsed = DeviceName::parse(text);
    if (parsed.ok()) CHECK(name(parsed->to_string()) == *parsed);
  }
}
