// The doors of gRPC to a model server: what clients of TensorFlow Serving call.
#pragma once

#include <memory>
#include <vector>

#include "net/grpc/server.h"

namespace tagflow::net {

namespace serving {
class ModelServer;  // net/serving/model_server.h
class TaskPool;     // net/serving/task_pool.h
}  // namespace serving

// tensorflow.serving.PredictionService and ModelService. The server and the
// pool, on which models are loaded, outlive the doors. A call that its client
// gives up is cancelled; one with a deadline ends by it.
std::vector<std::unique_ptr<GrpcService>> make_serving_doors(
    serving::ModelServer& server, serving::TaskPool& pool);

}  // namespace tagflow::net
