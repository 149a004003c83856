#include "devices/device_registry.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>

#include "devices/cpu_device.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {

namespace {

std::string failure(std::string_view text) {
  return parse_device_specs(text).status().to_string();
}

std::vector<std::string> names(
    const std::vector<std::unique_ptr<Device>>& devices) {
  std::vector<std::string> names;
  for (const auto& device : devices)
    names.push_back(*device->info().name.type + ":" +
                    std::to_string(*device->info().name.id));
  return names;
}

DeviceType imaginary_type() {
  DeviceType type;
  type.keyword = "imaginary";
  type.type = "IMAGINARY";
  type.summary = "only a test has it";
  type.options = {{"delay", Quantity::kDuration, "how long it takes"}};
  type.make = [](const DeviceSpec& spec,
                 graph::DeviceInfo info) -> Result<std::unique_ptr<Device>> {
    if (*info.name.id > 1)
      return error(Code::kNotFound, "[imaginary] there are only two");
    info.launch_ns =
        spec.options.contains("delay") ? double(spec.options.at("delay")) : 0;
    return make_cpu_device(std::move(info));
  };
  return type;
}

// As a program that has its own device does.
const Status registered = DeviceRegistry::global().add(imaginary_type());

}  // namespace

TEST_CASE("device specs are read from text") {
  using Specs = std::vector<DeviceSpec>;
  CHECK(parse_device_specs("")->empty());
  CHECK(*parse_device_specs("cpu") == Specs{{"cpu", 1, {}}});
  CHECK(*parse_device_specs("cpu:2,stream:1:memory=64MiB:latency=5us:"
                            "bandwidth=8GB,stream:memory=1KB") ==
        Specs{{"cpu", 2, {}},
              {"stream",
               1,
               {{"memory", 64 << 20},
                {"latency", 5000},
                {"bandwidth", 8000000000}}},
              {"stream", 1, {{"memory", 1000}}}});
  CHECK(*parse_device_specs("cpu:64") == Specs{{"cpu", 64, {}}});
  CHECK(*parse_device_specs("CPU:2,Stream") ==
        Specs{{"cpu", 2, {}}, {"stream", 1, {}}});
}

TEST_CASE("a wrong device spec is refused with the types that there are") {
  CHECK(failure("gpu9:1") ==
        "InvalidArgument: [devices] \"gpu9:1\": there is no device type "
        "\"gpu9\"; there are cpu, stream, cuda, imaginary");
  CHECK(failure("GPU:1") ==
        "InvalidArgument: [devices] \"GPU:1\": there is no device type "
        "\"gpu\", did you mean \"cuda\"? There are cpu, stream, cuda, "
        "imaginary");
  CHECK(failure("streem").find(", did you mean \"stream\"? There are ") !=
        std::string::npos);
  for (const std::string text : {"cpu,,stream", "cpu:2,", ","})
    CHECK(failure(text) == "InvalidArgument: [devices] \"" + text +
                               "\": a device is missing before or after a "
                               "comma");
  CHECK(failure("cpu:40,stream,cpu:40") ==
        "InvalidArgument: [devices] \"cpu:40\": there would be more than 64 "
        "devices of it");
  CHECK(failure("cpu:40,stream,cpu:25") ==
        "InvalidArgument: [devices] \"cpu:25\": there would be more than 64 "
        "devices of it");
  CHECK(parse_device_specs("cpu:40,stream:64,cpu:24").ok());
  for (const std::string text :
       {"cpu:0", "cpu:65", "cpu:-1", "cpu:99999999999999999999"})
    CHECK(failure(text) ==
          "InvalidArgument: [devices] \"" + text +
              "\": the number of devices must be from 1 to 64");
  for (const std::string count : {"", "x", "1x", "1.5"})
    CHECK(failure("cpu:" + count) ==
          "InvalidArgument: [devices] \"cpu:" + count + "\": \"" + count +
              "\" is neither a count of devices nor an option, as NAME=VALUE");
  CHECK(failure("cpu:1:2") ==
        "InvalidArgument: [devices] \"cpu:1:2\": \"2\" is not an option, as "
        "NAME=VALUE");
  CHECK(failure("stream:memry=1GB") ==
        "InvalidArgument: [devices] \"stream:memry=1GB\": stream has no option "
        "\"memry\"; it has memory, latency, bandwidth, copy-latency");
  CHECK(failure("stream:memory=much") ==
        "InvalidArgument: [devices] \"stream:memory=much\": memory: \"much\" "
        "is not a size, as 64MiB or 1.5GB");
  CHECK(
      failure("stream:bandwidth=0") ==
      "InvalidArgument: [devices] \"stream:bandwidth=0\": bandwidth: \"0\" is "
      "less than a byte per second");
  // What the type alone knows is said while the text is read, too.
  CHECK(failure("stream:bandwidth=5KB") ==
        "InvalidArgument: [devices] \"stream:bandwidth=5KB\": [stream] a "
        "bandwidth of 5000 bytes per second is below 1 MB/s");
  CHECK(failure("stream:memory=1GB:memory=2GB") ==
        "InvalidArgument: [devices] \"stream:memory=1GB:memory=2GB\": memory "
        "is given twice");
}

TEST_CASE("no text makes the parser fail otherwise than by an error") {
  CHECK(rc::check([](const std::vector<uint8_t>& choices) {
    constexpr std::string_view kPieces[] = {
        "cpu", "stream", ":",  ":",   ",",  "=", "memory", "latency",
        "1",   "64",     "65", "MiB", "us", "0", "-",      "x"};
    std::string text;
    for (const uint8_t choice : choices)
      text += kPieces[choice % std::size(kPieces)];
    const auto specs = parse_device_specs(text);
    if (specs.ok())
      for (const DeviceSpec& spec : *specs)
        RC_ASSERT(spec.count >= 1 && spec.count <= 64);
    else
      RC_ASSERT(specs.status().message().starts_with("[devices] \""));
  }));
}

TEST_CASE("a list of devices has always a CPU, and CPUs come first") {
  using Names = std::vector<std::string>;
  const auto made = [](std::string_view text) {
    return names(*make_devices(*parse_device_specs(text)));
  };
  CHECK(made("") == Names{"CPU:0"});
  CHECK(made("stream:2") == Names{"CPU:0", "STREAM:0", "STREAM:1"});
  CHECK(
      made("stream,cpu:2,imaginary,cpu:memory=1GB,stream") ==
      Names{"CPU:0", "CPU:1", "CPU:2", "STREAM:0", "IMAGINARY:0", "STREAM:1"});
}

TEST_CASE("devices have full names, and incarnations of their own") {
  const auto devices = *make_devices({{"cpu", 2, {}}, {"stream", 2, {}}});
  std::set<uint64_t> incarnations;
  for (const auto& device : devices) {
    const graph::DeviceInfo& info = device->info();
    CHECK(info.name.job == "localhost");
    CHECK(info.name.replica == 0);
    CHECK(info.name.task == 0);
    CHECK(device->type() == *info.name.type);
    CHECK(int64_t(info.incarnation) > 0);
    incarnations.insert(info.incarnation);
  }
  CHECK(incarnations.size() == 4);
}

TEST_CASE("specs that no text could give are refused") {
  const auto failure_of = [](DeviceSpec spec) {
    return make_devices({std::move(spec)}).status().to_string();
  };
  CHECK(
      failure_of({"cpu", 0, {}}) ==
      "InvalidArgument: [devices] \"cpu\": the number of devices must be from "
      "1 to 64");
  CHECK(failure_of({"cpu", 1, {{"memory", 0}}}) ==
        "InvalidArgument: [devices] \"cpu\": memory must be at least 1, but is "
        "0");
  CHECK(failure_of({"imaginary", 1, {{"delay", -1}}}) ==
        "InvalidArgument: [devices] \"imaginary\": delay must be at least 0, "
        "but is -1");
  CHECK(failure_of({"none", 1, {}}) ==
        "InvalidArgument: [devices] \"none\": there is no device type "
        "\"none\"; there are cpu, stream, cuda, imaginary");
  CHECK(make_devices({{"cpu", 40, {}}, {"cpu", 25, {}}}).status().to_string() ==
        "InvalidArgument: [devices] \"cpu\": there would be more than 64 "
        "devices of it");
  CHECK(make_devices({{"cpu", 40, {}}, {"cpu", 24, {}}}).value().size() == 64);
}

TEST_CASE("a program adds device types of its own") {
  CHECK(registered.ok());
  CHECK(graph::DeviceName::parse("/job:a/imaginary:0")->type == "IMAGINARY");
  const auto devices =
      *make_devices(*parse_device_specs("imaginary:2:delay=3us"));
  REQUIRE(devices.size() == 3);
  CHECK(devices[2]->type() == "IMAGINARY");
  CHECK(devices[2]->info().launch_ns == 3000);
  CHECK(make_devices(*parse_device_specs("imaginary:3")).status().to_string() ==
        "NotFound: [imaginary] there are only two");
  expect_error(DeviceRegistry::global().add(imaginary_type()),
               Code::kAlreadyExists,
               "[devices] the type IMAGINARY (\"imaginary\") is registered "
               "already");
  DeviceRegistry own;
  CHECK(own.add(imaginary_type()).ok());
  CHECK(own.types().size() == 1);
  expect_error(make_devices({}, own), Code::kInvalidArgument,
               "there is no device type \"cpu\"; there are imaginary");
}

TEST_CASE("an exception of a device type is an error that names it") {
  using Made = Result<std::unique_ptr<Device>>;
  const auto failure_of = [](auto make, auto check) {
    DeviceRegistry own;
    DeviceType type = imaginary_type();
    type.make = [make](const DeviceSpec&, graph::DeviceInfo) -> Made {
      return make();
    };
    type.check_values = [check](const DeviceSpec&) -> Status {
      return check();
    };
    CHECK(own.add(std::move(type)).ok());
    DeviceType cpu = *DeviceRegistry::global().find("cpu");
    CHECK(own.add(std::move(cpu)).ok());
    return make_devices({{"imaginary", 1, {}}}, own).status().to_string();
  };
  const auto fine = [] { return Status(); };
  const auto none = []() -> Made { return std::unique_ptr<Device>(); };
  CHECK(failure_of([]() -> Made { throw 3; }, fine) ==
        "Internal: [devices] \"imaginary\": unexpected exception of type int");
  CHECK(failure_of([]() -> Made { throw std::bad_alloc(); }, fine) ==
        "ResourceExhausted: [devices] \"imaginary\": out of memory");
  CHECK(failure_of(none, []() -> Status { throw 3; }) ==
        "Internal: [devices] \"imaginary\": unexpected exception of type int");
  CHECK(failure_of(none, fine) ==
        "Internal: [devices] \"imaginary\": there is no device");
}

TEST_CASE("a type without options says so") {
  DeviceType type = imaginary_type();
  type.options.clear();
  DeviceRegistry own;
  REQUIRE(own.add(type).ok());
  expect_error(parse_device_specs("imaginary:delay=1s", own),
               Code::kInvalidArgument,
               "[devices] \"imaginary:delay=1s\": imaginary has no options");
}

TEST_CASE("the help says what a device has that was asked for nothing") {
  for (const char* keyword : {"cpu", "stream"}) {
    const DeviceType type = *DeviceRegistry::global().find(keyword);
    const auto memory =
        std::ranges::find(type.options, "memory", &DeviceOption::name);
    REQUIRE(memory != type.options.end());
    const size_t open = memory->help.rfind('(');
    const std::string text =
        memory->help.substr(open + 1, memory->help.size() - open - 2);
    const Result<int64_t> said = parse_quantity(Quantity::kBytes, text);
    const auto devices = *make_devices(keyword);
    const int64_t limit = devices.back()->memory().limit;
    CHECK((text == "no limit" ? 0 : *said) == limit);
  }
}

TEST_CASE("the help has a line for each type and option") {
  const std::string help = DeviceRegistry::global().help();
  CHECK(help.find("cpu      the processor; its kernels run on the engine's "
                  "workers\n  memory=        ") == 0);
  CHECK(help.find("  bandwidth=     bandwidth of copies (that of the host): "
                  "bytes per second, as 8GB/s\n") != std::string::npos);
  CHECK(help.find("imaginary only a test has it\n") != std::string::npos);
}

}  // namespace tagflow::devices
