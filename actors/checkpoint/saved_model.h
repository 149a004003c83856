// SavedModel: a model that TensorFlow saved, with the values of its variables.
//
//   auto model = actors::SavedModel::load("exported").value();
//   auto results = model->run("train", {{"x", images}, {"y", labels}});
//   if (results.ok()) std::puts(results->at("loss").describe().c_str());
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "actors/session/session.h"
#include "graph/file/graphdef.h"

namespace tagflow::actors {

// Loads the saved state of a session's model into its variables, tables and
// queues. `model` is the path from which graph::load_file() read `state`. In
// this order:
//   1. The variables get the values of the checkpoint: variables/variables in a
//      SavedModel's folder, or, for "x.meta", that with the prefix "x". The
//      graph's own saver restores them; if it has none, they are found by the
//      objects of the program, or, if the model or the checkpoint has no
//      objects, by their names.
//   2. The model's init op runs, which fills tables, for example.
// Tensors that represent assets are fed absolute paths.
//
// Variables that the checkpoint does not have are not changed; nor are those of
// a MetaGraph without a checkpoint. Errors, which name the file and the
// variable:
//   NotFound         there is no checkpoint of a SavedModel with variables; a
//                    file of it, an asset, or a variable is missing
//   DataLoss         the checkpoint is damaged
//   InvalidArgument  a variable has another type or shape; the objects are not
//                    those of the graph
//   Unimplemented    the checkpoint is of version 1
//   PermissionDenied a link leads from an asset out of the model's folder, or
//                    from a file of the checkpoint to where neither the model
//                    is nor the session's policy lets ops read
//   those of Session::run()
// REQUIRES: as for Session::run(); the graph is in the session. Thread-safe.
Status load_saved_state(Session& session, const graph::SavedState& state,
                        const std::filesystem::path& model,
                        const RunOptions& options = {});

// Thread-safe. Its destructor waits as that of its session.
class SavedModel {
 public:
  using Tensors = std::map<std::string, Tensor>;

  // Reads a SavedModel's folder or a MetaGraph (graph::load_file), makes a
  // session with it, and loads its state. If there are several devices, the
  // signatures are placed before their variables get values: so each variable
  // is on the device where the signatures need it. Errors as of
  // check_model_file(), load_file(), build_graph(), Session::create() and
  // load_saved_state(), whose runs have `restoring`. Cancelled if its token is;
  // files are read to their end, though.
  static Result<std::unique_ptr<SavedModel>> load(
      const std::filesystem::path& path, SessionOptions options = {},
      const RunOptions& restoring = {});

  // Runs a signature: from its inputs to its outputs, by their names. NotFound
  // if there is no signature of that name; InvalidArgument if an input without
  // a default is missing, or an input is unknown. Otherwise as Session::run().
  Result<Tensors> run(const std::string& signature, const Tensors& inputs,
                      const RunOptions& options = {},
                      RunStats* stats = nullptr);

  // Names that begin with "__" are those of TensorFlow's internal signatures.
  const std::map<std::string, graph::Signature>& signatures() const {
    return signatures_;
  }
  const graph::SavedState& state() const { return state_; }
  // The queue runners of the model: start_queue_runners() starts them.
  const std::vector<graph::QueueRunnerDef>& queue_runners() const {
    return queue_runners_;
  }
  Session& session() { return *session_; }

 private:
  // What runs when a signature is called with these inputs.
  struct Call {
    std::vector<std::string> outputs;  // the signature's names
    Callable callable;
  };

  SavedModel() = default;
  Result<std::shared_ptr<const Call>> call_of(const std::string& signature,
                                              const Tensors& inputs);
  Result<std::shared_ptr<const Call>> make_call(
      const std::string& signature, const std::vector<std::string>& names);

  std::map<std::string, graph::Signature> signatures_;
  graph::SavedState state_;
  std::vector<graph::QueueRunnerDef> queue_runners_;
  std::unique_ptr<Session> session_;
  std::mutex mutex_;  // guards the below
  std::map<std::pair<std::string, std::vector<std::string>>,
           std::shared_ptr<const Call>>
      calls_;
};

}  // namespace tagflow::actors
