// What clients ask of models, whatever protocol they speak.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/status.h"
#include "graph/tensor.h"
#include "net/serving/call_end.h"

namespace tagflow::net::serving {

class Servable;

// By the names of a signature's inputs or outputs.
using Tensors = std::map<std::string, Tensor>;

// Which version of which model: by number, by label, or else the newest one
// that is available.
struct ModelSpec {
  std::string name;
  std::optional<int64_t> version;
  std::string label;      // empty: none
  std::string signature;  // empty: "serving_default"
};

// How much memory of a request's inputs may repeat what its message has once.
inline constexpr int64_t kMostRepeatedBytes = int64_t{1} << 26;

inline constexpr char kDefaultSignature[] = "serving_default";

struct PredictRequest {
  ModelSpec model;
  // The version that answers, if it was looked up already, to read the inputs:
  // meanwhile it may have made way for a newer one. Null: `model` says which.
  std::shared_ptr<const Servable> servable;
  Tensors inputs;
  // The outputs that the answer has; empty: all.
  std::vector<std::string> output_filter;
  // When the client waits no longer.
  std::optional<std::chrono::steady_clock::time_point> deadline;
  std::shared_ptr<CallEnd> end;  // null: the client never goes
};

struct PredictResponse {
  ModelSpec model;  // with the version that answered
  Tensors outputs;
};

// Is called once, on any thread, and must not block.
using PredictDone = std::function<void(Result<PredictResponse>)>;

}  // namespace tagflow::net::serving
