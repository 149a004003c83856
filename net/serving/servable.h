// Servable: one version of a model, loaded, with its signatures.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/checkpoint/saved_model.h"
#include "net/serving/request.h"

namespace tagflow::net::serving {

// An input or output of a signature.
struct TensorSpec {
  std::string tensor;  // "node:port"
  DataType dtype = DataType::kInvalid;
  PartialShape shape;
  bool has_default = false;  // an input that need not be given

  // "float[?,3]".
  std::string describe() const;
};

struct ServedSignature {
  std::string name;
  std::string method;  // "tensorflow/serving/predict"; may be empty
  std::map<std::string, TensorSpec> inputs, outputs;
  // Whether rows of several requests may be one run: as far as is known, the
  // first dimension of each input and output is the number of rows.
  bool has_rows = false;
  // Why it cannot run; calls return it.
  Status broken;
};

struct ServableOptions {
  // What the session of each model has. Its policy says which ops models have;
  // the files that these may use, too, only if the next option is set.
  actors::SessionOptions session;
  // Whether signatures may read and write files. If not, a model with such a
  // signature is not loaded, and a load reads the model's own files alone.
  bool allows_file_ops = false;
};

// Thread-safe. Its end waits for its runs, unless it is on a thread of the
// engine.
class Servable {
 public:
  // Reads a SavedModel's folder. Errors of actors::SavedModel::load();
  // PermissionDenied if a signature uses files and must not;
  // FailedPrecondition if there is no signature. `stop` ends it early.
  static Result<std::shared_ptr<const Servable>> load(
      const std::string& model, int64_t version,
      const std::filesystem::path& folder, const ServableOptions& options,
      const actors::CancelToken& stop = {});

  const std::string& model() const { return model_; }
  int64_t version() const { return version_; }
  const std::map<std::string, ServedSignature>& signatures() const {
    return signatures_;
  }
  // "": serving_default. NotFound with the names that there are.
  Result<const ServedSignature*> signature(const std::string& name) const;

  // InvalidArgument unless the values are those of the signature's inputs, in
  // type and shape, and none is missing, and all names of the filter are those
  // of outputs, each once.
  Status check(const ServedSignature& signature, const Tensors& inputs,
               const std::vector<std::string>& output_filter) const;

  // Runs the signature. `done` gets the outputs of the filter; it is called as
  // that of Session::run_async(). REQUIRES: check() is OK
  using Done = std::function<void(Result<Tensors>)>;
  void run(const ServedSignature& signature, const Tensors& inputs,
           const std::vector<std::string>& output_filter,
           const actors::RunOptions& options, Done done) const;

 private:
  Servable() = default;
  Status add_signature(const std::string& name,
                       const graph::Signature& signature, bool allows_file_ops);

  std::string model_;
  int64_t version_ = 0;
  std::map<std::string, ServedSignature> signatures_;
  std::unique_ptr<actors::SavedModel> saved_;
  // From all inputs to all outputs, by signature. Destroyed first.
  std::map<std::string, actors::Callable> calls_;
};

}  // namespace tagflow::net::serving
